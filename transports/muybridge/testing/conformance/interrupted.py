"""Exceptions of signal handlers: a transport lets them propagate unchanged.

They are for transports that block, in the main thread, where Python runs signal handlers.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import threading
from collections.abc import Generator
from types import FrameType

import pytest

from muybridge.testing.conformance.calling import (
    AUTHORIZATION,
    ENOUGH,
    Checks,
    call,
    get,
    post,
    serving,
)
from muybridge.testing.conformance.lessons import Lesson
from muybridge.testing.scripted_server import Peer, response_bytes, serve
from muybridge.wire.transport import Transport, TransportError

SIGNAL = Lesson(
    "a job queue's time limit, Ctrl-C and an alarm are exceptions that a signal handler raises. "
    "Taken for a failure of the network, they vanish, and the client may send a create again that "
    "was to be stopped",
    "`except Exception`, `except OSError` and `except BaseException` around the library's calls: "
    "only what the network raised becomes a TransportError, and the connection is closed in any "
    "case; muybridge.wire.building.Response does it",
)


_MORE_THAN_BUFFERS = 16 * 1024 * 1024
"""Bytes that the network does not take while the server reads none of them."""
_KINDS: list[type[BaseException]] = [Exception, TimeoutError, OSError, KeyboardInterrupt]
"""A user's own, two that are easily taken for failures of the network, and that of Ctrl-C."""


@contextlib.contextmanager
def _handler(kind: type[BaseException]) -> Generator[list[BaseException]]:
    """Let SIGALRM raise *kind*, and collect what it raised."""
    raised: list[BaseException] = []

    def raise_it(_: int, __: FrameType | None) -> None:
        raised.append(kind("raised by a signal handler"))
        raise raised[-1]

    before = signal.signal(signal.SIGALRM, raise_it)
    try:
        yield raised
    finally:
        signal.signal(signal.SIGALRM, before)
        raised.clear()  # with its traceback, and the sockets in there
        gc.collect()


class Interrupted(Checks):
    """What a signal does to an exchange."""

    @pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
    # Python's ssl may leave a socket to the garbage collector when its handshake is interrupted.
    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    @pytest.mark.parametrize("moment", ["handshake", "sending", "head", "body"])
    @pytest.mark.parametrize("kind", _KINDS, ids=[kind.__name__ for kind in _KINDS])
    def test_signal_handler(
        self, transport: Transport, kind: type[BaseException], moment: str
    ) -> None:
        """What a signal handler raises during an exchange propagates unchanged."""
        if threading.current_thread() is not threading.main_thread():
            pytest.skip("signal handlers run in the main thread")
        main = threading.get_ident()

        def first(peer: Peer) -> None:
            if moment == "handshake":
                peer.receive()
            elif moment == "sending":
                peer.read_head()
            else:
                peer.read_request()
            if moment == "body":
                peer.send(response_bytes(200, b"{}")[:-1])
            signal.pthread_kill(main, signal.SIGALRM)
            peer.hang()

        first.__doc__ = f"Wait for the {moment}, upon which a signal handler raises."
        scheme = "https" if moment == "handshake" else "http"
        with serving(first, scheme=scheme) as server, _handler(kind) as raised:
            request = post(server.url, bytes(_MORE_THAN_BUFFERS if moment == "sending" else 2))
            exchange = transport.stream(request, timeout=ENOUGH, authorization=AUTHORIZATION)
            expected = f"{kind.__name__}, as the handler has raised it"
            try:
                with exchange as response:
                    b"".join(response.pieces())
            except TransportError as error:
                SIGNAL.refuse(expected, error)
            except BaseException as error:  # noqa: BLE001  # reported to the author of the transport
                SIGNAL.require(raised and error is raised[0], expected, repr(error))
            else:
                SIGNAL.refuse(expected, "a whole response")
            sent = bool(getattr(exchange, "sent", True))
            truth = "sent=True, for the server has read the request"
            SIGNAL.require(sent or not server.posts, truth, "sent=False")
        with serving(serve(200, b"its own")) as server:
            body = call(transport, get(server.url), SIGNAL).body
            SIGNAL.equal(body, b"its own", "the next response as usual")
