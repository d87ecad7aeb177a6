"""Cases 1 to 31: the network and HTTP itself."""

from __future__ import annotations

import ssl

import trustme

from faults.acts import (
    CHUNKED,
    DATA,
    HEAD,
    body_of,
    flood,
    half_then_reset,
    honest,
    plain_end,
    refuse_early,
    say,
    say_slowly,
    stall,
    steps,
    told,
    with_head,
)
from faults.hostile_server import TASK_ID
from faults.operations import UNDECIDED
from faults.rows import (
    CREATES,
    CUT,
    CUT_ONCE,
    FORGIVEN,
    FREE,
    HUNG_CUT_ONCE,
    HUNG_ONCE,
    KIT,
    LOST,
    LOST_ONCE,
    STREAMED,
    TEXTS,
    UNREADABLE,
    UNSENT,
    UNSENT_FOR_GOOD,
    WELL,
    WELL_AFTER,
    Certificate,
    Elsewhere,
    Entry,
    Point,
    Row,
    Where,
    every,
    only,
)
from transport.certificates import server_context
from transport.scripted_server import Peer, response_bytes

_GETS = {"get": "has no body", "wait": "has no body", "delete": "has no body"}
_NO_LONG_BODY = {**_GETS, **every("has no body", ("download", "check")), "call": "as create"}
_LONG_BODY = ("create", "batch", *TEXTS)


