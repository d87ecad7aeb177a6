"""What a request consumes, as far as it is known before it is sent.

A family's tables decide it: what the family makes, the fields that set a video's length, the
service's defaults, and the settings that make it ignore others. A quantity that they do not decide
is None. Examples are an automatic length, a length that follows a reference video, and a default
that the specification does not show. Defaults hold for the listed models alone: of an unlisted
model, only what the request itself says is known.

The tier is the value of the field that decides a model's price. The specification names that field
for some models: the quality of `imgb-2`, the resolution of `imgb-2-r`. For the others the tier is
the resolution, if requests have one, because prices usually depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import attrs

from muybridge_protocol.estimates.units import EXACT, TOKENS, Unit
from muybridge_protocol.families.family import LENGTH_FIELDS, Family, Media, Model
from muybridge_protocol.families.field import Field
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import OneOf, is_array

TEXT = "text"
"""The name of the family of text calls."""

_RESOLUTION = "resolution"

Body = Mapping[str, object]
"""A request's fields by wire name."""


@attrs.frozen(kw_only=True)
class Quantities:
    """What one request consumes. None means that it is not known.

    Args:
        family: The request's family, or `text`.
        model: The model as it is sent, or None if the request names none.
        tier: The quality or resolution that decides the price, or None if there is none or it is
            not known.
        creates: How many tasks it creates.
        calls: How many text calls it makes.
        pictures: How many pictures it makes.
        seconds: How many seconds of video it makes.
        tokens: How many tokens it takes. Only responses report them.
        input_tokens: How many of them the request has, if the response reports them apart.
        output_tokens: How many of them the answer has, if the response reports them apart.
        reference_images: How many reference images it has.
        reference_videos: How many reference videos it has.
        reference_sounds: How many reference sounds it has.
        reference_seconds: How long the reference videos and sounds are.
    """

    family: str
    model: str | None = None
    tier: str | None = None
    creates: int = 0
    calls: int = 0
    pictures: int | None = 0
    seconds: Decimal | None = Decimal(0)
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reference_images: int = 0
    reference_videos: int = 0
    reference_sounds: int = 0
    reference_seconds: Decimal | None = Decimal(0)

    def count(self, unit: Unit) -> Decimal | None:
        """Return how many times *unit* is consumed, or None if that is not known."""
        match unit:
            case Unit.CALL:
                return Decimal(self.creates + self.calls)
            case Unit.PICTURE:
                return None if self.pictures is None else Decimal(self.pictures)
            case Unit.SECOND:
                return self.seconds
            case Unit.THOUSAND_TOKENS:
                return None if self.tokens is None else EXACT.divide(Decimal(self.tokens), TOKENS)


def media_quantities(family: Family, model_name: str | None, body: Body) -> Quantities:
    """Return what a create request consumes.

    Args:
        family: The request's family.
        model_name: The model as it is sent, or None.
        body: The request's fields, which the family's rules accept.
    """
    model = family.model(model_name)
    images, videos, sounds = _references(family, body)
    return Quantities(
        family=family.name,
        model=model_name,
        tier=_tier(family, model, body),
        creates=1,
        pictures=int(family.media is Media.IMAGE),
        seconds=_seconds(family, model, body),
        reference_images=images,
        reference_videos=videos,
        reference_sounds=sounds,
        reference_seconds=None if videos or sounds else Decimal(0),
    )


def text_quantities(
    model: str,
    tokens: int | None = None,
    *,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
) -> Quantities:
    """Return what a text call consumes.

    If the parts do not add up to the total, something else was counted, so they are not known. A
    number below 0 counts as unknown.

    Args:
        model: The model as it is sent.
        tokens: The total that the response reports, or None before it arrives.
        input_tokens: The tokens of the request that the response reports, or None.
        output_tokens: The tokens of the answer that the response reports, or None.
    """
    parts = (tokens, input_tokens, output_tokens)
    tokens, input_tokens, output_tokens = (
        None if count is None or count < 0 else count for count in parts
    )
    if input_tokens is None or output_tokens is None or input_tokens + output_tokens != tokens:
        input_tokens = output_tokens = None
    return Quantities(
        family=TEXT,
        model=model,
        calls=1,
        tokens=tokens,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )


def tier_field(family: Family, model: Model | None) -> Field | None:
    """Return the field whose value is the tier, or None if requests have no such field."""
    named = None if model is None else model.billing.tier_field
    return family.field(named or _RESOLUTION)


def tiers_of(family: Family, model: Model) -> tuple[str, ...]:
    """Return the tiers of *model*, in the order of the tables, or () if it has none."""
    field = tier_field(family, model)
    if field is None:
        return ()
    rules = (*field.rules, *model.limits.get(field.wire, ()))
    accepted = [[*map(str, rule.options)] for rule in rules if isinstance(rule, OneOf)]
    if not accepted:
        return ()
    first, *others = accepted
    return tuple(tier for tier in first if all(tier in options for options in others))


def _tier(family: Family, model: Model | None, body: Body) -> str | None:
    field = tier_field(family, model)
    value = None if field is None else _effective(family, model, body, field.wire)
    if field is None or not isinstance(value, str):
        return None
    for rule in field.rules:
        if isinstance(rule, OneOf):  # some ignore case, and a tier has one spelling
            same = (str(option) for option in rule.options if str(option).lower() == value.lower())
            return next(same, value)
    return value


def _seconds(family: Family, model: Model | None, body: Body) -> Decimal | None:
    if family.media is Media.IMAGE:
        return Decimal(0)
    if family.fixed_seconds is not None and model is not None:
        return Decimal(family.fixed_seconds)
    for wire in LENGTH_FIELDS:
        value = _effective(family, model, body, wire)
        # What is not a length, such as -1, means that the service chooses one.
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return Decimal(str(value))
    return None


def _effective(family: Family, model: Model | None, body: Body, wire: str) -> object:
    """Return the value that the service uses for a field, or None if that is not known."""
    field = family.field(wire)
    name = None if model is None else model.name
    overridden = any(
        rule.field == wire and rule.overrides(body, name) for rule in family.ineffective
    )
    if field is None or overridden:
        return None
    if wire in body:
        return body[wire]
    if model is None:
        return None
    return model.defaults.get(wire, field.service_default)


def _references(family: Family, body: Body) -> tuple[int, int, int]:
    """Return how many reference images, videos and sounds *body* has."""
    images = videos = sounds = 0
    for field in family.fields:
        value = body.get(field.wire)
        if value is None or not any(isinstance(rule, MediaUrl) for rule in field.rules):
            continue
        count = len(value) if is_array(value) else 1
        if field.wire == "referenceVideos":
            videos += count
        elif field.wire == "referenceAudios":
            sounds += count
        else:
            images += count
    return images, videos, sounds
