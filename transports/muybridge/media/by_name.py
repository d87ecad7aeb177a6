"""Requests given as the name of a family and a mapping of fields, beside typed requests.

The fields have their names in Python or on the wire. They are checked as those of a typed request
are, and all problems are reported together. A path, bytes or an open file in a field for media is
loaded as `load_media` does, with `allow_inline` of the mapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import attrs

from muybridge.media.loading import local_media, with_files
from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import find_family
from muybridge_protocol.families.family import Family, any_link, named
from muybridge_protocol.families.naming import with_places
from muybridge_protocol.families.request import MediaRequest, parse, with_loading
from muybridge_protocol.rules.files import IN_FIELDS
from muybridge_protocol.rules.media_urls import ALLOW_INLINE
from muybridge_protocol.rules.values import Problem, is_array, shown

_ALLOW_INLINE = "allow_inline"

Fields = Mapping[str, object]
"""The fields of a request, by their names in Python or on the wire, `extra` and `allow_inline`."""


def request_by_name(family: object, fields: object) -> MediaRequest:
    """Return the request of the family called *family* with *fields*.

    Raises:
        InvalidRequest: The service would reject it, or a file cannot be sent. All problems are
            listed.
        LocalError: There is no such family.
        TypeError: *family* is no name, or *fields* are no mapping.
    """
    if not isinstance(family, str):
        raise TypeError(
            f"{shown(family)} is not the name of a family, and only a name takes fields: give "
            "a request alone, or a name and the fields. Nothing was sent."
        )
    if not isinstance(fields, Mapping):
        raise TypeError(
            f"{shown(fields)} is not a mapping of fields: write the request as "
            f'{shown(family)}, {{"prompt": ..., ...}}. Nothing was sent.'
        )
    table = find_family(family)
    given = cast("Fields", fields)
    extra, body, wrong = _by_wire(table, given)
    allow_inline = body.pop(_ALLOW_INLINE, None)
    if allow_inline is not None and not isinstance(allow_inline, bool):
        message = f"{shown(allow_inline)} is not a boolean"
        wrong.append(Problem(_ALLOW_INLINE, allow_inline, "type", message, "use True or False"))

    def name(wire: str) -> str:
        python_name = table.python_name(wire)
        return python_name if python_name in given else wire

    body, wrong_files = with_files(
        table, body, local_media, IN_FIELDS, allow_inline=allow_inline is True, name=name
    )
    report = table.check(body, extra=extra, own=any_link, name=name)
    blamed = {problem.field for problem in wrong_files}
    placed = with_places(table, report.problems)
    others = [_in_mapping(one) for one in placed if one.field not in blamed]
    if wrong or wrong_files or others:
        problems = (*named(wrong_files, name), *others)
        raise InvalidRequest(table.name, (*wrong, *with_loading(problems, table, IN_FIELDS, name)))
    return parse(table, body, extra=extra)


def _in_mapping(problem: Problem) -> Problem:
    remedies = (
        attrs.evolve(one, owner="fields") if one == ALLOW_INLINE else one
        for one in problem.remedies
    )
    return attrs.evolve(problem, remedies=tuple(remedies))


def holds_files(fields: object) -> bool:
    """Whether any of *fields* is a file, so that making the request reads it."""
    values = cast("Fields", fields).values() if isinstance(fields, Mapping) else ()
    items = (item for value in values for item in (value if is_array(value) else (value,)))
    return any(local_media(item) is not None for item in items)


def by_wire(family: Family, fields: Fields) -> tuple[dict[str, object], list[Problem]]:
    """Return *fields* as they are sent, by their names on the wire, and those given twice."""
    body: dict[str, object] = {}
    given: dict[str, str] = {}
    doubled: list[Problem] = []
    for name, value in fields.items():
        wire = family.wire_name(name)
        if wire in body:
            message = f"is given twice, as {given[wire]} and {name}"
            doubled.append(Problem(wire, value, "alternatives", message, "give it once"))
        else:
            body[wire], given[wire] = value, name
    return family.plain(body), doubled


def _by_wire(
    family: Family, fields: Fields
) -> tuple[Fields | None, dict[str, object], list[Problem]]:
    """Return the extra fields, the others by their names on the wire, and those given twice."""
    names = {name for field in family.fields for name in (field.name, field.wire)}
    body, doubled = by_wire(
        family,
        {
            name: value
            for name, value in fields.items()
            # None stands for a field that is not set, as in a typed request.
            if name != "extra" and not (value is None and name in names)
        },
    )
    return cast("Fields | None", fields.get("extra")), body, doubled
