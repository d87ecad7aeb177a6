"""Errors of the store of purchases. After each of them, nothing was sent."""

from __future__ import annotations

from collections.abc import Mapping

from muybridge_protocol.errors import LocalError, MuybridgeError
from muybridge_protocol.purchases import CannotDecide, Purchase
from muybridge_protocol.remedies import Remedy


class StoreUnusable(MuybridgeError):
    """The store cannot be read or written, so nothing is sent. The message says why."""


class StoreAway(StoreUnusable):
    """The store's database cannot be reached at the moment."""


class InvalidLimit(LocalError):
    """A limit in the environment cannot be read. Nothing was sent."""


class OnceTaken(LocalError):
    """Another request was already sent under this name. Nothing was sent."""


class OnceUnderWay(MuybridgeError):
    """Another call is still sending the request of this name. Nothing was sent again."""

    _charged = "perhaps"


class NameHeld(Exception):
    """Another purchase has the name of a request.

    Args:
        purchase: That purchase.
    """

    def __init__(self, purchase: Purchase) -> None:
        super().__init__(f"the name belongs to purchase {purchase.key}, which is {purchase.state}")
        self.purchase: Purchase = purchase


class Exceeded(Exception):
    """A request does not fit into a budget. The message says which limit, and how much is left.

    Args:
        message: The message.
        remedies: What to do, as data.
        is_unknown: Whether the reason is that nobody knows how much this request needs.
    """

    def __init__(
        self, message: str, remedies: tuple[Remedy, ...] = (), *, is_unknown: bool = False
    ) -> None:
        super().__init__(message)
        self.remedies: tuple[Remedy, ...] = remedies
        self.is_unknown: bool = is_unknown


class Lost(Exception):
    """This worker was declared dead, or the item belongs to another one. Nothing was changed."""


class StillSending(CannotDecide):
    """Somebody may still be sending the request, so nobody can decide about it yet."""


class TaskTaken(CannotDecide):
    """Another purchase has the task that a person names."""


class NoneDecided(CannotDecide):
    """Some of many decisions do not apply, so none was recorded.

    Args:
        reasons: Why not, by the place of the decision among the others, from 0.
    """

    def __init__(self, reasons: Mapping[int, Exception]) -> None:
        super().__init__("; ".join(map(str, reasons.values())))
        self.reasons: Mapping[int, Exception] = reasons
