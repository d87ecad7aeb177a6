"""A text that is nothing but a file is refused, and the message says what to write."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import muybridge
from media.corpus import picture

from .answers import MODEL
from .drivers import AnyClient, MakeClient
from .in_process import Recording

DATA = picture("PNG", 640, 360)
QUESTION = "How many hooves?"
SEEN = "- image/png: a PNG picture of 640x360 pixels"


@pytest.fixture
def recording() -> Recording:
    return Recording()


@pytest.fixture
def client(make_client: MakeClient, recording: Recording) -> AnyClient:
    return make_client(recording)


def native(client: AnyClient, contents: Any, **options: Any) -> str:
    return client.generate_content(MODEL, contents, **options).text


def chat(client: AnyClient, content: Any, **fields: Any) -> str:
    body = {"model": MODEL, "messages": [{"role": "user", "content": content}], **fields}
    text: str = client.chat_completions(body)["choices"][0]["message"]["content"]
    return text


def messages(client: AnyClient, content: Any, **fields: Any) -> str:
    turn = {"role": "user", "content": content}
    body = {"model": MODEL, "max_tokens": 500, "messages": [turn], **fields}
    text: str = client.messages(body)["content"][0]["text"]
    return text


def block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


Ask = Callable[[AnyClient, str], object]
TEXTS: dict[str, Ask] = {
    "native": native,
    "native, streamed": lambda client, text: client.stream_generate_content(MODEL, text),
    "native, in a list": lambda client, text: native(client, [text]),
    "native, beside a text": lambda client, text: native(client, [text, QUESTION]),
    "native, in a turn": lambda client, text: native(client, muybridge.Content([text])),
    "native, in a mapping": lambda client, text: native(client, {"parts": [{"text": text}]}),
    "conversation": lambda client, text: native(client, muybridge.Conversation().say(text)),
    "a later turn": lambda client, text: native(
        client, muybridge.Conversation().say(QUESTION).hear("Two.").say(text)
    ),
    "system instruction": lambda client, text: native(client, QUESTION, system_instruction=text),
    "system mapping": lambda client, text: native(
        client, QUESTION, system_instruction={"parts": [{"text": text}]}
    ),
    "system of a conversation": lambda client, text: native(
        client, muybridge.Conversation(text).say(QUESTION)
    ),
    "chat": chat,
    "chat, streamed": lambda client, text: client.stream_chat_completions(
        {"model": MODEL, "messages": [{"role": "user", "content": text}]}
    ),
    "chat, in a list": lambda client, text: chat(client, [text]),
    "chat, in parts": lambda client, text: chat(client, [block(text), block(QUESTION)]),
    "chat, system": lambda client, text: client.chat_completions(
        {
            "model": MODEL,
            "messages": [
                {"role": "system", "content": text},
                {"role": "user", "content": QUESTION},
            ],
        }
    ),
    "messages": messages,
    "messages, in blocks": lambda client, text: messages(client, [block(text)]),
    "messages, system": lambda client, text: messages(client, QUESTION, system=text),
    "messages, system blocks": lambda client, text: messages(
        client, QUESTION, system=[block(text)]
    ),
    "dict request": lambda client, text: client.run("imgb", {"model": "imgb-2", "prompt": text}),
    "typed request": lambda client, text: client.create(
        muybridge.ImgbRequest(model="imgb-2", prompt=text)
    ),
    "family without files": lambda client, text: client.create(
        "vidsa", {"model": "vidsa_1_5_pro_720p", "prompt": text}
    ),
    "family without rules": lambda client, text: client.create(
        muybridge.VidmRequest(model="m", prompt=text)
    ),
}

FILES = {
    "picture": "horse.png",
    "picture with @": "@horse.png",
    "folders": "pictures/of horses/horse.JPG".replace(" ", "-"),
    "Chinese": "奔跑的馬.png",
    "Chinese, in a folder": "./奔跑的馬的照片的最终版.png",
    "Japanese with @": "@草原を走っている馬の絵.png",
    "home": "~/Meine Bilder/horse.heic",
    "Windows": r"C:\My Pictures\horse.webp",
    "white space around": " horse.mp4\n",
    "sound": "gallop.wav",
    "document": "/tmp/horse.pdf",  # noqa: S108  it is not opened
    "text": "@question.txt",
    "text in a folder": "@prompts/question.md",
    "data URI": f"data:image/png;base64,{base64.b64encode(DATA).decode()}",
    "data URI, wrapped": f"data:image/png;base64,{base64.encodebytes(DATA).decode()}",
    "data URI of a text": "data:text/plain;charset=utf-8;base64,SG93IG1hbnk/",
    "base64": base64.b64encode(DATA).decode(),
}


def turns(answer: str, texts: list[str]) -> list[dict[str, Any]]:
    """Return a history: what the user has said, each with its answer but for the last."""
    said: list[dict[str, Any]] = []
    for text in texts:
        said += [{"role": "user", "content": text}, {"role": answer, "content": "Two."}]
    return said[:-1]


def in_parts(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a history in the native form."""
    return [{"role": turn["role"], "parts": [{"text": turn["content"]}]} for turn in history]


