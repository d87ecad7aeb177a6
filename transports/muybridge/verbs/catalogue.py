"""Select families and models from the tables."""

from __future__ import annotations

from typing import Final

import attrs

from muybridge_protocol.families import FAMILIES, Family, Model, family_of_model, find_family
from muybridge_protocol.text.models import TEXT_MODELS, TextModel

TEXT: Final = "text"
"""What stands for the text models in place of a family."""


@attrs.frozen
class Selection:
    """Families, each with some of its models, and text models.

    Args:
        families: The families and models.
        texts: The text models.
    """

    families: tuple[tuple[Family, tuple[Model, ...]], ...]
    texts: tuple[TextModel, ...] = ()


def select(name: str | None = None) -> Selection:
    """Return the family, the model or the text models called *name*, or everything.

    Raises:
        LocalError: There is neither a family nor a model of that name.
    """
    texts = tuple(model for model in TEXT_MODELS.values() if name in (None, TEXT, model.name))
    if name is None:
        return Selection(tuple((family, family.models) for family in FAMILIES.values()), texts)
    if texts:
        return Selection((), texts)
    family = None if name in FAMILIES else family_of_model(name)
    model = None if family is None else family.model(name)
    if family is None or model is None:
        family = find_family(name)
        return Selection(((family, family.models),))
    return Selection(((family, (model,)),))
