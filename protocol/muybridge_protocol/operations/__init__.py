"""Calls on the service as frozen values: one state machine for each, run by a driver."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from muybridge_protocol.operations.create import Create
from muybridge_protocol.operations.next_polls import NextPolls
from muybridge_protocol.operations.operation import (
    Fetch,
    Operation,
    Send,
    Settled,
    Wait,
)
from muybridge_protocol.operations.poll import Poll

if TYPE_CHECKING:
    from muybridge_protocol.operations.call import Call
    from muybridge_protocol.operations.delete_asset import DeleteAsset
    from muybridge_protocol.operations.download import Download
    from muybridge_protocol.operations.inspect import Inspection

__all__ = [
    "Call",
    "Create",
    "DeleteAsset",
    "Download",
    "Fetch",
    "Inspection",
    "NextPolls",
    "Operation",
    "Poll",
    "Send",
    "Settled",
    "Wait",
]

# Imported on first use: most programs only create and wait, and start 7 ms earlier without these.
_HOMES: Final = {
    "Call": "call",
    "DeleteAsset": "delete_asset",
    "Download": "download",
    "Inspection": "inspect",
}


if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
