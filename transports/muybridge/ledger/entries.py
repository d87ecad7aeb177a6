"""The entries of a ledger: one for each attempt to send a paid request, and its steps.

    (nothing) -> armed -> accepted     the service has charged for it, or may still do so
                   |  '-> released     it certainly did nothing; a retry has an entry of its own
                   '----> ambiguous    a person decides: adopt, release, abandon or resubmit

An armed, accepted or ambiguous entry counts as spent. An armed entry whose process has died is
ambiguous, because the request may have been sent.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import attrs

from muybridge_protocol.purchases import Amounts
from muybridge_protocol.records.tasks import Task


class State(StrEnum):
    """The progress of an entry."""

    ARMED = "armed"
    ACCEPTED = "accepted"
    RELEASED = "released"
    AMBIGUOUS = "ambiguous"
    RESUBMITTED = "resubmitted"
    """It stays spent, but another request may take its name."""


SPENT: Final = tuple(state for state in State if state is not State.RELEASED)
"""The states in which an entry counts as spent."""
NAMED: Final = (State.ARMED, State.ACCEPTED, State.AMBIGUOUS)
"""The states in which an entry has its name (`once`) to itself."""


@attrs.frozen(kw_only=True)
class Purchase:
    """A paid request before it is sent.

    Args:
        key: Identifies its entry, a random text.
        account: Whose it is, as `Ledger.account` returns it.
        family: The family of the request, "text", or "" if it is unknown.
        model: The model, or "" if it is unknown.
        tier: The tier that the price depends on, or None.
        amounts: What it consumes.
        once: The name under which it is paid for once, or None.
        digest: The digest of the request, or None without a name.
    """

    key: str
    account: str
    family: str
    model: str
    tier: str | None = None
    amounts: Amounts
    once: str | None = None
    digest: str | None = None


@attrs.frozen(kw_only=True)
class Entry:
    """A paid request in the ledger.

    Args:
        key: Identifies it.
        account: Whose it is: a digest of the key and the base URL, which means nothing outside this
            ledger.
        time: When it was armed, in Unix seconds.
        family: The family of the request, "text", or "" if it is unknown.
        model: The model, or "" if it is unknown.
        tier: The tier that the price depends on, or None.
        amounts: What it consumes.
        state: Its progress.
        owner: The store that armed it, which has died if nothing holds its lock.
        once: The name under which it is paid for once, or None.
        digest: The digest of the request, or None without a name.
        token: The task's token, once its id is known.
        candidate: What looks like an id in an ambiguous response, or None.
        reason: Why it is in this state, on one line, or None.
    """

    key: str
    account: str
    time: float
    family: str
    model: str
    tier: str | None
    amounts: Amounts
    state: State
    owner: str
    once: str | None = None
    digest: str | None = None
    token: str | None = None
    candidate: str | None = None
    reason: str | None = None

    @property
    def name(self) -> str | None:
        """The name that the caller of `create_once` gave, or None."""
        kind, _, name = (self.once or "").partition(" ")
        return name if kind == "once" else None

    @property
    def task(self) -> Task | None:
        """The task, or None while its id is unknown.

        Raises:
            InvalidToken: Its token cannot be read.
        """
        return None if self.token is None else Task.from_token(self.token)
