"""The ledger's file: who may read it, and what a bad one means. Nothing is sent without it."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal, localcontext
from pathlib import Path
from typing import BinaryIO

import attrs
import pytest

import moments
from muybridge.files.locks import lock
from muybridge.ledger import Budget, Entry, StoreUnusable, Measure, Purchase, State, open_ledger
from muybridge.ledger.errors import Exceeded, InvalidLimit, NameHeld
from muybridge.ledger.ledger import Ledger
from muybridge.ledger.spent import spent_by_group
from muybridge.ledger.sqlite_store import SqliteStore, default_path
from muybridge.purchases.environment import budget_of_environment
from muybridge_protocol.purchases import Number, Period
from processes import environment

NOW = 1_800_000_000.0
DAY = 86_400.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "muybridge" / "ledger.sqlite3"


def purchase(key: str = "k1", *, once: str | None = None, **amounts: object) -> Purchase:
    known = {measure: Decimal(str(amounts.get(measure, 0))) for measure in Measure}
    digest = None if once is None else "d"
    return Purchase(
        key=key, account="a", family="imga", model="imga", amounts=known, once=once, digest=digest
    )


def entries(ledger: Ledger) -> list[Entry]:
    return [*ledger.entries()]


def test_only_its_owner_can_read_it(path: Path) -> None:
    """The file, its folder and the owners' files are for the user alone."""
    ledger = open_ledger(path)
    ledger.arm(purchase(), (), NOW)
    owners = path.with_name("ledger.sqlite3.owners")
    [lock] = owners.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(lock.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(owners.stat().st_mode) == 0o700


def test_nothing_is_left_lying_about(path: Path) -> None:
    """What an owner needs while it works is removed when it ends."""
    ledger = open_ledger(path)
    ledger.arm(purchase(), (), NOW)
    ledger.conclude("k1", State.ACCEPTED)
    del ledger
    assert [*path.with_name("ledger.sqlite3.owners").iterdir()] == []
    assert {one.name for one in path.parent.iterdir()} == {path.name, "ledger.sqlite3.owners"}


def test_an_entry_is_kept_as_it_is(path: Path) -> None:
    """Each amount is exact, and an unknown one stays unknown."""
    wanted = attrs.evolve(
        purchase("k1", once="once x", creates=1, seconds="7.25", cost="0.000000001"),
        tier="1080p",
    )
    amounts = {**wanted.amounts, Measure.PICTURES: None}
    open_ledger(path).arm(attrs.evolve(wanted, amounts=amounts), (), NOW)
    [entry] = entries(open_ledger(path))
    assert entry.amounts == amounts
    assert (entry.tier, entry.once, entry.time) == ("1080p", "once x", NOW)


def test_amounts_are_rounded_up(path: Path) -> None:
    """What is too fine for the file counts as more, never as less."""
    ledger = open_ledger(path)
    ledger.arm(purchase(cost="0.0000000001"), (), NOW)
    [entry] = entries(ledger)
    assert entry.amounts[Measure.COST] == Decimal("0.000000001")


def test_many_entries(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every entry is listed once, in order, however many pages of the file they take."""
    monkeypatch.setattr(*moments.constant("entries read at once"), 2)
    ledger = open_ledger(path)
    for number in range(5):
        ledger.arm(purchase(f"k{number}"), (), NOW)
    assert [entry.key for entry in entries(ledger)] == ["k0", "k1", "k2", "k3", "k4"]


def test_what_was_spent_by_group(path: Path) -> None:
    """What is released is not spent, and what is sent again counts as accepted before."""
    ledger = open_ledger(path)
    for state in (State.RELEASED, State.RESUBMITTED, State.AMBIGUOUS, State.ACCEPTED):
        ledger.arm(purchase(state, creates=1), (), NOW)
        ledger.conclude(state, state)
    spent = spent_by_group(entries(ledger))
    assert {group.state: sums.requests for group, sums in spent.items()} == {
        State.ACCEPTED: 2,
        State.AMBIGUOUS: 1,
    }


def test_tenths_add_up(path: Path) -> None:
    """Ten times a tenth is one, and not a hair more or less."""
    ledger, budgets = open_ledger(path), [Budget(cost=1)]
    for number in range(10):
        ledger.arm(purchase(f"k{number}", cost=0.1), budgets, NOW)
    with pytest.raises(Exceeded, match=r"none of the limit of 1 in cost is left"):
        ledger.arm(purchase("k10", cost="0.000000001"), budgets, NOW)


def test_the_programs_own_precision(path: Path) -> None:
    """A program that calculates with one digit spends its budget exactly."""
    ledger, budgets = open_ledger(path), [Budget(creates=10, cost="12.5")]
    with localcontext() as context:
        context.prec = 1
        for number in range(10):
            ledger.arm(purchase(f"k{number}", creates=1, cost="1.25"), budgets, NOW)
        with pytest.raises(Exceeded, match="none of the limit of 10 creates is left"):
            ledger.arm(purchase("k10", creates=1), budgets, NOW)
        spent = ledger.spent(budgets[0], NOW)
    assert (spent[Measure.CREATES], spent[Measure.COST]) == (10, Decimal("12.5"))


def test_an_owner_that_is_gone(path: Path) -> None:
    """What an owner leaves armed is ambiguous once nothing refers to it, and stays spent."""
    ledger = open_ledger(path)
    ledger.arm(purchase(creates=1), (), NOW)
    other = open_ledger(path)
    assert [entry.state for entry in other.entries()] == [State.ARMED]
    del ledger
    assert [entry.state for entry in other.entries()] == [State.AMBIGUOUS]
    with pytest.raises(Exceeded):
        other.arm(purchase("k2", creates=1), [Budget(creates=1)], NOW)


def test_a_fork(path: Path) -> None:
    """A forked process is an owner of its own, whose parent lives on."""
    ledger = open_ledger(path)
    ledger.arm(purchase("parent"), (), NOW)
    child = os.fork()
    if child == 0:
        try:
            ledger.arm(purchase("child"), (), NOW)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    states = {entry.key: entry.state for entry in open_ledger(path).entries()}
    assert states == {"parent": State.ARMED, "child": State.AMBIGUOUS}
    assert len([*path.with_name("ledger.sqlite3.owners").iterdir()]) == 1


@pytest.mark.parametrize("is_locked", [True, False])
def test_an_owner_whose_file_another_one_removes(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_locked: bool,  # noqa: FBT001  a parameter of the test
) -> None:
    """A process that looks at the file of an owner before its lock makes it take another name."""
    removed: list[Path] = []

    def late(file: BinaryIO) -> bool:
        if removed:
            return lock(file)
        for each in path.with_name("ledger.sqlite3.owners").iterdir():
            each.unlink()
            removed.append(each)
        return is_locked

    monkeypatch.setattr(*moments.at("owner locked").place, late)
    owner = SqliteStore(path).owner
    assert len(removed) == 1
    assert not removed[0].name.endswith(owner)


def test_another_process_creates_the_folder(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two processes may create the ledger's folder at the same moment."""
    path.parent.mkdir(parents=True)
    is_dir = Path.is_dir
    asked: list[Path] = []

    def seen(one: Path) -> bool:
        asked.append(one)
        return is_dir(one) and (one != path.parent or one in asked[:-1])

    monkeypatch.setattr(Path, "is_dir", seen)
    open_ledger(path).arm(purchase(), (), NOW)
    assert asked.count(path.parent) > 1
    assert path.exists()


def test_damage_where_nobody_reads(path: Path) -> None:
    """A file that is damaged anywhere is refused, though what is asked for could be read."""
    open_ledger(path).arm(purchase(creates=1), (), NOW)
    with closing(sqlite3.connect(path)) as db:
        page = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'states'").fetchone()[0]
        size = db.execute("PRAGMA page_size").fetchone()[0]
    data = bytearray(path.read_bytes())
    data[(page - 1) * size : page * size] = b"\xee" * size
    path.write_bytes(data)
    with pytest.raises(StoreUnusable, match="malformed"):
        open_ledger(path).spent(Budget(creates=5), NOW)


def test_a_name_is_held_by_one(path: Path) -> None:
    """An entry that is armed, accepted or ambiguous has its name to itself."""
    ledger = open_ledger(path)
    for state in State:
        key = f"held {state}"
        ledger.arm(purchase(key, once=state), (), NOW)
        if state is not State.ARMED:
            ledger.conclude(key, state)
        if state in (State.RELEASED, State.RESUBMITTED):
            ledger.arm(purchase(f"again {state}", once=state), (), NOW)
        else:
            with pytest.raises(NameHeld):
                ledger.arm(purchase(f"again {state}", once=state), (), NOW)


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 3")


def _another(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA application_id = 1")


def _spoilt(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xee" * (len(data) - 4096)
    path.write_bytes(data)


SPOIL: dict[str, tuple[Callable[[Path], object], str]] = {
    "another version": (_newer, "has version 3, and this muybridge knows version 2"),
    "another program's": (_another, "is not a ledger, or is damaged"),
    "no database": (lambda path: path.write_bytes(b"notes" * 1000), "not a database"),
    "empty": (lambda path: path.write_bytes(b""), "is not a ledger, or is damaged"),
    "spoilt": (_spoilt, "malformed"),
}


@pytest.mark.parametrize("how", SPOIL)
def test_a_file_that_cannot_be_used(path: Path, how: str) -> None:
    """A file that is not an intact ledger of this version is refused, and left as it is."""
    spoil, said = SPOIL[how]
    open_ledger(path).arm(purchase(), (), NOW)
    spoil(path)
    before = path.read_bytes()
    ledger = open_ledger(path)
    with pytest.raises(StoreUnusable, match=said) as caught:
        ledger.arm(purchase("k2"), [Budget(creates=5)], NOW)
    assert "Nothing is sent" in str(caught.value)
    assert path.read_bytes() == before
    # With either of these, what was paid would be paid again.
    for advice in ("use another ledger", "Restore it", "begin a new one"):
        assert advice not in str(caught.value)


def test_a_signal_while_the_file_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the handler of a signal raises comes out as it is, and says nothing of the ledger."""

    class Late(OSError):
        pass

    def handler(*_: object) -> None:
        raise Late

    def strike(_: SqliteStore, __: sqlite3.Connection) -> None:
        signal.raise_signal(signal.SIGALRM)

    previous = signal.signal(signal.SIGALRM, handler)
    monkeypatch.setattr(*moments.at("ledger checked").place, strike)
    try:
        with pytest.raises(Late):
            open_ledger(path).arm(purchase(), (), NOW)
    finally:
        signal.signal(signal.SIGALRM, previous)


def test_a_file_that_does_not_exist_yet(path: Path) -> None:
    """Whoever only looks finds that nothing was spent, and creates no file."""
    ledger = open_ledger(path)
    assert ledger.spent(Budget(creates=1), NOW) == dict.fromkeys(Measure, 0)
    assert entries(ledger) == []
    assert not path.parent.exists()


def test_a_file_that_is_gone(path: Path) -> None:
    """What was spent is not taken for nothing after the file was removed, and no file is made."""
    ledger = open_ledger(path)
    assert entries(ledger) == []
    ledger.arm(purchase(), (), NOW)
    path.unlink()
    with pytest.raises(StoreUnusable, match="removed or replaced"):
        ledger.spent(Budget(creates=1), NOW)
    with pytest.raises(StoreUnusable, match="removed or replaced"):
        entries(ledger)
    assert not path.exists()


def test_a_locked_file(path: Path) -> None:
    """If another program holds the file for too long, the message says so."""
    open_ledger(path).arm(purchase(), (), NOW)
    ledger = Ledger(SqliteStore(path, patience=0.01))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnusable, match="Other processes are writing"):
            ledger.arm(purchase("k2"), (), NOW)


def test_an_amount_that_cannot_be_recorded(path: Path) -> None:
    """A cost beyond what the file can hold is refused, and nothing is recorded."""
    ledger = open_ledger(path)
    with pytest.raises(StoreUnusable, match="cannot record"):
        ledger.arm(purchase(cost=10**10), (), NOW)
    assert entries(ledger) == []


FULL = """
import resource, signal, sys
from muybridge.ledger.errors import StoreUnusable
from ledger.test_store import NOW, purchase
from muybridge.ledger import open_ledger

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
ledger = open_ledger(sys.argv[1])
for number in range(2000):
    try:
        ledger.arm(purchase(f"k{number}"), (), NOW)
    except StoreUnusable as error:
        print(number, error)
        break
"""


@pytest.mark.parametrize("size", [2000, 60_000], ids=["at once", "later"])
def test_a_full_disk(path: Path, size: int) -> None:
    """If nothing more can be written, that is an error, and what was recorded is kept."""
    assert resource.RLIMIT_FSIZE
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-c", FULL, str(path), str(size)],
        env=environment(),
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    number, _, said = done.stdout.partition(" ")
    assert "Nothing is sent. Make room on the disk" in said, done.stderr
    assert (int(number) > 0) == (size > 2000)
    assert len(entries(open_ledger(path))) == int(number)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(path: Path) -> None:
    """A ledger in a read-only folder is an error that says so."""
    path.parent.mkdir(parents=True)
    path.parent.chmod(0o500)
    with pytest.raises(StoreUnusable, match="Make the file and its folder writable"):
        open_ledger(path).arm(purchase(), (), NOW)


def test_a_place_that_is_no_folder(tmp_path: Path) -> None:
    """A path below a file is an error of the ledger."""
    (tmp_path / "file").write_text("text")
    with pytest.raises(StoreUnusable, match="Nothing is sent"):
        open_ledger(tmp_path / "file" / "ledger.sqlite3").arm(purchase(), (), NOW)


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment names the ledger, or else it is in the user's state folder."""
    monkeypatch.delenv("MUYBRIDGE_STORE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert default_path() == tmp_path / "muybridge" / "ledger.sqlite3"
    monkeypatch.setenv("MUYBRIDGE_STORE", str(tmp_path / "team.sqlite3"))
    assert default_path() == tmp_path / "team.sqlite3"


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
            with pytest.raises(InvalidLimit, match=f"{variable}: a limit on {name} must be"):
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
    with pytest.raises(InvalidLimit, match="MUYBRIDGE_BUDGET_PER: per must be"):
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
