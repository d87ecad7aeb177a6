"""Loads the files that are named in a request's fields, in place of URLs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import cast

import attrs

from muybridge.files.inline_media import LOADABLE, LocalMedia, line_for, load_media
from muybridge.media.files import file_named
from muybridge_protocol.errors import LocalError
from muybridge_protocol.families.family import Family
from muybridge_protocol.families.references import media_fields
from muybridge_protocol.media.inline import TYPED, InlineMedia, is_file
from muybridge_protocol.records.json import readable
from muybridge_protocol.remedies import Remedy
from muybridge_protocol.rules.files import FileForms
from muybridge_protocol.rules.values import Naming, Problem, is_array, shown

FileIn = Callable[[object], LocalMedia | None]
"""Returns the file that a value names, or None if it names none."""


def local_media(value: object) -> LocalMedia | None:
    """Return *value* if it is a path, bytes or an open file."""
    if isinstance(value, InlineMedia) or not is_file(value):
        return None
    return cast("LocalMedia", value)


def with_files(
    family: Family,
    body: Mapping[str, object],
    file_in: FileIn,
    forms: FileForms,
    *,
    allow_inline: bool,
    name: Naming = str,
) -> tuple[dict[str, object], list[Problem]]:
    """Return *body* with the content of its files, and the problems of files that cannot be sent.

    Args:
        family: The family of the request.
        body: The request's fields, by their names on the wire.
        file_in: Recognizes the values that name files.
        forms: How a file is written in the request.
        allow_inline: Whether files may be sent where the specification does not mention base64.
        name: Returns what the caller calls a field, given its name on the wire.
    """
    problems: list[Problem] = []

    def loaded(wire: str, value: object) -> object:
        if is_array(value):
            return [loaded(wire, item) for item in value]
        # The consent is for the whole request, also for files that were loaded before it was given.
        if isinstance(value, InlineMedia) and allow_inline:
            return InlineMedia(value.data, value.mime_type, name=value.name, allow_inline=True)
        file = file_in(value)
        if file is None:
            return value
        rule, accepted = "media", "use a file or a URL"
        remedies: tuple[Remedy, ...] = ()
        try:
            return load_media(file, allow_inline=allow_inline)
        except OSError as error:
            is_path = isinstance(file, str) or hasattr(file, "__fspath__")
            path = (readable(str(file)) or "an empty path") if is_path else "the open file"
            rule, message = "file", f"{path} cannot be read: {error.strerror or error}"
        except LocalError as error:
            message, accepted = str(error.args[0]), error.accepted
            # No type helps a create, which takes only known formats.
            remedies = tuple(one for one in error.remedies if one != TYPED)
        except (ValueError, TypeError) as error:
            message = str(error)
            if not isinstance(file, LOADABLE) and not hasattr(file, "read"):
                message = f"{shown(file)} is not a path, bytes or an open file"
                accepted = line_for(file, "image") or accepted
        field = family.field(wire)
        # Whatever is wrong with the file, no other file would do either.
        if field is not None and not field.takes_files:
            message = f"{shown(value)}: this field takes no files"
            accepted, remedies = "use a URL", ()
        problems.append(Problem(wire, value, rule, message, accepted, remedies=remedies))
        return value

    for wire, value in body.items():
        problem = _problem_of_name(family, wire, value, file_in, forms, name)
        if problem is not None:
            problems.append(problem)
    kinds = media_fields(family)
    fields = {wire: loaded(wire, value) if wire in kinds else value for wire, value in body.items()}
    return fields, problems


def _problem_of_name(
    family: Family, wire: str, value: object, file_in: FileIn, forms: FileForms, name: Naming
) -> Problem | None:
    """Return the problem of a text that names an existing file, as fields for media do."""
    field = family.field(wire)
    if field is None or not field.is_text:
        return None
    path = file_in(value)
    if not isinstance(value, str) or not isinstance(path, str | os.PathLike):
        return None
    file = file_named(value, path)
    problem = None if file is None else family.problem_of_text(wire, value, file)
    if file is None or problem is None:
        return None
    named = file._replace(path=value.removeprefix("@"))
    return attrs.evolve(problem, accepted=family.instead_of_text(named, forms, name))
