"""What a driver makes known beside an operation's own events: calls, requests and replies.

An operation does not know when its request goes out, how long the reply takes, or which of many
it is. A driver does, and tells it in these values, for metrics, logs and traces. They hold what
may be shown to anybody who reads a log: no header, no query of a link, no prompt, no body, no key.
"""

from __future__ import annotations

from typing import Literal

import attrs

from muybridge_protocol.events import Event
from muybridge_protocol.http import Phase, Reason

CallKind = Literal["create", "get", "wait", "download", "delete", "call", "text", "text stream"]
"""What a call does."""


@attrs.frozen(kw_only=True)
class CallInfo:
    """Which call an event belongs to.

    Args:
        number: Tells apart all calls of this process, from 1.
        kind: What it does.
        task_id: The task's id, once it is known.
        family: The family, where it is known.
        model: The model that was asked for, or that the service named, where it is known.
        work: The place among the work of a `run_all`, from 0, or None elsewhere.
    """

    number: int
    kind: CallKind
    task_id: str | None = None
    family: str | None = None
    model: str | None = None
    work: int | None = None


@attrs.frozen(kw_only=True)
class CallBegan:
    """A call has begun; nothing has been sent yet.

    Args:
        call: Which call.
    """

    call: CallInfo


@attrs.frozen(kw_only=True)
class CallEnded:
    """A call has ended.

    Args:
        call: Which call.
        duration: Seconds since it began, with all its tries and the waits between them.
        error: The name of the class of the exception that ended it, or None.
        left: Whether its user left it before its end, as one may leave a loop.
        status: The task's status as the service said it last, or None.
        size: Bytes of the file that a download has saved, or None.
        prompt_tokens: Tokens of a text's prompt, as the service says, or None.
        answer_tokens: Tokens of a text's answer, as the service says, or None.
        total_tokens: Tokens that a text or a task has consumed, as the service says, or None.
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


@attrs.frozen(kw_only=True)
class RequestSent:
    """A request was handed to the transport, which sends it now.

    Whether any byte of it left this machine is told where that is a question: by `ExchangeFailed`.

    Args:
        call: Which call it belongs to.
        method: The HTTP method.
        scheme: `http` or `https`.
        host: Where it goes.
        port: The same.
        path: The path, without the query.
        template: The path with `{id}` or `{model}` in place of what differs from task to task,
            or None where the path is not one of the specification.
        size: Bytes of its body.
        resends: How many requests before it were for the same and did not bring it.
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
class ReplyBegan:
    """The head of a reply has arrived whose body comes in pieces.

    Args:
        call: Which call it belongs to.
        status: The HTTP status.
        duration: Seconds since the request was sent.
    """

    call: CallInfo
    status: int
    duration: float


@attrs.frozen(kw_only=True)
class ReplyReceived:
    """A reply has been received, as far as it is of interest.

    Args:
        call: Which call it belongs to.
        status: The HTTP status.
        duration: Seconds since the request was sent.
        size: Bytes of its decoded body that were read.
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
    """A request got no whole reply.

    Args:
        call: Which call it belongs to.
        reason: Why.
        phase: How far the exchange had come.
        sent: Whether any byte of the request was handed to the network.
        bytes_sent: How many.
        status: The HTTP status, where the head of a reply had arrived, or None.
        duration: Seconds since the request was handed to the transport.
    """

    call: CallInfo
    reason: Reason
    phase: Phase
    sent: bool
    bytes_sent: int
    status: int | None
    duration: float


Observation = CallBegan | CallEnded | RequestSent | ReplyBegan | ReplyReceived | ExchangeFailed
"""What a driver makes known."""

AnyEvent = Event | Observation
"""What `on_event` is told."""