def drip_handshake(peer: Peer) -> None:
    """Make a handshake a byte at a time, forever."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = server_context(trustme.CA(), "127.0.0.1")
    handshake = context.wrap_bio(incoming, outgoing, server_side=True)
    incoming.write(peer.receive())
    try:
        handshake.do_handshake()
    except ssl.SSLWantReadError:
        data = outgoing.read()
    else:
        raise AssertionError("the handshake needs two turns")
    peer.drip(data * 100, every=0.02)


def _tail(whole: bytes) -> bytes:
    return whole[:-1]


def _begun(body: bytes) -> bytes:
    """Return a body that lacks no more than its end, or of a stream the first event."""
    return body.partition(b"\n\n")[0] + b"\n\n" if body.startswith(DATA) else body


def two_replies(peer: Peer) -> None:
    """Send one response more than was asked for."""
    whole = honest(peer)
    peer.send(whole + whole.replace(TASK_ID.encode(), b"task-of-another"))
    peer.hang()


def _framed(name: str, number: int, does: str, *lines: bytes) -> Row:
    return Row(
        numbers=(number,),
        name=name,
        point=Point.HEAD,
        does=does,
        on_request=with_head(*lines),
        always=LOST,
        once=LOST_ONCE,
    )


def _chunks(peer: Peer, *, end: bytes) -> None:
    body = body_of(peer)
    peer.send(CHUNKED + b"%x\r\n%s\r\n" % (len(body), body) + end)


ROWS: tuple[Entry, ...] = (
    Row(
        numbers=(1,),
        name="no such name",
        point=Point.LOCAL,
        does="is a host whose name cannot be resolved",
        where=Where.NOWHERE,
        schemes=("https",),
        always=UNSENT,
    ),
    Elsewhere(
        numbers=(1,),
        tests=(
            "transport/test_faults.py::test_impossible_name",
            "transport/test_async_transports.py::test_slow_name_resolution",
        ),
    ),
    Row(
        numbers=(2,),
        name="refused",
        point=Point.CONNECT,
        does="listens at no port",
        where=Where.NOBODY,
        always=UNSENT,
    ),
    Row(
        numbers=(3,),
        name="connecting hangs",
        point=Point.CONNECT,
        does="never answers who wants to connect",
        where=Where.DEAF,
        hangs=True,
        always=UNSENT,
    ),
    Row(
        numbers=(4,),
        name="no TLS",
        point=Point.TLS,
        does="answers a handshake in plain HTTP",
        schemes=("https",),
        on_connection=steps(
            Peer.receive, lambda peer: peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        ),
        always=UNSENT,
        once=WELL_AFTER,
    ),
    Row(
        numbers=(5,),
        name="handshake reset",
        point=Point.TLS,
        does="resets the connection in the handshake",
        schemes=("https",),
        on_connection=steps(Peer.receive, Peer.reset),
        always=UNSENT,
        once=WELL_AFTER,
    ),
    Row(
        numbers=(5, 8),
        name="handshake closed",
        point=Point.TLS,
        does="closes the connection in the handshake",
        schemes=("https",),
        on_connection=Peer.receive,
        always=UNSENT,
        once=WELL_AFTER,
    ),
    Row(
        numbers=(6,),
        name="handshake hangs",
        point=Point.TLS,
        does="never answers a handshake",
        schemes=("https",),
        on_connection=Peer.hang,
        hangs=True,
        always=UNSENT,
        once={**WELL_AFTER, "download": "DownloadFailed", **every("NotSent", TEXTS)},
    ),
    Row(
        numbers=(6,),
        name="handshake drips",
        point=Point.TLS,
        does="makes the handshake a byte at a time",
        schemes=("https",),
        on_connection=drip_handshake,
        hangs=True,
        always=UNSENT,
        once={**WELL_AFTER, "download": "DownloadFailed", **every("NotSent", TEXTS)},
    ),
    *(
        Row(
            numbers=(7,),
            name=f"certificate {certificate}",
            point=Point.TLS,
            does=f"shows a certificate {certificate}",
            schemes=("https",),
            certificate=certificate,
            always=UNSENT_FOR_GOOD,
        )
        for certificate in Certificate
        if certificate is not Certificate.GOOD
    ),
    Row(
        numbers=(8,),
        name="closed at once",
        point=Point.SEND,
        does="accepts a connection and closes it",
        schemes=("http",),
        on_connection=Peer.close,
        # Whether the request is on its way by then is a matter of luck.
        always={
            **every("CreateAmbiguous|NotSent", CREATES),
            **every("TextAmbiguous|NotSent", TEXTS),
            **only(LOST, "get", "wait", "download", "check"),
            "delete": "AssetDeleteUnknown|NotSent",
        },
        once={
            **every("CreateAmbiguous|ok", CREATES),
            **every("TextAmbiguous|ok", TEXTS),
            **only(LOST_ONCE, *FREE),
        },
    ),
    Elsewhere(numbers=(8,), tests=("transport/test_faults.py::test_reset_before_the_first_byte",)),
    Row(
        numbers=(9,),
        name="reset in a long body",
        point=Point.SEND,
        does="reads the head of a long request and resets the connection",
        on_request=steps(Peer.read_head, Peer.reset),
        long=True,
        always=only(LOST, *_LONG_BODY),
        once=only(LOST_ONCE, *_LONG_BODY),
        without=_NO_LONG_BODY,
    ),
    Row(
        numbers=(9,),
        name="reset in the request",
        point=Point.SEND,
        does="reads 20 bytes and resets the connection",
        on_request=steps(lambda peer: peer.receive(20), Peer.reset),
        always=LOST,
        once=LOST_ONCE,
    ),
    Row(
        numbers=(10,),
        name="sending stalls",
        point=Point.SEND,
        does="reads the head of a long request and then nothing more",
        on_request=stall,
        long=True,
        hangs=True,
        always=only(LOST, *_LONG_BODY),
        once=only(LOST_ONCE, *_LONG_BODY),
        without=_NO_LONG_BODY,
    ),
    Row(
        numbers=(11,),
        name="413 and a reset",
        point=Point.SEND,
        does="answers 413 to a long request's head and resets the connection",
        on_request=steps(refuse_early, Peer.reset),
        long=True,
        # The reset may overtake the reply.
        always={
            **every("Refused|CreateAmbiguous", ("create", "batch")),
            **every("Refused|TextAmbiguous", TEXTS),
        },
        once={
            **every("Refused|CreateAmbiguous", ("create", "batch")),
            **every("Refused|TextAmbiguous", TEXTS),
        },
        without=_NO_LONG_BODY,
        declines=True,
    ),
    Row(
        numbers=(11,),
        name="413",
        point=Point.SEND,
        does="reads all, and answers 413",
        on_request=say(response_bytes(413, b'{"error": "too large"}')),
        closes=False,
        declines=True,
        always={
            **every("Refused", ("create", "batch", "delete", *TEXTS)),
            "call": "ok",
            "get": "ServiceUnreachable",
            "wait": "WaitTimeout",
            "download": "DownloadFailed",
            "check": UNDECIDED,
        },
        once={
            **every("Refused", ("create", "batch", "delete", *TEXTS)),
            "call": "ok",
            "get": "ok",
            "wait": "ok",
            "download": "DownloadFailed",
            "check": UNDECIDED,
        },
    ),
    Row(
        numbers=(12,),
        name="closed instead of a reply",
        point=Point.HEAD,
        does="reads the request and closes the connection",
        on_request=Peer.read_request,
        always=LOST,
        once=LOST_ONCE,
    ),
    Row(
        numbers=(13,),
        name="reset instead of a reply",
        point=Point.HEAD,
        does="reads the request and resets the connection",
        on_request=steps(Peer.read_request, Peer.reset),
        always=LOST,
        once=LOST_ONCE,
    ),
    Row(
        numbers=(13,),
        name="reset in the body",
        point=Point.BODY,
        does="sends half of the reply and resets the connection",
        on_request=half_then_reset,
        always={**LOST, **every("StreamInterrupted|TextAmbiguous", STREAMED)},
        once={**LOST_ONCE, **every("StreamInterrupted|TextAmbiguous", STREAMED)},
    ),
    Row(
        numbers=(14,),
        name="silence",
        point=Point.HEAD,
        does="reads the request and says nothing",
        on_request=steps(Peer.read_request, Peer.hang),
        hangs=True,
        always=LOST,
        once=HUNG_ONCE,
    ),
    Row(
        numbers=(15,),
        name="cut off",
        point=Point.BODY,
        does="closes the connection one byte before the end",
        on_request=told(_tail),
        always=CUT,
        once=CUT_ONCE,
    ),
    Elsewhere(
        numbers=(15,),
        tests=(
            "faults/test_byte_sweep.py::test_sample_of_cuts",
            "faults/test_byte_sweep.py::test_every_cut",
            "transport/test_replies.py::test_every_cut",
            "client/test_money.py::test_every_byte_of_every_operation",
        ),
    ),
    Row(
        numbers=(16,),
        name="not HTTP",
        point=Point.HEAD,
        does="speaks another protocol",
        on_request=say(b"SSH-2.0-OpenSSH_9.6\r\n"),
        always=LOST,
        once=LOST_ONCE,
    ),
    _framed(
        "101 headers",
        17,
        "sends 101 header fields",
        *[b"X-%d: y" % number for number in range(101)],
        b"Connection: close",
    ),
    _framed("a long header", 18, "sends a header field of 66 kB", b"X: " + b"y" * 66_000),
    _framed("junk length", 19, "sends a Content-Length that is no number", b"Content-Length: two"),
    _framed("negative length", 19, "sends a negative Content-Length", b"Content-Length: -2"),
    _framed(
        "two lengths",
        19,
        "sends two different Content-Lengths",
        b"Content-Length: 2",
        b"Content-Length: 3",
    ),
    _framed(
        "length and chunks",
        20,
        "sends Content-Length and Transfer-Encoding",
        b"Content-Length: 2",
        b"Transfer-Encoding: chunked",
    ),
    Row(
        numbers=(21,),
        name="no last chunk",
        point=Point.BODY,
        does="closes the connection before the last chunk",
        on_request=lambda peer: _chunks(peer, end=b""),
        always={**LOST, **FORGIVEN},
        once={**LOST_ONCE, **FORGIVEN},
    ),
    Row(
        numbers=(22,),
        name="an endless chunk size",
        point=Point.BODY,
        does="sends digits of a chunk's size without end",
        on_request=steps(say(CHUNKED), flood(b"0" * 4096)),
        always=CUT,
        once=CUT_ONCE,
    ),
    Row(
        numbers=(22,),
        name="an endless chunk extension",
        point=Point.BODY,
        does="sends an extension of a chunk without end",
        on_request=steps(say(CHUNKED + b"5;"), flood(b"x" * 4096)),
        always=CUT,
        once=CUT_ONCE,
    ),
    Row(
        numbers=(23,),
        name="cut off without a length",
        point=Point.BODY,
        does="sends no length, and closes the connection one byte before the end",
        on_request=steps(
            lambda peer: peer.send(HEAD + b"\r\n" + body_of(peer)[:-1]),
            plain_end,
        ),
        always={**UNREADABLE, "call": "ok", "download": "ok", "check": UNDECIDED, **FORGIVEN},
        once={
            **only(LOST_ONCE, "create", "batch", "get", "wait", "text"),
            **FORGIVEN,
            "delete": "AssetDeleteUnknown",
            "call": "ok",
            "download": "ok",
            "check": UNDECIDED,
        },
    ),
    Row(
        numbers=(23,),
        name="TLS cut off without a length",
        point=Point.BODY,
        does="sends no length, and ends TLS without saying so",
        schemes=("https",),
        on_request=lambda peer: peer.send(HEAD + b"\r\n" + body_of(peer)),
        always={**LOST, **FORGIVEN},
        once={**LOST_ONCE, **FORGIVEN},
    ),
    Row(
        numbers=(24,),
        name="100 Continue for ever",
        point=Point.HEAD,
        does="sends one informational reply after the other, as fast as they are read",
        on_request=steps(Peer.read_request, flood(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)),
        hangs=True,
        always=LOST,
        once=HUNG_ONCE,
    ),
    Row(
        numbers=(24,),
        name="100 Continue in drops",
        point=Point.HEAD,
        does="sends one informational reply after the other, slowly",
        on_request=say_slowly(lambda _: b"HTTP/1.1 100 Continue\r\n\r\n"),
        hangs=True,
        always=LOST,
        once=HUNG_ONCE,
    ),
    Row(
        numbers=(25,),
        name="a head in drops",
        point=Point.HEAD,
        does="sends a head a byte at a time, without end",
        on_request=steps(say(HEAD + b"X-Slow: "), lambda peer: peer.drip(b"x" * 999, every=0.02)),
        hangs=True,
        always=LOST,
        once=HUNG_ONCE,
    ),
    Row(
        numbers=(26,),
        name="a body in drops",
        point=Point.BODY,
        does="sends a body a byte at a time, without end",
        on_request=steps(
            lambda peer: peer.send(
                HEAD + b"Content-Length: 999999\r\n\r\n" + _begun(body_of(peer))
            ),
            lambda peer: peer.drip(b" " * 999, every=0.02),
        ),
        hangs=True,
        always=CUT,
        once=HUNG_CUT_ONCE,
    ),
    Row(
        numbers=(26,),
        name="a chunk size in drops",
        point=Point.BODY,
        does="sends a chunk's size a digit at a time",
        on_request=steps(say(CHUNKED), lambda peer: peer.drip(b"0" * 999, every=0.02)),
        hangs=True,
        always=CUT,
        once=HUNG_CUT_ONCE,
    ),
    Elsewhere(
        numbers=(24, 25, 26),
        tests=(
            "faults/test_deadlines.py::test_total_time",
            "transport/test_deadlines.py::test_drips",
        ),
    ),
    Row(
        numbers=(27,),
        name="closed while idle",
        point=Point.IDLE,
        does="closes the connection after each reply, without a word",
        on_request=told(bytes),
        warm=True,
        always=WELL,
    ),
    Elsewhere(
        numbers=(27,),
        tests=(
            "client/test_money.py::test_idle_connection_closed_by_the_server",
            f"{KIT}/connecting.py::test_closed_while_idle",
            f"{KIT}/connecting.py::test_stale_connection",
        ),
    ),
    Row(
        numbers=(28,),
        name="two replies to one request",
        point=Point.IDLE,
        does="sends a second reply that nobody asked for",
        on_request=two_replies,
        always=WELL,
    ),
    Elsewhere(
        numbers=(28,),
        tests=(
            "client/test_money.py::test_a_second_reply_nobody_asked_for",
            f"{KIT}/unsolicited.py::test_unasked_response_to_paid",
            f"{KIT}/unsolicited.py::test_unasked_while_idle",
        ),
    ),
    *(
        Row(
            numbers=(29,),
            name=f"the proxy says {code}",
            point=Point.PROXY,
            does=f"is a proxy that answers CONNECT with {code}",
            schemes=("https",),
            where=Where.PROXY,
            on_connection=steps(
                Peer.read_head, lambda peer, code=code: peer.send(response_bytes(code, b"no"))
            ),
            always=UNSENT,
        )
        for code in (407, 502)
    ),
    Elsewhere(
        numbers=(29,),
        tests=(
            "transport/test_proxies.py::test_no_tunnel",
            "transport/test_proxies.py::test_dead_proxy",
        ),
    ),
    Elsewhere(
        numbers=(30,),  # no pool runs out: it bounds what is kept, and no work
        tests=(
            "transport/test_connections.py::test_more_threads_than_kept",
            "transport/test_connections.py::test_threads",
        ),
    ),
    Elsewhere(
        numbers=(31,),
        tests=(
            "transport/test_faults.py::test_no_descriptors",
            "faults/test_leaks.py::test_a_few_hundred_faults",
            "faults/test_leaks.py::test_ten_thousand_faults",
        ),
    ),
)
