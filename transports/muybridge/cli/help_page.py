r"""How `--help` is laid out: no option, path or word is broken, however narrow the terminal is.

click breaks lines at hyphens (`--api-` and `key-file`), breaks long words, takes every terminal to
have 50 columns at least, and never wraps the lines that stay as they are (after `\b`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

import click
from click import formatting

_NARROWEST: Final = 20
"""Columns that a line has, however narrow the terminal is."""
_COLUMN: Final = 24
"""A second column is at least so wide, or its texts go below those of the first."""

_BELOW: Final = 4
"""How far they are indented there."""

_MARGIN: Final = 2
"""Columns that click leaves empty on the right. Lines that stay as they are may use them."""

_KEPT: Final = "\b"
_SHELL: Final = re.compile(r"(muybridge|eval|export) ")
_PIECE: Final = re.compile(r'(?:-\S+ (?!-)|"[^"]*": )?(?:"[^"]*"|\S)+')
"""A word, an option with its value, or a member of an object."""


class HelpPage(click.HelpFormatter):
    """A formatter of help that fits into the terminal."""

    def __init__(
        self, indent_increment: int = 2, width: int | None = None, max_width: int | None = None
    ) -> None:
        super().__init__(indent_increment, width, max_width)
        if width is None and formatting.FORCED_WIDTH is None:
            import shutil

            columns = shutil.get_terminal_size().columns
            self.width: int = max(min(self.width, columns - _MARGIN), _NARROWEST)

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write how the command is called."""
        start = f"{prefix or 'Usage: '}{prog}"
        self._write(_filled([start, *args.split()], self.width, "", " " * _BELOW))

    def write_text(self, text: str) -> None:
        """Write paragraphs, wrapped to the width."""
        self._write(_laid_out(text, self.width, " " * self.current_indent))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write a list in two columns, or, where the second one is too narrow, below each other."""
        rows = list(rows)
        margin = " " * self.current_indent
        start = min(max(len(first) for first, _ in rows), col_max) + col_spacing
        longest = max((len(word) for _, second in rows for word in second.split()), default=0)
        if self.width - len(margin) - start < max(_COLUMN, longest):
            start = _BELOW
        for first, second in rows:
            lines = [*_laid_out(second, self.width, margin + " " * start)]
            beside = bool(lines) and len(first) + col_spacing <= start
            if beside:
                lines[0] = f"{margin}{first:{start}}{lines[0].lstrip()}"
            self._write(lines if beside else [margin + first, *lines])

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(f"{line}\n")


def _laid_out(text: str, width: int, margin: str) -> Iterator[str]:
    r"""Yield the lines of *text*. What follows a `\b` keeps its own, as far as they fit."""
    for number, paragraph in enumerate(re.split(r"\n[ \t]*\n", text.strip("\n"))):
        lines = paragraph.split("\n")
        if number:
            yield ""
        if lines[0].strip() != _KEPT:
            yield from _filled(paragraph.split(), width, margin, margin)
            continue
        for line in lines[1:]:
            fits = len(margin + line) <= width + _MARGIN
            yield from [margin + line] if fits else _cut(line, width, margin)


def _cut(line: str, width: int, margin: str) -> Iterator[str]:
    """Yield *line* in pieces: first what stands before a gap. A shell takes them as one line."""
    indent = margin + line[: len(line) - len(line.lstrip())]
    deeper = indent + " " * _BELOW
    for number, part in enumerate(re.split(r" {2,}", line.strip())):
        if not number and _SHELL.match(part):
            *continued, last = _filled(_PIECE.findall(part), width, indent, deeper)
            yield from (f"{piece} \\" for piece in continued)
            yield last
        else:
            pieces = _PIECE.findall(part)
            yield from _filled(pieces, width, deeper if number else indent, deeper)


def _filled(words: Iterable[str], width: int, first: str, later: str) -> list[str]:
    """Return lines of whole *words*, the first and the later ones indented."""
    lines: list[str] = []
    line = first
    for word in words:
        if line.strip() and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = later
        line = f"{line} {word}" if line.strip() else line + word
    return [*lines, line] if line.strip() else lines
