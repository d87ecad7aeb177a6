"""What a family is, and how a create request is checked against its rules.

A family is a table: fields, models, limits, defaults, pacing, retention. Everything that depends on
the family is derived from it: local checks, the wire encoding, the options of the command, the
checks of the emulator, the reference tables and the OpenAPI document. So a rule is stated once.

`Family.check` reports every problem of a request at once, before anything is sent. The converter of
`records/` would stop at the first. Each field is checked against its type and rules, then the
fields against each other. Nothing is converted and no default is filled in: only what the user has
set is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from muybridge_protocol.families.field import Field
from muybridge_protocol.media.inline import LOAD, InlineMedia, file_within
from muybridge_protocol.rules.files import (
    IN_PYTHON,
    FileForms,
    FileText,
    file_text,
    instead_of,
    problem_of,
)
from muybridge_protocol.rules.json_values import is_json, unwritable
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import (
    Kind,
    ModelName,
    Naming,
    Notice,
    OneOf,
    Problem,
    ValueRule,
    either,
    shown,
    with_article,
)

if TYPE_CHECKING:
    from muybridge_protocol.rules.media import MediaRule
    from muybridge_protocol.rules.relations import Alias, Ineffective, Relation

HOUR = 3600
DAY = 24 * HOUR

_UNLISTED_RULE = ModelName()

OwnLinks = Callable[[str], bool]
"""Whether a URL on this machine is one that the service gave out, so that it can reach it."""


def no_link(url: str) -> bool:  # noqa: ARG001  none is
    """Return False: the service is elsewhere, and cannot reach this machine."""
    return False


def any_link(url: str) -> bool:  # noqa: ARG001  each may be
    """Return True: the client that will send the request, and so the service, is not known yet."""
    return True


@attrs.frozen
class Unlisted:
    """A model that the tables do not know, sent on purpose.

    Rules for single models do not apply to it. All other rules of the family do.

    Args:
        name: The model's name as the service knows it.

    Raises:
        ValueError: The name is blank or not printable.
    """

    name: str

    def __attrs_post_init__(self) -> None:
        complaint = _UNLISTED_RULE.complaint(self.name)
        if complaint:
            raise ValueError(f"{complaint}; {_UNLISTED_RULE.accepted}")

    def __str__(self) -> str:
        return self.name


class Media(StrEnum):
    """What a family generates."""

    IMAGE = "image"
    VIDEO = "video"


@attrs.frozen  # every pending poll is compared by it
class Pacing:
    """How often to poll (spec, "Polling guidance").

    Args:
        shortest: Seconds before the first poll, and the first interval.
        longest: Longest interval, in seconds.
        minimum: The service's stated minimum in seconds, or None.
        assumed: Whether the specification says nothing and this is our choice.
    """

    shortest: float
    longest: float
    minimum: float | None = None
    assumed: bool = False


@attrs.frozen
class Retention:
    """How long a result's URL works (spec, "Result retention").

    Args:
        seconds: Seconds from the task's creation, or None if the specification gives no number.
        record_too: Whether the task record is deleted as well.
        note: The specification's words.
    """

    seconds: int | None
    record_too: bool = False
    note: str = ""


class Billing(StrEnum):
    """How a model is billed, in the words of the specification."""

    NOT_SHOWN = ""
    PER_CALL = "per call"
    PER_SECOND = "per second"
    BY_QUALITY = "by quality tier"
    BY_RESOLUTION = "by resolution"

    @property
    def tier_field(self) -> str | None:
        """The wire name of the field that decides the price, or None if the words name none."""
        return {Billing.BY_QUALITY: "quality", Billing.BY_RESOLUTION: "resolution"}.get(self)


LENGTH_FIELDS: tuple[str, ...] = ("duration", "seconds")
"""The fields that set a video's length in seconds, whichever of them a family has."""

Limits = Mapping[str, tuple[ValueRule, ...]]
"""Rules by wire name."""

ALIKE: Final = (
    ("aspect_ratio", "ratio", "size"),
    ("duration", "seconds"),
    ("image_urls", "input_reference", "referenceImages"),
    ("first_image", "image"),
    ("last_image", "lastFrameImage"),
)
"""Names under which different families have fields of the same meaning."""
_NO_LIMITS: Limits = {}


