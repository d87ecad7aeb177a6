"""How a result is told: where it was saved, or where it can be fetched and until when."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from muybridge.cli.errand import Errand
from muybridge.cli.records import outcome_record
from muybridge.cli.terminal import answer, answer_path, document, say
from muybridge_protocol.tasks import Result


def tell_result(errand: Errand, result: Result, path: Path | None) -> None:
    """Print where the result is: the path it was saved to, or its URL and how long that works."""
    if errand.json:
        document(outcome_record(errand.task, result, path, errand.warnings))
    elif path is not None:
        answer_path(path)
    else:
        expires = expiry(result)
        if errand.local:
            say("the local service has ended, and the URL with it: -o PATH saves the result")
        elif expires is not None:
            say(f"the URL works until {expires}")
        answer(result.url or "")


def expiry(result: Result) -> str | None:
    """Return when the result's URL stops working, for people, or None where not known."""
    try:
        ends = None if result.expires_at is None else datetime.fromtimestamp(result.expires_at, UTC)
    except (OverflowError, OSError, ValueError):  # `created` is not a time
        return None
    return None if ends is None else f"{ends:%Y-%m-%d %H:%M} UTC"
