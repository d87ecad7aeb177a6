"""The judges convict: the seeds that found the planted faults find them again."""

from __future__ import annotations

import pytest

from .command import simulate
from .search import kept

PARTS = 3


@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_planted_faults_are_found(part: int) -> None:
    """Each fault is convicted in a world that is sound without it."""
    simulate("--replay", f"--part={part}/{PARTS}")


def test_a_failing_world_is_printed_with_a_smaller_one() -> None:
    """Whoever meets a failing seed can see what happened, in a world with little else in it."""
    fault = "a budget permits one more"
    seed = kept()[fault]["seed"]
    told = simulate(
        f"--plant={fault}", "--kind=names", f"--first={seed}", "--worlds=1", succeeds=False
    )
    assert "within budget" in told
    assert "python -m tests.simulation --kind names --seed" in told
    smaller = told.partition("smaller: ")[2].splitlines()[0]
    assert "--plan" in smaller
    assert '"kills": 0.0' in smaller
