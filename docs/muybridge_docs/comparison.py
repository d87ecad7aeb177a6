"""Comparisons with other libraries, read from docs/benchmarks.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import attrs

from muybridge_docs.markdown import table

PAGE: Final = Path(__file__).parents[1] / "benchmarks.md"

_TITLE: Final = re.compile(r"([a-z][a-z0-9_-]*): (.+)")
_TARGET: Final = re.compile(r"  (?:met   |MISSED) (.+): ([0-9.,]+) of (.+) \(target .*\)")
_PEERS: Final = re.compile(r"^Versions: (.+)\.$", re.MULTILINE)


@attrs.frozen
class Comparison:
    """The cost of Muybridge relative to another library.

    Args:
        benchmark: The benchmark's name, as `python -m benchmarks` knows it.
        measured: What it measures.
        ours: The contestant from Muybridge.
        ratio: The quotient, as printed.
        theirs: The other contestant.
    """

    benchmark: str
    measured: str
    ours: str
    ratio: str
    theirs: str


def comparisons() -> Iterator[Comparison]:
    """Yield each comparison with another library, in the order of the page."""
    text = PAGE.read_text("utf-8")
    peers = [name for line in _PEERS.findall(text) for name in re.findall(r"([\w.-]+) \d", line)]
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for report in block.split("\n\n"):
            head, *lines = report.splitlines()
            title = _TITLE.fullmatch(head)
            for line in lines if title is not None else ():
                target = _TARGET.fullmatch(line)
                if title is not None and target is not None and _names(target[3], peers):
                    yield Comparison(title[1], title[2], *target.groups())


def _names(theirs: str, peers: list[str]) -> bool:
    return any(re.search(rf"(?<![\w-]){re.escape(peer)}(?![\w-])", theirs) for peer in peers)


def comparison() -> str:
    """Return all comparisons, with a table for each benchmark."""
    by_benchmark: dict[str, list[Comparison]] = {}
    for each in comparisons():
        by_benchmark.setdefault(each.benchmark, []).append(each)
    return "\n\n".join(map(_section, by_benchmark.values()))


def _section(found: list[Comparison]) -> str:
    rows = ((each.ours, each.ratio, each.theirs) for each in found)
    command = f"```console\n$ python -m benchmarks {found[0].benchmark}\n```"
    return f"### {found[0].measured}\n\n{command}\n\n{table(('Muybridge', 'needs', 'of'), rows)}"
