"""Look for seeds whose worlds find the planted faults, and replay those that did.

`found.json` keeps for each fault the first seed whose plan leads to it, the chances that found it
there (the seed of all that the plan leaves open), and who convicted. A replay runs that world
twice: with the fault in the product, a judge has to convict; without it, none may.

Every change to the product moves what happens in the world of a seed, but not what its plan is
like: how many processes it has, and how often what strikes. Where a world does not find its fault
any more, other chances of the same plan have to, which is much likelier than with any other plan.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, TypedDict

import attrs

from .judges import Verdict
from .plan import Plan
from .planted import FAULTS, Fault
from .shrinking import convicted

FOUND: Final = Path(__file__).with_name("found.json")
WITHIN: Final = 10_000
"""Seeds within which each fault has to be found."""

NEAR: Final = 400
"""Other chances of the plan that are tried if the kept seed does not find its fault any more."""


class Finding(TypedDict):
    """How a fault was found."""

    kind: str
    seed: int
    chances: int
    judge: str


def search(fault: Fault, within: int = WITHIN) -> Finding | None:
    """Return the first seed whose world finds *fault*, or None."""
    with fault.planted():
        for seed in range(within):
            verdict = convicted(Plan.drawn(seed, fault.kind))
            if verdict is not None:
                return _finding(fault, seed, seed, verdict)
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


def replay(fault: Fault, finding: Finding) -> Finding | None:
    """Return how the plan of a finding leads to its fault now, or None if it does not."""
    plan = Plan.drawn(finding["seed"], fault.kind)
    for chances in (finding["chances"], *range(NEAR)):
        verdict = _verdict(fault, attrs.evolve(plan, seed=chances))
        if verdict is not None:
            return _finding(fault, plan.seed, chances, verdict)
    return None


def _verdict(fault: Fault, plan: Plan) -> Verdict | None:
    """Return how the world of a plan finds a fault, if it finds nothing without it."""
    with fault.planted():
        verdict = convicted(plan)
    return verdict if verdict is not None and convicted(plan) is None else None


def _finding(fault: Fault, seed: int, chances: int, verdict: Verdict) -> Finding:
    return {"kind": fault.kind, "seed": seed, "chances": chances, "judge": verdict.judge}
