"""Files of requests on the command line, and the verdicts on their items."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, BinaryIO

import click

from muybridge.cli.terminal import say
from muybridge.verbs.request_files import FileUnreadable, Verdict


@contextmanager
def reading(file: BinaryIO) -> Generator[None, None, None]:
    """Ask for the items if a person types them, and report a file that cannot be read.

    Raises:
        click.UsageError: The file cannot be read.
    """
    if file.isatty():
        say("type one JSON object per line; press Ctrl-D to finish")
    try:
        yield
    except FileUnreadable as error:
        raise click.UsageError(f"the requests cannot be read: {error.strerror}") from None


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """Return the errors of an item as programs read them."""
    return {
        **verdict.place,
        "family": verdict.family,
        "errors": finding_records(verdict.errors),
    }


def finding_records(findings: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Return findings as programs read them."""
    return [{"field": field, "message": message} for field, message in findings]
