"""Calls to any endpoint of the service, such as those that the specification does not describe."""

from __future__ import annotations

import re
from typing import Self

import attrs

from muybridge_protocol.arguments import check_type
from muybridge_protocol.delivery import RETRIES, backoff
from muybridge_protocol.errors import InvalidAddress, ServiceUnreachable
from muybridge_protocol.events import WillRetry
from muybridge_protocol.http import HttpRequest, HttpResponse, TransportFailure
from muybridge_protocol.operations.create import CREATE_DEADLINE
from muybridge_protocol.operations.operation import API_TIMEOUT, api_headers
from muybridge_protocol.operations.paid import PaidOperation
from muybridge_protocol.records.json import write_json
from muybridge_protocol.service import Service

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


@attrs.frozen(kw_only=True)
class Call(PaidOperation[HttpResponse]):
    """Send one request and return its response, whatever its status.

    Nothing is known about the endpoint, so any method except GET, HEAD and OPTIONS is treated as
    paid: it is never resent if it may have been accepted.
    """

    _name = "call"

    tries: int = 0

    @classmethod
    def start(
        cls,
        method: str,
        path: str,
        service: Service,
        *,
        json: object = None,
        now: float,
        seed: int,
        timeout: float = API_TIMEOUT,
    ) -> Self:
        """Return the operation in its initial state.

        Args:
            method: The HTTP method.
            path: The path below the base URL, starting with one slash.
            service: Where the service is.
            json: The JSON value to send, or None for a request without a body.
            now: Seconds on the driver's clock.
            seed: A random number for this operation; the delays between attempts derive from it.
            timeout: Timeout of one exchange, in seconds.

        Raises:
            InvalidAddress: The path leaves the service's origin.
            ValueError: The method is invalid, or *json* is not JSON.
        """
        check_type("method", method, str, "a string, such as 'GET'")
        check_type("path", path, str, "a string, such as '/v1/result/task-1'")
        if not re.fullmatch(r"[A-Z]{3,10}", method, re.ASCII):
            raise InvalidAddress(f"{method[:20]!r} is not an HTTP method; use capital letters.")
        body = None if json is None else write_json(json)
        request = HttpRequest(
            method=method,
            url=service.url(path),
            headers=api_headers(body),
            body=body,
            authorized=True,
            paid=method not in _SAFE,
        )
        return cls(
            service=service,
            seed=seed,
            timeout=timeout,
            due=now,
            deadline=now + max(CREATE_DEADLINE, timeout),
            http_request=request,
            wall_offset=None,
        )

    def _receive(self, response: HttpResponse, now: float) -> Self:  # noqa: ARG002  any response will do
        """Return the operation with *response* as its outcome."""
        return self._settle(response)

    def _fail(self, failure: TransportFailure, now: float) -> Self:
        """Return the operation after a failed exchange."""
        if self.http_request.paid or not failure.sent:
            return super()._fail(failure, now)
        tries = self.tries + 1
        if tries >= RETRIES:
            return self._settle(
                ServiceUnreachable(silent=0.0, reason=str(failure), advice=failure.remedies)
            )
        delay = backoff(self.seed, tries)
        event = WillRetry(self._name, str(failure), delay, tries)
        return attrs.evolve(self, tries=tries, due=now + delay, events=(event,))
