"""The fake transports and clocks do what real ones do, in no time and without a network."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import trio
import trio.testing

import muybridge
from muybridge.testing import (
    AsyncFakeTransport,
    FakeTransport,
    SkippingClock,
    VirtualClock,
    broken_off,
    json_response,
    lost_response,
    not_sent,
)
from muybridge.wire.transport import TransportError, exchange
from muybridge_protocol.http import HttpRequest, HttpResponse, Reason

URL = "https://service.test"
KEY = "sk-canary-5e1fa0"
REQUEST = muybridge.ImgaRequest(model="imga", prompt="a horse")
QUEUED = json_response({"id": "task-1", "status": "queued"})
PROCESSING = json_response({"id": "task-1", "status": "processing"})
DONE = json_response({"id": "task-1", "status": "completed", "image_url": "https://cdn.test/a.png"})


def test_a_life_in_no_time() -> None:
    """A client on a fake transport and a virtual clock goes through hours of polling at once."""
    clock = VirtualClock(wall=1_000.0)
    transport = FakeTransport(QUEUED, *[PROCESSING] * 500, DONE)
    client = muybridge.Client(KEY, URL, transport=transport, clock=clock, poll_interval=10)
    result = client.run(REQUEST, timeout=None)
    assert result.image_url == "https://cdn.test/a.png"
    assert clock.elapsed == clock.monotonic() >= 5_000
    assert clock.wall() == 1_000 + clock.elapsed
    assert [len(transport.posts), len(transport.requests), transport.unused] == [1, 502, 0]
    assert transport.sent[0].authorization == f"Bearer {KEY}"
    assert KEY not in repr(transport.sent) + repr(transport)


def test_under_trio() -> None:
    """The same under trio, whose own mock clock skips the waits."""
    transport = AsyncFakeTransport(QUEUED, *[PROCESSING] * 50, DONE)

    async def main() -> float:
        async with muybridge.TrioClient(KEY, URL, transport=transport, poll_interval=60) as client:
            began = trio.current_time()
            await client.run(REQUEST, timeout=None)
            return trio.current_time() - began

    assert trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0)) >= 3_000
    assert len(transport.posts) == 1


def test_unsent_is_sent_again() -> None:
    """A scripted failure before the first byte lets the client try again."""
    transport = FakeTransport(not_sent(), not_sent(Reason.NAME_RESOLUTION), QUEUED)
    client = muybridge.Client(KEY, URL, transport=transport, clock=VirtualClock())
    assert client.create(REQUEST).id == "task-1"
    assert len(transport.posts) == 3


def test_a_lost_reply_is_not() -> None:
    """A scripted failure after it leaves the create ambiguous, and costs one POST."""
    transport = FakeTransport(lost_response(), QUEUED)
    client = muybridge.Client(KEY, URL, transport=transport, clock=VirtualClock())
    with pytest.raises(muybridge.CreateAmbiguous):
        client.create(REQUEST)
    assert (len(transport.posts), transport.unused) == (1, 1)


def test_broken_off() -> None:
    """A scripted body fails where the script says, and keeps what had arrived."""
    transport = FakeTransport(broken_off(HttpResponse(200, (), b"x" * 100_000), 70_000))
    with pytest.raises(TransportError) as caught:
        exchange(transport, HttpRequest(method="GET", url=URL), timeout=1)
    failure = caught.value.failure
    assert (failure.sent, failure.status, failure.reason) == (True, 200, Reason.TRUNCATED)
    assert failure.partial == b"x" * 65536


def test_bounds() -> None:
    """A fake response larger than the request's limit fails as a real one does."""
    transport = FakeTransport(otherwise=HttpResponse(200, (), b"x" * 11))
    whole = HttpRequest(method="GET", url=URL, body_limit=11)
    assert exchange(transport, whole, timeout=1).body == b"x" * 11
    with pytest.raises(TransportError) as caught:
        exchange(transport, HttpRequest(method="GET", url=URL, body_limit=10), timeout=1)
    assert caught.value.failure.reason is Reason.TOO_LARGE


def test_no_time() -> None:
    """An exchange without any time left fails unsent, and is not recorded."""
    transport = FakeTransport(QUEUED)
    with pytest.raises(TransportError) as caught:
        exchange(transport, HttpRequest(method="GET", url=URL), timeout=0)
    assert (caught.value.failure.sent, transport.requests) == (False, [])


def test_answers_made_from_requests() -> None:
    """An answer may be a function of the request, and may raise."""
    transport = FakeTransport(otherwise=lambda request: HttpResponse(200, (), request.url.encode()))
    assert exchange(transport, HttpRequest(method="GET", url=URL), timeout=1).body == URL.encode()

    def alarm(request: HttpRequest) -> HttpResponse:
        raise KeyboardInterrupt(request.method)

    transport.script(alarm)
    with pytest.raises(KeyboardInterrupt):
        exchange(transport, HttpRequest(method="GET", url=URL), timeout=1)


def test_end_of_the_script() -> None:
    """A request that the script has no answer for is told, with its number."""
    transport = FakeTransport(QUEUED)
    request = HttpRequest(method="GET", url=f"{URL}/v1?signature=secret")
    exchange(transport, request, timeout=1)
    with pytest.raises(AssertionError, match="request number 2") as caught:
        exchange(transport, request, timeout=1)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", [FakeTransport, AsyncFakeTransport])
def test_pickle(kind: type[FakeTransport | AsyncFakeTransport]) -> None:
    """A record may hold a key, and is not pickled."""
    with pytest.raises(TypeError):
        pickle.dumps(kind(QUEUED))


@pytest.mark.parametrize("clock", [VirtualClock(), SkippingClock()])
def test_time_goes_forward(clock: VirtualClock | SkippingClock) -> None:
    """Waiting takes no time, adds up over threads, and never goes back."""
    began = clock.monotonic(), clock.wall()
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(clock.sleep, [100.0] * 800))
    assert clock.monotonic() - began[0] >= 80_000
    assert clock.wall() - began[1] >= 80_000
    with pytest.raises(ValueError, match="back"):
        clock.sleep(-1)


def test_tick() -> None:
    """A clock may go forward whenever it is read."""
    clock = VirtualClock(tick=2.0)
    assert [clock.monotonic(), clock.monotonic()] == [2.0, 4.0]


def test_a_short_stream() -> None:
    """The end of a response without a length is known: nothing was cut off a fake's stream."""
    answer = (
        b'data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}\n\n'
    )
    client = muybridge.Client(
        KEY, text_base_url=URL, transport=FakeTransport(HttpResponse(200, (), answer))
    )
    with client.stream_generate_content("textg-2.5-pro", "a?") as stream:
        assert stream.collect().text == "a"

    async def main() -> str:
        transport = AsyncFakeTransport(HttpResponse(200, (), answer))
        async with (
            muybridge.TrioClient(KEY, text_base_url=URL, transport=transport) as client,
            client.stream_generate_content("textg-2.5-pro", "a?") as stream,
        ):
            return (await stream.collect()).text

    assert trio.run(main) == "a"
