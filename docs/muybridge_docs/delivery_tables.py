"""The meaning of failures and statuses, from the tables by which operations decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muybridge_docs.assignments import said_of
from muybridge_docs.markdown import code, codes, table
from muybridge_protocol import delivery as tables
from muybridge_protocol.delivery import CREATE, DELETE, DOWNLOAD, POLL, Verdict
from muybridge_protocol.http import Phase, Reason, TransportFailure
from muybridge_protocol.operations import create, download, operation, poll

COLUMNS: Mapping[str, tables.Delivery[Verdict]] = {
    "create, text": CREATE,
    "result query": POLL,
    "delete": DELETE,
    "download": DOWNLOAD,
}
"""The kinds of request."""


def delivery() -> str:
    """Return the verdicts for each kind of request, and what the verdicts mean."""
    meanings = said_of(tables)
    words = table(
        ("Verdict", "Meaning"),
        ((word(verdict), meanings[f"Verdict.{verdict.name}"]) for verdict in Verdict),
    )
    return f"{table(('What happened', *COLUMNS), _rows())}\n\n{words}"


def word(verdict: Verdict) -> str:
    """Return *verdict* as it is shown: a create that may have been accepted stands out."""
    shown = verdict.name.lower().replace("_", " ")
    return f"**{shown}**" if verdict is Verdict.AMBIGUOUS else shown


def _rows() -> Iterator[tuple[str, ...]]:
    for told, failures in _failures().items():
        yield told, *_words(tuple(_only(kind, failures) for kind in COLUMNS.values()))
    groups: dict[tuple[Verdict, ...], list[int]] = {}
    for status in sorted({status for kind in COLUMNS.values() for status in kind.statuses}):
        verdicts = tuple(kind.judge_status(status) for kind in COLUMNS.values())
        groups.setdefault(verdicts, []).append(status)
    yield "2xx", *_words(tuple(kind.judge_status(200) for kind in COLUMNS.values()))
    yield "3xx", *_words(tuple(kind.redirect for kind in COLUMNS.values()))
    for verdicts, statuses in sorted(groups.items(), key=lambda group: group[1]):
        yield codes(statuses), *_words(verdicts)
    yield "any other status", *_words(tuple(kind.other for kind in COLUMNS.values()))


def _failures() -> Mapping[str, list[TransportFailure]]:
    """Return every possible failure, by its description."""
    unsent = [TransportFailure(phase=Phase.CONNECT, sent=False, reason=why) for why in Reason]
    lasting = [each for each in unsent if CREATE.judge_failure(each) is Verdict.NOT_SENT]
    reasons = codes(each.reason for each in lasting)
    return {
        "no byte was sent": [each for each in unsent if each not in lasting],
        f"no byte was sent, and a retry would not help: {reasons}": lasting,
        "a byte was sent, but no complete response came": [
            TransportFailure(phase=phase, sent=True, reason=why)
            for phase in Phase
            for why in Reason
        ],
    }


def _only(kind: tables.Delivery[Verdict], failures: list[TransportFailure]) -> Verdict:
    """Return the verdict that all *failures* share."""
    (verdict,) = {kind.judge_failure(failure) for failure in failures}
    return verdict


def _words(verdicts: tuple[Verdict, ...]) -> tuple[str, ...]:
    return tuple(map(word, verdicts))


def tries() -> str:
    """Return the core's constants for retries and waits."""
    rows: list[tuple[str, ...]] = []
    for module in (tables, operation, create, poll, download):
        for name, meaning in said_of(module).items():
            value = getattr(module, name, None)
            if name.isupper() and isinstance(value, int | float):
                rows.append((code(name), f"{value:,g}" if value < 1e7 else f"{value:,}", meaning))  # noqa: PLR2004  larger values lose digits
    return table(("Constant", "Value", "Meaning"), rows)
