"""Simple diagrams of boxes and arrows, in the colour of the surrounding text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from muybridge_docs.machines import Step

_BOX: Final = (120, 34)
_GAP: Final = (76, 26)
_ROW: Final = 28
_MARGIN: Final = 12


@attrs.frozen
class Edge:
    """An arrow from one box to another."""

    start: str
    end: str


@attrs.frozen
class _Box:
    x: float
    y: float
    text: str
    ends: bool = False
    width: float = _BOX[0]
    height: float = _BOX[1]

    def svg(self) -> str:
        round_ends = ' rx="17"' if not self.ends else ' rx="3" stroke-width="2.5"'
        return (
            f'<rect x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" '
            f'height="{self.height:g}"{round_ends}/>'
            + _text(self.x + self.width / 2, self.y + self.height / 2, self.text, "middle")
        )

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def layers(title: str, edges: Sequence[Edge], ends: Iterable[str]) -> str:
    """Return a diagram whose arrows lead from left to right.

    Args:
        title: A description for screen readers.
        edges: The arrows, without cycles.
        ends: The final boxes.
    """
    depth = _depths(edges)
    columns: dict[int, list[str]] = {}
    for name in depth:
        columns.setdefault(depth[name], []).append(name)
    skipped = {edge.end for edge in edges if depth[edge.end] - depth[edge.start] > 1}
    ends = set(ends)
    boxes: dict[str, _Box] = {}
    tallest = max(map(len, columns.values()))
    for column, names in columns.items():
        top = _MARGIN + (tallest - len(names)) * (_BOX[1] + _GAP[1]) / 2 + _GAP[1]
        for place, name in enumerate(_outside(names, skipped)):
            x = _MARGIN + column * (_BOX[0] + _GAP[0])
            boxes[name] = _Box(x, top + place * (_BOX[1] + _GAP[1]), name, ends=name in ends)
    centre = _MARGIN + _GAP[1] + (tallest * (_BOX[1] + _GAP[1]) - _GAP[1]) / 2
    drawn = [_between(boxes[edge.start], boxes[edge.end], depth, centre) for edge in edges]
    width = max(box.x + box.width for box in boxes.values()) + _MARGIN
    height = 2 * _MARGIN + tallest * (_BOX[1] + _GAP[1]) + _GAP[1]
    said = "; ".join(f"{edge.start} to {edge.end}" for edge in edges)
    return _picture(title, said, width, height, [*drawn, *(box.svg() for box in boxes.values())])


def _depths(edges: Sequence[Edge]) -> Mapping[str, int]:
    depth: dict[str, int] = {}
    for _ in edges:
        for edge in edges:
            depth.setdefault(edge.start, 0)
            depth[edge.end] = max(depth.get(edge.end, 0), depth[edge.start] + 1)
    return depth


def _outside(names: Sequence[str], skipped: set[str]) -> list[str]:
    """Return *names*, with those on the outside that arrows reach around other boxes."""
    reached = [name for name in names if name in skipped]
    others = [name for name in names if name not in skipped]
    return [*reached[::2], *others, *reached[1::2]]


def _between(start: _Box, end: _Box, depth: Mapping[str, int], centre: float) -> str:
    x1, x2 = start.x + start.width, end.x
    if depth[end.text] - depth[start.text] == 1:
        return _arrow(f"M{x1:g},{start.middle:g} L{x2 - 2:g},{end.middle:g}")
    up = -1 if end.middle <= centre else 1
    y1 = start.middle + up * start.height / 2
    x1 = start.x + start.width / 2
    far = centre + up * (_BOX[1] + _GAP[1])
    if end.middle == centre:
        y2, x2 = end.middle + up * end.height / 2, end.x + end.width / 2
        return _arrow(f"M{x1:g},{y1:g} C{x1:g},{far:g} {x2:g},{far:g} {x2:g},{y2 - 2:g}")
    return _arrow(
        f"M{x1:g},{y1:g} C{x1:g},{end.middle:g} {x1:g},{end.middle:g} "
        f"{x1 + 80:g},{end.middle:g} L{x2 - 2:g},{end.middle:g}"
    )


_SEND_X: Final = 392.0
_SEND_WIDTH: Final = 70.0
_WAIT_WIDTH: Final = 64.0
_END_X: Final = 700.0
_END_WIDTH: Final = 160.0
_FEW: Final = 4
"""The largest number of attempts to show. Above that, time decides."""


def fan(title: str, steps: Sequence[Step]) -> str:
    """Return a diagram of an operation: the inputs after which it waits, and how it ends.

    Args:
        title: A description for screen readers.
        steps: How it responds to each input.
    """
    again = [step for step in steps if step.first == "Wait"]
    ends: dict[str, list[str]] = {}
    for step in steps:
        if step.first != "Wait":
            ends.setdefault(step.first, []).append(step.label)
    for step in again:
        if step.last != "Wait":
            ends.setdefault(step.last, []).append(_after(step))
    rows = sum(map(len, ends.values()))
    height = 2 * _MARGIN + max(rows, len(again) + 2) * _ROW
    drawn = [
        *_left(again, height),
        *_right(ends),
        _Box(_SEND_X, _MARGIN, "Send", width=_SEND_WIDTH, height=height - 2 * _MARGIN).svg(),
    ]
    said = "; ".join(f"{step.label}: {step.first}, in the end {step.last}" for step in steps)
    return _picture(title, said, _END_X + _END_WIDTH + _MARGIN, height, drawn)


def _after(step: Step) -> str:
    counted = step.tries <= _FEW
    return f"{step.label}, {step.tries} times" if counted else f"{step.label}, for too long"


def _left(again: Sequence[Step], height: float) -> Iterator[str]:
    rows = len(again) + 1
    top = (height - rows * _ROW) / 2
    box = _Box(_MARGIN, top, "Wait", width=_WAIT_WIDTH, height=rows * _ROW)
    yield box.svg()
    for row, step in enumerate(again):
        y = top + (row + 0.7) * _ROW
        yield _arrow(f"M{_SEND_X:g},{y:g} L{box.x + box.width + 2:g},{y:g}")
        yield _text((_SEND_X + box.x + box.width) / 2, y - 9, step.label, "middle")
    y = top + (len(again) + 0.7) * _ROW
    yield _arrow(f"M{box.x + box.width:g},{y:g} L{_SEND_X - 2:g},{y:g}")
    yield _text((_SEND_X + box.x + box.width) / 2, y - 9, "when it is due", "middle")


def _right(ends: Mapping[str, Sequence[str]]) -> Iterator[str]:
    row = 0
    for name, labels in ends.items():
        top = _MARGIN + row * _ROW
        box = _Box(
            _END_X, top + 4, name, ends=True, width=_END_WIDTH, height=len(labels) * _ROW - 6
        )
        yield box.svg()
        for label in labels:
            y = _MARGIN + (row + 0.7) * _ROW
            yield _arrow(f"M{_SEND_X + _SEND_WIDTH:g},{y:g} L{_END_X - 2:g},{y:g}")
            yield _text((_SEND_X + _SEND_WIDTH + _END_X) / 2, y - 9, label, "middle")
            row += 1


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" dominant-baseline="central" '
        f'stroke="none" fill="currentColor">{escape(text)}</text>'
    )


def _arrow(path: str) -> str:
    return f'<path d="{path}" marker-end="url(#MARKER)"/>'


def _picture(
    title: str, said: str, width: float, height: float, drawn: Iterable[str]
) -> str:  # fmt: skip
    """Return the diagram as HTML within Markdown."""
    marker = f"arrow-{title.lower().replace(' ', '-')}"
    parts = "\n".join(drawn).replace("MARKER", marker)
    return (
        "```{raw} html\n"
        f'<svg class="machine" role="img" viewBox="0 0 {width:g} {height:g}" '
        'xmlns="http://www.w3.org/2000/svg" fill="none" stroke="currentColor" '
        'stroke-width="1.3" font-size="13">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(said)}</desc>\n"
        f'<defs><marker id="{marker}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="currentColor" '
        'stroke="none"/></marker></defs>\n'
        f"{parts}\n</svg>\n```"
    )
