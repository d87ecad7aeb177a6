"""Loads the files that are named in a request's fields, in place of URLs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from muybridge.files.inline_media import LocalMedia, load_media
from muybridge_protocol.families.family import Family
from muybridge_protocol.families.references import media_fields
from muybridge_protocol.media.inline import TYPED, InlineMedia, is_file
from muybridge_protocol.records.json import readable
from muybridge_protocol.rules.values import Problem, is_array

FileIn = Callable[[object], LocalMedia | None]
"""Returns the file that a value names, or None if it names none."""


def local_media(value: object) -> LocalMedia | None:
    """Return *value* if it is a path, bytes or an open file."""
    if isinstance(value, InlineMedia) or not is_file(value):
        return None
    return cast("LocalMedia", value)


def with_files(
    family: Family, body: Mapping[str, object], file_in: FileIn, *, allow_inline: bool
) -> tuple[dict[str, object], list[Problem]]:
    """Return *body* with the content of its files, and the problems of files that cannot be sent.

    Args:
        family: The family of the request.
        body: The request's fields, by their names on the wire.
        file_in: Recognizes the values that name files.
        allow_inline: Whether files may be sent where the specification does not mention base64.
    """
    problems: list[Problem] = []

    def loaded(wire: str, value: object) -> object:
        if is_array(value):
            return [loaded(wire, item) for item in value]
        file = file_in(value)
        if file is None:
            return value
        try:
            return load_media(file, allow_inline=allow_inline)
        except OSError as error:
            named = isinstance(file, str) or hasattr(file, "__fspath__")
            name = (readable(str(file)) or "an empty path") if named else "the open file"
            rule, said = "file", f"{name} cannot be read: {error.strerror or error}"
        except (ValueError, TypeError) as error:
            rule, said = "media", str(error).replace(TYPED, "")
        message, _, accepted = said.partition("; ")
        problems.append(Problem(wire, value, rule, message, accepted or "use a file or a URL"))
        return value

    taken = media_fields(family)
    fields = {wire: loaded(wire, value) if wire in taken else value for wire, value in body.items()}
    return fields, problems
