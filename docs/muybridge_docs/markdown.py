"""Write values as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table.

    Args:
        headings: The column headings.
        rows: The cells, which may contain Markdown.
    """
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def code(text: object) -> str:
    """Return *text* as code."""
    return f"`{text}`"


def codes(texts: Iterable[object], joint: str = ", ") -> str:
    """Return *texts* as code, joined by *joint*."""
    return joint.join(map(code, texts))


def bullets(lines: Iterable[str]) -> str:
    """Return *lines* as a list."""
    return "\n".join(f"- {line}" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
