"""Scripted answers: what the text endpoints say instead of restating a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.caller import KEY, Caller
from emulator.text import (
    CHAT,
    PATHS,
    PLAIN,
    PROTOCOLS,
    Protocol,
    ask,
    chat,
    native,
    saying,
    text_of,
)
from emulator.tool_use import calls_in, declaring, reason_of, said, streamed
from muybridge.local.answers import load_answers
from muybridge_protocol.emulator import Access, Emulator
from muybridge_protocol.emulator.text import read_answers
from muybridge_protocol.errors import InvalidInput


def caller_of(*answers: Any) -> Caller:
    """Return a caller of an emulator with scripted *answers*."""
    emulator = Emulator(keys={KEY: Access()}, public_url="http://127.0.0.1", answers=answers)
    return Caller(emulator)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("streaming", [False, True])
def test_answers_are_given_in_order(protocol: Protocol, streaming: object) -> None:
    """Each answer is given once, in order, whatever the request declares."""
    call = {"name": "gait", "arguments": {"speed": 5}}
    caller = caller_of("Neigh.", {"text": "Let me see.", "calls": [call, {"name": "stop"}]})

    def answer() -> Any:
        body = declaring(protocol, "weather")
        return streamed(caller, protocol, body) if streaming else ask(caller, PATHS[protocol], body)

    assert said(protocol, answer()) == "Neigh."
    record = answer()
    assert said(protocol, record) == "Let me see."
    assert calls_in(protocol, record) == [("gait", {"speed": 5}), ("stop", {})]
    assert calls_in(protocol, answer()) == [("weather", {"city": "city"})]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_waits_for_its_prompt(protocol: Protocol) -> None:
    """With `when`, an answer is given only if the user's text contains it; `repeat` keeps it."""
    caller = caller_of(
        {"when": "cats", "text": "Meow."},
        {"when": "horse", "text": "Neigh.", "repeat": True},
        "Anything.",
    )
    asked = ["a horse", "a horse", "a dog", "cats", "cats and a horse"]
    answers = [
        said(protocol, ask(caller, PATHS[protocol], saying(protocol, text))) for text in asked
    ]
    assert answers == ["Neigh.", "Neigh.", "Anything.", "Meow.", "Neigh."]


@pytest.mark.parametrize(
    ("finish", "reasons"),
    [
        ("stop", ("STOP", "stop", "end_turn")),
        ("max_tokens", ("MAX_TOKENS", "length", "max_tokens")),
        ("safety", ("SAFETY", "content_filter", "refusal")),
    ],
)
def test_an_answer_ends_as_it_says(finish: str, reasons: tuple[str, ...]) -> None:
    """`finish` is the reason in the words of each protocol."""
    caller = caller_of({"finish": finish, "repeat": True})
    found = [reason_of(protocol, ask(caller, PATHS[protocol], saying(protocol, "hi")))
             for protocol in PROTOCOLS]  # fmt: skip
    assert tuple(found) == reasons


def test_the_limit_of_tokens_cuts_a_scripted_answer() -> None:
    """The request's limit holds for a scripted text as well."""
    caller = caller_of("one two three four")
    record = ask(caller, PLAIN, native(generationConfig={"maxOutputTokens": 2}))
    assert (text_of(record), reason_of("native", record)) == ("one two", "MAX_TOKENS")


def test_a_script_replaces_what_is_left() -> None:
    """A new script takes the place of the old one, unless it cannot be used."""
    caller = caller_of("one", "two")
    with pytest.raises(InvalidInput):
        caller.emulator.script([{}])
    assert text_of(ask(caller, PLAIN, native())) == "one"
    caller.emulator.script(["three"])
    assert text_of(ask(caller, PLAIN, native())) == "three"
    assert "no model has answered" in text_of(ask(caller, PLAIN, native()))


def test_candidates_can_be_scripted() -> None:
    """A request gets as many candidates as it asks for, from the first one on and around."""
    candidates = ["one", {"text": "two", "finish": "max_tokens"}]
    caller = caller_of({"candidates": candidates, "repeat": True})
    choices = ask(caller, CHAT, chat(n=3))["choices"]
    assert [one["message"]["content"] for one in choices] == ["one", "two", "one"]
    assert [one["finish_reason"] for one in choices] == ["stop", "length", "stop"]
    assert said("chat", ask(caller, CHAT, chat())) == "one"


