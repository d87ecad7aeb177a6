"""Rules between the fields of one request, as data. Fields have their wire names.

Whatever depends on the kind of a rule is a method of it: what it refuses, how it reads, its schema,
and what it means for examples and defaults. So a new kind is one class, and type checkers name the
method that it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Protocol

import attrs

from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.schemas import all_of, any_of, model_among
from muybridge_protocol.rules.values import Naming, Problem, both, either, is_array, shown

Values = Mapping[str, object]
"""The values that are set in a request, by wire name."""

Sent = Callable[[str], JsonObject]
"""Returns the schema of a body in which the field of a wire name is sent, and has an effect."""


class Relation(Protocol):
    """A rule between fields of one request."""

    name: ClassVar[str]
    """The rule's name, for programs; it stands in `Problem.rule`."""

    def problems(self, values: Values, model: str | None, name: Naming = str) -> Iterator[Problem]:
        """Yield what is wrong with *values*; *model* is None when the tables do not know it."""
        ...

    def sentence(self, name: Naming = str) -> str:
        """Return the rule as a sentence."""
        ...

    def schema(self, sent: Sent) -> JsonObject:
        """Return the schema of the bodies that follow the rule."""
        ...

    def demands(self, values: Values, model: str | None) -> tuple[str, ...]:  # noqa: ARG002  most do not
        """Return the fields that a request with *values* needs in addition."""
        return ()

    @property
    def rivals(self) -> tuple[str, ...]:
        """The fields that exclude each other, so that none may be sent as a default."""
        return ()


@attrs.frozen
class Requires(Relation):
    """*field* may only be sent together with *other*."""

    name: ClassVar[str] = "requires"

    field: str
    other: str

    def problems(
        self,
        values: Values,
        model: str | None,  # noqa: ARG002  holds for all
        name: Naming = str,
    ) -> Iterator[Problem]:
        """Yield what is wrong with *values*."""
        if self.field in values and self.other not in values:
            yield Problem(
                self.field,
                values[self.field],
                self.name,
                f"needs {name(self.other)}",
                f"send {name(self.other)} as well, or leave {name(self.field)} out",
            )

    def sentence(self, name: Naming = str) -> str:
        """Return the rule as a sentence."""
        return f"{name(self.field)} needs {name(self.other)}."

    def schema(self, sent: Sent) -> JsonObject:
        """Return the schema of the bodies that follow the rule."""
        one, other = sent(self.field), sent(self.other)
        if one == {"required": [self.field]} and other == {"required": [self.other]}:
            return {"dependentRequired": {self.field: [self.other]}}
        return {"if": one, "then": other}

    def demands(self, values: Values, model: str | None) -> tuple[str, ...]:  # noqa: ARG002  holds for all
        """Return the fields that a request with *values* needs in addition."""
        missing = self.field in values and self.other not in values
        return (self.other,) if missing else ()


def together(one: str, other: str) -> tuple[Requires, Requires]:
    """Return the rules that *one* and *other* must be sent together or not at all."""
    return Requires(one, other), Requires(other, one)


@attrs.frozen
class Excludes(Relation):
    """No field of *these* may be sent together with a field of *those*."""

    name: ClassVar[str] = "excludes"

    these: tuple[str, ...]
    those: tuple[str, ...]

    def problems(
        self,
        values: Values,
        model: str | None,  # noqa: ARG002  holds for all
        name: Naming = str,
    ) -> Iterator[Problem]:
        """Yield what is wrong with *values*."""
        clash = [name(field) for field in self.those if field in values]
        if not clash:
            return
        for field in self.these:
            if field in values:
                yield Problem(
                    field,
                    values[field],
                    self.name,
                    f"cannot be combined with {' or '.join(clash)}",
                    f"leave {name(field)} out, or leave {' and '.join(clash)} out",
                )

    def sentence(self, name: Naming = str) -> str:
        """Return the rule as a sentence."""
        these, those = [*map(name, self.these)], [*map(name, self.those)]
        return f"{both(these)} cannot be combined with {either(those)}."

    def schema(self, sent: Sent) -> JsonObject:
        """Return the schema of the bodies that follow the rule."""
        these, those = (any_of(map(sent, fields)) for fields in (self.these, self.those))
        return {"not": all_of((these, those))}


@attrs.frozen
class Alternatives(Relation):
    """Only one of two fields with the same meaning may be sent."""

    name: ClassVar[str] = "alternatives"

    one: str
    other: str

    def problems(
        self,
        values: Values,
        model: str | None,  # noqa: ARG002  holds for all
        name: Naming = str,
    ) -> Iterator[Problem]:
        """Yield what is wrong with *values*."""
        if self.one in values and self.other in values:
            yield Problem(
                self.other,
                values[self.other],
                self.name,
                f"is an alternative to {name(self.one)}, which is sent too",
                f"send only one of {name(self.one)} and {name(self.other)}",
            )

    def sentence(self, name: Naming = str) -> str:
        """Return the rule as a sentence."""
        return f"Give only one of {name(self.one)} and {name(self.other)}."

    def schema(self, sent: Sent) -> JsonObject:
        """Return the schema of the bodies that follow the rule."""
        return {"not": all_of((sent(self.one), sent(self.other)))}

    @property
    def rivals(self) -> tuple[str, ...]:
        """The fields that exclude each other, so that none may be sent as a default."""
        return (self.one, self.other)


