"""Cases 32 to 60: what responses say, and how much of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from functools import cache

import attrs

from faults.acts import (
    HEAD,
    changed,
    flood,
    inserted,
    rewritten,
    say,
    status,
    steps,
)
from faults.hostile_server import TASK_ID, Act, written
from faults.operations import UNDECIDED, UNFIT
from faults.rows import (
    ALL,
    CUT,
    CUT_ONCE,
    INTERRUPTED,
    LOST,
    LOST_ONCE,
    NO_RECORD,
    RECORDS,
    TEXTS,
    UNREADABLE,
    UNREADABLE_ONCE,
    Elsewhere,
    Entry,
    Outcomes,
    Point,
    Row,
    every,
    only,
)
from muybridge_protocol.records.tasks import Result, Status, Task
from transport.scripted_server import Peer, response_bytes

from . import streams
from .identifiers import odd_id

MEBIBYTE = 1024**2


def _unreadable(
    number: int,
    name: str,
    change: Callable[[bytes], bytes],
    *,
    large: bool = False,
    **headers: str,
) -> Row:
    return Row(
        numbers=(number,),
        name=name,
        point=Point.MEANING,
        does=f"sends a record with a flaw: {name}",
        on_request=changed(change, 200, **headers),
        closes=False,
        large=large,
        always=UNREADABLE,
        once=UNREADABLE_ONCE,
        without=NO_RECORD,
    )


def _odd(number: int, name: str, text: bytes) -> Row:
    row = _unreadable(number, name, inserted(text))
    texts = every("ok", TEXTS)  # nothing that is paid for hangs on such a name or number
    return attrs.evolve(row, always={**row.always, **texts}, once={**row.once, **texts})


def _well(number: int, name: str, change: Callable[[bytes], bytes], **headers: str) -> Row:
    return Row(
        numbers=(number,),
        name=name,
        point=Point.MEANING,
        does=f"sends a record that is odd, and good: {name}",
        on_request=changed(change, 200, **headers),
        closes=False,
        always=every("ok", RECORDS),
        without=NO_RECORD,
    )


def _encoded(number: int, name: str, does: str, act: Act) -> Row:
    return Row(
        numbers=(number,),
        name=name,
        point=Point.BODY,
        does=does,
        on_request=act,
        always=LOST,
        # The head says that it cannot be decoded; another try would bring the same.
        once={**LOST_ONCE, "download": "DownloadFailed"},
    )


# Large, and so made where they are sent: every test process imports this module.


def _filled(size: int, piece: bytes) -> Callable[[bytes], bytes]:
    def change(body: bytes) -> bytes:
        pieces = b",".join([piece] * (size // (len(piece) + 1)))
        return inserted(b'"x": [' + pieces + b"]")(body)

    return change


@cache
def _bomb() -> bytes:
    return gzip.compress(bytes(100 * MEBIBYTE), 9)


def _explode(peer: Peer) -> None:
    say(response_bytes(200, _bomb(), content_encoding="gzip"))(peer)


def _of(number: int, name: str, does: str, act: Act, **outcomes: str) -> Row:
    """Return a row of a few operations; the others do not meet it."""
    reason = "is not about it"
    return Row(
        numbers=(number,),
        name=name,
        point=Point.MEANING,
        does=does,
        on_request=act,
        closes=False,
        always=outcomes,
        without=dict.fromkeys([known for known in ALL if known not in outcomes], reason),
    )


def _field(name: str, value: object) -> Callable[[bytes], bytes]:
    return lambda body: written({**json.loads(body), name: value})


def _but_download(outcomes: Outcomes) -> dict[str, str]:
    return {name: outcome for name, outcome in outcomes.items() if name != "download"}


def _completed(_: float) -> Result:
    return Result(id=TASK_ID, status=Status.COMPLETED, family="imga")


def _failed(_: float) -> Result:
    return Result(id=TASK_ID, status=Status.FAILED, family="imga")


def _newborn(wall: float) -> Task:
    return Task(id=TASK_ID, family="imga", submitted_at=wall)


def _old(wall: float) -> Task:
    return Task(
        id=TASK_ID, family="vidsa", requested_model="vidsa_1_5_pro_480p", submitted_at=wall - 90_000
    )


def _regression(number: int, name: str, task: Callable[[float], Result], now: str) -> Row:
    return Row(
        numbers=(number,),
        name=name,
        point=Point.MEANING,
        does=f"says {now} of a task that has ended otherwise",
        on_request=changed(_field("status", now)),
        closes=False,
        task=task,
        always={"get": "ProtocolViolation"},
        once={"get": "ProtocolViolation"},
        without=dict.fromkeys([name for name in ALL if name != "get"], "knows of no earlier state"),
    )


def _waits(value: bytes, *, longer: bool = False, unclear: bool = False) -> Row:
    """Return a row of a 429 with an odd Retry-After, which nobody is to sleep by."""
    date = b"Date: Sat, 21 Nov 2026 12:00:00 GMT\r\n"
    head = b"HTTP/1.1 429 Slow\r\nContent-Length: 2\r\n" + date + b"Retry-After: " + value
    meaning = "is soon over"
    if longer or unclear:
        meaning = "asks for longer than two minutes" if longer else "is not understood"
    shown = value[:24].decode("latin-1")
    return Row(
        numbers=(59,),
        name=f"Retry-After {shown}",
        point=Point.MEANING,
        does=f"answers 429 with a Retry-After that {meaning}",
        on_request=say(head + b"\r\n\r\n{}"),
        closes=False,
        declines=True,
        always={
            "create": "RateLimited",
            "get": "ServiceUnreachable",
            "wait": "WaitTimeout",
            "delete": "RateLimited",
            "download": "DownloadFailed",
            "check": UNDECIDED,
            **every("RateLimited", TEXTS),
        },
        once={
            **every("ok", ("get", "delete")),
            **every("RateLimited" if longer or unclear else "ok", ("create", *TEXTS)),
            # There is a minute for both.
            "wait": "WaitTimeout" if longer else "ok",
            "download": "DownloadFailed" if longer else "ok",
            "check": UNDECIDED,
        },
        without={"batch": "sits throttling out", "call": "hands any reply over"},
    )


def _redirect(code: int) -> Row:
    return Row(
        numbers=(74,),
        name=f"status {code}",
        point=Point.MEANING,
        does=f"answers {code}, with the record and a new place for it",
        on_request=changed(bytes, code, location="/v1/imga/images"),
        closes=False,
        always={
            **only(LOST, "create", "batch", *TEXTS),
            **every("ProtocolViolation", ("get", "wait", "delete")),
        },
        once={
            **only(LOST, "create", "batch", *TEXTS),
            **every("ProtocolViolation", ("get", "wait", "delete")),
        },
        without={
            "call": "hands any reply over",
            **every("follows within the service", ("download", "check")),
        },
    )


REDIRECTS = tuple(_redirect(code) for code in (301, 302, 303, 307, 308))

ROWS: tuple[Entry, ...] = (
    _unreadable(
        32, "100,000 arrays in one another", inserted(b'"x": ' + b"[" * 100_000 + b"]" * 100_000)
    ),
    _unreadable(
        32,
        "100,000 objects in one another",
        inserted(b'"x": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    ),
    _unreadable(32, "millions of empty objects", _filled(8 * MEBIBYTE - 4096, b"{}"), large=True),
    _unreadable(32, "millions of empty arrays", _filled(8 * MEBIBYTE - 4096, b"[]"), large=True),
    _odd(33, "NaN", b'"x": NaN'),
    _odd(33, "Infinity", b'"x": Infinity'),
    _unreadable(33, "1e999", inserted(b'"x": 1e999')),
    _odd(34, "a name twice", b'"x": 1, "x": 2'),
    _odd(34, "a name twice in disguise", b'"x": 1, "\\u0078": 2'),
    _unreadable(35, "5,000 digits", inserted(b'"x": ' + b"9" * 5000)),
    _unreadable(36, "trailing data", lambda body: body + b"x"),
    _unreadable(36, "two records", lambda body: body + body),
    _unreadable(37, "invalid UTF-8", inserted(b'"x": "\xff"')),
    _unreadable(38, "UTF-16", lambda body: body.decode().encode("utf-16")),
    _unreadable(38, "UTF-32", lambda body: body.decode().encode("utf-32")),
    _well(39, "a byte order mark", lambda body: b"\xef\xbb\xbf" + body),
    _well(39, "another media type", bytes, content_type="text/html"),
    odd_id(40, "a\ud800b"),
    odd_id(40, "a\0b"),
    Row(
        numbers=(41,),
        name="an empty success",
        point=Point.BODY,
        does="answers 200 with nothing",
        on_request=status(200, b""),
        closes=False,
        always={**UNREADABLE, "call": "ok", "download": "DownloadFailed", "check": UNFIT},
        once={**UNREADABLE_ONCE, "call": "ok", "download": "ok", "check": UNFIT},
    ),
    Row(
        numbers=(42,),
        name="a page",
        point=Point.MEANING,
        does="answers 200 with a page",
        on_request=status(200, b"<html>Welcome</html>", content_type="text/html"),
        closes=False,
        always={**UNREADABLE, "call": "ok", "download": "DownloadFailed", "check": UNFIT},
        once={**UNREADABLE_ONCE, "call": "ok", "download": "DownloadFailed", "check": UNFIT},
    ),
    Row(
        numbers=(43,),
        name="a gzip bomb",
        point=Point.BODY,
        does="sends 100 kB that are 100 MiB",
        on_request=_explode,
        large=True,
        always={**CUT, "download": "ok"},  # all of it is within the limit
        once={**CUT_ONCE, "download": "ok"},
    ),
    _encoded(
        44,
        "gzip in gzip",
        "sends a reply that is packed twice",
        rewritten(lambda body: gzip.compress(gzip.compress(body)), content_encoding="gzip, gzip"),
    ),
    _encoded(
        45,
        "six codings",
        "names six content codings",
        changed(bytes, content_encoding="gzip, gzip, gzip, gzip, gzip, gzip"),
    ),
    Row(
        numbers=(46,),
        name="an endless body",
        point=Point.BODY,
        does="sends a body without end",
        on_request=steps(say(HEAD + b"\r\n"), flood(b"x" * 65_536)),
        large=True,
        # A file has no such bound: it is the caller's, and 4 GiB otherwise.
        always={**_but_download(CUT), "check": UNFIT},
        once={**_but_download(CUT_ONCE), "check": UNFIT},
        without={"download": "has a limit of 4 GiB: faults/test_memory.py"},
    ),
    Row(
        numbers=(47,),
        name="an endless error",
        point=Point.BODY,
        does="sends status 500 and a body without end",
        on_request=steps(say(b"HTTP/1.1 500 No\r\n\r\n"), flood(b"x" * 65_536)),
        large=True,
        always=LOST,
        once=LOST_ONCE,
    ),
    Elsewhere(
        numbers=(32, 43, 46, 47),
        tests=("faults/test_memory.py::test_replies", "faults/test_memory.py::test_downloads"),
    ),
    *streams.ROWS,
    _of(
        51,
        "another task's id",
        "answers for another task",
        changed(_field("id", "task-2")),
        get="ProtocolViolation",
        wait="ProtocolViolation",
    ),
    _of(
        52,
        "an unknown status",
        "says a status that is not specified",
        changed(_field("status", "dreaming")),
        create="ok",
        batch="ok",
        get="ok",
        wait="WaitTimeout",
    ),
    _regression(53, "completed, then processing", _completed, "processing"),
    _regression(54, "completed, then failed", _completed, "failed"),
    _regression(54, "failed, then completed", _failed, "completed"),
    Row(
        numbers=(55,),
        name="404 after the creation",
        point=Point.MEANING,
        does="does not know yet what it has just created",
        on_request=status(404, b"{}"),
        closes=False,
        task=_newborn,
        always={"get": "TaskNotFound", "wait": "TaskNotFound|WaitTimeout"},
        once={"get": "ok", "wait": "ok"},
        without=dict.fromkeys(
            [name for name in ALL if name not in ("get", "wait")], "does not ask for a task"
        ),
    ),
    Row(
        numbers=(56,),
        name="404 after 25 hours",
        point=Point.MEANING,
        does="has deleted what it keeps for a day",
        on_request=status(404, b"{}"),
        closes=False,
        task=_old,
        always={"get": "ResultExpired", "wait": "ResultExpired"},
        once={"get": "ResultExpired", "wait": "ResultExpired"},
        without=dict.fromkeys(
            [name for name in ALL if name not in ("get", "wait")], "does not ask for a task"
        ),
    ),
    _well(57, "a huge progress", inserted(b'"progress": 1' + b"0" * 300)),
    _well(
        57,
        "wrong types",
        lambda body: written(
            {
                **json.loads(body),
                **dict.fromkeys(("created", "promptFeedback", "responseId"), "x"),
                **{name: [1] for name in ("model", "usage", "modelVersion")},
                **{name: {"x": "y"} for name in ("totalTokens", "usageMetadata")},
            }
        ),
    ),
    Row(
        numbers=(57,),
        name="an error of the wrong type",
        point=Point.MEANING,
        does="sends a record, and 1 as an error",
        on_request=changed(_field("error", 1)),
        closes=False,
        # In an answer it takes the answer's place.
        always={**every("ok", RECORDS), "text": "TextAmbiguous", **INTERRUPTED},
        without=NO_RECORD,
    ),
    _of(58, "code 1", "does not delete", changed(_field("code", "1")), delete="AssetDeleteFailed"),
    _of(
        58,
        "code as a number",
        "says 0 as a number",
        changed(_field("code", 0)),
        delete="AssetDeleteFailed",
    ),
    _of(
        58,
        "no code",
        "says no code",
        changed(lambda _: b'{"msg": "deleted"}'),
        delete="AssetDeleteUnknown",
    ),
    *(
        _waits(value, unclear=True)
        for value in (
            b"-5",
            b"inf",
            "\N{ARABIC-INDIC DIGIT THREE}".encode(),
            b"Sat, 21 Nov 99999 12:00:00 GMT",
            b"Sat, 21 Nov 2020 12:00:00 GMT",  # which is over
        )
    ),
    _waits(b"1.5"),
    *(
        _waits(value, longer=True)
        for value in (b"1000000000", b"9" * 5000, b"Fri, 31 Dec 9999 23:59:59 GMT")
    ),
    Elsewhere(
        numbers=(59,),
        tests=(
            "core/test_delivery.py::test_retry_after_junk",
            "core/test_delivery.py::test_long_retry_after_stops_a_create",
        ),
    ),
    Elsewhere(numbers=(60,), tests=("faults/test_clocks.py::test_wall_clock_jumps",)),
)
