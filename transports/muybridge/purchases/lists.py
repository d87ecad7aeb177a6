"""Lists: what many threads want to write at the same moment is written in one transaction.

A durable commit takes as long for ten purchases as for one. There is no timer, which would delay a
single one: whoever comes first commits at once, and what arrives while that transaction runs is the
next list. The thread whose member is the first of a list commits it (it *leads*), and then lets the
first of those that have arrived lead the next list. So nobody works for others for ever.

Each member has its own verdict. What can go wrong with the transaction itself:

- It fails before its end, and the leader with it: the store is unusable, so each member fails.
- Its end fails. Nobody knows whether it was committed, so nobody may send: each member fails, and
  has to be withdrawn.
- The leader is interrupted, by Ctrl-C for example. The others have not failed. Their
  transaction was undone and they lead the next list, or it was at its end: then the next leader
  finds out whether it was committed (`Member.is_uncertain`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Sequence
from copy import copy
from typing import Any, Final, Generic, TypeVar

import attrs

S = TypeVar("S")

LONGEST: Final = 50
"""Most members of a list."""


def _now() -> float:
    return time.monotonic()  # looked up now: a simulated world has a clock of its own


@attrs.define(eq=False)
class Member(Generic[S]):
    """One step of a list.

    Args:
        step: What to write, or None only to write what the owner of the lists has besides.
        alone: A list has no two members that share one of these.
    """

    step: S | None
    alone: frozenset[Hashable] = frozenset()
    arrived: float = attrs.field(factory=_now)
    is_uncertain: bool = False
    """Whether an earlier transaction with it may have been committed."""
    is_settled: bool = False
    result: Any = None
    error: Exception | None = None
    """Its own."""
    failure: Exception | None = None
    """That of the transaction."""
    turn: threading.Event = attrs.field(factory=threading.Event)
    leads: bool = False
    led: list[Member[S]] = attrs.field(factory=list["Member[S]"])
    """The list that it leads."""
    has_led: bool = False
    is_gone: bool = False
    """Whether its thread was interrupted."""


class Lists(Generic[S]):
    """Collects steps into lists.

    Args:
        commit: Writes a list in one transaction, and settles each of its members.
        withdraw: Takes back a step that may have been written, and whose thread was interrupted.
        alone: Returns what no two steps of a list may share.
    """

    def __init__(
        self,
        commit: Callable[[Sequence[Member[S]]], None],
        withdraw: Callable[[S], None],
        alone: Callable[[S], frozenset[Hashable]],
    ) -> None:
        self._alone = alone
        self._commit = commit
        self._withdraw = withdraw
        self._lock = threading.Lock()
        self._waiting: list[Member[S]] = []
        self._is_led = False

    @property
    def waiting(self) -> int:
        """How many members wait for the next list."""
        return len(self._waiting)

    def write(self, steps: Sequence[S]) -> list[Any]:
        """Write *steps*, in as few lists as possible, and return the result or error of each.

        Raises:
            Exception: The first error of a transaction, that no single step caused.
        """
        # An empty member leads a list like any other, which writes what was left from earlier ones.
        mine = [Member(step, self._alone(step)) for step in steps] or [Member[S](None)]
        left = [*mine]
        try:
            with self._lock:
                self._waiting += mine
                if not self._is_led:
                    self._promote()
            for me in mine:
                me.turn.wait()
                if me.leads:
                    self._lead(me)
                left.remove(me)
        # The caller never learns what became of its steps, so it sends nothing: each is withdrawn,
        # also one that was already written.
        except BaseException:
            for me in left:
                self._leave(me)
            raise
        for me in mine:
            if me.failure is not None:
                raise me.failure
        return [me.result if me.error is None else me.error for me in mine if me.step is not None]

    def _lead(self, me: Member[S]) -> None:
        with self._lock:
            self._take(me)
        try:
            self._commit(me.led)
        except Exception as error:  # noqa: BLE001  it is the verdict of each
            for one in me.led:
                if not one.is_settled:
                    # Several threads raise it, and each adds its own traceback.
                    one.failure, one.is_settled = copy(error), True
        finally:
            self._pass_on(me)

    def _take(self, me: Member[S]) -> None:
        """Take the next list from those that wait: *me* is the first of them."""
        alone: set[Hashable] = set()
        for one in self._waiting:
            if len(me.led) < LONGEST and alone.isdisjoint(one.alone):
                me.led.append(one)
            alone |= one.alone  # in order of arrival, also of those that wait on
        self._waiting = [one for one in self._waiting if one not in me.led]

    def _pass_on(self, me: Member[S]) -> None:
        """End the list of *me*. Those without a verdict wait for the next one."""
        with self._lock:
            # Interrupted here, the leader passes on once more (`_leave`), so some may be waiting
            # already.
            left = [
                one
                for one in me.led
                if one is not me and not (one.is_settled or one.is_gone or one in self._waiting)
            ]
            self._waiting = [*left, *self._waiting]
            for one in me.led:
                if one.is_settled:
                    one.turn.set()
            self._promote()
            # The last step: an interruption before it makes `_leave` pass on again.
            me.has_led = True

    def _promote(self) -> None:
        """Let the first of those that wait lead."""
        self._is_led = bool(self._waiting)
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].turn.set()

    def _leave(self, me: Member[S]) -> None:
        """Let the others go on, because the thread of *me* was interrupted."""
        # Before the lock, so that a leader that ends now does not let it wait for the next list.
        me.is_gone = True
        with self._lock:
            if me in self._waiting:
                self._waiting.remove(me)
        if me.leads and not me.has_led:
            self._pass_on(me)
        if me.step is not None:
            self._withdraw(me.step)
