"""Whatever comes to a text endpoint, the emulator answers."""

from __future__ import annotations

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emulator.caller import BEARER, JSON, MIDNIGHT, new_emulator
from emulator.text import ARRAY, CHAT, MESSAGES, MODEL, PLAIN, SSE
from muybridge_protocol.emulator import ServiceRequest, StreamedResponse, TextMarker
from muybridge_protocol.http import Headers, HttpResponse

any_text = st.text(st.characters(), max_size=30)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=10,
)
targets = st.sampled_from([PLAIN, ARRAY, SSE, CHAT, MESSAGES]) | st.builds(
    "/v1/models/{}?{}".format, st.text(max_size=20), any_text
)
STREAM_MARKERS = [TextMarker.BLOCKED, TextMarker.SAFETY, TextMarker.CUT, TextMarker.STREAM_ERROR]


def sometimes(value: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return *value*, or now and then anything else."""
    return st.integers(0, 15).flatmap(lambda drawn: value if drawn else json_values)


def some_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return sometimes(st.fixed_dictionaries({}, optional=fields))


texts = sometimes(any_text | st.sampled_from(STREAM_MARKERS))
data = sometimes(st.binary(max_size=40).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
urls = sometimes(data.map(lambda value: f"data:image/png;base64,{value}") | any_text)
numbers = sometimes(st.integers(-1, 40) | st.floats())
kinds = sometimes(
    st.sampled_from(
        ["text", "image_url", "image", "base64", "url", "tool_use", "function", "json_schema"]
    )
)
roles = sometimes(st.sampled_from(["user", "model", "assistant", "system", "tool"]))
inline = some_of(mimeType=texts, mime_type=texts, data=data)
parts = some_of(text=texts, inlineData=inline, inline_data=inline, fileData=some_of(fileUri=texts))
turns = sometimes(
    st.lists(some_of(role=roles, parts=sometimes(st.lists(parts, max_size=3))), max_size=3)
)
blocks = some_of(
    type=kinds,
    text=texts,
    image_url=urls | some_of(url=urls),
    source=some_of(type=kinds, media_type=texts, data=data, url=texts),
)
spoken = sometimes(texts | st.lists(blocks, max_size=3))
schemas = some_of(type=sometimes(st.sampled_from(["object", "STRING"])), enum=json_values)
config = some_of(
    temperature=numbers,
    topP=numbers,
    top_p=numbers,
    maxOutputTokens=numbers,
    candidateCount=numbers,
    responseMimeType=sometimes(st.just("application/json")),
    responseSchema=schemas,
)
functions = some_of(name=texts, parameters=schemas, input_schema=schemas)
native_bodies = st.fixed_dictionaries(
    {"contents": turns},
    optional={
        "generationConfig": config,
        "systemInstruction": texts | some_of(parts=parts),
        "tools": st.lists(
            some_of(functionDeclarations=st.lists(functions, max_size=2)), max_size=2
        ),
    },
)
other_bodies = st.fixed_dictionaries(
    {
        "model": sometimes(st.just(MODEL)),
        "max_tokens": numbers,
        "messages": sometimes(st.lists(some_of(role=roles, content=spoken), max_size=3)),
    },
    optional={
        "stream": sometimes(st.booleans()),
        "stream_options": some_of(include_usage=sometimes(st.booleans())),
        "system": spoken,
        "temperature": numbers,
        "n": numbers,
        "tools": st.lists(functions | some_of(type=kinds, function=functions), max_size=2),
        "tool_choice": sometimes(st.sampled_from(["required", "none"]) | some_of(type=kinds)),
        "response_format": some_of(type=kinds, json_schema=some_of(schema=schemas)),
    },
)


def answer(target: str, body: bytes, headers: Headers = (BEARER, JSON)) -> HttpResponse:
    request = ServiceRequest("POST", target, headers, body)
    reply = new_emulator().handle(request, now=MIDNIGHT, new_id="task-1")
    assert isinstance(reply, HttpResponse)
    assert 200 <= reply.status < 500
    assert reply.body.decode()
    if isinstance(reply, StreamedResponse):
        assert b"".join(reply.pieces) == reply.body
        assert all(reply.pieces)
    else:
        assert isinstance(json.loads(reply.body), dict)
    return reply


@given(targets, st.binary(max_size=200), st.booleans())
def test_any_bytes_get_an_answer(target: str, body: bytes, known: bool) -> None:  # noqa: FBT001  drawn
    """Any target and body get a reply with a status below 500, with a good key and without."""
    assert answer(target, body, (BEARER, JSON) if known else (JSON,)).status >= 400


@given(targets, json_values | native_bodies | other_bodies)
def test_any_json_gets_an_answer(target: str, body: object) -> None:
    """Any JSON gets a reply, however near to a good request it is."""
    answer(target, json.dumps(body).encode())


@given(st.sampled_from([PLAIN, ARRAY, SSE]), native_bodies)
def test_any_native_request_gets_an_answer(target: str, body: object) -> None:
    """Whatever stands in the fields of a native request, there is a reply."""
    answer(target, json.dumps(body).encode())


@given(st.sampled_from([CHAT, MESSAGES]), other_bodies)
def test_any_other_text_request_gets_an_answer(target: str, body: object) -> None:
    """Whatever stands in the fields of a chat or messages request, there is a reply."""
    answer(target, json.dumps(body).encode())