@attrs.frozen
class Model:
    """A model of a family, and the limits that apply to it alone.

    Args:
        name: The `model` value on the wire.
        limits: Rules by wire name, in addition to the family's.
        defaults: Defaults of the service by wire name, if they differ from the family's.
        pacing: Its own row of the polling guidance, or None for the family's.
        billing: How it is billed, as far as the specification says.
        note: Other differences.
    """

    name: str
    limits: Limits = attrs.field(factory=dict[str, tuple[ValueRule, ...]], hash=False)
    defaults: Mapping[str, object] = attrs.field(factory=dict[str, object], hash=False)
    pacing: Pacing | None = None
    billing: Billing = Billing.NOT_SHOWN
    note: str = ""


@attrs.frozen
class Report:
    """The result of a check of a request.

    Args:
        problems: What the service would reject.
        notices: Settings that are accepted but have no effect.
    """

    problems: tuple[Problem, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the request may be sent."""
        return not self.problems


@attrs.frozen(kw_only=True, eq=False)
class Family:
    """A family of models that share a create call.

    Args:
        name: Its name in the specification, such as `imga`.
        media: What it makes.
        create_path: Path of the create call below the base URL.
        create_object: `object` of its task records.
        result_object: `object` of its result records, or None if not shown.
        models: Its models; empty if not shown.
        relations: Rules between its fields.
        aliases: Legacy names of its fields.
        ineffective: When a setting has no effect.
        pacing: How often to poll.
        retention: How long results are kept.
        body_shown: Whether the specification shows the whole request body. Only then is an unknown
            field a mistake; otherwise it is sent unchanged.
        resolution: Its highest resolution, in words.
        duration: Its durations, in words; "" for images.
        fixed_seconds: The length of every video, if a request cannot choose it.
        omits_error: Whether its task records leave `error` out unless the status is `failed`.
        starts_processing: Whether its create call may report `processing` already.
        makes_audio: Whether its videos may have sound.
        media_rules: Rules about the media themselves, which their address does not show.
    """

    name: str
    media: Media
    create_path: str
    create_object: str
    result_object: str | None
    models: tuple[Model, ...] = ()
    relations: tuple[Relation, ...] = ()
    aliases: tuple[Alias, ...] = ()
    ineffective: tuple[Ineffective, ...] = ()
    pacing: Pacing
    retention: Retention
    body_shown: bool = True
    resolution: str = ""
    duration: str = ""
    fixed_seconds: int | None = None
    omits_error: bool = False
    starts_processing: bool = False
    makes_audio: bool = False
    media_rules: tuple[MediaRule, ...] = ()

    request: type[Any] = attrs.field(init=False, repr=False)
    fields: tuple[Field, ...] = attrs.field(init=False, repr=False)
    _fields_by_wire: Mapping[str, Field] = attrs.field(init=False, repr=False)
    _wire_names: Mapping[str, str] = attrs.field(init=False, repr=False)
    _models_by_name: Mapping[str, Model] = attrs.field(init=False, repr=False)

    def tie_to(self, request: type[object], fields: tuple[Field, ...]) -> None:
        """Complete the family with its request class, once, when that class is declared."""
        # The class is frozen for everybody else.
        object.__setattr__(self, "request", request)
        object.__setattr__(self, "fields", fields)
        object.__setattr__(self, "_fields_by_wire", {field.wire: field for field in fields})
        object.__setattr__(self, "_wire_names", {field.name: field.wire for field in fields})
        object.__setattr__(self, "_models_by_name", {model.name: model for model in self.models})

    @property
    def notes(self) -> tuple[str, ...]:
        """Its rules about the media themselves, as sentences."""
        return tuple(rule.sentence for rule in self.media_rules)

    def field(self, wire: str) -> Field | None:
        """Return the field with the wire name *wire*, or None."""
        return self._fields_by_wire.get(wire)

    def python_name(self, wire: str) -> str:
        """Return what Python code calls the field *wire*."""
        field = self.field(wire)
        return wire if field is None else field.name

    def wire_name(self, name: str) -> str:
        """Return what the service calls the field *name*, given by either of its names."""
        return self._wire_names.get(name, name)

    def model(self, name: str | None) -> Model | None:
        """Return the model *name*, or None if the tables do not know it."""
        return None if name is None else self._models_by_name.get(name)

    def defaults_of(self, model: Model) -> dict[str, object]:
        """Return the service's defaults that every request of *model* may send, by wire name.

        A field that the model does not take has none, nor has one of two alternatives: the default
        would be refused beside the other one.
        """
        alternatives = {wire for relation in self.relations for wire in relation.rivals}
        defaults: dict[str, object] = {}
        for field in self.fields:
            value = model.defaults.get(field.wire, field.service_default)
            rules = (*field.rules, *model.limits.get(field.wire, ()))
            if value is None or field.wire in alternatives or field.problem(value, rules):
                continue
            defaults[field.wire] = value
        return defaults

    def default_of(self, field: Field) -> object:
        """Return the service's default of *field* that a request of any model may send, or None.

        Clients that are made from a schema send the defaults that it states.
        """
        default = field.service_default
        defaults = (self.defaults_of(model).get(field.wire) for model in self.models)
        return default if all(value == default for value in defaults) else None

    def pacing_of(self, model: str | None) -> Pacing:
        """Return how often to poll a task of *model*."""
        row = self.model(model)
        return row.pacing if row is not None and row.pacing is not None else self.pacing

    def check(
        self,
        body: Mapping[str, object],
        *,
        extra: Mapping[str, object] | None = None,
        keep_unknown: bool = False,
        own: OwnLinks = no_link,
        name: Naming = str,
    ) -> Report:
        """Check a create request's *body*, given by wire names.

        Args:
            body: The fields as they would be sent.
            extra: Additional fields that are sent unchecked.
            keep_unknown: Whether to allow fields and models that the tables do not know.
            own: Whether a URL on this machine is one that the service gave out:
                `Service.gave_out`. Where public URLs are required, no other is accepted.
            name: Returns what the caller calls a field, given its name on the wire.

        Returns:
            All problems and notices, in the order of the family's fields.
        """
        problems: list[Problem] = []
        model_name = body.get("model")
        model = self.model(model_name) if isinstance(model_name, str) else None
        limits = model.limits if model is not None else _NO_LIMITS
        body, given, conflicts = self._without_aliases(body, name)
        problems += conflicts
        void = self._ineffective_in(body, model)
        for field in self.fields:
            wire = field.wire
            if wire not in body:
                if field.required:
                    problems.append(_missing(field))
                continue
            value = body[wire]
            rules = field.rules
            # The service ignores a setting without effect, so a model's limit cannot break there.
            if wire in limits and wire not in void:
                rules = (*rules, *limits[wire])
            # A model sent on purpose need not be in the tables, but its name must be sendable.
            if wire == "model" and (isinstance(value, Unlisted) or keep_unknown):
                rules = (_UNLISTED_RULE,)
                value = value.name if isinstance(value, Unlisted) else value
            problem = field.problem(value, rules)
            if problem is not None and wire == "model" and problem.rule == OneOf.name:
                problem = self._with_close_model(problem)
            if problem is not None and problem.rule == "type" and not field.takes_media:
                problem = self._with_place_for_files(problem, name)
            if problem is None:
                problem = self._problem_of_content(field, value, name)
            if problem is not None:
                problems.append(problem)
        problems += self.out_of_reach(body, own)
        problems += self._problems_of_unknown(
            body, keep=keep_unknown or not self.body_shown, name=name
        )
        if extra is not None:
            problems += self._problems_of_extra(extra)
        # Relations compare what takes effect, by its present names. Their problems are then told
        # under the name that the user has given, which may be an old one.
        effective = {**body}
        for wire in void:
            effective.pop(wire, None)
        for relation in self.relations:
            problems += relation.problems(
                effective,
                model.name if model is not None else None,
                lambda wire: name(given.get(wire, wire)),
            )
        if not problems:
            return Report(notices=tuple(void.values()))
        as_given = (
            attrs.evolve(problem, field=given.get(problem.field, problem.field))
            for problem in problems
        )
        return Report(tuple(named(as_given, name)), tuple(void.values()))

    def out_of_reach(self, body: Mapping[str, object], own: OwnLinks) -> tuple[Problem, ...]:
        """Return which URLs of a request with *body* are on this machine, out of service's reach.

        It is the part of `check` that depends on where the request would be sent.
        """
        if own is any_link:
            return ()
        name = body.get("model")
        model = self.model(name) if isinstance(name, str) else None
        limits = model.limits if model is not None else _NO_LIMITS
        problems: list[Problem] = []
        for field in self.fields:
            wire = field.wire
            for rule in (*field.rules, *limits.get(wire, ())) if wire in body else ():
                if isinstance(rule, MediaUrl):
                    complaint = rule.out_of_reach(body[wire], own)
                    if complaint is not None:
                        problems.append(
                            Problem(wire, body[wire], rule.name, complaint, rule.accepted)
                        )
        return tuple(problems)

    def plain(self, body: Mapping[str, object]) -> dict[str, object]:
        """Return *body*, as a user gave it, with its numbers as they are sent."""
        fields = self._fields_by_wire
        return {
            wire: fields[wire].kind.plain(value) if wire in fields else value
            for wire, value in body.items()
        }

    def is_unlisted(self, model: str) -> bool:
        """Whether the family's tables do not have *model*."""
        return bool(self.models) and model not in self._models_by_name

    def _problem_of_content(self, field: Field, value: object, name: Naming) -> Problem | None:
        """Return why *value*, which satisfies the rules of *field*, cannot be sent, or None."""
        if field.is_text:
            problem = self.problem_of_text(field.wire, value, name=name)
            if problem is not None:
                return problem
        match value:
            case InlineMedia():
                return None
            case list() | tuple():
                items = cast("Sequence[object]", value)
                value = [item for item in items if not isinstance(item, InlineMedia)]
            case _:
                pass
        return None if is_json(value) else unwritable(field.wire, value)

    def _without_aliases(
        self, body: Mapping[str, object], name: Naming
    ) -> tuple[Mapping[str, object], Mapping[str, str], list[Problem]]:
        """Return *body* without legacy names, the fields given by such names, and conflicts."""
        given: dict[str, str] = {}
        conflicts: list[Problem] = []
        for alias in self.aliases:
            if alias.legacy not in body:
                continue
            body = dict(body)
            value = body.pop(alias.legacy)
            if alias.field not in body:
                given[alias.field] = alias.legacy
            other = body.setdefault(alias.field, value)
            # Two numbers must be one and the same: True equals 1, and is another value in JSON.
            if other is not value and not (isinstance(value, str | InlineMedia) and other == value):
                conflicts.append(
                    Problem(
                        alias.legacy,
                        value,
                        "alias",
                        f"conflicts with {name(alias.field)}, whose old name it is",
                        f"send {name(alias.field)} alone",
                    )
                )
        return body, given, conflicts

    def _ineffective_in(self, body: Mapping[str, object], model: Model | None) -> dict[str, Notice]:
        name = model.name if model is not None else None
        notices: dict[str, Notice] = {}
        for rule in self.ineffective:
            if rule.applies(body, name):
                notices[rule.field] = Notice(rule.field, rule.message())
        return notices

    def _problems_of_unknown(
        self, body: Mapping[str, object], *, keep: bool, name: Naming
    ) -> list[Problem]:
        problems: list[Problem] = []
        for wire, value in body.items():
            if wire in self._fields_by_wire:
                continue
            problem = unwritable(wire, value) if keep else self.unknown(wire, value, name)
            if problem is not None:
                problems.append(problem)
        return problems

    def unknown(self, wire: str, value: object, name: Naming = str) -> Problem:
        """Return the problem of a field *wire* that the family does not have."""
        suggestion = self.suggestion(str(wire))
        fields = ", ".join(map(name, self._fields_by_wire))
        hint = f"did you mean {name(suggestion)}?" if suggestion else f"use {fields}"
        return Problem(
            str(wire), value, "unknown_field", f"family {self.name} has no such field", hint
        )

    def suggestion(self, wire: str) -> str | None:
        """Return the field that *wire* is probably a misspelling of, or None."""
        from difflib import get_close_matches

        plain = {_plain(field): field for field in self._fields_by_wire}
        wanted = _plain(wire)
        if wanted in plain:
            return plain[wanted]
        for names in ALIKE:
            alike = [name for name in names if name in self._fields_by_wire]
            if alike and wanted in map(_plain, names):
                return alike[0]
        close = get_close_matches(wanted, plain, n=1)
        return plain[close[0]] if close else self._field_for_media(wanted)

    def _field_for_media(self, wanted: str) -> str | None:
        """Return the field that takes most media of the kind that *wanted* names, or None."""
        candidates = [
            field
            for field in self.fields
            for rule in field.rules
            if isinstance(rule, MediaUrl) and str(rule.kind) in wanted
        ]
        # The sort is stable: among arrays, and among single ones, the first field is suggested.
        candidates.sort(key=lambda field: field.kind is not Kind.STRINGS)
        return candidates[0].wire if candidates else None

    def _with_close_model(self, problem: Problem) -> Problem:
        """Return *problem* with the model that was probably meant."""
        from difflib import get_close_matches

        close = get_close_matches(str(problem.value), self._models_by_name, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        return attrs.evolve(problem, accepted=f"{hint}{problem.accepted}")

    def _with_place_for_files(self, problem: Problem, name: Naming) -> Problem:
        """Return *problem* with the fields that take files, if it is about a file."""
        file = file_within(problem.value)
        if file is None:
            return problem
        fields = self._fields_for_files(name)
        place = f"put a file into {either(fields)}" if fields else self._no_files(name)
        hint = f"{place}, with {LOAD}" if fields and not isinstance(file, InlineMedia) else place
        return attrs.evolve(problem, accepted=f"{problem.accepted}; {hint}")

    def _fields_for_files(self, name: Naming) -> list[str]:
        """Return the fields that take files, as *name* calls them."""
        return [name(field.wire) for field in self.fields if field.takes_files]

    def _no_files(self, name: Naming) -> str:
        fields = [name(field.wire) for field in self.fields if field.takes_media]
        instead = f"; the URL of one goes into {either(fields)}" if fields else ""
        return f"this family takes no files{instead}"

    def problem_of_text(
        self, wire: str, value: object, file: FileText | None = None, name: Naming = str
    ) -> Problem | None:
        """Return the problem of the text *value* in the field *wire*, or None.

        Args:
            wire: The field's name on the wire.
            value: Its value.
            file: The file that it is, or None to find that out.
            name: Returns what the caller calls a field.
        """
        file = file or file_text(value)
        if file is None:
            return None
        return problem_of(wire, str(value), file, self.instead_of_text(file, name=name))

    def instead_of_text(
        self, file: FileText, forms: FileForms = IN_PYTHON, name: Naming = str
    ) -> str:
        """Return what to write in place of a text that is only a file.

        Args:
            file: The file.
            forms: How it is written.
            name: Returns what the caller calls a field.
        """
        fields = self._fields_for_files(name)
        if not fields:
            return instead_of(file, self._no_files(name), forms, loads=False)
        form = "as" if file.path else "as a data: URI"
        return instead_of(file, f"put it into {either(fields)}, {form}", forms)

    def _problems_of_extra(self, extra: object) -> list[Problem]:
        if not isinstance(extra, Mapping):
            message = f"{shown(extra)} is not a mapping"
            return [Problem("extra", extra, "type", message, "use a mapping of names to values")]
        problems: list[Problem] = []
        for wire, value in cast("Mapping[str, object]", extra).items():
            field = self.field(wire)
            if field is not None:
                problems.append(
                    Problem(
                        wire,
                        value,
                        "extra",
                        "is a known field and does not belong in extra",
                        f"set {field.name} instead",
                    )
                )
            else:
                problem = unwritable(wire, value)
                if problem is not None:
                    problems.append(problem)
        return problems


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


def named(problems: Iterable[Problem], name: Naming) -> Iterator[Problem]:
    """Yield *problems*, each with what the caller calls its field."""
    for problem in problems:
        called = name(problem.field)
        yield problem if called == problem.field else attrs.evolve(problem, named=called)


def _missing(field: Field) -> Problem:
    accepted = field.rules[0].accepted if field.rules else f"use {with_article(field.kind)}"
    return Problem(field.wire, None, "required", "is required", accepted)
