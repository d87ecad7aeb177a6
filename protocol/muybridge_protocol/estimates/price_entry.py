"""Reading one price of a price file, with everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Final, cast

import attrs

from muybridge_protocol.estimates.prices import HIGHEST, Price
from muybridge_protocol.estimates.quantities import TEXT, tiers_of
from muybridge_protocol.estimates.units import OF_TEXT, Unit, units_of
from muybridge_protocol.families import FAMILIES, Family, Model
from muybridge_protocol.families.family import Billing
from muybridge_protocol.local_errors import LocalError
from muybridge_protocol.records.json import truncated
from muybridge_protocol.rules.values import both, either, shown
from muybridge_protocol.text.models import TEXT_MODELS

DECIMALS: Final = 12
"""Most digits of a price after the point."""
LONGEST_NAME: Final = 256
"""Most characters of a name."""
EXAMPLE: Final = '{model = "imgb-2", tier = "low", per_picture = 0.011}'

_NAMES: Final = ("family", "model", "unlisted_model", "tier")
_UNITS: Final = tuple(unit.value for unit in Unit)
_APART: Final = ("per_1000_input_tokens", "per_1000_output_tokens")
"""What `per_1000_tokens` is for a text model whose input and output have different prices."""
_PRICES: Final = (*_UNITS, *_APART)


@attrs.frozen
class _Target:
    """What a price is for.

    Args:
        family: The family, or None for text.
        model: The model's name, or None for every model of the family.
        listed: The models of the tables that the price may be for.
    """

    family: Family | None
    model: str | None
    listed: tuple[Model, ...] = ()


def read_price(entry: object) -> Price | list[str]:
    """Return the price that *entry* is, or else all that is wrong with it."""
    if not isinstance(entry, dict):
        return [f"{shown(entry)} is not a price; write {EXAMPLE}"]
    fields = cast("dict[str, object]", entry)
    problems = [
        f"{shown(name)} is not known here; {did_you_mean(name, (*_NAMES, *_PRICES))}"
        for name in fields
        if name not in (*_NAMES, *_PRICES)
    ]
    unit: Unit | None = None
    amount: Decimal | None = None
    output: Decimal | None = None
    target: _Target | None = None
    try:
        unit, amount, output = _amounts({name: fields[name] for name in _PRICES if name in fields})
    except LocalError as wrong:
        problems.append(str(wrong))
    names = {name: value for name, value in fields.items() if name in _NAMES}
    wrong_names = [*_wrong_names(names)]
    if wrong_names:
        return problems + wrong_names
    called = cast("dict[str, str]", names)
    try:
        target = _target(called)
    except LocalError as wrong:
        problems.append(str(wrong))
    else:
        problems += _tier_problems(target, called.get("tier"))
        if output is not None and target.family is not None:
            problems.append(f"{both(_APART)} are for text; use {Unit.THOUSAND_TOKENS}")
        elif unit is not None:
            problems += _unit_problems(target, unit)
    if problems or target is None or unit is None or amount is None:
        return problems
    return Price(
        family=TEXT if target.family is None else target.family.name,
        model=target.model,
        tier=called.get("tier"),
        unit=unit,
        amount=amount,
        output_amount=output,
    )


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return the closest of *names* as a question, or else all of them as advice."""
    spelled = {each.lower(): each for each in names}
    # Comparing long names is slow.
    close = get_close_matches(name.lower(), spelled, n=1) if len(name) <= LONGEST_NAME else []
    advice = f"use {either([*spelled.values()])}"
    return f"did you mean {spelled[close[0]]}?" if close else advice


def _amounts(given: Mapping[str, object]) -> tuple[Unit, Decimal, Decimal | None]:
    """Return the only unit that is *given*, its price, and that of output tokens if it is apart.

    Raises:
        LocalError: There is not exactly one, or the price is not money.
    """
    if given and given.keys() <= {*_APART}:
        missing = [name for name in _APART if name not in given]
        if missing:
            (name,) = given
            raise LocalError(f"{name} needs {missing[0]} as well")
        taken, made = (_amount(name, given[name]) for name in _APART)
        return Unit.THOUSAND_TOKENS, taken, made
    if len(given) != 1:
        stated = f"it has {both(list(given))}" if given else "it has no price"
        raise LocalError(f"{stated}; give one of {', '.join(_UNITS)}")
    ((name, value),) = given.items()
    return Unit(name), _amount(name, value), None


