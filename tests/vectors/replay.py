"""Plays the checked-in vectors to the core, as a reader in another language would to its own.

Nothing here is shared with what makes the vectors: it knows the files alone.
"""

from __future__ import annotations

import base64
import json
import math
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from muybridge_protocol.errors import InvalidRequest, ServiceError
from muybridge_protocol.families import Unlisted, find_family
from muybridge_protocol.families.request import parse
from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)
from muybridge_protocol.operations import Create, DeleteAsset, Download, Fetch, Poll, Send
from muybridge_protocol.operations.create import encode
from muybridge_protocol.operations.poll import result_query
from muybridge_protocol.operations.text import TextCall
from muybridge_protocol.records.tasks import Task
from muybridge_protocol.service import Service
from muybridge_protocol.text import dialects
from muybridge_protocol.text.content import GenerationConfig
from muybridge_protocol.text.encoding import encode_content, encode_mapping
from muybridge_protocol.text.request import GenerateContentRequest
from muybridge_protocol.text.responses import GenerateContentResponse
from muybridge_protocol.text.stream_parser import MalformedStream, StreamParser
from muybridge_protocol.text.stream_reader import StreamInterrupted, StreamReader

Json = dict[str, Any]

FOLDER = Path(__file__).parent / "data"


def load(name: str) -> Json:
    found: Json = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found


def bytes_of(record: Json) -> bytes:
    if "body_base64" in record:
        return base64.b64decode(record["body_base64"], validate=True)
    return str(record.get("body", "")).encode()


def response_of(record: Json) -> HttpResponse:
    return HttpResponse(record["status"], pairs(record["headers"]), bytes_of(record))


