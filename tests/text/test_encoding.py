"""Text requests on the wire: the stored ones are the contract."""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from muybridge_protocol.errors import InvalidAddress, InvalidRequest, LocalError
from muybridge_protocol.families import Unlisted
from muybridge_protocol.http import MEBIBYTE, HttpRequest
from muybridge_protocol.service import Service
from muybridge_protocol.text.content import Content, GenerationConfig, Part
from muybridge_protocol.text.defaults import CHAT_PATH, MESSAGES_PATH
from muybridge_protocol.text.encoding import encode_content, encode_mapping
from muybridge_protocol.text.request import GenerateContentRequest

from .test_request import anything

SERVICE = Service(base_url="https://api.example.com", text_base_url="http://text.example.com")
build: Any = GenerateContentRequest.build
encode: Any = encode_mapping  # without types: some of these tests give wrong ones

SMALLEST = build("textg-2.5-flash-lite", "hi")
FULLEST = build(
    Unlisted("textg-4:tuned"),
    [
        Content(["caf\u00e9 \U0001f40e\n", Part.from_bytes(b"\x89PNG", "image/png")]),
        Content([Part(text="hm", thought=True), Part(extra={"functionCall": {}})], "model"),
        "and?",
    ],
    system_instruction="be terse",
    generation_config=GenerationConfig(
        temperature=0.5, top_p=0.9, max_output_tokens=99, extra={"candidateCount": 2}
    ),
    extra={"safetySettings": []},
)
CHAT_BODY = {"model": "textg-2.5-pro", "messages": [{"role": "user", "content": "caf\u00e9"}]}


def on_the_wire(request: HttpRequest) -> list[str]:
    """Return what is sent as lines, and what a driver is told about it."""
    headers = [f"{name}: {value}" for name, value in request.headers]
    told = {
        name: getattr(request, name)
        for name in ("authorized", "paid", "interruptible", "body_limit", "idle_timeout")
    }
    assert request.body is not None
    return [f"{request.method} {request.url}", *headers, request.body.decode(), str(told)]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("request_", [SMALLEST, FULLEST], ids=["smallest", "fullest"])
def test_native_requests(request_: Any, stream: bool, snapshot: SnapshotAssertion) -> None:  # noqa: FBT001  a column
    """A request in the native protocol goes out as it is stored."""
    assert on_the_wire(encode_content(request_, SERVICE, stream=stream)) == snapshot


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("path", [CHAT_PATH, MESSAGES_PATH])
def test_mapping_requests(path: str, stream: bool, snapshot: SnapshotAssertion) -> None:  # noqa: FBT001  a column
    """A request in another protocol goes out as it was given, and says if it is to be streamed."""
    sent = encode_mapping(CHAT_BODY, SERVICE, path=path, stream=stream)
    assert on_the_wire(sent) == snapshot


def test_limits() -> None:
    """A reply is bounded by the limit, whole or streamed."""
    assert encode_content(SMALLEST, SERVICE).body_limit == 32 * MEBIBYTE
    assert encode_content(SMALLEST, SERVICE, stream=True).body_limit == 32 * MEBIBYTE
    assert encode(CHAT_BODY, SERVICE, path="/x", size_limit=9).body_limit == 9
    assert encode(CHAT_BODY, SERVICE, path="/x", size_limit=9, stream=True).body_limit == 9


def test_streaming_is_asked_for() -> None:
    """`stream` is set where the reply is to be streamed, and a body that says so itself is fine."""
    for body in (CHAT_BODY, {**CHAT_BODY, "stream": True}, {**CHAT_BODY, "stream": None}):
        sent = encode_mapping(body, SERVICE, path=CHAT_PATH, stream=True)
        assert json.loads(sent.body or b"")["stream"] is True
    plain = encode_mapping({**CHAT_BODY, "stream": False}, SERVICE, path=CHAT_PATH)
    assert json.loads(plain.body or b"")["stream"] is False
    assert "stream" not in CHAT_BODY


@pytest.mark.parametrize(
    ("body", "stream", "problem"),
    [
        (
            {"stream": True},
            False,
            "stream: asks for the other kind of response; use the streaming method",
        ),
        (
            {"stream": False},
            True,
            "stream: asks for the other kind of response; use the method for a whole response",
        ),
        ({}, False, "the body is not a mapping of fields; give them by name"),
        (None, True, "the body is not a mapping of fields; give them by name"),
        ([("a", 1)], False, "the body is not a mapping of fields; give them by name"),
        (b"{}", False, "the body is not a mapping of fields; give them by name"),
        (
            {"a": math.nan},
            False,
            "a: nan cannot be written as JSON; use plain JSON values, and strings as names",
        ),
        (
            {5: 1},
            False,
            "5: 1 cannot be written as JSON; use plain JSON values, and strings as names",
        ),
    ],
    ids=str,
)
def test_bodies_are_checked(body: Any, stream: bool, problem: str) -> None:  # noqa: FBT001  a column
    """A body that cannot be sent, or asks for what the method does not do, is refused."""
    with pytest.raises(InvalidRequest) as caught:
        encode(body, SERVICE, path=CHAT_PATH, stream=stream)
    assert [str(found) for found in caught.value.problems] == [problem]


def test_any_mapping_will_do() -> None:
    """A body may be any kind of mapping, and is not changed."""
    for body in (MappingProxyType(CHAT_BODY), OrderedDict(CHAT_BODY)):
        assert (
            encode(body, SERVICE, path=CHAT_PATH).body
            == encode(CHAT_BODY, SERVICE, path=CHAT_PATH).body
        )


@given(st.dictionaries(st.text(max_size=3), anything, max_size=3) | anything, st.booleans())
def test_any_body_is_sent_as_json_or_refused(body: Any, stream: bool) -> None:  # noqa: FBT001  a drawn case
    """Whatever a body is made of, it is sent as JSON or refused with `InvalidRequest`."""
    try:
        sent = encode(body, SERVICE, path=CHAT_PATH, stream=stream)
    except InvalidRequest as error:
        str(error).encode()
        return
    assert isinstance(json.loads(sent.body), dict)


def test_addresses() -> None:
    """A path that leaves the service, and a service without text, are refused before sending."""
    for path in ("v1/messages", "//x.example/", "/a/../b", "https://x.example/", "/a b", ""):
        with pytest.raises(InvalidAddress, match="Nothing was sent"):
            encode_mapping(CHAT_BODY, SERVICE, path=path)
    without = Service(base_url="https://api.example.com")
    with pytest.raises(InvalidAddress, match="MUYBRIDGE_TEXT_BASE_URL"):
        encode_content(SMALLEST, without)
    with pytest.raises(LocalError, match="not a valid model name"):
        encode_content(build(Unlisted("../x"), "hi"), SERVICE)


def test_the_path_of_a_base_url_is_kept() -> None:
    """A text base URL may have a path of its own, below which the endpoints are."""
    service = Service(base_url="https://a.example", text_base_url="http://t.example/api/")
    assert encode_content(SMALLEST, service).url == (
        "http://t.example/api/v1/models/textg-2.5-flash-lite:generateContent"
    )
