"""What the environment says: which store, and how much may be spent."""

from __future__ import annotations

import sys
from decimal import Decimal
from pathlib import Path

import pytest

from muybridge.purchases import Budget, default_place, open_store
from muybridge.purchases.environment import budget_of_environment, place_in_commands
from muybridge_protocol.errors import LocalError
from muybridge_protocol.purchases import Number, Period


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment names the store, or else it is in the user's state folder."""
    monkeypatch.delenv("MUYBRIDGE_STORE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert open_store().place == str(tmp_path / "muybridge" / "store.sqlite3")
    monkeypatch.setenv("MUYBRIDGE_STORE", "")
    assert default_place().endswith("store.sqlite3")
    monkeypatch.setenv("MUYBRIDGE_STORE", str(tmp_path / "team.sqlite3"))
    assert open_store().place == str(tmp_path / "team.sqlite3")
    monkeypatch.setenv("MUYBRIDGE_STORE", "postgresql://me:secret@db.test/paid")
    assert open_store().place == "postgresql://db.test/paid"


def test_how_a_command_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only a store that a command would not use anyway, and never with a password."""
    mine, other = str(tmp_path / "team.sqlite3"), str(tmp_path / "other.sqlite3")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUYBRIDGE_STORE", "team.sqlite3")
    assert (place_in_commands(mine), place_in_commands(other)) == ("", other)
    assert place_in_commands("postgresql://db.test/paid") == "URL"
    monkeypatch.setenv("MUYBRIDGE_STORE", "postgresql://me:secret@db.test/paid")
    assert place_in_commands(open_store().place) == ""
    assert place_in_commands("postgresql://db.test/other") == "URL"
    assert place_in_commands(mine) == mine


@pytest.mark.parametrize("limit", [-1, "many", float("nan"), float("inf"), True, "1e999999x"])
def test_a_limit_that_is_no_number(limit: object) -> None:
    """A limit that is not a number of at least 0 is refused."""
    with pytest.raises(ValueError, match="a limit must be a number of at least 0"):
        Budget(cost=limit)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [10**30, "9e999999", "1e-999999", Decimal("0.1") ** 31, "0e40"])
def test_a_limit_of_too_many_digits(limit: Number) -> None:
    """A limit is exact, and the message about a wrong one short."""
    with pytest.raises(ValueError, match="at most 30 digits before and after the point") as told:
        Budget(cost=limit)
    assert len(str(told.value)) < 120
    assert Budget(cost=10**30 - 1, seconds=0.1 + 0.2, creates=0).cost == 10**30 - 1
    assert Budget(cost="1e-30").cost == Decimal("1e-30")


def test_a_limit_on_what_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on something that has no halves is a whole number, also in the environment."""
    for name in ("creates", "pictures", "calls"):
        with pytest.raises(ValueError, match=f"a limit on {name} must be a whole number"):
            Budget(**{name: 3.5})  # type: ignore[arg-type]  # one of the limits
    assert Budget(creates=3.0, seconds=3.5, cost="0.5").creates == 3
    for name in ("creates", "pictures", "calls"):
        with monkeypatch.context() as patch:
            patch.setenv(f"MUYBRIDGE_MAX_{name.upper()}", "3.5")
            variable = f"MUYBRIDGE_MAX_{name.upper()}"
            with pytest.raises(LocalError, match=f"{variable}: a limit on {name} must be"):
                budget_of_environment()
    for name in ("seconds", "cost"):
        monkeypatch.setenv(f"MUYBRIDGE_MAX_{name.upper()}", "3.5")
    assert budget_of_environment() == Budget(seconds="3.5", cost="3.5")


def test_a_period_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt period is not taken for none, also in the environment."""
    with pytest.raises(ValueError, match="per must be 'day', 'month' or None"):
        Budget(creates=1, per="week")  # type: ignore[arg-type]
    monkeypatch.setenv("MUYBRIDGE_MAX_CREATES", "1")
    monkeypatch.setenv("MUYBRIDGE_BUDGET_PER", "week")
    with pytest.raises(LocalError, match="MUYBRIDGE_BUDGET_PER: per must be"):
        budget_of_environment()


@pytest.mark.parametrize(("value", "per"), [("day", "day"), ("month", "month"), ("", None)])
def test_the_period_of_the_environment(
    value: str, per: Period | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment sets the period of its limits; an empty variable sets none."""
    monkeypatch.setenv("MUYBRIDGE_MAX_CREATES", "1")
    monkeypatch.setenv("MUYBRIDGE_BUDGET_PER", value)
    assert budget_of_environment() == Budget(creates=1, per=per)


@pytest.mark.parametrize(
    ("per", "wall", "since"),
    [
        ("day", 1_800_000_000.0, 1_799_971_200.0),
        ("day", 1_799_971_200.0, 1_799_971_200.0),
        ("day", 1_799_971_199.0, 1_799_884_800.0),
        ("month", 1_800_000_000.0, 1_798_761_600.0),
    ],
)
def test_when_a_period_begins(per: str, wall: float, since: float) -> None:
    """A day begins at midnight UTC, and a month with its first day."""
    assert Budget(per=per).since(wall) == since  # type: ignore[arg-type]