def say_again(client: AnyClient, texts: list[str]) -> str:
    talk = muybridge.Conversation("Be brief.").say(texts[0])
    for text in texts[1:]:
        talk = talk.hear("Two.").say(text)
    return native(client, talk)


HISTORIES: dict[str, Callable[[AnyClient, list[str]], object]] = {
    "conversation": say_again,
    "native": lambda client, texts: native(client, in_parts(turns("model", texts))),
    "chat": lambda client, texts: chat(client, "", messages=turns("assistant", texts)),
    "messages": lambda client, texts: messages(client, "", messages=turns("assistant", texts)),
}


@pytest.mark.parametrize("name", ["horse.png", "@horse.png", "@question.txt"])
@pytest.mark.parametrize("place", HISTORIES)
def test_what_was_answered_is_sent_again(
    client: AnyClient, recording: Recording, place: str, name: str
) -> None:
    """A file's name that was answered is history. After the last answer, it is refused as ever."""
    HISTORIES[place](client, [name, QUESTION])
    assert len(recording.bodies) == 1
    with pytest.raises(muybridge.InvalidRequest, match="sent as text"):
        HISTORIES[place](client, [QUESTION, QUESTION, name])
    assert len(recording.bodies) == 1


@pytest.mark.parametrize("content", ["data URI", "data URI of a text", "base64"])
@pytest.mark.parametrize("place", HISTORIES)
def test_a_file_in_the_history_is_paid_for_again(
    client: AnyClient, recording: Recording, place: str, content: str
) -> None:
    """A file's content costs each time that it is sent, so that it is refused in every turn."""
    with pytest.raises(muybridge.InvalidRequest, match="would be paid for as text"):
        HISTORIES[place](client, [FILES[content], QUESTION])
    assert recording.bodies == []


@pytest.mark.parametrize("place", ["native", "chat", "messages"])
def test_every_turn_after_the_last_answer_is_new(
    client: AnyClient, recording: Recording, place: str
) -> None:
    """Several turns may follow the last answer, and the last of all may be an answer."""
    said = turns("model" if place == "native" else "assistant", [QUESTION, "@horse.png"])
    said.append({"role": "user", "content": QUESTION})

    def ask(history: list[dict[str, Any]]) -> object:
        if place != "native":
            return {"chat": chat, "messages": messages}[place](client, "", messages=history)
        return native(client, in_parts(history))

    with pytest.raises(muybridge.InvalidRequest, match="sent as text"):
        ask(said)
    assert recording.bodies == []
    ask([said[2], said[1]])  # the model continues its own words
    assert len(recording.bodies) == 1


@pytest.mark.parametrize("place", TEXTS)
def test_a_file_is_no_text(client: AnyClient, recording: Recording, place: str) -> None:
    """Nothing is sent where a text is only a file, and the way to send that text is named."""
    for text in FILES.values():
        with pytest.raises(muybridge.InvalidRequest) as caught:
            TEXTS[place](client, text)
        said = str(caught.value)
        assert "as text" in said
        assert "sentence" in said or "base64" in text or len(text) > 99, said
        assert len(said) < 1_000
    assert recording.bodies == []


SENTENCES = (
    "@karolina rides a horse",
    "@karolina",
    "a horse, in the style of horse.png",
    "Is horse.png a good name?",
    "v1.0",
    "horse",
    "png",
    "question.txt",
    "data:",
    "Decode data:image/png;base64,AAAA",
    "https://pictures.test/horse.png",
    "iVBORw0KGgo",
    "A horse\nhorse.png",
    "请把这个视频转换为.mp4",
    "この絵をもとにして作ってください：馬.png",  # noqa: RUF001  a colon of this script
    "ช่วยเปลี่ยนวิดีโอนี้เป็น.mp4",
)


