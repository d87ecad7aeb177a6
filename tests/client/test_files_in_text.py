"""Files in text requests: every place that takes files gets them, and no text does."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import muybridge
from media.corpus import picture, sound, video
from muybridge_protocol.text.request import GenerateContentRequest

from .answers import MODEL
from .drivers import AnyClient, MakeClient
from .in_process import Recording

DATA = picture("PNG", 640, 360)
SEEN = "- image/png: a PNG picture of 640x360 pixels"
QUESTION = "How many hooves?"
AFFORDABLE = 1_000
"""Tokens that a small picture and a question take at most."""


@pytest.fixture
def recording() -> Recording:
    return Recording()


@pytest.fixture
def client(make_client: MakeClient, recording: Recording) -> AnyClient:
    return make_client(recording)


def native(client: AnyClient, contents: Any, **options: Any) -> tuple[str, int]:
    response = client.generate_content(MODEL, contents, **options)
    assert response.usage_metadata is not None
    return response.text, response.usage_metadata.total_token_count or 0


def chat(client: AnyClient, content: Any) -> tuple[str, int]:
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}]}
    answer = client.chat_completions(body)
    return answer["choices"][0]["message"]["content"], answer["usage"]["total_tokens"]


def messages(client: AnyClient, content: Any) -> tuple[str, int]:
    body = {
        "model": MODEL,
        "max_tokens": 500,
        "messages": [{"role": "user", "content": content}],
    }
    answer = client.messages(body)
    return answer["content"][0]["text"], answer["usage"]["input_tokens"]


TEXT = {"type": "text", "text": QUESTION}
PLACES: dict[str, tuple[Callable[..., tuple[str, int]], Callable[[Any], Any]]] = {
    "beside a text": (native, lambda file: [file, QUESTION]),
    "alone": (native, lambda file: file),
    "in a turn": (native, lambda file: muybridge.Content([file, QUESTION])),
    "in a mapping": (native, lambda file: [{"role": "user", "parts": [file, {"text": QUESTION}]}]),
    "as inlineData": (native, lambda file: muybridge.Content([{"inlineData": file}])),
    "as data": (
        native,
        lambda file: {"parts": [{"inlineData": {"mimeType": "image/png", "data": file}}]},
    ),
    "in a part": (native, lambda file: [muybridge.Part(inline_data=file), QUESTION]),
    "said": (native, lambda file: muybridge.Conversation("be brief").say([file, QUESTION])),
    "chat: beside a text": (chat, lambda file: [file, TEXT]),
    "chat: alone": (chat, lambda file: file),
    "chat: in a part": (chat, lambda file: [{"type": "image_url", "image_url": file}, TEXT]),
    "chat: as a URL": (chat, lambda file: [{"type": "image_url", "image_url": {"url": file}}]),
    "messages: beside a text": (messages, lambda file: [file, TEXT]),
    "messages: alone": (messages, lambda file: file),
    "messages: in a block": (messages, lambda file: [{"type": "image", "source": file}, TEXT]),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_file_is_sent_as_a_file(client: AnyClient, tmp_path: Path, place: str) -> None:
    """The service gets the picture and not its base64 as text, which would be paid for."""
    path = tmp_path / "horse.png"
    path.write_bytes(DATA)
    ask, content = PLACES[place]
    text, tokens = ask(client, content(muybridge.load_media(path)))
    assert SEEN in text
    assert tokens < AFFORDABLE


PDF = b"%PDF-1.7\n"
FORMS: dict[str, tuple[bytes, str, set[str]]] = {
    "png": (DATA, "image/png", {"chat", "messages"}),
    "bmp": (picture("BMP", 64, 36), "image/bmp", {"chat"}),
    "mp4": (video(320, 240, 1), "video/mp4", set()),
    "wav": (sound(1), "audio/wav", {"chat"}),
    "mp3": (sound(1, "mp3"), "audio/mpeg", {"chat"}),
    "pdf": (PDF, "application/pdf", {"chat", "messages"}),
}


@pytest.mark.parametrize("protocol", ["native", "chat", "messages"])
@pytest.mark.parametrize("form", FORMS)
def test_each_type_is_sent_or_refused(
    client: AnyClient, recording: Recording, form: str, protocol: str
) -> None:
    """A type for which a protocol has no form is refused before it is paid for, and said so."""
    data, mime_type, forms = FORMS[form]
    file = muybridge.load_media(data)
    assert file.mime_type == mime_type
    ask = {"native": native, "chat": chat, "messages": messages}[protocol]
    content: Any = [file, QUESTION if protocol == "native" else TEXT]
    if protocol == "native" or protocol in forms:
        ask(client, content)
        assert file.base64().encode() in recording.bodies[0]
        assert (
            mime_type.encode() in recording.bodies[0]
            or f'"{form}"'.encode() in (recording.bodies[0])
        )
        return
    with pytest.raises(muybridge.InvalidRequest, match=f"no form for {mime_type}; use generate"):
        ask(client, content)
    assert recording.bodies == []


def an_open_file() -> io.BytesIO:
    return io.BytesIO(DATA)


LOAD = r"muybridge\.load_media\("
UNREAD: dict[str, Callable[[], Any]] = {
    "a path": lambda: Path("horse.png"),
    "bytes": lambda: DATA,
    "an open file": an_open_file,
    "a Pillow image": lambda: Image.new("RGB", (8, 8)),
}


@pytest.mark.parametrize("kind", UNREAD)
@pytest.mark.parametrize("place", PLACES)
def test_a_file_that_is_not_loaded_is_refused(
    client: AnyClient, recording: Recording, place: str, kind: str
) -> None:
    """In place of a loaded file it is refused before anything is sent, with the line to write."""
    ask, content = PLACES[place]
    with pytest.raises(muybridge.InvalidRequest) as caught:
        ask(client, content(UNREAD[kind]()))
    said = str(caught.value)
    assert "muybridge.load_media(" in said or place == "in a part", said
    assert len(said) < 1_000
    assert recording.bodies == []


TEXTS: dict[str, tuple[Callable[[AnyClient, Any], Any], str]] = {
    "system instruction": (
        lambda client, file: native(client, QUESTION, system_instruction=file),
        "a file goes into contents",
    ),
    "system turn": (
        lambda client, file: native(
            client, QUESTION, system_instruction=muybridge.Content([file, "be brief"])
        ),
        "a file goes into contents",
    ),
    "system mapping": (
        lambda client, file: native(client, QUESTION, system_instruction={"parts": [file]}),
        "a file goes into contents",
    ),
    "conversation": (
        lambda client, file: native(client, muybridge.Conversation(file).say(QUESTION)),
        "a file goes into contents",
    ),
    "text of a part": (
        lambda client, file: native(client, [muybridge.Part(text=file)]),
        "a file is a part of its own",
    ),
    "text of a mapping": (
        lambda client, file: native(client, {"parts": [{"text": file}]}),
        "a file is a part of its own",
    ),
    "result of a call": (
        lambda client, file: native(client, [muybridge.FunctionResult("look", file)]),
        "data_uri",
    ),
    "extra": (lambda client, file: native(client, QUESTION, extra={"picture": file}), "data_uri"),
    "chat text": (
        lambda client, file: chat(client, [{"type": "text", "text": file}]),
        "into the content of a message",
    ),
    "chat field": (
        lambda client, file: client.chat_completions(
            {"model": MODEL, "messages": [], "user": file}
        ),
        "into the content of a message",
    ),
    "messages system": (
        lambda client, file: client.messages({"model": MODEL, "system": file}),
        "into the content of a message",
    ),
    "prompt": (
        lambda client, file: client.run("imgb", {"model": "imgb-2", "prompt": file}),
        "put a file into image_urls",
    ),
    "typed prompt": (
        lambda client, file: client.run(muybridge.ImgbRequest(model="imgb-2", prompt=file)),
        "put a file into image_urls",
    ),
    "prompt of frames": (
        lambda client, file: client.run(muybridge.VidcRequest(model="vidc_o3", prompt=file)),
        "put a file into reference_images, first_image, last_image or reference_videos",
    ),
    "extra of a create": (
        lambda client, file: client.run(
            muybridge.ImgbRequest(model="imgb-2", prompt="-", extra={"mask": file})
        ),
        "data_uri",
    ),
}


@pytest.mark.parametrize("kind", ["a loaded file", *UNREAD])
@pytest.mark.parametrize("place", TEXTS)
def test_a_text_is_no_place_for_a_file(
    client: AnyClient, recording: Recording, place: str, kind: str
) -> None:
    """Where text is meant, a file is refused before anything is sent, and the place is named."""
    ask, said = TEXTS[place]
    file = UNREAD[kind]() if kind in UNREAD else muybridge.load_media(DATA)
    with pytest.raises((muybridge.InvalidRequest, TypeError)) as caught:
        ask(client, file)
    assert said in str(caught.value)
    assert len(str(caught.value)) < 1_000
    assert recording.bodies == []


@pytest.mark.parametrize(
    "contents",
    [
        ["horse.png", QUESTION],
        [muybridge.Content(["pictures/horse.JPG", QUESTION])],
        [QUESTION, "/tmp/horse.mp4"],  # noqa: S108  it is not opened
    ],
)
def test_a_file_name_is_not_a_file(
    client: AnyClient, recording: Recording, contents: list[Any]
) -> None:
    """A file's name as a part of its own would be sent as text, and says how to send the file."""
    with pytest.raises(muybridge.InvalidRequest, match=rf"sent as text.*{LOAD}'.*horse"):
        client.generate_content(MODEL, contents)
    assert recording.bodies == []


