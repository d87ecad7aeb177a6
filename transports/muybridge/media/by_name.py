"""Requests given as the name of a family and a mapping of fields, beside typed requests.

The fields have their names in Python or on the wire. They are checked as those of a typed request
are, and all problems are reported together. A path, bytes or an open file in a field for media is
loaded as `load_media` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from muybridge.media.loading import local_media, with_files
from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import find_family
from muybridge_protocol.families.family import Family
from muybridge_protocol.families.request import MediaRequest, with_hint
from muybridge_protocol.rules.values import Problem, is_array, shown

Fields = Mapping[str, object]
"""The fields of a request, by their names in Python or on the wire, and `extra`."""


def request_by_name(family: object, fields: object) -> MediaRequest:
    """Return the request of the family called *family* with *fields*.

    Raises:
        InvalidRequest: The service would reject it, or a file cannot be sent. All problems are
            listed.
        UnknownFamily: There is no such family.
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
    known = find_family(family)
    extra, body, doubled = _by_wire(known, cast("Fields", fields))
    body, wrong_files = with_files(known, body, local_media, allow_inline=False)
    report = known.check(body, extra=extra)
    blamed = {problem.field for problem in wrong_files}
    found = [problem for problem in report.problems if problem.field not in blamed]
    if doubled or wrong_files or found:
        error = InvalidRequest(known.name, (*doubled, *wrong_files, *found))
        raise with_hint(error, known, "a pathlib.Path")
    return known.parse(body, extra=extra)


def holds_files(fields: object) -> bool:
    """Whether any of *fields* is a file, so that making the request reads it."""
    values = cast("Fields", fields).values() if isinstance(fields, Mapping) else ()
    items = (item for value in values for item in (value if is_array(value) else (value,)))
    return any(local_media(item) is not None for item in items)


def _by_wire(
    family: Family, fields: Fields
) -> tuple[Mapping[str, object], dict[str, object], list[Problem]]:
    """Return the extra fields, the others by their names on the wire, and those given twice."""
    wires = {field.name: field.wire for field in family.fields}
    body: dict[str, object] = {}
    doubled: list[Problem] = []
    for name, value in fields.items():
        wire = wires.get(name, name)
        if wire in body:
            message = f"is given twice, as {wire} and {name}"
            doubled.append(Problem(wire, value, "alternatives", message, "give it once"))
        elif name != "extra" and (value is not None or wire not in wires.values()):
            body[wire] = value  # None stands for a field that is not set, as in a typed request
    extra = fields.get("extra")
    if extra is not None and not isinstance(extra, Mapping):
        message = f"{shown(extra)} is not a mapping"
        doubled.append(Problem("extra", extra, "type", message, "use a mapping of names to values"))
        extra = None
    return cast("Fields", extra or {}), body, doubled
