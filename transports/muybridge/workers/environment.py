"""What a worker under a job queue reads from its environment, and never from a message."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final, Self

import attrs

from muybridge.batch.results.places.opening import open_store, spool_of
from muybridge.batch.running.worker import CONCURRENCY, CREATES
from muybridge_protocol.errors import LocalError, MuybridgeError

TURN: Final = 600
"""Seconds after which a turn ends, far below the time after which Redis repeats a message."""
_AT_ONCE: Final = 256
"""The limit that `muybridge worker` has, too."""


@attrs.frozen(kw_only=True)
class WorkerSettings:
    """The settings of a worker.

    Args:
        store: The store of the batches: `MUYBRIDGE_STORE`.
        out: Where results go: `MUYBRIDGE_OUT`, or None for where the batch was submitted with.
        spool: The folder for unfinished downloads and responses: `MUYBRIDGE_SPOOL`, or None.
        creates: Most creates under way at once: `MUYBRIDGE_WORKER_CREATES`.
        concurrency: Most tasks in progress at once: `MUYBRIDGE_WORKER_CONCURRENCY`.
        seconds: Seconds that a turn takes at most: `MUYBRIDGE_WORKER_TURN`.
    """

    store: str = attrs.field(repr=False)
    out: str | None
    spool: str | None
    creates: int
    concurrency: int
    seconds: int

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from *environ*.

        Raises:
            LocalError: One is missing or not valid.
        """
        return cls(
            store=_required(environ, "MUYBRIDGE_STORE", "postgresql://USER@HOST/DATABASE"),
            out=environ.get("MUYBRIDGE_OUT") or None,
            spool=environ.get("MUYBRIDGE_SPOOL") or None,
            creates=_number(environ, "MUYBRIDGE_WORKER_CREATES", CREATES, _AT_ONCE),
            concurrency=_number(environ, "MUYBRIDGE_WORKER_CONCURRENCY", CONCURRENCY, _AT_ONCE),
            seconds=_number(environ, "MUYBRIDGE_WORKER_TURN", TURN, 10**6),
        )

    def check(self) -> None:
        """Check what can be known about the database and the place without reaching them.

        Raises:
            LocalError: One of them is not valid, or needs a package that is not installed.
        """
        from muybridge.purchases.postgres_connections import named

        with _about("MUYBRIDGE_STORE"):
            named(self.store)
        if self.out is not None:
            with _about("MUYBRIDGE_OUT"):
                open_store(self.out, spool_of(self.out, self.spool))


@contextmanager
def _about(name: str) -> Generator[None, None, None]:
    """Let an error of the block name the setting that it is about."""
    try:
        yield
    except (MuybridgeError, ImportError) as error:
        raise LocalError(f"{name}: {error}") from None


def _required(environ: Mapping[str, str], name: str, example: str) -> str:
    value = environ.get(name)
    if not value:
        raise LocalError(f"{name} is not set: it is {example}. Nothing was sent.")
    return value


def _number(environ: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = environ.get(name)
    if not text:
        return default
    if not (
        text.isascii() and text.isdigit() and len(text) <= len(str(most)) and 1 <= int(text) <= most
    ):
        raise LocalError(f"{name} must be a whole number from 1 to {most}. Nothing was sent.")
    return int(text)