def test_a_data_uri_is_not_a_text(client: AnyClient, recording: Recording) -> None:
    """A file as the text of a `data:` URI is refused, with the line to write."""
    with pytest.raises(muybridge.InvalidRequest, match=LOAD) as caught:
        client.generate_content(MODEL, [muybridge.load_media(DATA).data_uri(), QUESTION])
    assert len(str(caught.value)) < 1_000
    assert recording.bodies == []


@pytest.mark.parametrize(
    "contents",
    [
        "Is this horse.png?",
        ["Is horse.png a good name?", "Say yes or no."],
        ["horse.png", muybridge.load_media(DATA), QUESTION],
        [QUESTION, muybridge.Content("horse.png", "model"), "Why?"],
        "https://pictures.test/horse.png",
        "Decode data:image/png;base64,AAAA",
    ],
)
def test_texts_about_files_are_texts(client: AnyClient, contents: Any) -> None:
    """A caption, a question and an answer may name a file."""
    assert client.generate_content(MODEL, contents).text


def test_the_loaded_file_is_a_value(client: AnyClient) -> None:
    """A request with a file equals one with the same content, and shows no content."""
    files = [muybridge.load_media(DATA), muybridge.load_media(io.BytesIO(DATA))]
    requests = [GenerateContentRequest.build(MODEL, [one, QUESTION]) for one in files]
    assert len({*requests}) == 1
    assert len(repr(requests[0])) < 500
    assert client.generate_content(MODEL, requests[0].contents).text
