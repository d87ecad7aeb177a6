"""Calls on the service as frozen values: one state machine each, driven by whoever does the I/O."""

from muybridge_protocol.operations.call import Call
from muybridge_protocol.operations.create import Create
from muybridge_protocol.operations.delete_asset import DeleteAsset
from muybridge_protocol.operations.download import Download
from muybridge_protocol.operations.operation import Fetch, Operation, Send, Settled, Wait
from muybridge_protocol.operations.poll import Poll

__all__ = [
    "Call",
    "Create",
    "DeleteAsset",
    "Download",
    "Fetch",
    "Operation",
    "Poll",
    "Send",
    "Settled",
    "Wait",
]
