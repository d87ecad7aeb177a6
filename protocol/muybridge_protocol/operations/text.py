"""Text requests: sent at most once like a create, because they cost money too.

`TextCall` reads a whole response. `OpenStream` ends at the head of a streamed response, whose body
is then for a `StreamReader`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TypeVar

import attrs

from muybridge_protocol.errors import CreateAmbiguous, TextAmbiguous
from muybridge_protocol.http import HttpHead, HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.operations.operation import Fetch, Send, Settled, Step, Wait
from muybridge_protocol.operations.paid import PaidOperation
from muybridge_protocol.records.json import (
    InvalidJson,
    JsonObject,
    as_array,
    as_object,
    error_text,
    read_event,
)
from muybridge_protocol.service import Service
from muybridge_protocol.text.defaults import RESPONSE_LIMIT, TEXT_TIMEOUT
from muybridge_protocol.text.dialects import tells_error

if TYPE_CHECKING:
    from muybridge_protocol.call_info import CallKind

T_co = TypeVar("T_co", covariant=True)


@attrs.frozen(kw_only=True, eq=False, repr=False)  # generated for each subclass
class _TextOperation(PaidOperation[T_co]):
    """A text request in any protocol."""

    _name = "text request"

    @property
    def kind(self) -> CallKind:
        """What the operation does, for listeners."""
        return "text"

    def next_action(self, now: float) -> Send | Wait | Settled[T_co]:
        """Return what to do next, at *now*. All attempts share one deadline."""
        action = super().next_action(now)
        return Send(action.request, self.deadline) if isinstance(action, Send) else action

    def _holds_task(self, response: HttpResponse) -> bool:  # noqa: ARG002  no text makes a task
        return False

    def _lost(
        self, reason: str, failure: TransportFailure | None, status: int | None, raw: bytes
    ) -> CreateAmbiguous:
        return TextAmbiguous(reason=reason, failure=failure, status=status, raw=raw)


@attrs.frozen(kw_only=True)
class TextCall(_TextOperation[T_co]):
    """Send a text request and read its whole response.

    Args:
        read: Makes the outcome of the response's record.
    """

    read: Callable[[JsonObject], T_co]

    @classmethod
    def start(
        cls,
        http_request: HttpRequest,
        read: Callable[[JsonObject], T_co],
        service: Service,
        *,
        now: float,
        wall: float | None = None,
        seed: int,
        timeout: float = TEXT_TIMEOUT,
    ) -> Self:
        """Return the operation in its initial state.

        Args:
            http_request: The request as `muybridge_protocol.text.encoding` makes it.
            read: Makes the outcome of the response's record.
            service: Where the service is.
            now: Seconds on the driver's clock.
            wall: Unix seconds at the same moment, if they are known.
            seed: A random number for this operation; the delays between attempts derive from it.
            timeout: Seconds that it may take with all its tries.
        """
        return cls(
            service=service,
            seed=seed,
            timeout=timeout,
            due=now,
            deadline=now + timeout,
            wall_offset=None if wall is None else wall - now,
            http_request=http_request,
            read=read,
        )

    def _read(self, response: HttpResponse, now: float) -> Self:  # noqa: ARG002  as every operation
        try:
            value = read_event(response.body, self._limit)
        except InvalidJson as error:
            return self._ambiguous(f"the response cannot be read: {error}", response=response)
        several = as_array(value)
        record = as_object(several[0] if len(several) == 1 else value)
        if record is None:
            return self._ambiguous("the response is not a JSON object", response=response)
        if tells_error(record):
            message = error_text(record)
            return self._ambiguous(f"the response reports an error: {message}", response=response)
        return self._settle(self.read(record))

    @property
    def _limit(self) -> int:
        limit = self.http_request.body_limit
        return RESPONSE_LIMIT if limit is None else limit


@attrs.frozen(kw_only=True)
class OpenStream(_TextOperation[HttpHead]):
    """Send a text request whose response is streamed, and read the head of the response."""

    @classmethod
    def start(
        cls,
        http_request: HttpRequest,
        service: Service,
        *,
        now: float,
        wall: float | None = None,
        seed: int,
        timeout: float = TEXT_TIMEOUT,
    ) -> Self:
        """Return the operation in its initial state. The arguments are as in `TextCall.start`."""
        return cls(
            service=service,
            seed=seed,
            timeout=timeout,
            due=now,
            deadline=now + timeout,
            wall_offset=None if wall is None else wall - now,
            http_request=http_request,
        )

    @property
    def kind(self) -> CallKind:
        """What the operation does, for listeners."""
        return "text stream"

    def next_action(self, now: float) -> Fetch | Wait | Settled[HttpHead]:  # type: ignore[override]  # a stream is read in pieces
        """Return what to do next, at *now*."""
        action = super().next_action(now)
        return Fetch(action.request, action.deadline) if isinstance(action, Send) else action

    def accept(self, head: HttpHead, now: float) -> Self:
        """Return the operation after the head of a response.

        It has settled where a stream follows. Otherwise the body tells why not: it is for
        `receive`, together with the head.

        Raises:
            RuntimeError: The stream is open already.
        """
        self._check_step("accept", head, HttpHead, now=now)
        if 200 <= head.status <= 299:  # noqa: PLR2004  the class of success
            return self._settle(head)
        return self

    def _steps(self) -> tuple[Step, ...]:
        return ("accept", "receive", "fail")

    def _read(self, response: HttpResponse, now: float) -> Self:
        return self.accept(HttpHead(response.status, response.headers), now)
