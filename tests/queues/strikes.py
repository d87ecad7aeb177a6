"""The moments at which a process is killed or paused, and which of its processes that is.

Every process of a run adds its kill to one file just before it strikes. So all of them know which
moment has had its turn least often, and no moment is missed.
"""

from __future__ import annotations

import fcntl
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import attrs

import moments
from moments import Moment

SELF, ALL, PARENT = "the process", "the whole worker", "its parent"
PAUSE = "the process, which is paused"
_SPARED = 0.3
"""How often a due moment passes, so that not always the first process dies."""


@attrs.frozen
class Kill:
    """When a process is killed.

    Args:
        moment: At which moment.
        after: Whether it is killed after it, and not before.
    """

    moment: Moment
    after: bool = False


@attrs.frozen
class Strikes:
    """Kills processes until enough are killed.

    Args:
        file: Where the kills are counted.
        kills: When, by name.
        turns: How often each has its turn in a round, by moment and victim.
        most: How many kills there are in all.
        pace: The fewest seconds between two of them.
    """

    file: Path
    kills: Mapping[str, Kill]
    turns: Mapping[tuple[str, str], int]
    most: int
    pace: float = 0.0

    @property
    def hits(self) -> Counter[tuple[str, str]]:
        """How often each moment has had its turn, by moment and victim."""
        if not self.file.exists():
            return Counter()
        # The last line may be half written.
        lines = self.file.read_text("utf-8").rpartition("\n")[0].splitlines()
        return Counter((name, victim) for name, victim in (line.split("\t") for line in lines))

    @property
    def paused(self) -> list[int]:
        """The processes that were paused, one after the other."""
        file = self._file_of_paused
        return [*map(int, file.read_text("utf-8").split())] if file.exists() else []

    @property
    def _file_of_paused(self) -> Path:
        return self.file.with_name("paused")

    @property
    def are_over(self) -> bool:
        """Whether enough processes are killed."""
        return self.hits.total() >= self.most

    def install(self) -> None:
        """Strike at this process, and those that it will fork, from now on."""
        for name, kill in self.kills.items():
            kill.moment.strike(partial(self._strike, name), after=kill.after)

    def _strike(self, name: str) -> None:
        """Kill the process or its group, if it is the moment's turn."""
        victim = self._victim(name)
        if victim is not None:
            self._kill(victim)

    def _victim(self, name: str) -> str | None:
        """Return whom the moment kills now, if it is its turn, which is counted then."""
        with self.file.open("a", encoding="utf-8") as file:
            # Else two processes could take the same turn, and another moment would get none.
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                victim = self._whose_turn(name)
                if victim is not None:
                    file.write(f"{name}\t{victim}\n")
                    file.flush()
            finally:  # A process forked just now holds the file open as well.
                fcntl.flock(file, fcntl.LOCK_UN)
        return victim

    def _whose_turn(self, name: str) -> str | None:
        hits = self.hits
        if hits.total() >= self.most or random.random() < _SPARED:  # noqa: S311  no secret
            return None
        if hits and time.time() < self.file.stat().st_mtime + self.pace:
            return None
        rounds = {turn: hits[turn] // often for turn, often in self.turns.items()}
        victims = [v for v in (SELF, ALL, PARENT, PAUSE) if (name, v) in rounds]
        return next((v for v in victims if rounds[name, v] == min(rounds.values())), None)

    def _kill(self, victim: str) -> None:
        if victim is PAUSE:
            with self._file_of_paused.open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()}\n")
            # Not just any thread of the process: this one must not go on meanwhile.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        elif victim is PARENT:
            os.kill(os.getppid(), signal.SIGKILL)
        else:
            # A pool's parent takes its children with it, save one that it is just forking.
            os.kill(os.getpid() if victim is SELF else -os.getpgrp(), signal.SIGKILL)


_SENT = {
    "sent": Kill(moments.at("sending"), after=True),
    "response received": Kill(moments.at("response taken")),
}
CREATING = {
    "before arming": Kill(moments.at("purchase armed")),
    "armed": Kill(moments.at("purchase armed"), after=True),
    **_SENT,
    "recorded": Kill(moments.at("verdict recorded"), after=True),
}
"""The moments of `create_once`, and of a create within a turn at a shared batch."""
CREATING_NAIVELY = _SENT
"""The moments of `create`, without a store."""
TAKING_TURNS_PAUSED = {
    "claimed": Kill(moments.at("items taken"), after=True),
    **CREATING,
}
_PAUSED = ("claimed", "armed", "sent", "response received")


def on_a_rampage(file: Path, kills: Mapping[str, Kill], most: int, pace: float) -> Strikes:
    """Return strikes of which a sixth are pauses, and the others kill child, worker or parent."""
    killed = {SELF: 2, ALL: 1, PARENT: 1}
    fatal = [name for name in kills if name != "claimed"]
    turns = {(name, victim): often for name in fatal for victim, often in killed.items()}
    turns |= {(name, PAUSE): 1 for name in kills if name in _PAUSED}
    return Strikes(file, kills, turns, most, pace)
