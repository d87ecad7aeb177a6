"""Typed requests that check themselves, made from a family's rules.

A family's module declares a request class. Its annotations are the types, `setting` adds the rules,
and `Family` has everything that is not a field: models, relations, pacing, retention.
`media_request` reads the class and completes the family with its fields, so that each field is
stated in one line.
"""

from __future__ import annotations

import ast
import json
import re
import types
import typing
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar, dataclass_transform

import attrs

from muybridge_protocol.arguments import check_type
from muybridge_protocol.families.docstrings import whole_docstring
from muybridge_protocol.families.family import Family, Unlisted, any_link, named
from muybridge_protocol.families.field import Field
from muybridge_protocol.families.naming import problems_of_names
from muybridge_protocol.local_errors import IgnoredSetting, InvalidRequest, LocalError
from muybridge_protocol.media.inline import InlineMedia
from muybridge_protocol.records.json_value import JsonValue
from muybridge_protocol.rules.files import FILE_TEXT, IN_PYTHON, FileForms, file_text
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import (
    Kind,
    Naming,
    OneOf,
    Problem,
    ValueRule,
    is_array,
    shown,
    without_content,
)

if TYPE_CHECKING:
    from muybridge_protocol.estimates.estimate import Estimate
    from muybridge_protocol.estimates.price_list import PriceList
    from muybridge_protocol.estimates.quantities import Quantities
    from muybridge_protocol.rules.relations import Alias


_LONGEST_NAME = 255
"""Longest text, in characters, that messages show as the name of a file."""


def setting(
    *rules: ValueRule,
    doc: str,
    wire: str = "",
    service_default: object = None,
    default: object = attrs.NOTHING,
) -> Any:
    """Declare one field of a request class.

    Args:
        rules: What its value must satisfy, in addition to its annotated type.
        doc: What it is for. Other fields stand in it as `{name on the wire}`.
        wire: Its name on the wire, if that differs from the Python name.
        service_default: The service's default if it is not sent.
        default: None for an optional field.
    """
    return attrs.field(
        default=default,
        metadata={
            "rules": rules,
            "wire": wire,
            "doc": doc,
            "service_default": service_default,
        },
    )


def unchecked(*, default: Mapping[str, object]) -> Any:
    """Declare `extra`, the last field of a request class.

    Args:
        default: What it is if it is not given: `{}`, for editors to show.
    """
    return attrs.field(factory=lambda: {**default}, hash=False)


