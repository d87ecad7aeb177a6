"""The create call: a typed request in, a task out (spec, "Task record")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import attrs

from muybridge_protocol.errors import InvalidRequest, Refused
from muybridge_protocol.events import Submitted
from muybridge_protocol.families import check_is_request
from muybridge_protocol.families.request import MediaRequest, as_body
from muybridge_protocol.http import HttpRequest, HttpResponse
from muybridge_protocol.operations.operation import API_TIMEOUT, api_headers
from muybridge_protocol.operations.paid import PaidOperation
from muybridge_protocol.records.candidates import holds_task
from muybridge_protocol.records.json import (
    RAW_LIMIT,
    InvalidJson,
    JsonObject,
    error_text,
    read_object,
    write_json,
)
from muybridge_protocol.records.tasks import Status, Task, read_task
from muybridge_protocol.service import Service

if TYPE_CHECKING:
    from muybridge_protocol.call_info import CallKind

CREATE_DEADLINE = 300.0
"""Timeout of a create with all its attempts, in seconds."""


def encode(request: MediaRequest, service: Service) -> HttpRequest:
    """Return the HTTP request that creates *request*, without the key.

    Raises:
        InvalidRequest: It has a URL on this machine that the service did not give out, or its
            `extra` was changed to something that the service would reject.
    """
    family, settings = request.family, request.settings()
    # A request is made before its service is known, so its links to this machine are checked here.
    # The value is frozen, but the contents of its `extra` may have changed since its check.
    report = family.check(
        settings, keep_unknown=True, own=service.gave_out, name=family.python_name
    )
    if report.problems:
        raise InvalidRequest(family.name, report.problems)
    body = write_json(as_body(settings))
    return HttpRequest(
        method="POST",
        url=service.url(family.create_path),
        headers=api_headers(body),
        body=body,
        authorized=True,
        paid=True,
    )


@attrs.frozen(kw_only=True)
class Create(PaidOperation[Task]):
    """Create a task.

    Args:
        request: What to generate.
        wall_offset: What to add to the driver's clock to get Unix seconds.
    """

    request: MediaRequest = attrs.field(repr=False)
    wall_offset: float

    @classmethod
    def start(
        cls,
        request: MediaRequest,
        service: Service,
        *,
        now: float,
        wall: float,
        seed: int,
        timeout: float = API_TIMEOUT,
    ) -> Self:
        """Return the operation in its initial state.

        Args:
            request: What to generate.
            service: Where the service is.
            now: Seconds on the driver's clock.
            wall: Unix seconds at the same moment.
            seed: A random number for this operation; the delays between attempts derive from it.
            timeout: Timeout of one exchange, in seconds.

        Raises:
            InvalidRequest: It has a URL on this machine that the service did not give out, or its
                `extra` was changed to something that the service would reject.
            TypeError: It is not a request.
        """
        check_is_request(request)
        return cls(
            service=service,
            seed=seed,
            timeout=timeout,
            due=now,
            deadline=now + max(CREATE_DEADLINE, timeout),
            request=request,
            http_request=encode(request, service),
            wall_offset=wall - now,
        )

    @property
    def kind(self) -> CallKind:
        """What the operation does, for listeners."""
        return "create"

    def _read(self, response: HttpResponse, now: float) -> Self:
        try:
            record = read_object(response.body)
        except InvalidJson as error:
            unreadable = str(error)
        else:
            return self._read_record(record, response, now)
        # Outside of the handler, because the exception holds copies of the body.
        return self._ambiguous(f"the response cannot be read: {unreadable}", response=response)

    def _read_record(self, record: JsonObject, response: HttpResponse, now: float) -> Self:
        try:
            task = read_task(
                record,
                family=self.request.family.name,
                requested_model=self.request.model_name,
                submitted_at=now + self.wall_offset,
            )
        except InvalidJson as error:
            # A record that has failed and has no id is how the service refuses: there is no task to
            # poll.
            was_refused = record.get("status") == Status.FAILED and not record.get("id")
            if was_refused and not holds_task(response.body):
                reason = record.get("error")
                return self._settle(
                    Refused(
                        status=response.status,
                        message="" if reason is None else error_text(reason),
                        body=response.body[:RAW_LIMIT],
                    )
                )
            return self._ambiguous(f"the response has no usable id: {error}", response=response)
        return self._settle(task, Submitted(task))
