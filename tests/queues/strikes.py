"""The moments at which a process is killed, and which of its processes dies.

Every process of a run adds its kill to one file just before it strikes. So all of them know which
moment has had its turn least often, and no moment is missed.
"""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import attrs

SELF, ALL = "the process", "the whole worker"
_SPARED = 0.3
"""How often a due moment passes, so that not always the first process dies."""


@attrs.frozen
class Moment:
    """When a process is killed.

    Args:
        target: The class whose method is called then, as `resolve_name` takes it.
        name: The method.
        after: Whether it is killed when the method has returned, and not before.
        when: Whether a call with these arguments is meant.
    """

    target: str
    name: str
    after: bool = False
    when: Callable[..., bool] = lambda *_, **__: True


@attrs.frozen
class Strikes:
    """Kills processes until enough are killed.

    Args:
        file: Where the kills are counted.
        moments: The moments, by name.
        turns: How often each has its turn in a round, by moment and victim.
        most: How many kills there are in all.
    """

    file: Path
    moments: Mapping[str, Moment]
    turns: Mapping[tuple[str, str], int]
    most: int

    @property
    def hits(self) -> Counter[tuple[str, str]]:
        """How often each moment has had its turn, by moment and victim."""
        if not self.file.exists():
            return Counter()
        # The last line may be half written.
        lines = self.file.read_text("utf-8").rpartition("\n")[0].splitlines()
        return Counter((name, victim) for name, victim in (line.split("\t") for line in lines))

    @property
    def are_over(self) -> bool:
        """Whether enough processes are killed."""
        return self.hits.total() >= self.most

    def install(self) -> None:
        """Strike at this process, and those that it will fork, from now on."""
        for name, moment in self.moments.items():
            self._install(name, moment)

    def _install(self, name: str, moment: Moment) -> None:
        owner: Any = resolve_name(moment.target)
        original = getattr(owner, moment.name)

        def striking(*arguments: Any, **more: Any) -> Any:
            meant = moment.when(*arguments, **more)
            if meant and not moment.after:
                self._strike(name)
            returned = original(*arguments, **more)
            if meant and moment.after:
                self._strike(name)
            return returned

        setattr(owner, moment.name, striking)

    def _strike(self, name: str) -> None:
        """Kill the process or its group, if it is the moment's turn."""
        hits = self.hits
        if hits.total() >= self.most or random.random() < _SPARED:  # noqa: S311  no secret
            return
        rounds = {turn: hits[turn] // often for turn, often in self.turns.items()}
        for victim in (SELF, ALL):
            if rounds.get((name, victim)) == min(rounds.values()):
                self._kill(name, victim)

    def _kill(self, name: str, victim: str) -> None:
        with self.file.open("a", encoding="utf-8") as file:
            file.write(f"{name}\t{victim}\n")
        # A pool's parent takes its children with it, save one that it is just forking.
        os.kill(os.getpid() if victim is SELF else -os.getpgrp(), signal.SIGKILL)


_LEDGER = "muybridge.ledger.ledger:Ledger"
_SENT = {
    "sent": Moment(
        "muybridge.wire._requests_connections:Connection",
        "request",
        after=True,
        when=lambda _self, method, *_, **__: method == "POST",
    ),
    "response received": Moment("muybridge_protocol.operations.create:Create", "receive"),
}
CREATING = {
    "before arming": Moment(_LEDGER, "arm"),
    "armed": Moment(_LEDGER, "arm", after=True),
    **_SENT,
    "recorded": Moment(_LEDGER, "conclude", after=True),
}
"""The moments of `create_once`."""
_JOURNAL = "muybridge.batch.postgres.journal:PostgresJournal"
TAKING_TURNS = {
    "before arming": Moment(_JOURNAL, "arm"),
    "armed": Moment(_JOURNAL, "arm", after=True),
    **_SENT,
    "recorded": Moment("muybridge.batch.journaled_create:ItemRecord", "conclude", after=True),
}
"""The moments of a create within a turn at a shared batch."""
CREATING_NAIVELY = _SENT
"""The moments of `create`, without a ledger."""
