"""Threads that write at the same moment share a transaction, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from muybridge.purchases.lists import LONGEST, Lists, Member


class Commits:
    """A transaction that waits until it may go on, so that a test knows what has arrived meanwhile.

    Attributes:
        lists: The steps of each transaction.
        errors: What its end raises, by the number of the transaction.
        uncertain: The steps that some transaction had to look for.
    """

    def __init__(self) -> None:
        self.lists: list[list[str]] = []
        self.errors: dict[int, BaseException] = {}
        self.uncertain: list[str] = []
        self.withdrawn: list[str] = []
        self.may_end = threading.Event()
        self.is_busy = threading.Event()

    def commit(self, members: Sequence[Member[str]]) -> None:
        self.lists.append([str(one.step) for one in members])
        self.uncertain += [str(one.step) for one in members if one.is_uncertain]
        self.is_busy.set()
        assert self.may_end.wait(10)
        error = self.errors.get(len(self.lists) - 1)
        if error is not None:
            for one in members:
                one.is_uncertain = True
            raise error
        for one in members:
            one.result, one.is_settled = f"{one.step}!", True


def names(step: str) -> frozenset[str]:
    return frozenset(step[:1])


@pytest.fixture
def commits() -> Commits:
    return Commits()


@pytest.fixture
def lists(commits: Commits) -> Lists[str]:
    return Lists(commits.commit, commits.withdrawn.append, lambda _: frozenset())


def write(lists: Lists[str], *steps: str) -> str:
    """Write steps, and return how that ended."""
    try:
        return " ".join(lists.write(steps))
    except BaseException as error:  # noqa: BLE001  also an interruption
        return repr(error)


def one_after_the_other(
    lists: Lists[str], commits: Commits, steps: Sequence[str], end: Callable[[], object]
) -> list[str]:
    """Let the first step be on its way while the others arrive in order; then let it *end*."""
    with ThreadPoolExecutor(len(steps)) as pool:
        told: list[Future[str]] = []
        for number, step in enumerate(steps):
            told.append(pool.submit(write, lists, step))
            assert commits.is_busy.wait(10)
            while lists.waiting < number:
                pass
        end()
        commits.may_end.set()
        return [one.result(10) for one in told]


def nothing() -> None:
    """End as it ends."""


def test_what_arrives_meanwhile_is_the_next_list(lists: Lists[str], commits: Commits) -> None:
    """The first one waits for nobody."""
    told = one_after_the_other(lists, commits, ["a", "b", "c", "d"], nothing)
    assert commits.lists == [["a"], ["b", "c", "d"]]
    assert told == ["a!", "b!", "c!", "d!"]


def test_members_that_need_each_others_verdict_are_in_different_lists(commits: Commits) -> None:
    """In order of arrival."""
    lists = Lists(commits.commit, commits.withdrawn.append, names)
    told = one_after_the_other(lists, commits, ["x", "a1", "b", "a2", "c", "a3"], nothing)
    assert commits.lists == [["x"], ["a1", "b", "c"], ["a2"], ["a3"]]
    assert told == ["x!", "a1!", "b!", "a2!", "c!", "a3!"]


def test_a_list_has_an_end(lists: Lists[str], commits: Commits) -> None:
    """Many steps of one thread take several transactions."""
    commits.may_end.set()
    steps = [f"{n}" for n in range(2 * LONGEST + 1)]
    assert lists.write(steps) == [f"{step}!" for step in steps]
    assert [len(one) for one in commits.lists] == [LONGEST, LONGEST, 1]


def test_a_transaction_that_fails_fails_for_all(lists: Lists[str], commits: Commits) -> None:
    """And the next list has another one."""
    commits.errors = {1: OSError("full")}
    told = one_after_the_other(lists, commits, ["a", "b", "c"], nothing)
    assert told == ["a!", "OSError('full')", "OSError('full')"]
    assert write(lists, "d") == "d!"


def test_an_interruption_of_the_leader_is_no_failure_of_the_others(
    lists: Lists[str], commits: Commits
) -> None:
    """Another one leads, and finds out whether the transaction was committed."""
    commits.errors = {1: KeyboardInterrupt()}
    told = one_after_the_other(lists, commits, ["a", "b", "c", "d"], nothing)
    assert told == ["a!", "KeyboardInterrupt()", "c!", "d!"]
    assert commits.lists == [["a"], ["b", "c", "d"], ["c", "d"]]
    assert commits.uncertain == ["c", "d"]
    assert commits.withdrawn == ["b"]


def test_an_interruption_of_a_leader_that_is_alone(lists: Lists[str], commits: Commits) -> None:
    """Nobody is left behind who waits for a leader."""
    commits.errors = {0: KeyboardInterrupt()}
    commits.may_end.set()
    assert write(lists, "a") == "KeyboardInterrupt()"
    assert write(lists, "b") == "b!"
    assert commits.withdrawn == ["a"]
