"""Everything that ends a program from outside, at each point, under each driver: the table.

Each combination is a cell with its outcome, or is missing for a reason.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from enum import StrEnum

import attrs

from client.alarms import NAMES


class Outcome(StrEnum):
    """What is known of the one request that costs money, and is reported."""

    ID = "the id is reported"
    UNSENT = "nothing was sent"
    AMBIGUOUS = "it may have been accepted"
    UNSENT_OR_AMBIGUOUS = "nothing was sent, which is known unless the loop broke first"


CTRL_C, TERM, HANGUP = "SIGINT", "SIGTERM", "SIGHUP"
KEYBOARD, CANCELLED = "KeyboardInterrupt raised", "cancellation"
ALARMS = tuple(f"SIGALRM raises {name}" for name in NAMES)
SIGNALS = (CTRL_C, TERM, HANGUP, *ALARMS, KEYBOARD, CANCELLED)

BEFORE = ("lookup", "connect", "handshake", "before the first byte")
PAID = ("first byte", "no response yet", "head", "body")
ENTRY = ("response kept",)
AFTER = ("asleep", "poll", "download")
POINTS = (*BEFORE, *PAID, *ENTRY, *AFTER)
TOLD_BY_SERVER = ("handshake", "no response yet", "head", "body", "poll", "download")
"""The points that the server knows. The client waits for it then."""

LIBRARY = ("requests", "trio", "asyncio")
BATCHES = ("batch", "trio batch", "asyncio batch")
COMMANDS = ("create", "run", "batch run")
BLOCKING = ("requests", "batch", *COMMANDS)
DRIVERS = (*LIBRARY, *BATCHES, *COMMANDS)
TRIO = ("trio", "trio batch")
ASYNCIO = ("asyncio", "asyncio batch")
HOLDING = tuple(driver for driver in DRIVERS if driver not in ASYNCIO)
"""Those that hold Ctrl-C back. `asyncio.run` turns it into a cancellation."""


@attrs.frozen
class Missing:
    """Cells that do not exist.

    Args:
        reason: Why.
        signals: Of these signals.
        points: At these points.
        drivers: Under these drivers.
    """

    reason: str
    signals: tuple[str, ...] = SIGNALS
    points: tuple[str, ...] = POINTS
    drivers: tuple[str, ...] = DRIVERS

    def holds(self, signal: str, point: str, driver: str) -> bool:
        return signal in self.signals and point in self.points and driver in self.drivers


MISSING = (
    Missing(
        "a call outside a batch writes no store",
        points=ENTRY,
        drivers=(*LIBRARY, "create", "run"),
    ),
    Missing("`create` ends with the id", points=AFTER, drivers=("create",)),
    Missing("blocking code cannot be cancelled", (CANCELLED,), drivers=BLOCKING),
    Missing(
        "the command runs no handler of the user's, and only a signal interrupts it",
        (*ALARMS, KEYBOARD),
        drivers=COMMANDS,
    ),
    Missing(
        "the library leaves SIGHUP to the program's handler, as it does SIGTERM",
        (HANGUP,),
        drivers=(*LIBRARY, *BATCHES),
    ),
    Missing(
        "trio's loop does not survive what a handler raises while it waits: trio.run raises that "
        "without what the call knows (docs/safety.md)",
        (TERM, *ALARMS),
        TOLD_BY_SERVER,
        ("trio",),
    ),
)


def _each(before: Outcome, paid: Outcome, entry: Outcome) -> Mapping[str, Outcome]:
    return {
        **dict.fromkeys(BEFORE, before),
        **dict.fromkeys(PAID, paid),
        **dict.fromkeys(ENTRY, entry),
        **dict.fromkeys(AFTER, Outcome.ID),
    }


HELD = _each(Outcome.ID, Outcome.ID, Outcome.ID)
"""It waits for the response."""
AT_ONCE = _each(Outcome.UNSENT, Outcome.AMBIGUOUS, Outcome.ID)
"""It ends the exchange, wherever that is. A response that has come whole is kept."""
UNTOLD = {
    "handshake": Outcome.UNSENT_OR_AMBIGUOUS,
    "no response yet": Outcome.AMBIGUOUS,
    "head": Outcome.AMBIGUOUS,
    "body": Outcome.AMBIGUOUS,
    "poll": Outcome.ID,
    "download": Outcome.ID,
}
"""It breaks trio's loop while that waits: only what the store has said before is known."""
SHUT_DOWN = {
    **dict.fromkeys(TOLD_BY_SERVER, Outcome.ID),
    "handshake": Outcome.UNSENT,
}
"""It ends asyncio's loop while that waits: `asyncio.run` cancels every task before it raises it."""
IN_STEP = {point: AT_ONCE[point] for point in POINTS if point not in TOLD_BY_SERVER}
"""It is raised within a task's own steps."""
SHIELDED = {
    **_each(Outcome.UNSENT, Outcome.ID, Outcome.ID),
    # There is no checkpoint between the check for early bytes and the first byte.
    "before the first byte": Outcome.ID,
}
"""It ends what has not been sent."""


