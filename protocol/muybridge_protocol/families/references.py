"""The pictures, videos and sounds that a request refers to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import attrs

from muybridge_protocol.families.family import Family
from muybridge_protocol.media.inline import InlineMedia
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import Problem, is_array


@attrs.frozen(kw_only=True)
class Reference:
    """A picture, video or sound that a request refers to, or contains.

    Args:
        field: The field, by its name on the wire.
        index: Its place in the field's array, or None if the field has only one.
        kind: What the field takes.
        value: A URL, an asset, base64 or a file.
    """

    field: str
    index: int | None
    kind: MediaKind
    value: str | InlineMedia = attrs.field(repr=False)


@cache
def media_fields(family: Family) -> Mapping[str, MediaKind]:
    """Return the fields of *family* that take media, by their names on the wire, and which."""
    return {
        field.wire: rule.kind
        for field in family.fields
        for rule in field.rules
        if isinstance(rule, MediaUrl)
    }


def references_in(family: Family, body: Mapping[str, object]) -> tuple[Reference, ...]:
    """Return what *body*, a request of *family* by wire names, refers to."""
    references: list[Reference] = []
    for wire, kind in media_fields(family).items():
        value = body.get(wire)
        if isinstance(value, str | InlineMedia):
            references.append(Reference(field=wire, index=None, kind=kind, value=value))
        elif is_array(value):
            references += (
                Reference(field=wire, index=index, kind=kind, value=item)
                for index, item in enumerate(value)
                if isinstance(item, str | InlineMedia)
            )
    return tuple(references)


def problems_of_files(family: Family, body: Mapping[str, object]) -> tuple[Problem, ...]:
    """Return the rules of *family* about media that the files in *body* certainly break."""
    from muybridge_protocol.rules.media import Medium, judge_media

    names: dict[tuple[str, int | None], str] = {}
    media: list[Medium] = []
    for one in references_in(family, body):
        if isinstance(one.value, InlineMedia):
            name, facts = one.value.name, one.value.facts
            media.append(
                Medium(field=one.field, index=one.index, kind=one.kind, source=name, facts=facts)
            )
            names[one.field, one.index] = f"{name or f'the {facts.kind or one.kind}'} "
    if not media:
        return ()
    return tuple(
        Problem(
            finding.field,
            body[finding.field],
            "media",
            f"{names.get((finding.field, finding.index), '')}{finding.why}",
            finding.clause,
        )
        for finding in judge_media(family.media_rules, media, body).problems
    )
