"""The contract of each family, by the family's name: what is in the files beside this one.

Tests that need a fact of the specification for every family take it from here, so that it stands
in the family's own file, `test_<family>.py`, and nowhere else. A family without that file fails
here, and a file without its family fails by itself.
"""

from __future__ import annotations

from importlib import import_module

from muybridge_protocol.families import FAMILIES

from .cases import OpenContract


def _contract(name: str) -> type[OpenContract]:
    module = import_module(f"{__package__}.test_{name}")
    found: type[OpenContract] = getattr(module, f"Test{name.capitalize()}")
    return found


CONTRACTS = {name: _contract(name) for name in FAMILIES}
