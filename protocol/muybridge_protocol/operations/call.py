"""Any endpoint under the service's origin, for what the specification names but does not show."""

from __future__ import annotations

import re
from typing import Self

import attrs

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
    """Send one request and hand its reply over, whatever its status.

    Because nobody knows what the endpoint does, any method but GET, HEAD and OPTIONS is treated
    as one that costs money: it is never sent twice when it may have been accepted.
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
        """Return the operation at its beginning.

        Args:
            method: The HTTP method.
            path: The path below the base URL, beginning with one slash.
            service: Where the service is.
            json: The JSON value to send, or None for a request without a body.
            now: Seconds on the driver's clock.
            seed: A number drawn at random for this operation; its waits follow from it.
            timeout: Seconds that one exchange may take.

        Raises:
            InvalidAddress: The path leaves the service's origin.
            ValueError: The method is none, or *json* is not JSON.
        """
        if not re.fullmatch(r"[A-Z]{3,10}", method, re.ASCII):
            raise InvalidAddress(f"{method[:20]!r} is no HTTP method; use capital letters.")
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
        )

    def _receive(self, response: HttpResponse, now: float) -> Self:  # noqa: ARG002  any reply is the answer
        """Return the operation after a whole reply, which is its outcome."""
        return self._settle(response)

    def _fail(self, failure: TransportFailure, now: float) -> Self:
        """Return the operation after an exchange without a whole reply."""
        if self.http_request.paid or not failure.sent:
            return super()._fail(failure, now)
        tries = self.tries + 1
        if tries >= RETRIES:
            return self._settle(ServiceUnreachable(silent=0.0, reason=str(failure)))
        delay = backoff(self.seed, tries)
        event = WillRetry(self._name, str(failure), delay, tries)
        return attrs.evolve(self, tries=tries, due=now + delay, events=(event,))