def test_json_is_written_for_the_text() -> None:
    """`json` is any value, null among them."""
    caller = caller_of({"json": {"legs": 4}}, {"json": None})
    assert text_of(ask(caller, PLAIN, native())) == '{"legs": 4}'
    assert text_of(ask(caller, PLAIN, native())) == "null"


WRONG: list[tuple[Any, str]] = [
    (5, "answer must be an object"),
    ({}, "answer says nothing; give text, json, calls, finish or candidates"),
    ({"when": "x"}, "answer says nothing; give text, json, calls, finish or candidates"),
    ({"txt": "x"}, "answer has an unknown field 'txt'; did you mean text?"),
    ({"text": 5}, "answer.text must be a string"),
    ({"text": "x", "json": {}}, "answer has both text and json; give one of them"),
    ({"json": {1, 2}}, "answer.json cannot be written as JSON"),
    ({"calls": {}}, "answer.calls must be an array"),
    ({"calls": [{"arguments": {}}]}, "answer.calls[0].name is required"),
    ({"calls": [{"name": "f", "arguments": "{}"}]}, "answer.calls[0].arguments must be an object"),
    ({"calls": [{"name": "f", "args": {}}]},
     "answer.calls[0] has an unknown field 'args'; did you mean arguments?"),
    ({"text": "x", "finish": "end"}, "answer.finish must be stop, max_tokens or safety"),
    ({"text": "x", "repeat": 1}, "answer.repeat must be true or false"),
    ({"text": "x", "when": 1}, "answer.when must be a string"),
    ({"candidates": []}, "answer.candidates must be an array that is not empty"),
    ({"candidates": ["x"] * 9}, "answer.candidates has more than 8 candidates"),
    ({"candidates": ["x"], "text": "y"},
     "answer has text beside candidates; put it into one of them"),
    ({"candidates": [{"when": "x"}]},
     "answer.candidates[0] has an unknown field 'when'; use text, json, calls or finish"),
]  # fmt: skip


def test_wrong_answers_are_all_listed() -> None:
    """A script with mistakes is refused before it is used, with each wrong answer's place."""
    with pytest.raises(InvalidInput) as caught:
        read_answers(["right", *(value for value, _ in WRONG)])
    ends = ["" if complaint.endswith("?") else "." for _, complaint in WRONG]
    expected = [
        f"answers[{at}]: {complaint}{end}"
        for at, ((_, complaint), end) in enumerate(zip(WRONG, ends, strict=True), start=1)
    ]
    assert [*map(str, caught.value.problems)] == expected


def test_files_are_json_lines_or_toml(tmp_path: Path) -> None:
    """The same answers can be written in either form."""
    lines = tmp_path / "answers.jsonl"
    lines.write_text(
        '{"text": "Neigh."}\n\n{"calls": [{"name": "f", "arguments": {"a": 1}}], "when": "x"}\n'
    )
    toml = tmp_path / "answers.toml"
    toml.write_text(
        '[[answers]]\ntext = "Neigh."\n[[answers]]\nwhen = "x"\n'
        'calls = [{ name = "f", arguments = { a = 1 } }]\n'
    )
    assert load_answers(lines) == load_answers(toml)
    assert len(load_answers(lines)) == 2


@pytest.mark.parametrize(
    ("name", "content", "problems"),
    [
        ("a.jsonl", b'"x"\n{"txt": 1}\n5', [
            "line 2: answer has an unknown field 'txt'; did you mean text?",
            "line 3: answer must be an object.",
        ]),
        ("a.jsonl", b'"x"\n\n{"text": \n', ["line 3: it is not JSON: "]),
        ("a.jsonl", b'"x"\n"\xff"\n', ["line 2: it is not UTF-8."]),
        ("a.toml", b"[[answers]\n", ["it is not TOML: "]),
        ("a.toml", b"a = 1\n", ["write each answer as a table [[answers]], and nothing else."]),
        ("a.toml", b"[[answers]]\nfinish = 1\n", ["answers[0]: answer.finish must be a string."]),
    ],
)  # fmt: skip
def test_a_wrong_file_says_where(
    tmp_path: Path, name: str, content: bytes, problems: list[str]
) -> None:
    """Each problem of a file has its line."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        load_answers(path)
    assert len(caught.value.problems) == len(problems)
    for found, expected in zip(caught.value.problems, problems, strict=True):
        assert str(found).startswith(expected)