@pytest.mark.parametrize("place", TEXTS)
def test_a_sentence_is_a_text(client: AnyClient, place: str) -> None:
    """A text with the name of a file in it is sent, and so is one that only begins with an @."""
    if "beside a text" in place or "in parts" in place:
        sentences = tuple(text for text in SENTENCES if "://" not in text)
    else:
        sentences = SENTENCES
    for text in sentences:
        TEXTS[place](client, text)


UNTOUCHED: dict[str, Ask] = {
    "native: a model's turn": lambda client, text: native(
        client, [QUESTION, muybridge.Content(text, "model"), "Why?"]
    ),
    "native: heard": lambda client, text: native(
        client, muybridge.Conversation().say(QUESTION).hear(text).say("Why?")
    ),
    "native: a result": lambda client, text: native(client, [muybridge.FunctionResult("f", text)]),
    "native: a caption": lambda client, text: native(
        client, [text, muybridge.load_media(DATA), QUESTION]
    ),
    "chat: an answer": lambda client, text: client.chat_completions(
        {
            "model": MODEL,
            "messages": [
                {"role": "user", "content": QUESTION},
                {"role": "assistant", "content": text},
                {"role": "user", "content": "Why?"},
            ],
        }
    ),
    "chat: a caption": lambda client, text: chat(client, [text, muybridge.load_media(DATA)]),
    "messages: a result": lambda client, text: messages(
        client, [{"type": "tool_result", "tool_use_id": "1", "content": text}, block("So?")]
    ),
}


@pytest.mark.parametrize("place", UNTOUCHED)
def test_what_is_no_question_is_sent(client: AnyClient, place: str) -> None:
    """An answer, a function's result and a caption of a picture may be the name of a file."""
    UNTOUCHED[place](client, "horse.png")


