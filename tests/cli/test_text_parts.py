"""Answers of `text` that are more than text, and what asks for them: --schema and --tool."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from media.corpus import picture

from .conftest import Invoke
from .crooked_service import CrookedService, always, reply

ASK = ("text", "textg-2.5-pro", "Draw a horse")
HORSE = picture("PNG", 30, 20)
COW = picture("JPEG", 30, 20)
CALL = {"name": "weather", "args": {"city": "Paris \u001b[2J", "days": 2}}


def file(data: bytes, mime_type: str = "image/png") -> dict[str, Any]:
    return {"inlineData": {"mimeType": mime_type, "data": base64.b64encode(data).decode()}}


def answered(*parts: dict[str, Any], finish: str = "STOP", candidates: int = 1) -> dict[str, Any]:
    content = {"role": "model", "parts": [*parts]}
    answer = {"content": content, "finishReason": finish}
    return {"candidates": [{**answer, "index": number} for number in range(candidates)]}


def ask(invoke: Invoke, record: dict[str, Any], *words: str, cut: bool = False) -> Any:
    """Run the command against a service whose answer is *record*, in one chunk or whole."""
    if "--no-stream" in words:
        response = reply(200, record)
    else:
        ending = "" if cut else "data: [DONE]\n\n"
        response = reply(200, f"data: {json.dumps(record)}\n\n{ending}", kind="text/event-stream")
    with CrookedService(always(response)) as service:
        return invoke(*ASK, *words, env=service.text_settings)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("words", [(), ("--no-stream",)])
def test_pictures_are_saved(invoke: Invoke, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Without -o, pictures are saved in this folder beside what is there, and reported."""
    (tmp_path / "answer.png").write_bytes(b"my own")
    record = answered({"text": "Here: "}, file(HORSE), file(COW, "image/png"))
    done = ask(invoke, record, *words)
    assert (done.exit_code, done.stdout) == (0, "Here: \n")
    assert done.stderr.splitlines() == [
        f"saved answer-2.png ({len(HORSE):,} bytes)",
        f"saved answer.jpg ({len(COW):,} bytes)",
        "-o PATH saves them elsewhere",
    ]
    assert (tmp_path / "answer-2.png").read_bytes() == HORSE
    assert (tmp_path / "answer.jpg").read_bytes() == COW
    assert (tmp_path / "answer.png").read_bytes() == b"my own"
    assert len(names(tmp_path)) == 3


@pytest.mark.parametrize(
    ("output", "saved"),
    [
        ("horse.png", ["horse.png", "horse-2.png"]),
        ("horse", ["horse.png", "horse-2.png"]),
        ("horse.gif", ["horse.gif", "horse.png"]),
        ("horse.bin", ["horse.bin", "horse.png"]),
        ("out/", ["out/answer.png", "out/answer-2.png"]),
    ],
)
def test_pictures_are_saved_where_wanted(
    invoke: Invoke, tmp_path: Path, output: str, saved: list[str]
) -> None:
    """-o names the first picture or a folder; an answer without text prints where they are."""
    done = ask(invoke, answered(file(HORSE), file(HORSE)), "-o", output)
    assert (done.exit_code, done.stdout.splitlines()) == (0, saved)
    assert all((tmp_path / name).read_bytes() == HORSE for name in saved)
    misleads = output == "horse.gif"
    assert ("warning: the content of horse.gif is PNG, not GIF" in done.stderr) is misleads


def test_pictures_that_cannot_be_saved(invoke: Invoke, tmp_path: Path) -> None:
    """A target that cannot be written to is refused before anything is paid."""
    (tmp_path / "file").touch()
    with CrookedService(always(b"")) as service:
        done = invoke(*ASK, "-o", "file/horse.png", env=service.text_settings)
        assert (done.exit_code, service.posts) == (2, 0)
    assert "Nothing was sent." in done.stderr


def test_calls_are_shown(invoke: Invoke) -> None:
    """Each function call is a line of JSON, safe on a terminal, and an answer on its own."""
    done = ask(invoke, answered({"functionCall": CALL}, {"functionCall": CALL}))
    assert done.exit_code == 0
    assert "\x1b" not in done.stdout
    assert [json.loads(line) for line in done.stdout.splitlines()] == [CALL, CALL]


