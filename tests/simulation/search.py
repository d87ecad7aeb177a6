"""Look for seeds whose worlds find the planted faults, and replay those that did.

`found.json` keeps the first seed for each fault, and who convicted. A replay runs it twice: with
the fault in the product, a judge has to convict; without it, none may.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, TypedDict

from .plan import Plan
from .planted import FAULTS, Fault
from .shrinking import convicted

FOUND: Final = Path(__file__).with_name("found.json")
WITHIN: Final = 10_000
"""Seeds within which each fault has to be found."""

NEAR: Final = 400
"""Seeds that are tried if the kept one does not find its fault any more."""


class Finding(TypedDict):
    """How a fault was found."""

    kind: str
    seed: int
    judge: str


def search(fault: Fault, within: int = WITHIN) -> Finding | None:
    """Return the first seed whose world finds *fault*, or None."""
    with fault.planted():
        for seed in range(within):
            verdict = convicted(Plan.drawn(seed, fault.kind))
            if verdict is not None:
                return {"kind": fault.kind, "seed": seed, "judge": verdict.judge}
    return None


def part(number: int, of: int) -> tuple[Fault, ...]:
    """Return the faults of one part of the search."""
    return FAULTS[number - 1 :: of]


def kept() -> dict[str, Finding]:
    """Return how each fault was found."""
    findings: dict[str, Finding] = json.loads(FOUND.read_text(encoding="utf-8"))
    return findings


def keep(fault: Fault, finding: Finding) -> None:
    """Keep how a fault was found."""
    known = {**(kept() if FOUND.exists() else {}), fault.name: finding}
    ordered = {one.name: known[one.name] for one in FAULTS if one.name in known}
    FOUND.write_text(json.dumps(ordered, indent=2) + "\n", encoding="utf-8")


def replay(fault: Fault, finding: Finding) -> str | None:
    """Return what is wrong with a finding, or None if it holds.

    A change to the product changes what the chances of a seed lead to. If the seed does not find
    its fault any more, one of the first seeds has to.
    """
    if is_found(fault, finding["seed"]) or any(is_found(fault, seed) for seed in range(NEAR)):
        return None
    return f"{fault.name}: neither seed {finding['seed']} nor the first {NEAR} find it any more"


def is_found(fault: Fault, seed: int) -> bool:
    """Whether a seed's world finds a fault, and finds nothing without it."""
    plan = Plan.drawn(seed, fault.kind)
    with fault.planted():
        verdict = convicted(plan)
    return verdict is not None and convicted(plan) is None
