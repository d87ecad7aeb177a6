"""The native text endpoints: expectations from the specification's "Text request and response"."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from emulator.caller import BEARER, JSON, Caller, new_emulator, read
from emulator.text import (
    ARRAY,
    MODEL,
    PATHS,
    PLAIN,
    PROTOCOLS,
    SSE,
    Body,
    Protocol,
    ask,
    events,
    native,
    saying,
    text_of,
)
from muybridge_protocol.emulator import REQUEST_BODY_LIMIT, Access, StreamedResponse, Timing

MODELS = (
    "textg-2.5-flash-lite",
    "textg-2.5-pro",
    "textg-2.5-pro-official",
    "textg-2.5-pro-low",
    "textg-3-flash-preview",
    "textg-3-flash-preview-official",
    "textg-3-flash-preview-low",
    "textg-3.1-flash-lite-preview",
    "textg-3.1-pro-preview",
    "textg-3.1-pro-preview-official",
    "textg-3.1-pro-preview-low",
)
# Its base64 has a letter that standard and URL-safe base64 write differently, and padding.
GIF = b"GIF89a\x05\x00\x02\x00\xff\xff\xfe"
STANDARD = base64.b64encode(GIF).decode()
URL_SAFE = base64.urlsafe_b64encode(GIF).decode()


def test_a_reply_has_the_fields_of_the_specification(caller: Caller) -> None:
    """A whole answer is one candidate of role `model` that ends with STOP, and its tokens."""
    reply = caller.post(PLAIN, native())
    assert reply.header("content-type") == "application/json; charset=UTF-8"
    record = read(reply)
    (candidate,) = record["candidates"]
    assert candidate["finishReason"] == "STOP"
    assert candidate["index"] == 0
    assert candidate["content"]["role"] == "model"
    (part,) = candidate["content"]["parts"]
    assert part["text"]
    usage = record["usageMetadata"]
    assert usage["promptTokenCount"] == 1
    assert usage["candidatesTokenCount"] > 10
    assert usage["totalTokenCount"] == 1 + usage["candidatesTokenCount"]
    assert record["modelVersion"] == MODEL
    assert record["responseId"] == "1"


def test_the_answer_is_honest(caller: Caller) -> None:
    """The answer says that no model has answered, and restates what was asked."""
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": "first"}]},
            {"role": "model", "parts": [{"text": "answer"}]},
            {"role": "user", "parts": [{"text": "and"}, {"text": "now?"}]},
        ],
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "generationConfig": {"temperature": 0.25, "topP": 1, "maxOutputTokens": 1000},
    }
    assert text_of(ask(caller, PLAIN, body)).splitlines() == [
        "This is Muybridge's local emulator of the service: no model has answered.",
        f"Model: {MODEL}.",
        "Turns: 3 (user, model, user).",
        'System instruction: "be brief".',
        'Last user text: "and now?".',
        "Settings: temperature 0.25, topP 1, maxOutputTokens 1000.",
    ]


def test_the_same_request_gets_the_same_answer(caller: Caller) -> None:
    """Two requests that are the same differ in their reply's identifier alone."""
    one, other = ask(caller, PLAIN, native()), ask(caller, PLAIN, native())
    assert one.pop("responseId") != other.pop("responseId")
    assert one == other


def test_long_things_are_shortened(caller: Caller) -> None:
    """Long texts, many turns, files and other parts are restated in short."""
    parts: list[Body] = [{"text": "z" * 10_000}]
    parts += [{"inlineData": {"mimeType": "x/" + "y" * 1000, "data": "AA=="}}] * 9
    parts += [{"k" * 1000: 1}] * 9
    body = {"contents": [{"parts": parts}] * 100, "systemInstruction": "s" * 10_000}
    text = text_of(ask(caller, PLAIN, body))
    assert len(text) < 3000
    assert "Turns: 100 (user, user, user, user, user, user, user, user and 92 more)." in text
    assert f'Last user text: "{"z" * 200}...".' in text
    assert "Files: 900." in text


