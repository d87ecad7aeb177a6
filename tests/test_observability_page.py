"""The page about observability is complete."""

from __future__ import annotations

import re
from pathlib import Path

from muybridge.observability.facts import ALLOWED

PAGE = (Path(__file__).parent.parent / "docs" / "observability.md").read_text("utf-8")


def test_every_event_and_its_facts() -> None:
    """The table lists each kind of event with exactly its facts."""
    rows = re.findall(r"^\| `([A-Z]\w+)` \| [^|]+ \|([^|]*)\|$", PAGE, re.MULTILINE)
    found = {name: re.findall(r"`(\w+)`", told) for name, told in rows}
    listed = {
        kind.__name__: [path.rpartition(".")[2] for path in paths]
        for kind, paths in ALLOWED.items()
    }
    assert found == listed, "give each event a row in the table of docs/observability.md"


def test_every_attribute_of_a_span() -> None:
    """The table of spans lists each possible attribute."""
    home = Path(__file__).parent.parent / "transports" / "muybridge" / "observability"
    source = home / "opentelemetry.py"
    names = r'"((?:muybridge|http|url|server|error)\.[a-z_.]+)"'
    made = set(re.findall(names, source.read_text("utf-8")))
    table = "".join(re.findall(r"^\| (?:call|request) \|.*$", PAGE, re.MULTILINE))
    assert set(re.findall(r"`([a-z_.]+)`", table)) == made
