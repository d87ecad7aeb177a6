"""Check the media of a request that is not complete yet.

`Client.check` looks at the media of a whole request. Their rules depend on few of its other
settings, so settings that are missing are filled in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from muybridge_protocol.families import Family, Unlisted
from muybridge_protocol.families.examples import smallest_example
from muybridge_protocol.rules.values import Kind

NO_LINK: Final = "https://media.example.com/file"
"""Stands for the URL of a file that has none yet. It is not connected to."""


def completed(
    family: Family, body: Mapping[str, object], files: Mapping[str, Sequence[str]]
) -> dict[str, object]:
    """Return *body* with a URL for each file, and with the required settings that it lacks.

    So the rules for the number of references, and between fields, are checked, too.

    Args:
        family: The family of the request.
        body: The request's fields by their names on the wire.
        files: The files that are checked in place of a field's URLs.
    """
    whole = dict(body)
    several = {field.wire for field in family.fields if field.kind is Kind.STRINGS}
    for wire, paths in files.items():
        whole[wire] = [NO_LINK] * len(paths) if wire in several else NO_LINK
    example = smallest_example(family)
    for field in family.fields:
        if not field.required or whole.get(field.wire) not in (None, "", []):
            continue
        # The limits of a single model would count as well.
        any_model = field.wire == "model" and family.models
        whole[field.wire] = Unlisted("any") if any_model else example[field.wire]
    return whole