def _amount(name: str, value: object) -> Decimal:
    """Return the price *value*, which the file calls *name*.

    Raises:
        LocalError: It is not money.
    """
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise LocalError(f"{name}: {_written(value)} is not a number; write {name} = 0.05")
    amount = Decimal(value)
    if not amount.is_finite():
        raise LocalError(f"{name}: {amount} is not a price; use a number from 0 to {HIGHEST:,}")
    if amount.is_signed():
        raise LocalError(f"{name}: a price must not be negative (got {_written(value)})")
    exponent = amount.as_tuple().exponent
    if amount > HIGHEST or not isinstance(exponent, int) or -exponent > DECIMALS:
        raise LocalError(f"{name}: use at most {HIGHEST:,}, with at most {DECIMALS} decimals")
    return amount


def _wrong_names(names: Mapping[str, object]) -> Iterator[str]:
    for name, value in names.items():
        if not isinstance(value, str):
            yield f"{name}: {shown(value)} is not a text; put it in quotes"
        elif not value.strip() or len(value) > LONGEST_NAME or not value.isprintable():
            yield f"{name}: use 1 to {LONGEST_NAME} characters that can be printed"


def _target(names: Mapping[str, str]) -> _Target:
    """Return what the price is for.

    Raises:
        LocalError: That is not known.
    """
    family, model, unlisted = (names.get(name) for name in ("family", "model", "unlisted_model"))
    if model is not None and unlisted is not None:
        raise LocalError("it has both model and unlisted_model; give only one")
    if family is None and model is None:
        if unlisted is not None:
            raise LocalError("unlisted_model needs a family")
        raise LocalError('it names no model and no family; write model = "imgb-2", for example')
    if family is None:
        return _listed(str(model))
    if family == TEXT:
        if model is not None and model not in TEXT_MODELS:
            raise LocalError(_unknown_model(model, TEXT_MODELS, "there is no text model"))
        return _Target(None, model or unlisted)
    table = FAMILIES.get(family)
    if table is None:
        hint = did_you_mean(family, (*FAMILIES, TEXT))
        raise LocalError(f"family: there is no family {shown(family)}; {hint}")
    row = table.model(model)
    # A family whose models the specification does not show takes any name.
    if model is not None and table.models and row is None:
        listed = [each.name for each in table.models]
        raise LocalError(_unknown_model(model, listed, f"family {family} has no model"))
    if model is not None or unlisted is not None:
        return _Target(table, model or unlisted, () if row is None else (row,))
    return _Target(table, None, table.models)


def _listed(model: str) -> _Target:
    """Return the target for a model of the tables, whose family is not given."""
    if model in TEXT_MODELS:
        return _Target(None, model)
    for family in FAMILIES.values():
        row = family.model(model)
        if row is not None:
            return _Target(family, model, (row,))
    every = [*TEXT_MODELS, *(each.name for table in FAMILIES.values() for each in table.models)]
    raise LocalError(_unknown_model(model, every, "no family has a model"))


def _unknown_model(model: str, names: Iterable[str], what: str) -> str:
    close = get_close_matches(model, list(names), n=1)
    hint = f"did you mean {close[0]}?" if close else "see `muybridge models`;"
    way = "a model that is not listed needs family and unlisted_model"
    return f"model: {what} {shown(model)}; {hint} {way}"


def _written(value: object) -> str:
    """Return *value* as the file has it."""
    if isinstance(value, bool):
        return str(value).lower()
    return truncated(str(value), 40) if isinstance(value, int | Decimal) else shown(value)


def _unit_problems(target: _Target, unit: Unit) -> Iterator[str]:
    if target.family is None:
        if unit not in OF_TEXT:
            yield f"{unit} does not fit a text call; use {either(OF_TEXT)}"
        return
    family = target.family
    for model in target.listed:
        fitting = units_of(family.media, model.billing)
        if unit not in fitting and model.billing is not Billing.NOT_SHOWN:
            yield f"{unit} does not fit {model.name}, billed {model.billing}; use {either(fitting)}"
            return
    fitting = units_of(family.media, Billing.NOT_SHOWN)
    if unit not in fitting:
        made = f"{family.name}, which makes {family.media}s"
        yield f"{unit} does not fit {made}; use {either(fitting)}"


def _tier_problems(target: _Target, tier: str | None) -> Iterator[str]:
    if tier is None:
        for model in target.listed:
            if model.billing.tier_field is not None and target.family is not None:
                advice = f"give each tier a price: {both(tiers_of(target.family, model))}"
                yield f"{model.name} is billed {model.billing}; {advice}"
                return
    elif target.model is None:
        yield "tier: it needs a model"
    elif target.family is None:
        yield "tier: text calls have none; leave it out"
    elif target.listed:
        (model,) = target.listed
        tiers = tiers_of(target.family, model)
        if not tiers:
            yield f"tier: {model.name} has none; leave it out"
        elif tier not in tiers:
            yield f"tier: {model.name} has no tier {shown(tier)}; {did_you_mean(tier, tiers)}"