LINES: dict[str, tuple[str, str, str]] = {
    "native": ("native", "@horse.png", "use muybridge.load_media('horse.png')"),
    "native, text": ("native", "@question.txt", "pathlib.Path('question.txt').read_text()"),
    "native, data URI": ("native", FILES["data URI"], "muybridge.load_media("),
    "chat": ("chat", "horse.png", "use muybridge.load_media('horse.png')"),
    "messages": ("messages", "horse.png", "use muybridge.load_media('horse.png')"),
    "system": ("system instruction", "@rules.md", "pathlib.Path('rules.md').read_text()"),
    "system picture": ("system instruction", "horse.png", "put it into contents, as muybridge."),
    "dict": ("dict request", "@horse.png", "put it into image_urls, as pathlib.Path('horse.png')"),
    "dict, text": ("dict request", "@q.txt", "pathlib.Path('q.txt').read_text()"),
    "dict, data URI": ("dict request", FILES["data URI"], "put it into image_urls"),
    "typed": (
        "typed request", "horse.png", "put it into image_urls, as muybridge.load_media('horse.png')"
    ),
    "no files": ("family without files", "horse.png", "this family takes no files"),
    "no files, data URI": ("family without files", FILES["data URI"], "takes no files"),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_the_line_to_write(client: AnyClient, name: str) -> None:
    """The message names the line that sends the file, as the call takes it."""
    place, text, line = LINES[name]
    with pytest.raises(muybridge.InvalidRequest, match=re.escape(line)):
        TEXTS[place](client, text)


def test_all_problems_at_once(client: AnyClient) -> None:
    """A file in place of the prompt is told beside the other problems of the request."""
    with pytest.raises(muybridge.InvalidRequest) as caught:
        client.run("imgb", {"model": "imgb-2", "prompt": "@horse.png", "ratio": "7:1"})
    assert {problem.field for problem in caught.value.problems} == {"prompt", "ratio"}


def formatted(file: Any) -> str:
    return f"What is in {file}?"


SPOILT: dict[str, Callable[[Any], object]] = {
    "f-string": formatted,
    "f-string with a width": lambda file: f"{file:>10}",
    "str": str,
    "percent": lambda file: "What is in %s?" % file,  # noqa: UP031  what old code has
    "format": "{}".format,
    "print": print,
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_loaded_file_is_not_formatted(name: str) -> None:
    """A file in an f-string would be lost without a word, so it raises and says where it goes."""
    file = muybridge.load_media(DATA)
    with pytest.raises(TypeError, match="beside the text") as caught:
        SPOILT[name](file)
    assert "[muybridge.load_media(path), " in str(caught.value)
    assert repr(file) == f"{file!r}" == f"<{file.facts}>"


MIXED: dict[str, tuple[Callable[..., str], Callable[[Any], Any]]] = {
    "native": (native, lambda file: [QUESTION, file]),
    "native, a tuple": (native, lambda file: (file, QUESTION)),
    "conversation": (native, lambda file: muybridge.Conversation().say([QUESTION, file])),
    "chat": (chat, lambda file: [QUESTION, file]),
    "chat, a tuple": (chat, lambda file: (file, QUESTION)),
    "chat, beside parts": (chat, lambda file: [block("Look."), file, QUESTION]),
    "messages": (messages, lambda file: [QUESTION, file]),
    "messages, a tuple": (messages, lambda file: (file, QUESTION)),
}


@pytest.mark.parametrize("name", MIXED)
def test_texts_and_files_in_one_list(client: AnyClient, recording: Recording, name: str) -> None:
    """Strings beside files become the parts that the protocol has, wherever a list is taken."""
    ask, content = MIXED[name]
    assert SEEN in ask(client, content(muybridge.load_media(DATA)))
    (body,) = recording.bodies
    assert b'"text":"%s"' % QUESTION.encode() in body


@pytest.mark.parametrize("ask", [chat, messages])
def test_strings_in_one_list(
    client: AnyClient, recording: Recording, ask: Callable[..., str]
) -> None:
    """Strings alone become parts as well; those in other arrays stay as they are."""
    ask(client, ["Hello.", QUESTION], stop=["x"], metadata={"content": ["a", "b"]})
    (body,) = recording.bodies
    assert b'[{"type":"text","text":"Hello."},{"type":"text","text":"How many hooves?"}]' in body
    assert b'"stop":["x"]' in body
    assert b'"content":["a","b"]' in body


def test_results_of_tools_have_pictures(client: AnyClient, recording: Recording) -> None:
    """A result in messages may be a list of texts and files; a call's input stays as it was."""
    call = {"type": "tool_use", "id": "1", "name": "f", "input": {"content": ["a", "b"]}}
    result = {
        "type": "tool_result",
        "tool_use_id": "1",
        "content": ["Here:", muybridge.load_media(DATA)],
    }
    client.messages(
        {
            "model": MODEL,
            "max_tokens": 500,
            "messages": [
                {"role": "user", "content": QUESTION},
                {"role": "assistant", "content": [call]},
                {"role": "user", "content": [result]},
            ],
        }
    )
    (body,) = recording.bodies
    assert b'"content":["a","b"]' in body
    assert b'"content":[{"type":"text","text":"Here:"},{"type":"image"' in body


NO_TURNS: dict[str, tuple[Any, str]] = {
    "a path": (Path("horse.png"), "use muybridge.load_media('horse.png')"),
    "bytes": (DATA, "use muybridge.load_media(data)"),
    "None": (None, "say a text, muybridge.load_media(path), Part or Content"),
    "a number": (7, "say a text, muybridge.load_media(path), Part or Content"),
    "a list in a list": ([["Hello.", "Why?"]], "one list: [text, muybridge.load_media(path)]"),
    "a tuple in a list": ([("user", "Why?")], "one list: [text, muybridge.load_media(path)]"),
}


@pytest.mark.parametrize("name", NO_TURNS)
def test_what_is_no_turn(client: AnyClient, recording: Recording, name: str) -> None:
    """What cannot be said says what can be, and nothing is sent."""
    value, line = NO_TURNS[name]
    with pytest.raises(muybridge.InvalidRequest, match=re.escape(line)):
        native(client, muybridge.Conversation().say(value))
    with pytest.raises(muybridge.InvalidRequest, match=re.escape(line)):
        native(client, value)
    assert recording.bodies == []


def test_a_response_is_heard(client: AnyClient) -> None:
    """Whoever says a response is told to hear it."""
    response = client.generate_content(MODEL, QUESTION)
    talk: Any = muybridge.Conversation().say(QUESTION)
    with pytest.raises(muybridge.InvalidRequest, match=r"talk\.hear\(response\)"):
        client.generate_content(MODEL, talk.say(response))


VIDSA: dict[str, Any] = {"model": "vidsa_1_5_pro_720p", "prompt": "A horse"}
VIDSB: dict[str, Any] = {"model": "vidsb_2_0_pro", "prompt": "A horse"}
VIDG: dict[str, Any] = {"model": "vidg_video3", "prompt": "A horse"}
IMGB: dict[str, Any] = {"model": "imgb-2", "prompt": "A horse"}
PILLOW = Image.new("RGB", (8, 8))
MISPLACED: dict[str, tuple[str, dict[str, Any], str]] = {
    "Pillow, where files go": (
        "vidg",
        {**VIDG, "image_urls": [PILLOW]},
        "is not a path, bytes or an open file; image.save(file := io.BytesIO(), 'PNG'); load_media",
    ),
    "Pillow, where no files go": (
        "vidsb",
        {**VIDSB, "first_image": PILLOW},
        "this field takes no files; use a URL",
    ),
    "Pillow, in a list where no files go": (
        "vidsb",
        {**VIDSB, "reference_images": [PILLOW]},
        "this field takes no files; use a URL",
    ),
    "a path, where no files go": (
        "vidd",
        {"model": "viddq3-pro", "prompt": "A horse", "first_image": Path("horse.png")},
        "this field takes no files; use a URL",
    ),
    "a name with @": (
        "vidg",
        {**VIDG, "image_urls": ["@horse.png"]},
        "for a local file, pathlib.Path('horse.png')",
    ),
    "a URL as a path": (
        "vidg",
        {**VIDG, "image_urls": [Path("https://a.example/horse.png")]},
        "is a URL, and not a file; use the URL itself",
    ),
    "a number": ("vidg", {**VIDG, "image_urls": [5]}, "use an array of string"),
}


@pytest.mark.parametrize("name", MISPLACED)
def test_advice_for_fields(client: AnyClient, recording: Recording, name: str) -> None:
    """What cannot be sent in a field says what can, and that nothing was sent, once."""
    family, fields, line = MISPLACED[name]
    with pytest.raises(muybridge.InvalidRequest, match=re.escape(line)) as caught:
        client.create(family, fields)
    said = str(caught.value)
    assert said.lower().count("nothing was sent") == 1
    assert "source" not in said
    assert recording.bodies == []


TYPED: dict[str, tuple[Callable[..., object], dict[str, Any], str]] = {
    "a path in a list": (
        muybridge.VidgRequest,
        {**VIDG, "image_urls": [Path("horse.png")]},
        "use an array of string, with muybridge.load_media('horse.png') for a file",
    ),
    "a path": (
        muybridge.VidvRequest,
        {"model": "vidv_3_1_pro", "prompt": "-", "first_image": Path("horse.png")},
        "use muybridge.load_media('horse.png')",
    ),
    "a path where a list is meant": (
        muybridge.VidgRequest,
        {**VIDG, "image_urls": Path("horse.png")},
        "use [muybridge.load_media('horse.png')]",
    ),
    "a path where no files go": (
        muybridge.VidsbRequest,
        {**VIDSB, "first_image": Path("horse.png")},
        "this field takes no files, use a public http(s) URL or asset://<id>",
    ),
    "a name with @": (
        muybridge.VidgRequest,
        {**VIDG, "image_urls": ["@horse.png"]},
        "for a local file, muybridge.load_media('horse.png')",
    ),
    "a broken data URI": (
        muybridge.VidgRequest,
        {**VIDG, "image_urls": ["data:image/png;base64,?"]},
        "or plain base64",
    ),
}


@pytest.mark.parametrize("name", TYPED)
def test_advice_for_typed_requests(name: str) -> None:
    """A typed request says the line that loads the very file, where files are taken."""
    make, fields, line = TYPED[name]
    with pytest.raises(muybridge.InvalidRequest) as caught:
        make(**fields)
    assert str(caught.value).endswith(line)


@pytest.mark.parametrize("form", ["result", "a list", "task"])
def test_a_result_is_no_link(client: AnyClient, recording: Recording, form: str) -> None:
    """A result where the fields are not known says how to write its link."""
    result = client.run("imgb", IMGB)
    task = client.create("imgb", IMGB)
    value = {"result": result, "a list": [result], "task": task}[form]
    sent = len(recording.bodies)
    link = "client.wait(task).url" if form == "task" else "result.url"
    with pytest.raises(muybridge.InvalidRequest, match=re.escape(f"use {link} for its link")):
        client.create("vidsa", {**VIDSA, "extra": {"image_url": value}})
    assert len(recording.bodies) == sent
    client.create("vidsa", {**VIDSA, "extra": {"image_url": result.url}})


def test_a_loaded_file_beside_allow_inline(client: AnyClient, recording: Recording) -> None:
    """In a mapping, allow_inline holds for a loaded file too, as its message says."""
    file = muybridge.load_media(DATA)
    with pytest.raises(muybridge.InvalidRequest, match='"allow_inline": True beside it'):
        client.create("imgb", {**IMGB, "image_urls": [file]})
    client.create("imgb", {**IMGB, "image_urls": [file], "allow_inline": True})
    assert file.base64().encode() in recording.bodies[0]
