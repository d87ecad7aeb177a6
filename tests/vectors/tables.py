"""The tables by which requests are checked and responses are judged, as vectors."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping

from muybridge.cli.records import family_record
from muybridge_protocol.delivery import CREATE, DELETE, DOWNLOAD, POLL, Delivery
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.http import Phase, Reason, TransportFailure
from muybridge_protocol.rules import relations, values
from muybridge_protocol.rules.media_urls import MediaUrl

from .scripts import STATUSES
from .telling import Told

_KINDS: Mapping[str, Delivery[object]] = {
    "create": CREATE,
    "generate_content": CREATE,
    "poll": POLL,
    "delete_asset": DELETE,
    "download": DOWNLOAD,
}
_PHASES = {True: Phase.HEAD, False: Phase.CONNECT}

_VALUES = (
    values.OneOf, values.Between, values.Text, values.ModelName, values.Items, values.NotSet,
    values.PixelSize, MediaUrl,
)  # fmt: skip
_RELATIONS = (
    relations.Requires, relations.Excludes, relations.Alternatives, relations.RequiredFor,
    relations.OnlyWith, relations.FewerWith,
)  # fmt: skip
_OTHERS = {
    "type": "The value has the type of its field. It is checked before all other rules.",
    "required": "The field is sent. Texts: neither is it empty.",
    "unknown_field": "The family has a field of this name.",
    "alias": "A legacy name is not sent beside its new name with another value.",
    "variant": "The text model has this variant.",
}


def family_cases() -> list[Told]:
    """Return each family with its fields, rules and models."""
    return [family_record(family) for family in FAMILIES.values()]


def rule_cases() -> list[Told]:
    """Return the name of each rule, and what it demands."""
    named = [
        {"name": rule.name, "of": of, "says": (inspect.getdoc(rule) or "").partition("\n\n")[0]}
        for of, rules in (("value", _VALUES), ("relation", _RELATIONS))
        for rule in rules
    ]
    return [
        *({**rule, "says": " ".join(rule["says"].split())} for rule in named),
        *({"name": name, "of": "request", "says": says} for name, says in _OTHERS.items()),
    ]


def delivery_cases() -> list[Told]:
    """Return what each status and each failure means for each kind of request."""
    return [
        {"name": f"{kind}: {name}", "kind": kind, **happened, "verdict": verdict}
        for kind, table in _KINDS.items()
        for name, happened, verdict in _judged(table)
    ]


def _judged(table: Delivery[object]) -> Iterator[tuple[str, Told, str]]:
    for status in (*STATUSES, 206, 301, 410):
        verdict = table.judge_status(status)
        yield str(status), {"status": status}, getattr(verdict, "name").lower()  # noqa: B009
    for reason in Reason:
        for sent in (False, True):
            failure = TransportFailure(phase=_PHASES[sent], sent=sent, reason=reason)
            yield (
                f"{reason.value}, {'sent' if sent else 'not sent'}",
                {"failure": {"sent": sent, "reason": reason.value}},
                table.judge_failure(failure).name.lower(),
            )
