"""Files of requests on the command line, and the verdicts on their items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, BinaryIO

from muybridge.cli.terminal import say
from muybridge.verbs.request_files import Verdict


def ask_for_items(file: BinaryIO) -> None:
    """Say what to type if a person types the items."""
    if file.isatty():
        say("type one JSON object per line; press Ctrl-D to finish")


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
