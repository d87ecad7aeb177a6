"""The routes of the emulator, read from its own tables and patterns: none has to be listed here."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import attrs

import moments
from muybridge_protocol.emulator.text import text_protocol
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.text.models import TEXT_MODELS


@attrs.frozen
class Route:
    """Paths that one endpoint answers.

    Args:
        segments: What stands between the slashes: a text, or the name of what may vary.
        free: Which of them may vary.
    """

    segments: tuple[str, ...]
    free: frozenset[int] = frozenset()

    def __str__(self) -> str:
        shown = (f"<{text}>" if at in self.free else text for at, text in enumerate(self.segments))
        return "/" + "/".join(shown)

    def path(self, fill: Callable[[str], str]) -> str:
        """Return a path of the route, given what makes a value of what may vary by its name."""
        filled = (fill(text) if at in self.free else text for at, text in enumerate(self.segments))
        return "/" + "/".join(filled)


def _patterns(function: Callable[..., Any]) -> Iterator[Route]:
    """Yield the routes that *function* tells apart by a `match` of a path's segments."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        if not isinstance(node, ast.match_case) or not isinstance(node.pattern, ast.MatchSequence):
            continue
        segments: list[str] = []
        free: set[int] = set()
        for pattern in node.pattern.patterns[1:]:  # the first is the nothing before the first slash
            match pattern:
                case ast.MatchValue(ast.Constant(str(text))):
                    segments.append(text)
                case ast.MatchAs(None, str(name)):
                    free.add(len(segments))
                    segments.append(name)
                case _:
                    raise AssertionError(f"a route is written in a new way: {ast.dump(pattern)}")
        yield Route(tuple(segments), frozenset(free))


def routes() -> tuple[Route, ...]:
    """Return every route but that of the files, which no key guards."""
    creates = (Route(tuple(family.create_path[1:].split("/"))) for family in FAMILIES.values())
    others = _patterns(moments.at("request routed").value)
    return (*creates, *others, *_patterns(text_protocol))


VALUES = {
    "task_id": ("task-1", "task-2"),
    "asset_id": ("asset-1", "asset-9"),
    "segment": tuple(
        f"{model}:{method}"
        for model in (*TEXT_MODELS, "nobody")
        for method in ("generateContent", "streamGenerateContent", "countTokens")
    ),
}
"""What may stand where a path may vary, by the name that the emulator gives it."""
