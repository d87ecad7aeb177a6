"""What a world is like: a kind, how much happens in it, and how often each fault strikes.

A plan is drawn from its seed, and is a value: a failing world is shrunk by plans with less in them.
Most plans have only a few kinds of faults, because a world in which everything fails hides what one
fault does, and some have none.
"""

from __future__ import annotations

import random
from typing import Any, Final, Literal

import attrs

FAULTS: Final = {
    "network": (0.02, 0.1, 0.3),
    "service": (0.1, 0.3, 0.6),
    "disk": (0.005, 0.02, 0.05),
    "kills": (0.001, 0.002, 0.01),
    "cuts": (0.0005, 0.001, 0.003),
    "cancellations": (0.001, 0.002, 0.01),
    "interrupts": (0.0005, 0.002),
    "jumps": (0.001, 0.01),
    "pauses": (0.0005, 0.003),
    "stalls": (0.001, 0.01),
}
"""The faults of a plan, and the chances from which each is drawn."""
_DRAWN: Final = (*FAULTS, "network", "service", "service", "service", "disk", "kills")
"""What strikes is drawn from these: some more often than others."""


@attrs.frozen(kw_only=True)
class Plan:
    """What a world is like.

    Args:
        seed: What all chances of the world come from.
        kind: The module that lives it.
        programs: Processes at its beginning.
        tasks: Tasks, or threads, of each of them.
        names: Different requests.
        calls: Calls that each task makes.
        budget: Creates permitted, or None for no budget.
        per: "day" if the budget is one for each day.
        network: How often something goes wrong on the way to the service.
        service: How often the service fails, or its response.
        disk: How often a statement or a file fails.
        kills: How often a process is killed, per step.
        cuts: How often the power is cut, per step.
        cancellations: How often a task is cancelled, per step.
        interrupts: How often Ctrl-C is pressed, per step.
        jumps: How often the clocks jump, per step.
        pauses: How often a process stands still for a while, per step.
        stalls: How often a step takes long, because the machine is busy.
    """

    seed: int
    kind: str = "names"
    programs: int = 2
    tasks: int = 3
    names: int = 3
    calls: int = 3
    budget: int | None = 5
    per: Literal["day"] | None = None
    network: float = 0.0
    service: float = 0.0
    disk: float = 0.0
    kills: float = 0.0
    cuts: float = 0.0
    cancellations: float = 0.0
    interrupts: float = 0.0
    jumps: float = 0.0
    pauses: float = 0.0
    stalls: float = 0.0

    @classmethod
    def drawn(cls, seed: int, kind: str) -> Plan:
        """Return the plan of a seed."""
        draw = random.Random(f"{kind} {seed}")  # noqa: S311  of a world
        strikes = {draw.choice(_DRAWN) for _ in range(draw.choice((0, 1, 1, 2, 3, 5, 12)))}
        chances: dict[str, Any] = {
            fault: draw.choice(likely) if fault in strikes else 0.0
            for fault, likely in FAULTS.items()
        }
        return cls(
            seed=seed,
            kind=kind,
            programs=draw.choice((1, 2, 2, 3)),
            tasks=draw.choice((1, 2, 3, 4)),
            names=draw.choice((1, 2, 3, 5)),
            calls=draw.choice((1, 2, 3)),
            budget=draw.choice((None, None, 1, 3, 6, 12)),
            per=draw.choice((None, None, "day")),
            **chances,
        )

    @property
    def faults(self) -> frozenset[str]:
        """The kinds of faults that strike in it."""
        return frozenset(fault for fault in FAULTS if getattr(self, fault))