def pairs(headers: list[list[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in headers)


def failure_of(record: Json) -> TransportFailure:
    return TransportFailure(
        phase=Phase(record["phase"]),
        sent=record["sent"],
        reason=Reason(record["reason"]),
        status=record.get("status"),
        partial=record.get("partial", "").encode(),
    )


# Requests.


def build(case: Json, service: Service) -> HttpRequest:
    """Return what is sent for a request."""
    match case["kind"]:
        case "create":
            request = _media_request(case)
            return encode(request, service)
        case "result":
            return result_query(Task(id=case["id"]), service)
        case "delete_asset":
            action = DeleteAsset.start(case["id"], service, now=0, seed=0).next_action(0)
            assert isinstance(action, Send)
            return action.request
        case "generate_content":
            return encode_content(text_request(case), service, stream=case["stream"])
        case "chat_completions":
            path = "/v1/chat/completions"
            return encode_mapping(case["input"], service, path=path, stream=case["stream"])
        case "messages":
            path = "/v1/messages"
            return encode_mapping(case["input"], service, path=path, stream=case["stream"])
        case kind:
            raise AssertionError(kind)


def _media_request(case: Json) -> Any:
    family = find_family(case["family"])
    names = {field.wire: field.name for field in family.fields}
    arguments = {names[wire]: value for wire, value in case["input"].items()}
    if case.get("unlisted_model"):
        arguments["model"] = Unlisted(arguments["model"])
    arguments["extra"] = case.get("extra", {})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        request = family.request(**arguments)
    fields = [str(warning.message).partition(":")[0] for warning in caught]
    assert fields == case["without_effect"]
    return request


def text_request(case: Json) -> GenerateContentRequest:
    body = case["input"]
    system = body.get("systemInstruction")
    config = body.get("generationConfig")
    if config is not None:
        config = GenerationConfig(
            temperature=config.get("temperature"),
            top_p=config.get("topP"),
            max_output_tokens=config.get("maxOutputTokens"),
        )
    return GenerateContentRequest.build(
        case["model"],
        body["contents"],
        system_instruction=None if system is None else system["parts"][0]["text"],
        generation_config=config,
    )


def assert_request(request: HttpRequest, told: Json) -> None:
    assert request.method == told["method"]
    assert request.url == told["url"]
    assert list(request.headers) == [tuple(header) for header in told["headers"]]
    assert request.body == (told["body"].encode() if "body" in told else None)
    assert request.authorized is told["authorized"]
    assert request.paid is told["paid"]


def problems(case: Json) -> list[tuple[str, str]]:
    """Return the field and the rule of each problem of an invalid request."""
    if case["kind"] == "create":
        found = find_family(case["family"]).check(case["input"]).problems
        return [(problem.field, problem.rule) for problem in found]
    try:
        text_request(case)
    except InvalidRequest as error:
        return [(problem.field, problem.rule) for problem in error.problems]
    return []


# Operations.


def begin(told: Json, start: Json, service: Service) -> Any:
    """Return the operation that *told* describes, at its beginning."""
    now, wall, seed = start["now"], start["wall"], start["seed"]
    match told["kind"]:
        case "create":
            request = parse(find_family(told["family"]), told["input"])
            return Create.start(request, service, now=now, wall=wall, seed=seed)
        case "poll":
            return Poll.start(
                Task(**told["task"]), service, now=now, wall=wall, seed=seed,
                wait=told.get("wait", 3600), poll_interval=told.get("poll_interval"),
            )  # fmt: skip
        case "query":
            return Poll.query(Task(**told["task"]), service, now=now, wall=wall, seed=seed)
        case "delete_asset":
            return DeleteAsset.start(told["id"], service, now=now, seed=seed)
        case "generate_content":
            sent = encode_content(text_request(told), service)
            return TextCall[Any].start(sent, GenerateContentResponse, service, now=now, seed=seed)
        case "download":
            task = Task(**told["task"])
            return Download.start(told["url"], service, task=task, now=now, seed=seed)
        case kind:
            raise AssertionError(kind)


def play(case: Json, service: Service) -> None:
    """Play a script to its operation, and hold what that does against the script."""
    operation = begin(case["operation"], case["start"], service)
    for step in case["steps"]:
        action, told = operation.next_action(step["now"]), step["action"]
        match told["do"]:
            case "wait":
                assert close(action.until, told["until"])
                continue
            case "end":
                assert type(action).__name__ == "Settled"
                assert_value(action.outcome, told["outcome"])
                return
            case "send" | "fetch" as what:
                assert isinstance(action, {"send": Send, "fetch": Fetch}[what])
                assert_request(action.request, told["request"])
                assert close(action.deadline, told["deadline"])
            case what:
                raise AssertionError(what)
        operation = happen(operation, step["then"])
    raise AssertionError("the script has no end")


def happen(operation: Any, then: Json) -> Any:
    """Return the operation after what the script lets happen."""
    now = then["now"]
    if "response" in then:
        operation = operation.receive(response_of(then["response"]), now)
        events = operation.events
    elif "head" in then:
        head = HttpHead(then["head"]["status"], pairs(then["head"]["headers"]))
        operation = operation.accept(head, now)
        events = operation.events
        if "pieces" in then:
            assert operation.part.offset == then["offset"]
            for piece in then["pieces"]:
                operation = operation.take(bytes_of(piece))
                events += operation.events
            if operation.settled is None:
                broken = "failure" in then
                operation = (
                    operation.fail(failure_of(then["failure"]), now)
                    if broken
                    else operation.end(now)
                )
                events += operation.events
    else:
        operation = operation.fail(failure_of(then["failure"]), now)
        events = operation.events
    assert_events(events, then["events"])
    return operation


def assert_events(events: Iterable[Any], told: list[Json]) -> None:
    found = list(events)
    assert [type(event).__name__ for event in found] == [event["type"] for event in told]
    for event, expected in zip(found, told, strict=True):
        for name, value in expected.items():
            match name:
                case "type":
                    pass
                case "task_id":
                    assert event.task.id == value
                case "status":
                    assert event.result.status == value
                case _:
                    assert same(getattr(event, name), value), name


def assert_value(value: Any, told: Json) -> None:
    """Hold an outcome against what is told of it: names are those of the core's attributes."""
    match told["type"]:
        case "Deleted":
            assert value is None
        case "Text":
            assert isinstance(value, GenerateContentResponse)
            first = value.candidates[0] if value.candidates else None
            assert (first.text if first else "") == told["text"]
            assert value.finish_reason == told.get("finish_reason")
        case kind:
            assert type(value).__name__ == kind
            for name, expected in told.items():
                match name:
                    case "type":
                        pass
                    case "task_id":
                        assert value.task.id == expected
                    case "next_poll_at":
                        assert same(value.task.next_poll_at, expected)
                    case "token":
                        assert value.to_token() == expected
                        assert Task.from_token(expected).id == value.id
                    case "result":
                        assert_value(value.result, expected)
                    case _:
                        assert same(getattr(value, name), expected), name
            assert isinstance(value, ServiceError) or "result" not in told


def same(value: Any, told: Any) -> bool:
    if isinstance(told, float):
        return close(value, told)
    return bool(value == told)


def close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-12)


# Streams.

_DIALECTS: dict[str, Any] = {
    "generate_content": dialects.NATIVE,
    "chat_completions": dialects.CHAT,
    "messages": dialects.MESSAGES,
}


def read_stream(case: Json, pieces: list[bytes]) -> Json:
    """Return what there is in a streamed response that comes in *pieces*."""
    parser, payloads, malformed = StreamParser(), list[bytes](), False
    try:
        for piece in pieces:
            payloads.extend(parser.feed(piece))
        payloads.extend(parser.end())
    except MalformedStream:
        malformed = True
    reader: StreamReader[Any] = StreamReader(_DIALECTS[case["dialect"]])
    chunks, complete, error = 0, True, False
    try:
        for piece in pieces:
            for _ in reader.take(piece):
                chunks += 1
        for _ in reader.end():
            chunks += 1
    except StreamInterrupted as interruption:
        complete, error = False, interruption.error is not None
    return {
        "payloads": payloads,
        "malformed": malformed,
        "chunks": chunks,
        "complete": complete,
        "tells_error": error,
    }
