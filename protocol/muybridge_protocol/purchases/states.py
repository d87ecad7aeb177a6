"""The states of purchases and the stages of items, and what follows what, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class State(StrEnum):
    """The state of a purchase. `AFTER_NEWS` and `AFTER_CHOICE` say which may follow."""

    ARMED = "armed"
    ACCEPTED = "accepted"
    RELEASED = "released"
    AMBIGUOUS = "ambiguous"
    ABANDONED = "abandoned"
    RESUBMITTED = "resubmitted"


class Choice(StrEnum):
    """What a person may decide about a purchase."""

    ADOPT = "adopt"
    RELEASE = "release"
    ABANDON = "abandon"
    RESUBMIT = "resubmit"


NAMED: Final = (State.ARMED, State.ACCEPTED, State.AMBIGUOUS, State.ABANDONED)
"""The states in which a purchase has its name to itself."""

AFTER_NEWS: Final[Mapping[State, Mapping[State, State]]] = {
    # A purchase in ... that hears ... is then ...
    State.ARMED: {
        State.ACCEPTED: State.ACCEPTED,
        State.RELEASED: State.RELEASED,
        State.AMBIGUOUS: State.AMBIGUOUS,
    },
    State.AMBIGUOUS: {
        State.ACCEPTED: State.ACCEPTED,
        State.RELEASED: State.RELEASED,
        State.AMBIGUOUS: State.AMBIGUOUS,
    },
    # A person has decided. Only a paid id is worth more than that.
    State.RELEASED: {State.ACCEPTED: State.ACCEPTED},
    State.ABANDONED: {State.ACCEPTED: State.ACCEPTED},
    State.RESUBMITTED: {State.ACCEPTED: State.ACCEPTED},
    # The task that it has stays. Another one that its response names is kept beside it, as late.
    State.ACCEPTED: {},
}
"""What the outcome of its exchange makes of a purchase. Any other outcome changes no state."""

AFTER_CHOICE: Final[Mapping[State, Mapping[Choice, State]]] = {
    State.AMBIGUOUS: {
        Choice.ADOPT: State.ACCEPTED,
        Choice.RELEASE: State.RELEASED,
        Choice.ABANDON: State.ABANDONED,
        Choice.RESUBMIT: State.RESUBMITTED,
    },
    # Only if a person has named its task, and was wrong.
    State.ACCEPTED: {Choice.ADOPT: State.ACCEPTED, Choice.ABANDON: State.ABANDONED},
}
"""What a person may make of a purchase. Any other choice is refused (`CannotDecide`)."""


class Stage(StrEnum):
    """The stage of an item. `STEPS` and `followed` say which may follow."""

    QUEUED = "queued"
    CLAIMED = "claimed"
    ARMED = "armed"
    JOINED = "joined"
    """It waits for the purchase of an identical request, and holds no slot."""
    SUBMITTED = "submitted"
    REFUSED = "refused"
    AMBIGUOUS = "ambiguous"
    ABANDONED = "abandoned"
    COMPLETED = "completed"
    FAILED = "failed"
    DOWNLOADED = "downloaded"


STEPS: Final[Mapping[Stage, frozenset[Stage]]] = {
    Stage.QUEUED: frozenset({Stage.ABANDONED}),
    Stage.CLAIMED: frozenset({Stage.QUEUED}),
    Stage.JOINED: frozenset({Stage.ABANDONED}),
    # A result that is downloaded at once takes two steps in one.
    Stage.SUBMITTED: frozenset({Stage.COMPLETED, Stage.DOWNLOADED, Stage.FAILED}),
    Stage.COMPLETED: frozenset({Stage.DOWNLOADED}),
    Stage.REFUSED: frozenset({Stage.QUEUED}),
    Stage.DOWNLOADED: frozenset({Stage.COMPLETED}),  # its file is gone, and is downloaded again
}
"""The steps that concern no purchase. Purchases cause the others: see `followed`."""
