"""The docstrings of request classes and their fields, made from the family's table.

Those of the fields, and the beginning of each class's, stand in the source, because editors read
them there: `python -m tests.generators.request_docs` writes them, and a test says where they differ
from the table. Python gets the docstring of a class, with all its fields, from here.
"""

from __future__ import annotations

from collections.abc import Iterator

from muybridge_protocol.families.family import Family, Model
from muybridge_protocol.families.field import Field
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import Text, both

EXTRA = "Fields that are sent unchecked, by their names on the wire."
RAISED = "The service would reject the request. All problems are listed."


def class_docstring(family: Family) -> tuple[str, ...]:
    """Return the paragraphs before the arguments: what is made, and the rules between fields."""
    article = "An" if family.media == "image" else "A"
    name = family.python_name
    sentences = [
        *(relation.sentence(name) for relation in family.relations),
        *(f"{name(rule.field)} {rule.message(name)}." for rule in family.ineffective),
        *family.notes,
    ]
    opening = (
        f"{article} {family.media} with family `{family.name}` (spec, `POST {family.create_path}`)."
    )
    return (opening, " ".join(sentences)) if sentences else (opening,)


def whole_docstring(family: Family) -> str:
    """Return the docstring of the request class, unwrapped."""
    arguments = {field.name: field_docstring(family, field) for field in family.fields}
    lines = [f"    {name}: {text}" for name, text in {**arguments, "extra": EXTRA}.items()]
    raised = ["Raises:", f"    InvalidRequest: {RAISED}"]
    paragraphs = (*class_docstring(family), "\n".join(["Args:", *lines]), "\n".join(raised))
    return "\n\n".join(paragraphs)


def field_docstring(family: Family, field: Field) -> str:
    """Return what *field* is for, what it accepts, its default, and what differs by model."""
    return " ".join(_sentences(family, field))


def _sentences(family: Family, field: Field) -> Iterator[str]:
    rules = (rule for rule in field.rules if not isinstance(rule, Text) or rule.limit)
    accepted = "; ".join(rule.accepted for rule in rules)
    yield f"{field.text(family.python_name)}{f' ({accepted})' if accepted else ''}."
    media = [rule for rule in field.rules if isinstance(rule, MediaUrl) and rule.base64]
    if media:
        is_stated = any(rule.base64_stated for rule in media)
        yield f"For a local file, use load_media(path{'' if is_stated else ', allow_inline=True'})."
    if field.service_default is not None:
        yield f"Default {field.service_default}."
    for model in family.models:
        if field.wire in model.defaults:
            yield f"Default {model.defaults[field.wire]} for {model.name}."
    limits: dict[str, list[str]] = {}
    for model in family.models:
        for rule in model.limits.get(field.wire, ()):
            limits.setdefault(rule.accepted, []).append(model.name)
    for limit, models in limits.items():
        yield f"For {both(models)}: {limit}."
    if field.wire == "model":
        descriptions = [_described(model) for model in family.models]
        yield from (f"{description}." for description in descriptions if description)
        if descriptions:
            yield "Unlisted(name) is a model that is not listed."


def _described(model: Model) -> str:
    billed = f"billed {model.billing}" if model.billing else ""
    details = "; ".join(part for part in (model.note, billed) if part)
    return f"{model.name}: {details}" if details else ""
