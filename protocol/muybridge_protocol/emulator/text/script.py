"""Scripted answers: what the text endpoints say instead of what the emulator would compose.

Each answer is given once, in order: a request gets the first one left whose `when` the user's last
text contains, and an answer without `when` fits every request. Requests that none fits are answered
as without a script. So a script for a loop of tool use is a call, followed by the final text.

    {"calls": [{"name": "gait", "arguments": {"speed": 5}}]}
    {"text": "It trots."}
    {"when": "cats", "json": {"legs": 4}, "repeat": true}
    {"candidates": [{"text": "one"}, {"text": "another", "finish": "max_tokens"}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import attrs

from muybridge_protocol.emulator.refused import Refused
from muybridge_protocol.emulator.text.answer import Call, Draft, Ending
from muybridge_protocol.emulator.text.node import Node
from muybridge_protocol.emulator.text.prompt import MOST_CANDIDATES, Prompt
from muybridge_protocol.local_errors import InvalidInput
from muybridge_protocol.problems import InputProblem
from muybridge_protocol.rules.values import either

_ENDINGS: Final[Mapping[str, Ending]] = {
    "stop": Ending.STOP,
    "max_tokens": Ending.MAX_TOKENS,
    "safety": Ending.SAFETY,
}
_OF_A_CANDIDATE: Final = ("text", "json", "calls", "finish")
_OF_AN_ANSWER: Final = ("when", "repeat", "candidates")
_OF_A_CALL: Final = ("name", "arguments")
SCRIPT: Final = "the scripted answers"
NOT_USED: Final = "none of them is used"
"""What messages call a script, and the consequence of a problem in it."""


@attrs.frozen(kw_only=True)
class ScriptedAnswer:
    """An answer to a text request that was chosen in advance.

    Args:
        drafts: What its candidates say. If a request wants more, they say the same again.
        when: What the user's last text must contain, or "" for any request.
        repeat: Whether it is given again and again instead of once.
    """

    drafts: tuple[Draft, ...]
    when: str = ""
    repeat: bool = False


class Script:
    """Scripted answers, and which of them are left.

    Args:
        answers: The answers, in order.
    """

    def __init__(self, answers: Iterable[ScriptedAnswer] = ()) -> None:
        self._left = list(answers)

    def take(self, prompt: Prompt) -> tuple[Draft, ...]:
        """Return what the answer to *prompt* says, or nothing if the script has none for it."""
        text = prompt.last_user_text
        for at, scripted in enumerate(self._left):
            if scripted.when in text:
                if not scripted.repeat:
                    del self._left[at]
                return scripted.drafts
        return ()


def read_answers(
    values: Iterable[object], places: Sequence[str] | None = None
) -> tuple[ScriptedAnswer, ...]:
    """Return the scripted answers that *values* describe.

    Args:
        values: The answers. A string is a text; a mapping has the fields that
            `muybridge.local.load_answers` describes.
        places: Where each of them is, for messages; None for `answers[0]` and so on.

    Raises:
        InvalidInput: Some are wrong. Every wrong answer is listed.
    """
    answers: list[ScriptedAnswer] = []
    problems: list[InputProblem] = []
    for number, value in enumerate(values):
        try:
            answers.append(_answer(Node(value, "answer")))
        except Refused as refused:
            place = f"answers[{number}]" if places is None else places[number]
            end = "" if str(refused).endswith("?") else "."
            problems.append(InputProblem(place, f"{refused}{end}"))
    if problems:
        raise InvalidInput(SCRIPT, problems, NOT_USED)
    return tuple(answers)


def _answer(node: Node) -> ScriptedAnswer:
    if isinstance(node.value, str):
        return ScriptedAnswer(drafts=(Draft(text=node.value),))
    _check_names(node, (*_OF_A_CANDIDATE, *_OF_AN_ANSWER))
    candidates = node.field("candidates")
    if candidates is None:
        drafts = [_draft(node)]
    else:
        both = [name for name in _OF_A_CANDIDATE if name in node.fields()]
        if both:
            raise node.refused(f"has {both[0]} beside candidates; put it into one of them")
        drafts = [_candidate(one) for one in candidates.elements()]
        if len(drafts) > MOST_CANDIDATES:
            raise candidates.refused(f"has more than {MOST_CANDIDATES} candidates")
    return ScriptedAnswer(
        drafts=tuple(drafts), when=node.text_of("when"), repeat=node.is_set("repeat")
    )


def _candidate(node: Node) -> Draft:
    if isinstance(node.value, str):
        return Draft(text=node.value)
    _check_names(node, _OF_A_CANDIDATE)
    return _draft(node)


def _draft(node: Node) -> Draft:
    fields = node.fields()
    if "text" in fields and "json" in fields:
        raise node.refused("has both text and json; give one of them")
    if not fields.keys() & set(_OF_A_CANDIDATE):
        raise node.refused("says nothing; give text, json, calls, finish or candidates")
    finish = node.field("finish")
    ending = Ending.STOP if finish is None else _ENDINGS.get(finish.text())
    if ending is None:
        raise node.refused(f"must be {either(list(_ENDINGS))}", f"{node.path}.finish")
    text = _json(node) if "json" in fields else node.text_of("text")
    return Draft(text=text, calls=tuple(map(_call, node.items_of("calls"))), ending=ending)


def _call(node: Node) -> Call:
    _check_names(node, _OF_A_CALL)
    arguments = node.field("arguments")
    given: Mapping[str, Any] = {} if arguments is None else arguments.fields()
    if arguments is not None:
        _write(given, arguments)
    return Call(node.required("name").text(), given)


def _json(node: Node) -> str:
    value: object = node.fields()["json"]
    return _write(value, Node(value, f"{node.path}.json"))


def _write(value: object, node: Node) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        raise node.refused("cannot be written as JSON") from None


def _check_names(node: Node, allowed: tuple[str, ...]) -> None:
    for name in node.fields():
        if name not in allowed:
            close = get_close_matches(str(name)[:40], allowed, n=1)
            hint = f"did you mean {close[0]}?" if close else f"use {either(allowed)}"
            raise node.refused(f"has an unknown field {str(name)[:40]!r}; {hint}")