class MediaRequest(JsonValue):
    """A create request. Each family has a class of its own.

    A request is checked when it is constructed. Only fields that were set are sent.

    Raises:
        InvalidRequest: The service would reject it. All problems are listed.
    """

    __slots__ = ()

    family: ClassVar[Family]

    # Not a field here: in a signature, fields of a base class would come before all others.
    extra: Mapping[str, object]
    """Fields that are sent unchecked, for what the specification does not show."""

    def __attrs_post_init__(self) -> None:
        family = self.family
        # Numbers first: what is checked is what will be sent.
        for field in family.fields:
            value = getattr(self, field.name)
            plain = field.kind.plain(value)
            if plain is not value:
                object.__setattr__(self, field.name, plain)
        name = family.python_name
        report = family.check(self._body(), extra=self.extra, own=any_link, name=name)
        # Files are judged only in a request that is right otherwise: what they must be may depend
        # on its other fields.
        problems = report.problems or tuple(named(self._problems_of_files(), name))
        if problems:
            raise InvalidRequest(family.name, with_loading(problems, family, IN_PYTHON, name))
        for alias in family.aliases:
            self._adopt(alias)
        body = self._body()
        for field in family.fields:
            value = body.get(field.wire)
            # The caller may change a list afterwards, and a request is hashed.
            if is_array(value):
                object.__setattr__(self, field.name, tuple(value))
        extra: dict[str, Any] = {}
        if self.extra:
            # Likewise a copy, down to the last list.
            extra = json.loads(json.dumps(dict(self.extra)))
        object.__setattr__(self, "extra", extra)
        for notice in report.notices:
            # Past this method, the `__init__` of attrs and the one that checks names.
            warnings.warn(str(notice), IgnoredSetting, stacklevel=4)

    @property
    def model_name(self) -> str | None:
        """The model's name as it is sent, or None if the request has none."""
        model = getattr(self, "model", None)
        return None if model is None else str(model)

    def to_body(self) -> dict[str, object]:
        """Return the request's JSON body by wire names, with only the fields that were set."""
        return as_body(self.settings())

    def settings(self) -> dict[str, object]:
        """Return what was set, by wire names: as `to_body`, but with files as values."""
        settings = self._body()
        for name, value in self.extra.items():
            settings.setdefault(name, value)
        return settings

    def to_dict(self) -> dict[str, Any]:
        """Return the request as a JSON object: its family and the fields that were set.

        A file is a `data:` URI. A model that is not listed is `unlisted_model`, and `extra` is
        apart, so that `from_dict` refuses everything else that the family does not have.
        """
        record: dict[str, Any] = {"family": self.family.name}
        for wire, value in self._body().items():
            unlisted = wire == "model" and isinstance(value, Unlisted)
            record["unlisted_model" if unlisted else wire] = _as_json(value)
        return {**record, "extra": dict(self.extra)} if self.extra else record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return the request that *record* describes, as `to_dict` writes it.

        For a request of a known class, `family` may be left out. For `MediaRequest`, it decides.

        Raises:
            InvalidRequest: The service would reject the request.
            LocalError: There is no such family, or it is that of another class.
        """
        body = dict(record)
        kind = _class_of(cls, body.pop("family", None))
        extra, unlisted = body.pop("extra", None), body.pop("unlisted_model", None)
        if unlisted is not None:
            body["model"] = Unlisted(unlisted)
        return typing.cast("Self", parse(kind.family, body, extra=extra))

    @classmethod
    def _json_schema(cls) -> dict[str, Any]:
        if cls is MediaRequest:
            return {"required": ["family"]}
        fields = cls.family.fields
        return {
            "properties": {field.wire: {"description": field.text()} for field in fields},
            "required": [
                field.wire for field in fields if field.required and field.wire != "model"
            ],
        }

    def digest(self) -> str:
        """Return the SHA-256 of the JSON body, in hexadecimal: equal bodies have equal digests.

        The JSON is written in UTF-8, with its names in order and without spaces.
        """
        from hashlib import sha256

        body = json.dumps(self.to_body(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return sha256(body.encode()).hexdigest()

    def quantities(self) -> Quantities:
        """Return what the request consumes, as far as that is known before it is sent."""
        from muybridge_protocol.estimates.quantities import media_quantities

        return media_quantities(self.family, self.model_name, self.settings())

    def estimate(self, prices: PriceList | None = None) -> Estimate:
        """Return what the request consumes and costs, as far as that is known.

        Args:
            prices: What things cost, or None if that is not known.
        """
        from muybridge_protocol.estimates.estimate import estimate_of

        return estimate_of(self.quantities(), prices)

    @classmethod
    def from_body(cls, body: Mapping[str, object], *, keep_unknown: bool = False) -> Self:
        """Return the request for *body*, given by wire names.

        Args:
            body: The fields as they would be sent.
            keep_unknown: Whether to allow fields and models that the tables do not know.

        Raises:
            InvalidRequest: The service would reject the request.
        """
        check_type("body", body, Mapping, "a mapping of fields by their names on the wire")
        return typing.cast("Self", parse(cls.family, body, keep_unknown=keep_unknown))

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({settings})"

    def __rich_repr__(self) -> Iterable[tuple[str, object]]:
        # Most fields of a request are not set, and one that is may have megabytes.
        for field in _attributes(type(self)):
            value = getattr(self, field.name)
            if value is not None and value != {}:
                yield field.name, without_content(value)

    def _body(self) -> dict[str, object]:
        body: dict[str, object] = {}
        for field in self.family.fields:
            value = getattr(self, field.name)
            if value is not None or field.required:
                body[field.wire] = value
        return body

    def _problems_of_files(self) -> tuple[Problem, ...]:
        """Return which rules about media the files in the request break."""
        values = (getattr(self, field.name) for field in self.family.fields)
        items = (item for value in values for item in (value if is_array(value) else (value,)))
        if not any(isinstance(item, InlineMedia) for item in items):
            return ()
        from muybridge_protocol.families.references import problems_of_files

        return problems_of_files(self.family, self._body())

    def _adopt(self, alias: Alias) -> None:
        """Move the value of a legacy field to the current one. If both were set, they are equal."""
        legacy, field = self.family.field(alias.legacy), self.family.field(alias.field)
        assert legacy is not None  # noqa: S101  `media_request` has checked the names
        assert field is not None  # noqa: S101  as above
        old = getattr(self, legacy.name)
        if old is not None:
            object.__setattr__(self, field.name, old)
            object.__setattr__(self, legacy.name, None)


def parse(
    family: Family,
    body: Mapping[str, object],
    *,
    extra: Mapping[str, object] | None = None,
    keep_unknown: bool = False,
) -> MediaRequest:
    """Return the typed request of *family* for *body*, given by wire names.

    Args:
        family: The request's family.
        body: The fields as they would be sent.
        extra: Additional fields that are sent unchecked.
        keep_unknown: Whether to allow fields and models that the tables do not know, as
            `extra` and `Unlisted`.

    Raises:
        InvalidRequest: The service would reject the request.
    """
    body = family.plain(body)
    refused: InvalidRequest | None = None
    arguments = _arguments(family, body, extra, keep_unknown=keep_unknown)
    if arguments is not None:
        try:
            request: MediaRequest = family.request(**arguments)  # it checks itself
        except InvalidRequest as error:
            refused = error
        else:
            return request
    # Of the names on the wire, which the caller has used. What only the request itself has found,
    # about its files, is raised as it is.
    report = family.check(body, extra=extra, keep_unknown=keep_unknown, own=any_link)
    if not report.ok or refused is None:
        raise InvalidRequest(family.name, report.problems)
    raise refused


def _arguments(
    family: Family,
    body: Mapping[str, object],
    extra: Mapping[str, object] | None,
    *,
    keep_unknown: bool,
) -> dict[str, Any] | None:
    """Return the arguments of a typed request, or None if one would hide a problem of *body*."""
    arguments: dict[str, Any] = {}
    unknown: dict[str, object] = {}
    for wire, value in body.items():
        field = family.field(wire)
        if field is None:
            unknown[wire] = value
        elif value is None:  # a typed request takes it for a field that is not set
            return None
        elif wire == "model" and keep_unknown and isinstance(value, str):
            try:
                arguments["model"] = Unlisted(value) if family.is_unlisted(value) else value
            except ValueError:  # it is no name of a model at all
                return None
        else:
            arguments[field.name] = value
    if unknown and family.body_shown and not keep_unknown:
        return None
    if extra is not None and not isinstance(typing.cast("object", extra), Mapping):
        return None
    arguments["extra"] = {**unknown, **(extra or {})}
    return arguments


def _class_of(kind: type[MediaRequest], name: object) -> type[MediaRequest]:
    """Return the class of requests of the family *name*, which is *kind* or derives from it.

    Raises:
        LocalError: No such class has that family.
    """
    if kind is not MediaRequest and name in (None, kind.family.name):
        return kind
    for one in kind.__subclasses__():
        # With slots, attrs makes a class anew. The one that was written has no family, and is still
        # listed here until it is collected.
        if vars(one).get("family") is not None and one.family.name == name:
            return one.family.request
    said = f"{shown(name)} is not the family of a {kind.__name__}"
    raise LocalError(said, argument="family")


def as_body(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the JSON body of a request with *settings*, by wire names."""
    return {wire: _as_json(value) for wire, value in settings.items()}


