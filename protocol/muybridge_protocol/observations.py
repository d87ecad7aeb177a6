"""What a driver reports in addition to the events of operations: calls, requests and responses.

An operation does not know when its request is sent, how long the response takes, or which call it
belongs to. A driver does, and reports it in these values, for metrics, logs and traces. They only
contain what any reader of a log may see: no header, query of a link, prompt, body or key.
"""

from __future__ import annotations

from typing import Literal

import attrs

from muybridge_protocol.call_info import CallInfo, CallKind
from muybridge_protocol.durations import shown_seconds
from muybridge_protocol.estimates.quantities import Quantities
from muybridge_protocol.events import Event
from muybridge_protocol.http import Phase, Reason

CallOutcome = Literal["submitted", "refused", "ambiguous", "not sent"]
"""What has become of a call that costs money, or would have."""

__all__ = [
    "AnyEvent",
    "CallBegan",
    "CallEnded",
    "CallInfo",
    "CallKind",
    "CallOutcome",
    "ExchangeFailed",
    "Expected",
    "Observation",
    "RequestSent",
    "ResponseBegan",
    "ResponseReceived",
]


@attrs.frozen(kw_only=True)
class CallBegan:
    """A call has started; nothing has been sent yet.

    Args:
        call: The call.
    """

    call: CallInfo


@attrs.frozen(kw_only=True)
class Expected:
    """A wait begins, and the store of purchases knows how long such tasks usually take.

    Args:
        call: The wait.
        usual: The median of how long tasks of the same model and length took, in seconds.
        age: Seconds since the task was created, or None if that is not known.
    """

    call: CallInfo
    usual: float
    age: float | None

    def sentence(self, since: float = 0.0) -> str:
        """Return what is known, for people, *since* seconds after the event."""
        so_far = "" if self.age is None else f"; {shown_seconds(round(self.age + since))} so far"
        return f"usually {shown_seconds(round(self.usual))}{so_far}"


@attrs.frozen(kw_only=True)
class CallEnded:
    """A call has ended.

    Args:
        call: The call.
        duration: Seconds since it started, including all attempts and the delays between them.
        error: The class name of the exception that ended it, or None.
        left: Whether the user left it early, for example by leaving a loop.
        status: The last status of the task, or None.
        size: Bytes of the file that a download has saved, or None.
        prompt_tokens: Tokens of a text's prompt, as reported by the service, or None.
        answer_tokens: Tokens of a text's answer, as reported by the service, or None.
        total_tokens: Tokens consumed by a text or a task, as reported by the service, or None.
        outcome: How a create, a text request or a paid `call` ended. It is submitted once
            the service has accepted it, even if its task or answer fails later. None for calls
            that cost nothing, and for a create that has joined an identical one.
        consumed: What it consumes if it was accepted, as far as that is known, or None.
    """

    call: CallInfo
    duration: float
    error: str | None = None
    left: bool = False
    status: str | None = None
    size: int | None = None
    prompt_tokens: int | None = None
    answer_tokens: int | None = None
    total_tokens: float | None = None
    outcome: CallOutcome | None = None
    consumed: Quantities | None = None


@attrs.frozen(kw_only=True)
class RequestSent:
    """A request was handed to the transport, which is about to send it.

    If the exchange fails, `ExchangeFailed` says whether any byte of it was sent.

    Args:
        call: The call that it belongs to.
        method: The HTTP method.
        scheme: `http` or `https`.
        host: The host that it is sent to.
        port: The port that it is sent to.
        path: The path, without the query.
        template: The path with placeholders, `{id}` or `{model}`, or None if the specification
            does not contain the path.
        size: Bytes of its body.
        resends: How many earlier requests for the same purpose have failed.
    """

    call: CallInfo
    method: str
    scheme: str
    host: str
    port: int
    path: str
    template: str | None
    size: int
    resends: int

    @property
    def url(self) -> str:
        """The URL without its query."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.path}"


@attrs.frozen(kw_only=True)
class ResponseBegan:
    """The head of a response has arrived, and its body follows in pieces.

    Args:
        call: The call that it belongs to.
        status: The HTTP status.
        duration: Seconds since the request was sent.
    """

    call: CallInfo
    status: int
    duration: float


@attrs.frozen(kw_only=True)
class ResponseReceived:
    """A response has been read, as far as it is needed.

    Args:
        call: The call that it belongs to.
        status: The HTTP status.
        duration: Seconds since the request was sent.
        size: Bytes read of its decoded body.
        chunks: Chunks of a streamed text, or None.
        first_chunk: Seconds from the request to the first of them, or None.
    """

    call: CallInfo
    status: int
    duration: float
    size: int
    chunks: int | None = None
    first_chunk: float | None = None


@attrs.frozen(kw_only=True)
class ExchangeFailed:
    """An exchange ended without a whole response.

    Args:
        call: The call that it belongs to.
        reason: Why it failed.
        phase: How far it got.
        sent: Whether any byte of the request was handed to the network.
        bytes_sent: Number of such bytes.
        status: The HTTP status if the head of the response arrived, or None.
        duration: Seconds since the request was handed to the transport.
    """

    call: CallInfo
    reason: Reason
    phase: Phase
    sent: bool
    bytes_sent: int
    status: int | None
    duration: float


Observation = (
    CallBegan
    | Expected
    | CallEnded
    | RequestSent
    | ResponseBegan
    | ResponseReceived
    | ExchangeFailed
)
"""What a driver reports."""

AnyEvent = Event | Observation
"""What `on_event` is called with."""