@attrs.frozen
class Rule:
    """What comes of some signals under some drivers, at each point."""

    signals: tuple[str, ...]
    drivers: tuple[str, ...]
    outcomes: Mapping[str, Outcome]


RULES = (
    Rule((CTRL_C,), HOLDING, HELD),
    Rule((CTRL_C,), ASYNCIO, SHIELDED),
    Rule((TERM, HANGUP), COMMANDS, HELD),
    # The main thread waits for the workers' paid requests, and leaves all else.
    Rule((TERM, *ALARMS), ("batch",), HELD),
    Rule((TERM, *ALARMS), ("requests",), AT_ONCE),
    Rule((TERM, *ALARMS), (*TRIO, *ASYNCIO), IN_STEP),
    Rule((TERM, *ALARMS), ("trio batch",), UNTOLD),
    Rule((TERM, *ALARMS), ASYNCIO, SHUT_DOWN),
    Rule((KEYBOARD,), (*LIBRARY, *BATCHES), AT_ONCE),
    Rule((CANCELLED,), (*TRIO, *ASYNCIO), SHIELDED),
)


@attrs.frozen
class Cell:
    """One signal, at one point, under one driver.

    Args:
        signal: What ends the program.
        point: When.
        driver: What it uses.
        outcome: What is known then.
    """

    signal: str
    point: str
    driver: str
    outcome: Outcome

    def __str__(self) -> str:
        return f"{self.signal}-{self.point}-{self.driver}"

    @property
    def breaks_loop(self) -> bool:
        """Whether what a handler raises strikes while trio's loop waits."""
        raises = self.signal in (TERM, *ALARMS)
        return raises and self.driver in TRIO and self.point in TOLD_BY_SERVER

    @property
    def is_nightly(self) -> bool:
        """Whether it differs from others by the class or number alone."""
        if self.signal == HANGUP:
            return self.point not in ("no response yet", "poll")
        if self.signal in ALARMS:
            # One class at each point under each driver, and not the same one everywhere.
            place = POINTS.index(self.point) + DRIVERS.index(self.driver)
            return self.signal != ALARMS[place % len(ALARMS)]
        return False


def reasons(signal: str, point: str, driver: str) -> list[str]:
    """Return why there is no such cell."""
    return [one.reason for one in MISSING if one.holds(signal, point, driver)]


def outcomes(signal: str, point: str, driver: str) -> list[Outcome]:
    """Return what the rules say of a cell."""
    return [
        rule.outcomes[point]
        for rule in RULES
        if signal in rule.signals and driver in rule.drivers and point in rule.outcomes
    ]


def cells() -> Iterator[Cell]:
    """Yield every cell that exists."""
    for place in itertools.product(SIGNALS, POINTS, DRIVERS):
        if not reasons(*place):
            (outcome,) = outcomes(*place)
            yield Cell(*place, outcome)
