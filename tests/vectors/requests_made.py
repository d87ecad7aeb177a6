"""Requests that the tables accept, with what is sent for them, and requests that they do not."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import FAMILIES, Family, Unlisted
from muybridge_protocol.families.examples import examples
from muybridge_protocol.operations import DeleteAsset, Operation, Poll, Send
from muybridge_protocol.operations.create import encode
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.rules.relations import (
    Alternatives,
    Excludes,
    FewerWith,
    OnlyWith,
    RequiredFor,
    Requires,
)
from muybridge_protocol.rules.values import Kind, Problem
from muybridge_protocol.text.content import GenerationConfig
from muybridge_protocol.text.defaults import CHAT_PATH, MESSAGES_PATH
from muybridge_protocol.text.encoding import encode_content, encode_mapping
from muybridge_protocol.text.request import GenerateContentRequest

from .telling import NOW, SERVICE, WALL, Told, told_request
from .values import URL, near, wrong_types

_MODEL = "textg-2.5-pro"
_TURN = {"role": "user", "parts": [{"text": "Why does a horse gallop?"}]}
_MESSAGES = [{"role": "user", "content": "Why does a horse gallop?"}]


def request_cases() -> list[Told]:
    """Return requests, each with exactly what is sent for it."""
    made = [
        created(family, body)
        for family in FAMILIES.values()
        for body in _bodies(family)
        if family.check(body).ok
    ]
    return [*made, *_on_purpose(), *_others()]


def invalid_cases() -> list[Told]:
    """Return requests that must not be sent, each with all its problems."""
    found: list[Told] = []
    for family in FAMILIES.values():
        for body in _bodies(family):
            problems = family.check(body).problems
            if problems:
                found.append(refused(family, body, problems))
    return [*found, *_invalid_texts()]


def refused(family: Family, body: Told, problems: Iterable[Problem]) -> Told:
    """Return a request that has *problems*."""
    return {
        "name": _name(family, body),
        "kind": "create",
        "family": family.name,
        "input": body,
        "problems": [{"field": p.field, "rule": p.rule, "says": str(p)} for p in problems],
    }


def created(family: Family, body: Told, *, unlisted: bool = False, **extra: object) -> Told:
    """Return a request, with exactly what is sent for it."""
    notices = [notice.field for notice in family.check(body, keep_unknown=True).notices]
    arguments: dict[str, Any] = {"extra": extra}
    for wire, value in body.items():
        field = family.field(wire)
        assert field is not None
        arguments[field.name] = Unlisted(str(value)) if unlisted and wire == "model" else value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        request = family.request(**arguments)
    name = _name(family, {**body, **extra})
    case: Told = {"name": name, "kind": "create", "family": family.name, "input": body}
    if unlisted:
        case["unlisted_model"] = True
    if extra:
        case["extra"] = extra
    return {**case, "without_effect": notices, "request": told_request(encode(request, SERVICE))}


def _name(family: Family, body: Told) -> str:
    text = json.dumps(body)
    shown = text if len(text) <= 300 else f"{text[:280]}... {len(text)}"
    return f"{family.name} {shown}"


def _bodies(family: Family) -> list[Told]:
    """Return bodies around all limits of the family, its models and its relations."""
    every = [
        *examples(family).values(),
        *_missing(family),
        *_around_values(family),
        *_around_relations(family),
        {},
    ]
    if family.body_shown:
        every.append({**_base(family), "promt": "x"})
    # Each once, in their order.
    return list({json.dumps(body): body for body in every}.values())


def _base(family: Family, model: str | None = None) -> Told:
    """Return the smallest body that the family, or a model of it, accepts."""
    filled = examples(family)
    chosen = filled.values() if model is None else (filled[model],)
    return min((_smallest(family, body) for body in chosen), key=len)


def _smallest(family: Family, body: Told) -> Told:
    for wire in list(body):
        smaller = {other: value for other, value in body.items() if other != wire}
        if family.check(smaller).ok and wire != "prompt":
            body = smaller
    return body


def _missing(family: Family) -> Iterator[Told]:
    base = _base(family)
    for wire in base:
        yield {other: value for other, value in base.items() if other != wire}


def _around_values(family: Family) -> Iterator[Told]:
    base = _base(family)
    for field in family.fields:
        for value in (*near(field, field.rules), *wrong_types(field)):
            yield _with_partners(family, {**base, field.wire: value})
    for model in family.models:
        for wire, rules in model.limits.items():
            field = family.field(wire)
            assert field is not None
            for value in near(field, (*field.rules, *rules)):
                yield _with_partners(family, {**_base(family, model.name), wire: value})


def _with_partners(family: Family, body: Told) -> Told:
    """Add what the fields of *body* need beside them."""
    for relation in (*family.relations, *family.relations):
        if isinstance(relation, Requires) and relation.field in body:
            body = {**body, relation.other: body.get(relation.other, _any(family, relation.other))}
    return body


def _any(family: Family, wire: str) -> object:
    """Return a value that the field *wire* accepts."""
    field = family.field(wire)
    assert field is not None
    values = near(field, field.rules)
    if field.kind is Kind.STRINGS:
        return [URL]
    return next(v for v in values if field.problem(v, field.rules) is None)


def _around_relations(family: Family) -> Iterator[Told]:
    base = _base(family)
    for relation in family.relations:
        match relation:
            case Requires(field, other):
                yield {**base, field: _any(family, field)}
                yield {**base, field: _any(family, field), other: _any(family, other)}
            case Excludes(these, those):
                for one, another in itertools.product(these, those):
                    both = {one: _any(family, one), another: _any(family, another)}
                    yield {**base, **both}
                    yield _with_partners(family, {**base, **both})
            case Alternatives(one, other):
                yield {**base, one: _any(family, one), other: _any(family, other)}
            case RequiredFor(field, models):
                for model in models:
                    bare = _base(family, model)
                    del bare[field]
                    yield bare
                    yield {**bare, field: []}
                    yield {**bare, field: [URL]}
            case OnlyWith(field, value, other, _):
                known = family.field(other)
                assert known is not None
                for option in near(known, known.rules[:1]):
                    yield {**base, field: value, other: option}
            case FewerWith(field, high, other):
                for count in (high, high + 1):
                    yield {**base, field: [URL] * count, other: _any(family, other)}
            case _:
                raise TypeError(f"no bodies are known for {type(relation).__name__}")
    for rule in family.ineffective:
        model = rule.models[0] if rule.models else None
        alone = {**_base(family, model), rule.field: _any(family, rule.field)}
        yield alone if rule.other is None else {**alone, rule.other: _any(family, rule.other)}
    for alias in family.aliases:
        legacy = _with_partners(family, {**base, alias.field: URL})
        yield {alias.legacy if wire == alias.field else wire: v for wire, v in legacy.items()}
        yield {**base, alias.legacy: "no address"}
        yield {**legacy, alias.legacy: URL}
        yield {**legacy, alias.legacy: f"{URL}?other"}


def _on_purpose() -> Iterator[Told]:
    """Yield requests with models and fields that the tables do not know, sent on purpose."""
    for family in FAMILIES.values():
        base = _base(family)
        yield created(family, base, x_seed=7, xNested={"a": [1, 2.5, None, True, "\U0001f40e"]})
        if family.models:
            yield created(family, {**base, "model": "brand-new"}, unlisted=True)


def _others() -> Iterator[Told]:
    """Yield the calls that have no table."""
    poll = Poll.query(Task(id="task-1"), SERVICE, now=NOW, wall=WALL, seed=0)
    yield {"name": "result query", "kind": "result", "id": "task-1", "request": _sent(poll)}
    deletion = DeleteAsset.start("asset-1", SERVICE, now=NOW, seed=0)
    yield {
        "name": "asset deletion",
        "kind": "delete_asset",
        "id": "asset-1",
        "request": _sent(deletion),
    }
    for stream in (False, True):
        how = "streamed" if stream else "whole"
        for body in (
            {"contents": [_TURN]},
            {
                "contents": [_TURN, {"role": "model", "parts": [{"text": "It is fast."}]}, _TURN],
                "systemInstruction": {"parts": [{"text": "Be \u201cterse\u201d \U0001f40e"}]},
                "generationConfig": {"temperature": 0.5, "topP": 1, "maxOutputTokens": 100},
            },
        ):
            yield {
                "name": f"text, {how}, {json.dumps(body)}",
                "kind": "generate_content",
                "model": _MODEL,
                "stream": stream,
                "input": body,
                "request": told_request(encode_content(_text(body), SERVICE, stream=stream)),
            }
        for kind, path in (("chat_completions", CHAT_PATH), ("messages", MESSAGES_PATH)):
            mapping = {"model": _MODEL, "messages": _MESSAGES}
            sent = encode_mapping(mapping, SERVICE, path=path, stream=stream)
            yield {
                "name": f"{kind}, {how}",
                "kind": kind,
                "stream": stream,
                "input": mapping,
                "request": told_request(sent),
            }


def _text(body: Told, model: str = _MODEL) -> GenerateContentRequest:
    config = body.get("generationConfig", {})
    return GenerateContentRequest.build(
        model,
        body["contents"],
        system_instruction=body.get("systemInstruction", {}).get("parts", [{}])[0].get("text"),
        generation_config=_config(config) if config else None,
    )


def _config(record: Told) -> Any:

    names = {"temperature": "temperature", "topP": "top_p", "maxOutputTokens": "max_output_tokens"}
    return GenerationConfig(**{names[name]: value for name, value in record.items()})


def _sent(operation: Operation[Any]) -> Told:
    action = operation.next_action(NOW)
    assert isinstance(action, Send)
    return told_request(action.request)


def _invalid_texts() -> Iterator[Told]:
    wrong: list[tuple[str, Told]] = [
        (_MODEL, {"contents": []}),
        (_MODEL, {"contents": [{"role": "assistant", "parts": [{"text": "a"}]}]}),
        (_MODEL, {"contents": [{"role": "user", "parts": []}]}),
        (_MODEL, {"contents": [{"role": "user", "parts": [{}]}]}),
        (_MODEL, {"contents": [{"role": "user", "parts": [{"text": 5}]}]}),
        (_MODEL, {"contents": [_TURN], "generationConfig": {"temperature": "hot"}}),
        (_MODEL, {"contents": [_TURN], "generationConfig": {"maxOutputTokens": 1.5}}),
        ("textg-9", {"contents": [_TURN]}),
        ("textg-2.5-flash-lite-low", {"contents": [_TURN]}),
    ]
    for model, body in wrong:
        try:
            _text(body, model)
        except InvalidRequest as error:
            problems = error.problems
        else:
            raise AssertionError(body)
        yield {
            "name": f"text {model} {json.dumps(body)}",
            "kind": "generate_content",
            "model": model,
            "input": body,
            "problems": [{"field": p.field, "rule": p.rule, "says": str(p)} for p in problems],
        }
