"""Example command lines, from the families' tables."""

from __future__ import annotations

from muybridge.cli.options import option_name
from muybridge_protocol.families import Family
from muybridge_protocol.families.examples import smallest_example
from muybridge_protocol.families.references import media_fields
from muybridge_protocol.media.formats import USUAL


def example(family: Family, verb: str) -> str:
    """Return a command line that the family's rules accept."""
    if verb == "check" and (fields := media_fields(family)):
        wire, kind = next(iter(fields.items()))
        return f"muybridge check {family.name} --file {wire}=horse{USUAL[kind].suffix}"
    body = smallest_example(family)
    words = [f"{option_name(wire)} {_quoted(value)}" for wire, value in body.items()]
    saved = f" -o horse{USUAL[family.media].suffix}" if verb == "run" else ""
    return f"muybridge {verb} {family.name} {' '.join(words)}{saved}"


def _quoted(value: object) -> str:
    return f'"{value}"' if " " in str(value) else str(value)