@pytest.mark.parametrize("most", [1, 2, 7, 8, 9, 16, 30])
def test_an_answer_has_no_more_tokens_than_it_may(caller: Caller, most: int) -> None:
    """maxOutputTokens cuts the answer, plain and streamed, and MAX_TOKENS says so."""
    whole = text_of(ask(caller, PLAIN, native()))
    body = native(generationConfig={"maxOutputTokens": most})
    record = ask(caller, PLAIN, body)
    assert whole.startswith(text_of(record))
    assert len(text_of(record)) < len(whole)
    assert record["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert record["usageMetadata"]["candidatesTokenCount"] == most
    chunks = events(caller.post(SSE, body))
    assert "".join(map(text_of, chunks)) == text_of(record)
    assert chunks[-1]["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert chunks[-1]["usageMetadata"] == record["usageMetadata"]


def test_an_answer_that_just_fits_is_whole(caller: Caller) -> None:
    """An answer with exactly as many tokens as it may have ends with STOP."""
    # The limit stands in the answer, so that the answer must be taken with one as long.
    body = native(generationConfig={"maxOutputTokens": 99})
    tokens = ask(caller, PLAIN, body)["usageMetadata"]["candidatesTokenCount"]
    assert 10 <= tokens < 99
    for most, reason in ((tokens, "STOP"), (tokens - 1, "MAX_TOKENS")):
        record = ask(caller, PLAIN, native(generationConfig={"maxOutputTokens": most}))
        assert record["candidates"][0]["finishReason"] == reason
        assert record["usageMetadata"]["candidatesTokenCount"] == most


def test_a_stream_tells_what_a_reply_tells(caller: Caller) -> None:
    """The texts of a stream together are the plain text; its end and tokens stand in the last."""
    body = native("w\u00f6rd \u2603 \U0001f40e " * 5)
    record = ask(caller, PLAIN, body)
    chunks = events(caller.post(SSE, body))
    assert len(chunks) > 3
    assert "".join(map(text_of, chunks)) == text_of(record)
    assert all("finishReason" not in chunk["candidates"][0] for chunk in chunks[:-1])
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    assert chunks[-1]["usageMetadata"] == record["usageMetadata"]
    counts = [chunk["usageMetadata"]["candidatesTokenCount"] for chunk in chunks]
    assert counts == sorted(set(counts))
    for chunk in chunks:
        usage = chunk["usageMetadata"]
        prompt, total = usage["promptTokenCount"], usage["totalTokenCount"]
        assert total - prompt == usage["candidatesTokenCount"]
        assert chunk["candidates"][0]["content"]["role"] == "model"
    assert len({chunk["responseId"] for chunk in chunks}) == 1


def test_events_are_framed_as_the_service_does(caller: Caller) -> None:
    """An event is one `data: ` line with a blank line after it, both ended by CRLF, in UTF-8."""
    reply = caller.post(SSE, native("\u2603"))
    assert isinstance(reply, StreamedResponse)
    assert b"".join(reply.pieces) == reply.body
    for piece in reply.pieces:
        assert piece.startswith(b"data: {")
        assert piece.endswith(b"}\r\n\r\n")
        assert piece.count(b"\n") == 2
    assert "\u2603".encode() in reply.body


def test_without_events_a_stream_is_an_array(caller: Caller) -> None:
    """Without `alt=sse` the same chunks are a JSON array in pieces of one chunk each."""
    reply = caller.post(ARRAY, native())
    assert isinstance(reply, StreamedResponse)
    assert reply.header("content-type") == "application/json; charset=UTF-8"
    assert b"".join(reply.pieces) == reply.body
    assert reply.pieces[0].startswith(b"[{")
    assert all(piece.startswith(b"\n,\r\n{") for piece in reply.pieces[1:-1])
    assert reply.pieces[-1] == b"\n]"
    chunks: Any = read(reply)
    as_events = events(caller.post(SSE, native()))
    for chunk in (*chunks, *as_events):
        del chunk["responseId"]
    assert chunks == as_events


@pytest.mark.parametrize(
    "query", ["alt=sse", "a=b&alt=sse", "alt=sse&key=x", "%61lt=sse", "alt=s%73e"]
)
def test_events_are_asked_for_anywhere_in_the_query(caller: Caller, query: str) -> None:
    """`alt=sse` counts wherever it stands in the query, and other parameters do not matter."""
    assert events(caller.post(f"{ARRAY}?{query}", native()))


@pytest.mark.parametrize("query", ["alt=json", "alt", "alt=sses", "xalt=sse", "alt=sse%00"])
def test_other_queries_ask_for_no_events(caller: Caller, query: str) -> None:
    """Whatever is not `alt=sse` leaves a stream an array."""
    assert caller.post(f"{ARRAY}?{query}", native()).body.startswith(b"[")


def test_a_plain_reply_is_not_streamed(caller: Caller) -> None:
    """`alt=sse` makes no stream of a reply that is asked for whole."""
    reply = caller.post(f"{PLAIN}?alt=sse", native())
    assert not isinstance(reply, StreamedResponse)
    assert text_of(read(reply))


def test_pieces_come_at_the_pace_of_the_timing() -> None:
    """The seconds between pieces are the timing's, divided by its speed."""
    caller = Caller(new_emulator(timing=Timing(text_interval=3, speed=4)))
    reply = caller.post(SSE, native())
    assert isinstance(reply, StreamedResponse)
    assert reply.interval == 0.75
    with pytest.raises(ValueError, match="finite"):
        Timing(text_interval=-1)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_of_the_catalogue_answers(caller: Caller, model: str) -> None:
    """Each base model answers in the variants that the specification's table gives it."""
    for path in (f"/v1/models/{model}:generateContent", f"/v1/models/{model}%3AgenerateContent"):
        assert f"Model: {model}." in text_of(ask(caller, path, native()))


@pytest.mark.parametrize(
    "model",
    ["textg-2.5-flash-lite-low", "textg-3.1-flash-lite-preview-official", "textg", "imga", "%20"],
)
def test_another_model_is_not_found(model: str) -> None:
    """Of a strict service, a model or variant not in the table gets 404, plain and streaming."""
    strict = Caller(new_emulator(strict=True))
    for method in ("generateContent", "streamGenerateContent?alt=sse"):
        reply = strict.post(f"/v1/models/{model}:{method}", native())
        assert reply.status == 404
        assert reply.header("content-type") == "application/json; charset=UTF-8"
        error = read(reply)["error"]
        assert (error["code"], error["status"]) == (404, "NOT_FOUND")
        assert "textg-2.5-pro" in error["message"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_unlisted_model_answers(caller: Caller, protocol: Protocol) -> None:
    """A model that the specification does not list answers like any other, if it has a name."""
    path = PATHS[protocol].replace(MODEL, "textg-9")
    body = {**saying(protocol, "hello"), "model": "textg-9"}
    assert "Model: textg-9." in caller.post(path, body).body.decode()
    blank = caller.post(path.replace("textg-9", "%20"), {**body, "model": " "})
    assert blank.status == 404


@pytest.mark.parametrize(
    "path", [f"{MODEL}:countTokens", MODEL, f"{MODEL}:", ":", f"{MODEL}:GenerateContent", ""]
)
def test_another_method_is_not_found(caller: Caller, path: str) -> None:
    """Whatever else is asked of a model gets 404."""
    reply = caller.post(f"/v1/models/{path}", native())
    assert (reply.status, read(reply)["error"]["status"]) == (404, "NOT_FOUND")


GOOD: list[Body] = [
    {"contents": [{"parts": [{"text": "x"}]}]},
    {"contents": [{"role": None, "parts": [{"text": "x"}]}]},
    native("x", systemInstruction={"role": "system", "parts": [{"text": "s"}]}),
    native("x", system_instruction={"parts": [{"text": "s"}]}),
    native("x", systemInstruction="s"),
    native("x", systemInstruction=None, generationConfig=None),
    native("x", generationConfig={}, safetySettings=[], tools=[], toolConfig={}),
    native("x", generation_config={"top_p": 0.5, "max_output_tokens": 500, "seed": 1}),
    native("x", generationConfig={"temperature": None, "stopSequences": ["x"]}),
    native("x", unknown={"a": [1, 2]}),
    {"contents": [{"role": "user", "parts": [{"text": "x", "thoughtSignature": "y"}]}]},
    {"contents": [{"role": "user", "parts": [{"text": "x"}, {"functionResponse": {}}]}]},
    {"contents": [{"parts": [{"text": "x"}]}, {"role": "model", "parts": [{"text": ""}]}]},
    {"contents": [{"parts": [{"text": "x"}]}, {"role": "tool", "parts": [{"text": ""}]}]},
    {"contents": [{"parts": [{"text": "x"}]}, {"role": "function", "parts": [{"a": 1}]}]},
]


@pytest.mark.parametrize("body", GOOD, ids=range(15))
def test_good_bodies_are_understood(caller: Caller, body: Body) -> None:
    """What real software sends is answered, in either spelling of its names."""
    assert 'Last user text: "x".' in text_of(ask(caller, PLAIN, body))


@pytest.mark.parametrize("instruction", [{"parts": [{"text": "a"}, {"text": "b"}]}, "a b"])
@pytest.mark.parametrize("name", ["systemInstruction", "system_instruction"])
def test_a_system_instruction_is_restated(caller: Caller, name: str, instruction: object) -> None:
    """A system instruction is understood by either name, as parts or as a string, and counted."""
    record = ask(caller, PLAIN, {**native(), name: instruction})
    assert 'System instruction: "a b".' in text_of(record)
    assert record["usageMetadata"]["promptTokenCount"] == 3


def test_settings_are_restated_by_the_names_they_came_under(caller: Caller) -> None:
    """Settings are understood in either spelling, and restated in the one that was sent."""
    config = {"temperature": 1e3, "top_p": 0.5, "max_output_tokens": 500}
    text = text_of(ask(caller, PLAIN, native(generation_config=config)))
    assert "Settings: temperature 1000.0, top_p 0.5, max_output_tokens 500." in text


@pytest.mark.parametrize("data", [STANDARD, URL_SAFE, STANDARD.rstrip("="), URL_SAFE.rstrip("=")])
@pytest.mark.parametrize(
    ("outer", "inner"), [("inlineData", "mime_type"), ("inline_data", "mimeType")]
)
def test_a_file_is_described(caller: Caller, data: str, outer: str, inner: str) -> None:
    """A file is decoded from any base64, under names of any spelling, and told with its size."""
    parts = [{"text": "what is it?"}, {outer: {inner: "image/gif", "data": data}}]
    record = ask(caller, PLAIN, {"contents": [{"parts": parts}]})
    assert "- image/gif: a GIF picture of 5x2 pixels, 13 bytes." in text_of(record)
    assert record["usageMetadata"]["promptTokenCount"] == 4 + 258


def test_the_examples_of_base64_are_four() -> None:
    """The file's base64 differs by alphabet and by padding, so that the test above tries both."""
    assert len({STANDARD, URL_SAFE, STANDARD.rstrip("="), URL_SAFE.rstrip("=")}) == 4


def test_files_of_all_turns_are_told(caller: Caller) -> None:
    """Files of earlier turns and files by address are told as well, the latter as not fetched."""
    body = {
        "contents": [
            {"parts": [{"inlineData": {"mimeType": "text/plain", "data": "aGVsbG8="}}]},
            {"role": "model", "parts": [{"functionCall": {"name": "f"}}]},
            {"parts": [{"fileData": {"fileUri": "https://example.com/a.png?secret"}}]},
            {"parts": [{"file_data": {"file_uri": "https://example.com/b.png"}}]},
        ]
    }
    text = text_of(ask(caller, PLAIN, body))
    assert "Files: 3.\n- text/plain: 5 bytes.\n- https://example.com/a.png?..., which was" in text
    assert "- https://example.com/b.png, which was not fetched." in text
    assert "Other parts: functionCall." in text
    assert "secret" not in text


def one_part(part: object) -> Body:
    return {"contents": [{"role": "user", "parts": [part]}]}


BAD: list[tuple[Body, str]] = [
    ({}, "contents"),
    ({"contents": None}, "contents"),
    ({"contents": []}, "contents"),
    ({"contents": "hello"}, "contents"),
    ({"contents": {"parts": [{"text": "x"}]}}, "contents"),
    ({"contents": ["hello"]}, "contents[0]"),
    ({"contents": [{}]}, "contents[0].parts"),
    ({"contents": [{"parts": []}]}, "contents[0].parts"),
    ({"contents": [{"parts": {"text": "x"}}]}, "contents[0].parts"),
    ({"contents": [{"parts": ["x"]}]}, "contents[0].parts[0]"),
    ({"contents": [{"role": "assistant", "parts": [{"text": "x"}]}]}, "contents[0].role"),
    ({"contents": [{"role": "system", "parts": [{"text": "x"}]}]}, "contents[0].role"),
    ({"contents": [{"role": "", "parts": [{"text": "x"}]}]}, "contents[0].role"),
    ({"contents": [{"role": 1, "parts": [{"text": "x"}]}]}, "contents[0].role"),
    (one_part({}), "contents[0].parts[0]"),
    (one_part({"text": None}), "contents[0].parts[0]"),
    (one_part({"text": 1}), "contents[0].parts[0].text"),
    (one_part({"inlineData": "x"}), "contents[0].parts[0].inlineData"),
    (one_part({"inlineData": {"data": "AA=="}}), "contents[0].parts[0].inlineData.mimeType"),
    (one_part({"inlineData": {"mimeType": "a/b"}}), "contents[0].parts[0].inlineData.data"),
    (one_part({"fileData": {}}), "contents[0].parts[0].fileData.fileUri"),
    (native(systemInstruction=1), "systemInstruction"),
    (native(systemInstruction={}), "systemInstruction.parts"),
    (native(systemInstruction={"parts": [{"text": 1}]}), "systemInstruction.parts[0].text"),
    (native(generationConfig=[]), "generationConfig"),
    (native(generationConfig={"temperature": "1"}), "generationConfig.temperature"),
    (native(generationConfig={"temperature": True}), "generationConfig.temperature"),
    (native(generationConfig={"topP": []}), "generationConfig.topP"),
    (native(generationConfig={"maxOutputTokens": 1.5}), "generationConfig.maxOutputTokens"),
    (native(generationConfig={"maxOutputTokens": "9"}), "generationConfig.maxOutputTokens"),
    (native(generationConfig={"maxOutputTokens": True}), "generationConfig.maxOutputTokens"),
    (native(generationConfig={"maxOutputTokens": 0}), "generationConfig.maxOutputTokens"),
    (native(generation_config={"top_p": "x"}), "generation_config.top_p"),
]


@pytest.mark.parametrize(("body", "field"), BAD)
@pytest.mark.parametrize("path", [PLAIN, SSE, ARRAY])
def test_bad_bodies_are_refused(caller: Caller, path: str, body: Body, field: str) -> None:
    """What is missing or of a wrong type gets 400 with its place, plain and streaming."""
    reply = caller.post(path, body)
    assert reply.status == 400
    assert reply.header("content-type") == "application/json; charset=UTF-8"
    error = read(reply)["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert error["message"].startswith(f"{field} ")


@pytest.mark.parametrize(
    "data",
    [
        "",
        "A",
        "A===",
        "AA=",
        "AA===",
        "=",
        "A=A=",
        "AAAA=",
        "AAAA====",
        "====",
        "AA==AA==",
        "A A=",
        "!!!!",
        "\u00e9",
        1,
    ],
)
def test_bad_base64_is_refused(caller: Caller, data: object) -> None:
    """Data that is no base64 gets 400; only the empty string is the base64 of nothing."""
    body = one_part({"inlineData": {"mimeType": "a/b", "data": data}})
    reply = caller.post(PLAIN, body)
    assert reply.status == (200 if data == "" else 400)
    assert data == "" or "contents[0].parts[0].inlineData.data" in read(reply)["error"]["message"]


def test_a_text_request_is_a_post_of_json(caller: Caller) -> None:
    """Another method, type or form gets an error in the shape of the native protocol."""
    get = caller.send("GET", PLAIN)
    assert (get.status, get.header("allow")) == (405, "POST")
    statuses = {
        caller.send("POST", PLAIN, b"{}", (BEARER,)): 415,
        caller.send("POST", PLAIN, b"", (BEARER, JSON)): 400,
        caller.send("POST", PLAIN, b"[]", (BEARER, JSON)): 400,
        caller.send("POST", PLAIN, b"[" * 200, (BEARER, JSON)): 400,
        caller.send("POST", PLAIN, b" " * (REQUEST_BODY_LIMIT + 1)): 413,
        get: 405,
    }
    for reply, status in statuses.items():
        assert reply.status == status
        error = read(reply)["error"]
        assert set(error) == {"code", "message", "status"}
        assert error["code"] == status


def test_a_large_file_is_taken(caller: Caller) -> None:
    """A file of many megabytes is described like a small one."""
    data = base64.b64encode(bytes(20_000_000)).decode()
    body = one_part({"inlineData": {"mimeType": "video/mp4", "data": data}})
    assert "- video/mp4: 20000000 bytes." in text_of(ask(caller, PLAIN, body))


@pytest.mark.parametrize("row", ["1,2,3\n", "{[:,", 'say: "no", or \\, "'])
def test_a_long_table_is_taken(caller: Caller, row: str) -> None:
    """A text of hundreds of thousands of marks is one value, and answered."""
    body = native(row * 50_000)
    assert "Turns: 1 (user)." in text_of(ask(caller, PLAIN, body))
    many = native("x", unknown=["a,b"] * 100_001)
    assert "too many values" in read(caller.post(PLAIN, many))["error"]["message"]


def test_other_keys_beside_the_right_one_do_not_matter(caller: Caller) -> None:
    """Headers that other software sends beside the bearer token, and a key in the query, pass."""
    headers = (BEARER, JSON, ("x-goog-api-key", "x"), ("x-api-key", "y"), ("x-goog-user", "z"))
    assert caller.send("POST", f"{PLAIN}?key=x", b'{"contents": 0}', headers).status == 400
    without = caller.send("POST", f"{PLAIN}?key=local-key", b"{}", headers[1:])
    assert without.status == 401
    assert without.header("www-authenticate") == "Bearer"
    error = read(without)["error"]
    assert (error["code"], error["status"]) == (401, "UNAUTHENTICATED")


def test_a_key_without_text_gets_403() -> None:
    """A key that is not provisioned for text gets 403, whatever it sends."""
    caller = Caller(new_emulator(access=Access(text=False)))
    reply = caller.send("POST", PLAIN, b"not even JSON")
    assert (reply.status, read(reply)["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert caller.post("/v1/vidm/videos", {}).status == 200


def test_a_plan_without_a_text_model_refuses_it() -> None:
    """A text model that the account's plan does not include gets 403, and the others go on."""
    caller = Caller(new_emulator(access=Access(models=frozenset({"textg-2.5-pro-low"}))))
    assert caller.post("/v1/models/textg-2.5-pro-low:generateContent", native()).status == 200
    assert caller.post(PLAIN, native()).status == 403


def test_a_lone_surrogate_is_no_trouble(caller: Caller) -> None:
    """A text, a role or a type with half a character gets a reply that is UTF-8."""
    odd = "\ud83d"
    for body in (
        native(odd),
        one_part({odd: 1}),
        one_part({"inlineData": {"mimeType": odd, "data": ""}}),
        {"contents": [{"role": odd, "parts": [{"text": "x"}]}]},
    ):
        for path in (PLAIN, SSE, ARRAY):
            reply = caller.post(path, body)
            assert reply.status in (200, 400)
            assert reply.body.decode()