def test_parts_that_are_not_printed_are_reported(invoke: Invoke) -> None:
    """Other parts and more candidates are named, and how to see them."""
    record = answered({"text": "a"}, {"executableCode": {"code": "1"}}, candidates=2)
    done = ask(invoke, record)
    assert "the answer also contains executableCode, 2 candidates: --json shows everything" in (
        done.stderr
    )


def test_an_answer_that_breaks_off_keeps_its_pictures(invoke: Invoke, tmp_path: Path) -> None:
    """Pictures that arrived before a stream broke off are saved: they may have been charged."""
    record = answered({"text": "Here: "}, file(HORSE))
    del record["candidates"][0]["finishReason"]
    done = ask(invoke, record, cut=True)
    assert done.exit_code == 4
    assert (tmp_path / "answer.png").read_bytes() == HORSE


def test_json(invoke: Invoke) -> None:
    """With --json, the document has the files and the calls."""
    done = ask(invoke, answered(file(HORSE), {"functionCall": CALL}), "--json")
    told = json.loads(done.stdout)
    assert (done.exit_code, told["files"], told["calls"]) == (0, ["answer.png"], [CALL])


def sent(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, *words: str) -> dict[str, Any]:
    """Return what the client is asked to send for a command line."""
    seen: list[dict[str, Any]] = []

    def generate(*_: object, **settings: Any) -> object:
        seen.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr("muybridge.Client.generate_content", generate)
    env = {"MUYBRIDGE_API_KEY": "a-key", "MUYBRIDGE_TEXT_BASE_URL": "http://127.0.0.1:9"}
    done = invoke(*ASK, "--no-stream", *words, env=env)
    assert seen, done.output
    return seen[0]


SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
FUNCTION = {"name": "weather", "parameters": {"type": "object"}}


@pytest.mark.parametrize("inline", ["inline", ""])
def test_schemas(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, inline: str
) -> None:
    """--schema asks for JSON, by a file or by JSON on the command line, beside other settings."""
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    given = json.dumps(SCHEMA) if inline else "schema.json"
    config = sent(invoke, monkeypatch, "--schema", given, "--top-p", "1")["generation_config"]
    assert config.top_p == 1
    assert config.extra == {"responseMimeType": "application/json", "responseSchema": SCHEMA}


def test_tools(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """--tool declares functions, from files and arrays; a tool of another kind is sent as it is."""
    (tmp_path / "tools.json").write_text(json.dumps([FUNCTION, FUNCTION]))
    search: dict[str, Any] = {"googleSearch": {}}
    words = ("--tool", "tools.json", "--tool", json.dumps(search), "--tool", json.dumps(FUNCTION))
    assert sent(invoke, monkeypatch, *words)["extra"] == {
        "tools": [{"functionDeclarations": [FUNCTION] * 3}, search]
    }


def test_a_tool_of_another_protocol(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A declaration as it is wrapped for chat completions is unwrapped."""
    wrapped = json.dumps({"type": "function", "function": FUNCTION})
    extra = sent(invoke, monkeypatch, "--tool", wrapped)["extra"]
    assert extra == {"tools": [{"functionDeclarations": [FUNCTION]}]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--schema", "no.json"), "--schema no.json: No such file or directory. Nothing was sent."),
        (("--schema", "[]"), "--schema []: it is not a JSON object. Nothing was sent."),
        (("--schema", "{"), "--schema {: it is not JSON: "),
        (("--tool", "{}"), "--tool {}: it is not a JSON object, or an array of them."),
        (("--tool", '{"parameters": {}}'), ": a function has no name. Nothing was sent."),
        (("--tool", json.dumps(SCHEMA)), ": a function has no name. Nothing was sent."),
        (("--tool", '{"type": "function"}'), ": a function has no name. Nothing was sent."),
    ],
)
def test_mistakes(invoke: Invoke, words: tuple[str, ...], said: str) -> None:
    """A schema or tool that cannot be read is refused before anything is sent."""
    done = invoke(*ASK, *words, "--local")
    assert done.exit_code == 2
    assert said in done.stderr
