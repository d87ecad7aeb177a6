"""Make a failing world small, so that a person can follow its story."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from . import campaign
from .judges import Verdict
from .plan import FAULTS, Plan

SEEDS: Final = 8
"""How many seeds are tried for each smaller plan: with less in it, the chances fall otherwise."""
TRIES: Final = 150
"""How many worlds are tried in all."""
_NUMBERS: Final = ("programs", "tasks", "names", "calls")


def convicted(plan: Plan) -> Verdict | None:
    """Return the verdict on the world of a plan, or None if nothing is wrong."""
    try:
        campaign.run(plan)
    except Verdict as verdict:
        return verdict
    except AssertionError as error:
        return Verdict("alive", str(error))
    return None


def shrunk(plan: Plan, judge: str, tries: int = TRIES) -> Plan:
    """Return the smallest plan found, in so many tries, for which the same *judge* convicts."""
    worlds = _smaller(plan)
    while tries > 0 and (smaller := next(worlds, None)) is not None:
        tries -= 1
        verdict = convicted(smaller)
        if verdict is not None and verdict.judge == judge:
            plan, worlds = smaller, _smaller(smaller)
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Yield worlds with less in them, with the same seed at first."""
    for candidate in _candidates(plan):
        for seed in (plan.seed, *range(SEEDS)):
            yield attrs.evolve(candidate, seed=seed)


def _candidates(plan: Plan) -> Iterator[Plan]:
    """Yield plans with less in them."""
    less: list[dict[str, Any]] = [{fault: 0.0} for fault in FAULTS]
    less += [{name: max(1, getattr(plan, name) - 1)} for name in _NUMBERS]
    less += [{"per": None}, {"budget": None}]
    for change in less:
        smaller = attrs.evolve(plan, **change)
        if smaller != plan:
            yield smaller
