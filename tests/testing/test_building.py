"""What a transport is built of notices what a library does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from muybridge.wire.building import Exchange, Opened, Reply
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import HttpHead, HttpRequest, Phase, Reason

LENGTH = (("Content-Length", "6"),)


def received(method: str, status: int, *pieces: bytes) -> Iterator[bytes]:
    """Yield what a `Reply` makes of *pieces* that a library has taken for the whole body."""

    def send(exchange: Exchange, _: str | None) -> Opened:
        exchange.begin()
        exchange.send(b"request", lambda _data, _seconds: None)
        return Opened(HttpHead(status, LENGTH), iter(pieces), lambda: None)

    request = HttpRequest(method=method, url="http://service.test/")
    with Reply(send, Exchange(request, 5.0), None) as reply:
        yield from reply.pieces()


def test_a_body_that_is_too_short() -> None:
    """A body shorter than its length was cut, whatever the library takes it for."""
    with pytest.raises(TransportError) as caught:
        list(received("GET", 200, b"cut", b"."))
    failure = caught.value.failure
    assert (failure.reason, failure.phase, failure.sent) == (Reason.TRUNCATED, Phase.BODY, True)
    assert (failure.status, failure.partial) == (200, b"cut.")
    assert failure.detail == "the body ended 2 bytes early"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 304)])
def test_no_body_has_no_length(method: str, status: int) -> None:
    """Where a response has no body, its length says what another response would have."""
    assert not list(received(method, status))


def test_a_whole_body() -> None:
    """A body of its length is whole, and empty pieces are none."""
    assert list(received("GET", 200, b"all", b"", b" of")) == [b"all", b" of"]
