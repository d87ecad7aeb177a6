"""The names that Python code gives fields, for the messages about mistakes.

Only they need this module: programs without mistakes do not load it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import attrs

from muybridge_protocol.families.family import Family, any_link
from muybridge_protocol.rules.values import Problem


def python_names(family: Family) -> dict[str, str]:
    """Return the Python names of the fields of *family* that have another one on the wire."""
    return {field.wire: field.name for field in family.fields if field.wire != field.name}


def with_names(problems: Iterable[Problem], names: Mapping[str, str]) -> tuple[Problem, ...]:
    """Return *problems* worded with other *names* of fields, by those on the wire."""
    if not names:
        return tuple(problems)
    wires = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")

    def renamed(text: str) -> str:
        return wires.sub(lambda found: names[found[0]], text)

    return tuple(
        attrs.evolve(
            problem,
            message=renamed(problem.message),
            accepted=renamed(problem.accepted),
            named=names.get(problem.field, problem.named),
        )
        for problem in problems
    )


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


def with_places(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield *problems*, with where a field belongs that the family does not have."""
    for problem in problems:
        if problem.rule != "unknown_field":
            yield problem
        elif problem.field in OF_CALLS:
            line = OF_CALLS[problem.field].format(problem.field)
            yield attrs.evolve(problem, accepted=f"write {line}")
        elif not problem.accepted.startswith("did you mean"):
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
    other = python_names(family)
    wrong = with_names(with_places(family.unknown(name, fields[name]) for name in unknown), other)
    as_typed = (attrs.evolve(problem, named=problem.field) for problem in wrong)
    problems = family.check(family.plain(body), extra=extra, own=any_link).problems
    return (*as_typed, *with_names(problems, other))
