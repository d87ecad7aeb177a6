"""The text models and their variants (spec, "Text endpoints")."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

import attrs

from muybridge_protocol.families import Unlisted
from muybridge_protocol.remedies import Remedy, RemedyKind
from muybridge_protocol.rules.values import Problem, either, shown
from muybridge_protocol.service import check_model_name


class Variant(StrEnum):
    """The variant that the suffix of a model's name selects."""

    STANDARD = ""
    """The standard, stable version."""
    OFFICIAL = "-official"
    """The official version."""
    LOW = "-low"
    """The budget version."""


@attrs.frozen
class TextModel:
    """One text model. All of them accept pictures and videos.

    Args:
        base: The base model's name.
        variant: Which version of it.
    """

    base: str
    variant: Variant = Variant.STANDARD

    @property
    def name(self) -> str:
        """The name on the wire: the base name and the suffix of the variant."""
        return f"{self.base}{self.variant}"


_EVERY_VARIANT = tuple(Variant)
_STANDARD_ONLY = (Variant.STANDARD,)

VARIANTS: Final[Mapping[str, tuple[Variant, ...]]] = {
    "textg-2.5-flash-lite": _STANDARD_ONLY,
    "textg-2.5-pro": _EVERY_VARIANT,
    "textg-3-flash-preview": _EVERY_VARIANT,
    "textg-3.1-flash-lite-preview": _STANDARD_ONLY,
    "textg-3.1-pro-preview": _EVERY_VARIANT,
}
"""The variants of each base model."""

TEXT_MODELS: Final[Mapping[str, TextModel]] = {
    model.name: model
    for base, variants in VARIANTS.items()
    for model in (TextModel(base, variant) for variant in variants)
}
"""Every text model by its name on the wire."""


def model_problem(model: object) -> Problem | None:
    """Return why *model* is not a known text model, or None."""
    if isinstance(model, str) and model in TEXT_MODELS:
        return None
    base, variant = _taken_apart(model) if isinstance(model, str) else ("", None)
    if variant is not None:
        return Problem(
            "model",
            model,
            "variant",
            f"{base} has no variant {variant}",
            f"use {either([f'{base}{name}' for name in VARIANTS[base]])}",
        )
    short = isinstance(model, str) and len(model) < 100  # noqa: PLR2004  comparing long names is slow
    close = get_close_matches(str(model), TEXT_MODELS, n=1) if short else []
    hint = f"did you mean {close[0]}?" if close else f"use {either(list(TEXT_MODELS))};"
    return Problem(
        "model",
        model,
        "one_of",
        f"{shown(model)} is not a known text model",
        hint,
        remedies=(Remedy(kind=RemedyKind.UNLIST, option="unlisted_model"),),
    )


def path_name(model: str | Unlisted) -> str:
    """Return *model* as a segment of a path.

    Raises:
        LocalError: An unlisted name has characters that a path may not contain.
    """
    name = model.name if isinstance(model, Unlisted) else model
    return check_model_name(name)


def _taken_apart(name: str) -> tuple[str, Variant | None]:
    """Return the base model and the variant that *name* asks for, if it has both."""
    for variant in (Variant.OFFICIAL, Variant.LOW):
        base = name.removesuffix(variant)
        if base != name and base in VARIANTS:
            return base, variant
    return name, None
