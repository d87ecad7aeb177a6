"""What Sentry's SDK records of an error, as docs/observability.md says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.transport import Transport

import muybridge
from muybridge.testing import FakeTransport, json_response, lost_response, not_sent

KEY = "sk-canary-0123456789"
PROMPT = "a horse that nobody else may see"


class Kept(Transport):
    """Keeps what would be sent."""

    sent: list[bytes] = []  # noqa: RUF012  of all instances: the SDK makes its own

    def capture_envelope(self, envelope: Any) -> None:
        self.sent.extend(item.payload.get_bytes() for item in envelope.items)


def request(**fields: Any) -> muybridge.ImgaRequest:
    return muybridge.ImgaRequest(model="imga", prompt=PROMPT, **fields)


def create(*replies: Any) -> None:
    transport = FakeTransport(*replies)
    with muybridge.Client(KEY, "https://service.test", transport=transport) as client:
        client.create(request())


def fail() -> None:
    queued = json_response({"id": "task-1", "status": "queued"})
    failed = json_response({"id": "task-1", "status": "failed", "error": "no horse"})
    transport = FakeTransport(queued, failed)
    with muybridge.Client(KEY, "https://service.test", transport=transport) as client:
        client.run(request())


ERRORS: dict[str, Callable[[], object]] = {
    "ambiguous": lambda: create(lost_response()),
    "refused": lambda: create(json_response({}, status=403)),
    "not sent": lambda: create(*[not_sent()] * 3),
    "invalid": lambda: request(size="7:7"),
    "failed": fail,
}


@pytest.mark.parametrize("variables", [True, False])
@pytest.mark.parametrize("name", ERRORS)
def test_what_is_recorded(name: str, *, variables: bool) -> None:
    """By default, that is the prompt, and with the setting of the page it is not; never the key."""
    settings = {} if variables else {"include_local_variables": False}
    sentry_sdk.init(dsn="https://key@sentry.test/1", transport=Kept, **settings)
    Kept.sent.clear()
    with pytest.raises((muybridge.MuybridgeError, muybridge.InvalidRequest)) as caught:
        ERRORS[name]()
    sentry_sdk.capture_exception(caught.value)
    sentry_sdk.flush()
    recorded = b"".join(Kept.sent)
    sentry_sdk.init()
    assert type(caught.value).__name__.encode() in recorded
    assert (PROMPT.encode() in recorded) is variables
    assert KEY.encode() not in recorded
