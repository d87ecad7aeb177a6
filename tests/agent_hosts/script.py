"""What the scripted models do: a still, its animation, and one picture too many.

A model sees the results of its calls, and asks for the next one. Each script stands for what a real
model would do with these results; whose agent runs it makes no difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

Results = Sequence[dict[str, Any]]
"""The results of the calls so far."""
Step = Callable[[Results], tuple[str, dict[str, Any]] | str]
"""Gives the next call for the results so far, or the model's last words."""

STILL = {"family": "imgb", "fields": {"model": "imgb-2", "prompt": "A horse at rest"}}


def _animation(results: Results) -> tuple[str, dict[str, Any]]:
    url = next(one["url"] for one in results if one.get("url"))
    fields = {"model": "vidg_video3", "prompt": "The horse gallops off", "image_urls": [url]}
    return "generate", {"family": "vidg", "fields": fields}


def _wait(results: Results) -> tuple[str, dict[str, Any]]:
    return "wait", {"token": results[-1]["token"]}


def _save(name: str) -> Step:
    return lambda results: ("save", {"token": results[-1]["token"], "name": name})


def _one_more(_: Results) -> tuple[str, dict[str, Any]]:
    return "generate", {**STILL, "again": 2}


def _last_words(results: Results) -> str:
    message = results[-1]["error"]["message"]
    return f"I have stopped, because I was refused: {message}"


FILM: Sequence[Step] = (
    lambda _: ("describe", {"name": "imgb"}),
    lambda _: ("estimate", STILL),
    lambda _: ("generate", STILL),
    _wait,
    _save("still"),
    _animation,
    _wait,
    _save("film"),
    _one_more,
    _last_words,
)
"""Makes a still and animates it, and asks for a third task."""
ONE_MORE: Sequence[Step] = (_one_more, _last_words)
"""Asks for the third task, in a new conversation with a new server."""


class Transcript:
    """What a model asked for, and what it was told, with the same ids and times in each run."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}

    def asked(self, tool: str, given: object) -> None:
        """Note a call."""
        self.lines.append(f"> {tool} {self._plain(given)}")

    def told(self, result: dict[str, Any]) -> None:
        """Note a result. Descriptions are long, and others' business."""
        kept = {"name": result["name"]} if "fields" in result else result
        self.lines.append(f"  {self._plain(kept)}")

    def said(self, words: str) -> None:
        """Note what the model says to the person."""
        self.lines.append(f"= {words}")

    def __str__(self) -> str:
        return "\n".join([*self.lines, ""])

    def _plain(self, value: object) -> str:
        text = json.dumps(value, sort_keys=True)
        text = re.sub(r"task-[0-9a-f]{32}", self._named, text)
        text = re.sub(r"http://127\.0\.0\.1:\d+", "http://service", text)
        text = re.sub(r'"(/[^"]*)/results', '"/results', text)
        return re.sub(
            r'("(?:expires_at|bytes|actual_duration|age_seconds)": )[0-9.]+', r"\1N", text
        )

    def _named(self, found: re.Match[str]) -> str:
        return self._names.setdefault(found[0], f"task-{len(self._names) + 1}")


def next_step(script: Sequence[Step], results: Results) -> tuple[str, dict[str, Any]] | str:
    """Return what a model does after *results*."""
    return script[len(results)](results)
