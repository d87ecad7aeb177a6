"""An outcome that cannot be stored is recorded as far as it can be, and the ledger goes on."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from muybridge import Task
from muybridge.ledger import Entry, Ledger, Measure, State, open_ledger
from muybridge.ledger.entries import SPENT

from .test_store import NOW, purchase

TOKEN = Task(id="task-1").to_token()
SURROGATE = "\ud800"
RESERVED = Decimal(5)


def concluded(path: Path, state: State, **outcome: Any) -> tuple[Ledger, Entry]:
    """Arm an entry and conclude it, and return the ledger and the entry as another one reads it."""
    ledger = open_ledger(path / "ledger")
    ledger.arm(purchase("k1", cost=RESERVED, creates=1), (), NOW)
    ledger.conclude("k1", state, **outcome)
    ledger.arm(purchase("k2"), (), NOW)  # the same ledger goes on
    (entry, _) = open_ledger(path / "ledger").entries()
    return ledger, entry


@pytest.mark.parametrize("cost", [Decimal(10**12), Decimal(-(10**12)), Decimal("NaN")], ids=str)
def test_a_cost(tmp_path: Path, cost: Decimal) -> None:
    """The task is recorded, and the cost becomes unknown: it may be more than was reserved."""
    _, entry = concluded(tmp_path, State.ACCEPTED, token=TOKEN, cost=cost)
    assert (entry.state, entry.token) == (State.ACCEPTED, TOKEN)
    assert entry.amounts[Measure.COST] is None
    assert entry.amounts[Measure.CREATES] == 1


def test_a_reason(tmp_path: Path) -> None:
    """The state and the task are recorded without the reason."""
    _, entry = concluded(tmp_path, State.ACCEPTED, token=TOKEN, reason=SURROGATE)
    assert (entry.state, entry.token) == (State.ACCEPTED, TOKEN)
    assert entry.reason == "the rest of its outcome cannot be stored"
    assert entry.amounts[Measure.COST] == RESERVED


def test_a_reason_alone(tmp_path: Path) -> None:
    """A reason that cannot be stored takes neither the cost nor what looks like an id with it."""
    _, entry = concluded(
        tmp_path, State.AMBIGUOUS, candidate="task-1", reason=SURROGATE, cost=Decimal(2)
    )
    assert (entry.candidate, entry.amounts[Measure.COST]) == ("task-1", Decimal(2))
    assert entry.reason == "the rest of its outcome cannot be stored"


def test_a_candidate(tmp_path: Path) -> None:
    """An ambiguous outcome is ambiguous without what looks like an id."""
    ledger, entry = concluded(tmp_path, State.AMBIGUOUS, candidate=SURROGATE, reason="timed out")
    assert (entry.state, entry.candidate) == (State.AMBIGUOUS, None)
    assert entry.reason == "timed out"
    assert ledger.adopt("k1", "task-1").state is State.ACCEPTED


@pytest.mark.parametrize(
    "token", [SURROGATE, "not JSON", "[]"], ids=["surrogate", "not JSON", "no object"]
)
def test_a_token(tmp_path: Path, token: str) -> None:
    """Without its task, an accepted request is ambiguous, so that a person names the task."""
    ledger, entry = concluded(tmp_path, State.ACCEPTED, token=token)
    assert (entry.state, entry.token) == (State.AMBIGUOUS, None)
    assert entry.amounts[Measure.COST] == RESERVED
    assert ledger.adopt("k1", "task-1").state is State.ACCEPTED


def test_a_released_request(tmp_path: Path) -> None:
    """What certainly did nothing is released, even if the reason cannot be stored."""
    _, entry = concluded(tmp_path, State.RELEASED, reason=SURROGATE)
    assert entry.state not in SPENT


def test_a_key(tmp_path: Path) -> None:
    """An outcome of an entry that cannot exist changes nothing."""
    ledger = open_ledger(tmp_path / "ledger")
    assert ledger.conclude(SURROGATE, State.ACCEPTED) is None
    ledger.arm(purchase("k1"), (), NOW)
    assert [entry.key for entry in ledger.entries()] == ["k1"]
