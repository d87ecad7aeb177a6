"""Errors of the store of purchases. After each of them, nothing was sent."""

from __future__ import annotations

from typing import Any, Literal

from muybridge_protocol.errors import LocalError, MuybridgeError
from muybridge_protocol.purchases import Purchase
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.remedies import Face, Remedy, in_python


class StoreUnusable(MuybridgeError):
    """The store cannot be read or written, so nothing is sent. The message says why.

    Args:
        parts: The message: texts, and the remedies among them.
        lacks: What a store lacks that can be read: "batch" if no such batch was begun, or "past" if
            it is an older copy of itself, or a new store, without what was recorded in it.
        away: Whether the database cannot be reached at the moment, which may pass.
    """

    def __init__(
        self, *parts: Any, lacks: Literal["", "batch", "past"] = "", away: bool = False
    ) -> None:
        super().__init__(*parts)
        self.lacks = lacks
        self.away = away

    def to_dict(self, face: Face = in_python) -> dict[str, Any]:
        """Return the error as a JSON object, with what the store lacks and whether it is away."""
        return {**super().to_dict(face), **attributes(self, "lacks", "away")}


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
