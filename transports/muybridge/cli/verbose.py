"""The library's own log on stderr, line by line."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager

from muybridge.cli.terminal import say


class _Lines(logging.Handler):
    """Says each record in a line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print *record* on stderr, without control characters."""
        say(self.format(record))


@contextmanager
def logging_to_stderr(name: str = "muybridge") -> Generator[None, None, None]:
    """Log on stderr while the context lasts.

    Args:
        name: The logger: by default, the one of each call, request and response.
    """
    logger = logging.getLogger(name)
    before = logger.level, logger.propagate
    lines = _Lines()
    lines.setFormatter(logging.Formatter("%(asctime)s.%(msecs)03d %(message)s", "%H:%M:%S"))
    logger.addHandler(lines)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(lines)
        logger.setLevel(before[0])
        logger.propagate = before[1]