def _as_json(value: object) -> object:
    match value:
        case Unlisted():
            return value.name
        case InlineMedia():
            return value.data_uri()
        case list() | tuple():
            return [_as_json(item) for item in typing.cast("Sequence[object]", value)]
        case _:
            return value


def with_loading(
    problems: Iterable[Problem], family: Family, forms: FileForms, name: Naming = str
) -> tuple[Problem, ...]:
    """Return *problems*, with how to send a file where a field seems to have a file's name.

    Args:
        problems: What is wrong with a request.
        family: The request's family.
        forms: How a file is written in the request.
        name: Returns what the caller calls a field.
    """

    def with_line(problem: Problem) -> Problem:
        if problem.rule == FILE_TEXT:
            file = file_text(problem.value)
            if file is None:  # it was found in the file system
                return problem
            return attrs.evolve(problem, accepted=family.instead_of_text(file, forms, name))
        field = family.field(problem.field)
        rules = field.rules if field is not None and problem.rule == MediaUrl.name else ()
        items = problem.value if is_array(problem.value) else (problem.value,)
        for rule in rules:
            if isinstance(rule, MediaUrl) and rule.base64:
                for item in filter(_may_name_file, items):
                    if rule.complaint(item):
                        line = forms.file(typing.cast("str", item).removeprefix("@"))
                        accepted = f"{problem.accepted}; for a local file, {line}"
                        return attrs.evolve(problem, accepted=accepted)
        return problem

    return tuple(map(with_line, problems))


def _may_name_file(item: object) -> bool:
    if type(item) is not str or not 0 < len(item.removeprefix("@")) <= _LONGEST_NAME:
        return False
    return not re.match("[A-Za-z]{2,}:", item)  # a URL, perhaps without a slash


