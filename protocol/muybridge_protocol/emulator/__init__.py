"""The service's side of the wire, as pure as the rest: requests in, responses out.

Time and new ids are arguments, so that tests run through a task's life in microseconds.
"""

from muybridge_protocol.emulator.accounts import Access
from muybridge_protocol.emulator.intake import REQUEST_BODY_LIMIT, ServiceRequest
from muybridge_protocol.emulator.markers import CANCEL, FAILURES, SLOW
from muybridge_protocol.emulator.responses import StreamedResponse
from muybridge_protocol.emulator.service import Emulator
from muybridge_protocol.emulator.tasks import EmulatedTask, MediaState, Timing
from muybridge_protocol.emulator.text import TextMarker

__all__ = [
    "CANCEL",
    "FAILURES",
    "REQUEST_BODY_LIMIT",
    "SLOW",
    "Access",
    "EmulatedTask",
    "Emulator",
    "MediaState",
    "ServiceRequest",
    "StreamedResponse",
    "TextMarker",
    "Timing",
]
