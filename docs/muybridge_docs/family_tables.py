"""Tables of families, models, limits, pacing and retention, from those that check requests."""

from __future__ import annotations

from collections.abc import Iterator

from muybridge.cli.family_help import pace_of, sentences, summary
from muybridge.cli.options import default_of, option_name
from muybridge_docs.markdown import bullets, code, codes, table
from muybridge_protocol.families import FAMILIES, Family, Field, Model, Pacing
from muybridge_protocol.operations.poll import UNKNOWN_PACING
from muybridge_protocol.text.models import VARIANTS


def families() -> str:
    """Return what each family makes and how to request it."""
    return table(
        ("Family", "Request", "Makes", "Sound", "Models", "`POST` to"),
        (
            (
                code(family.name),
                f"{{py:class}}`{family.request.__name__}`",
                summary(family),
                "yes" if family.makes_audio else "",
                str(len(family.models) or "not shown"),
                code(family.create_path),
            )
            for family in FAMILIES.values()
        ),
    )


def models() -> str:
    """Return every model with its own limits."""
    return table(
        ("Family", "Model", "Limits and notes", "Billed"),
        (
            (
                code(family.name),
                code(model.name),
                "; ".join((*filter(None, [model.note]), *_limits(model))),
                model.billing,
            )
            for family in FAMILIES.values()
            for model in family.models
        ),
    )


def _limits(model: Model) -> Iterator[str]:
    for wire, rules in model.limits.items():
        for rule in rules:
            yield f"{code(wire)}: {rule.accepted}"
    for wire, default in model.defaults.items():
        yield f"{code(wire)}: default {code(default)}"


def pacing() -> str:
    """Return the poll intervals."""
    return table(
        ("Family", "Models", "Poll interval", "Minimum", ""),
        [
            *(row for family in FAMILIES.values() for row in _paces(family)),
            ("a bare id", "", pace_of(UNKNOWN_PACING), "", _assumed(UNKNOWN_PACING)),
        ],
    )


def _paces(family: Family) -> Iterator[tuple[str, ...]]:
    groups: dict[Pacing, list[str]] = {}
    for model in family.models:
        groups.setdefault(family.pacing_of(model.name), []).append(model.name)
    for pace, names in (groups or {family.pacing: []}).items():
        which = codes(names) if len(groups) > 1 else "all"
        least = "" if pace.minimum is None else f"{pace.minimum:g} s"
        yield code(family.name), which, pace_of(pace), least, _assumed(pace)


def _assumed(pace: Pacing) -> str:
    return "an assumption: the specification does not say" if pace.assumed else ""


def retention() -> str:
    """Return how long results are kept."""
    return table(
        ("Family", "The link works for"),
        ((code(family.name), family.retention.note) for family in FAMILIES.values()),
    )


def fields() -> str:
    """Return every field of every family, and the rules between them."""
    return "\n\n".join(part for family in FAMILIES.values() for part in _portrait(family))


def _portrait(family: Family) -> Iterator[str]:
    yield f"### Family `{family.name}`"
    yield table(
        ("Field", "On the wire", "Type", "Accepted", "Default"),
        (
            (
                code(field.name),
                code(field.wire),
                field.kind,
                "; ".join(rule.accepted for rule in field.rules),
                "required" if field.required else _default(field),
            )
            for field in family.fields
        ),
    )
    yield bullets(_in_fields(sentence, family) for sentence in sentences(family))


def _default(field: Field) -> str:
    shown = default_of(field)
    return code(shown) if shown else ""


def _in_fields(sentence: str, family: Family) -> str:
    """Return *sentence*, which names options, with the names of the fields."""
    named = {alias.legacy: alias.legacy for alias in family.aliases}
    named |= {field.wire: field.name for field in family.fields} | {"extra": "extra"}
    for wire in sorted(named, key=lambda name: len(option_name(name)), reverse=True):
        sentence = sentence.replace(option_name(wire), code(named[wire]))
    return sentence


def text_models() -> str:
    """Return the text models and their variants."""
    return table(
        ("Base model", "Names to send"),
        (
            (code(base), codes(f"{base}{variant}" for variant in variants))
            for base, variants in VARIANTS.items()
        ),
    )