R = TypeVar("R", bound=MediaRequest)


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(setting, unchecked)
)
def media_request(family: Family) -> Callable[[type[R]], type[R]]:
    """Make a class the request of *family*: read its fields, and tie the two together."""

    def decorate(cls: type[R]) -> type[R]:
        request = attrs.frozen(kw_only=True, repr=False)(cls)
        names = [attribute.name for attribute in _attributes(request)]
        if names[-1:] != ["extra"]:
            raise TypeError(f"{cls.__name__}: the last field is not extra")
        hints = typing.get_type_hints(request)
        fields = tuple(
            _field(attribute, hints[attribute.name])
            for attribute in _attributes(request)
            if attribute.name != "extra"
        )
        request.family = family
        family.tie_to(request, fields)
        _check_names(family)
        setattr(request, "__init__", _checking_names(family, request.__init__))  # noqa: B010  mypy knows no such assignment
        request.__doc__ = whole_docstring(family)
        return request

    return decorate


def _checking_names(family: Family, init: Callable[..., None]) -> Callable[..., None]:
    """Return the `__init__` of the request class of *family*, which refuses wrong names.

    Python would report one of them, in a `TypeError`. Here they are problems of the request like
    all others, each with the name that was probably meant. Editors and `inspect.signature` still
    see the signature of *init*.
    """
    names = frozenset({*(field.name for field in family.fields), "extra"})
    required = frozenset(field.name for field in family.fields if field.required)

    @wraps(init)
    def checked(self: object, /, **fields: Any) -> None:
        if not required <= fields.keys() <= names:
            raise InvalidRequest(family.name, problems_of_names(family, fields))
        init(self, **fields)

    return checked


def _attributes(request: type[object]) -> tuple[attrs.Attribute[Any], ...]:
    """Return the fields of a request class, in their order."""
    attributes: tuple[attrs.Attribute[Any], ...]
    attributes = attrs.fields(typing.cast("type[attrs.AttrsInstance]", request))
    return attributes


def _field(attribute: attrs.Attribute[Any], hint: object) -> Field:
    kind, options = _read_hint(hint)
    rules: tuple[ValueRule, ...] = attribute.metadata["rules"]
    if options:
        rules = (OneOf(_as_written(options, attribute.type)), *rules)
    return Field(
        name=attribute.name,
        wire=attribute.metadata["wire"] or attribute.name,
        kind=kind,
        required=attribute.default is attrs.NOTHING,
        rules=rules,
        service_default=attribute.metadata["service_default"],
        doc=attribute.metadata["doc"],
    )


def _read_hint(hint: object) -> tuple[Kind, tuple[str | int, ...]]:
    """Return the JSON type of an annotation, and the values of its Literal."""
    parts = typing.get_args(hint) if _is_union(hint) else (hint,)
    (part,) = (part for part in parts if part not in (type(None), Unlisted, InlineMedia))
    if typing.get_origin(part) is Literal:
        options = typing.get_args(part)
        return (Kind.STRING if isinstance(options[0], str) else Kind.INTEGER), options
    return _KINDS[part], ()


def _as_written(options: tuple[str | int, ...], annotation: object) -> tuple[str | int, ...]:
    """Return *options* in their order in the annotation.

    `typing` caches unions, and Literals with the same values in another order are equal. So the
    order would be that of the first family that uses these values.
    """
    tree = ast.parse(str(annotation), mode="eval")
    written = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    return tuple(sorted(options, key=written.index))


def _is_union(hint: object) -> bool:
    # A Literal and a class make one kind of union, two classes make the other.
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


_KINDS: dict[object, Kind] = {
    str: Kind.STRING,
    int: Kind.INTEGER,
    float: Kind.NUMBER,
    bool: Kind.BOOLEAN,
    Sequence[str]: Kind.STRINGS,
    Sequence[str | InlineMedia]: Kind.STRINGS,
}


def _check_names(family: Family) -> None:
    """Reject a family whose parts name a model or field that it does not have."""
    model = family.field("model")
    options = next((r.options for r in model.rules if isinstance(r, OneOf)), ()) if model else ()
    if options != tuple(one.name for one in family.models):
        raise TypeError(f"{family.name}: the model annotation and the table of models differ")
    named = [wire for one in family.models for wire in (*one.limits, *one.defaults)]
    named += [name for alias in family.aliases for name in (alias.legacy, alias.field)]
    named += [rule.field for rule in family.ineffective]
    named += [name for field in family.fields for name in re.findall(r"{(\w+)}", field.doc)]
    for wire in named:
        if family.field(wire) is None:
            raise TypeError(f"{family.name}: there is no field {wire}")
