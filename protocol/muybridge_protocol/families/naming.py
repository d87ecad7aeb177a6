"""Mistakes in the names that Python code gives fields.

Only they need this module: programs without mistakes do not load it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import attrs

from muybridge_protocol.families.family import Family, any_link
from muybridge_protocol.rules.values import Problem

OF_CALLS = {
    **dict.fromkeys(
        ("api_key", "base_url", "poll_interval", "on_submitted", "on_event", "budget", "transport"),
        "muybridge.Client({}=...)",
    ),
    **dict.fromkeys(("timeout", "on_update"), "client.run(request, {}=...)"),
    "concurrency": "client.run_all(requests, {}=...)",
    "n": "client.run_all([request] * {})",
}
"""What belongs to a client or a call instead of a request, and what to write."""


def with_places(family: Family, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield *problems*, with where a field belongs that *family* does not have."""
    for problem in problems:
        if problem.rule != "unknown_field":
            yield problem
        elif problem.field in OF_CALLS:
            line = OF_CALLS[problem.field].format(problem.field)
            yield attrs.evolve(problem, accepted=f"write {line}")
        elif not family.suggestion(problem.field):
            line = f"extra={{{problem.field!r}: ...}} sends it unchecked"
            yield attrs.evolve(problem, accepted=f"{problem.accepted}; {line}")
        else:
            yield problem


def problems_of_names(family: Family, fields: Mapping[str, object]) -> tuple[Problem, ...]:
    """Return all problems of *fields*, some of whose names are wrong or missing."""
    names = {field.name: field for field in family.fields}
    body = {
        names[name].wire: value
        for name, value in fields.items()
        if name in names and (value is not None or names[name].required)
    }
    extra = cast("Mapping[str, object] | None", fields.get("extra"))
    unknown = (name for name in fields if name not in names and name != "extra")
    wrong = (family.unknown(name, fields[name], family.python_name) for name in unknown)
    as_typed = (
        attrs.evolve(problem, named=problem.field) for problem in with_places(family, wrong)
    )
    report = family.check(family.plain(body), extra=extra, own=any_link, name=family.python_name)
    return (*as_typed, *report.problems)