@attrs.frozen
class RequiredFor(Relation):
    """*field* must be sent, and not be empty, for each of *models*."""

    name: ClassVar[str] = "required_for_model"

    field: str
    models: tuple[str, ...]

    def problems(self, values: Values, model: str | None, name: Naming = str) -> Iterator[Problem]:
        """Yield what is wrong with *values*."""
        if model in self.models and not values.get(self.field):
            yield Problem(
                self.field,
                values.get(self.field),
                self.name,
                f"is required by model {model}",
                f"send at least one item in {name(self.field)}",
            )

    def sentence(self, name: Naming = str) -> str:
        """Return the rule as a sentence."""
        return f"{name(self.field)} is required by {both(self.models)}."

    def schema(self, sent: Sent) -> JsonObject:
        """Return the schema of the bodies that follow the rule."""
        items: JsonObject = {"properties": {self.field: {"minItems": 1}}}
        return {"if": model_among(self.models), "then": {**sent(self.field), **items}}

    def demands(self, values: Values, model: str | None) -> tuple[str, ...]:
        """Return the fields that a request with *values* needs in addition."""
        return (self.field,) if model in self.models and not values.get(self.field) else ()


@attrs.frozen
class OnlyWith(Relation):
    """*field* may have the value *value* only while *other* has one of *options*."""

    name: ClassVar[str] = "only_with"

    field: str
    value: str
    other: str
    options: tuple[str, ...]

    def problems(
        self,
        values: Values,
        model: str | None,  # noqa: ARG002  holds for all
        name: Naming = str,
    ) -> Iterator[Problem]:
        """Yield what is wrong with *values*."""
        if (
            values.get(self.field) == self.value
            and self.other in values
            and values[self.other] not in self.options
        ):
            yield Problem(
                self.field,
                self.value,
                self.name,
                f"{shown(self.value)} is not accepted with {name(self.other)} "
                f"{shown(values[self.other])}",
                f"with {self.value} use {name(self.other)} {either(self.options)}",
            )

    def sentence(self, name: Naming = str) -> str:
        """Return the rule as a sentence."""
        accepted = f"{name(self.other)} {', '.join(self.options)}"
        return f"{name(self.field)} {self.value} is accepted only with {accepted}."

    def schema(self, sent: Sent) -> JsonObject:
        """Return the schema of the bodies that follow the rule."""
        both_sent = all_of((sent(self.field), sent(self.other)))
        return {
            "if": {"properties": {self.field: {"const": self.value}}, **both_sent},
            "then": {"properties": {self.other: {"enum": list(self.options)}}},
        }


@attrs.frozen
class FewerWith(Relation):
    """*field* may have at most *high* items while *other* is sent."""

    name: ClassVar[str] = "fewer_with"

    field: str
    high: int
    other: str

    def problems(
        self,
        values: Values,
        model: str | None,  # noqa: ARG002  holds for all
        name: Naming = str,
    ) -> Iterator[Problem]:
        """Yield what is wrong with *values*."""
        items = values.get(self.field)
        if self.other in values and is_array(items) and len(items) > self.high:
            yield Problem(
                self.field,
                items,
                self.name,
                f"there are {len(items)} items beside {name(self.other)}",
                f"with {name(self.other)} use at most {self.high}",
            )

    def sentence(self, name: Naming = str) -> str:
        """Return the rule as a sentence."""
        return f"With {name(self.other)} give at most {self.high} {name(self.field)}."

    def schema(self, sent: Sent) -> JsonObject:
        """Return the schema of the bodies that follow the rule."""
        few = {"properties": {self.field: {"maxItems": self.high}}}
        return {"if": sent(self.other), "then": few}


@attrs.frozen
class Ineffective:
    """*field* has no effect if *other* is sent, or for any of *models*.

    Args:
        field: The field that is ignored.
        other: The field that makes the service ignore it, or None.
        models: The models for which it is ignored.
        why: The reason, as the end of a sentence, or "".
    """

    field: str
    other: str | None = None
    models: tuple[str, ...] = ()
    why: str = ""

    def message(self, name: Naming = str) -> str:
        """Return when the field is ignored, and why."""
        when = [f"with {name(self.other)}"] if self.other is not None else []
        when += [f"for {either(self.models)}"] if self.models else []
        return f"is ignored {' or '.join(when)}{f': {self.why}' if self.why else ''}"

    def applies(self, values: Values, model: str | None) -> bool:
        """Whether the field is sent without effect."""
        return self.field in values and self.overrides(values, model)

    def overrides(self, values: Values, model: str | None) -> bool:
        """Whether the field has no effect, sent or not: its default has none, either."""
        # An empty array has nothing that could.
        beside = None if self.other is None else values.get(self.other)
        return beside not in (None, [], ()) or model in self.models


@attrs.frozen
class Alias:
    """*legacy* is an old name of *field*. If both have the same value, it is sent once."""

    legacy: str
    field: str
