"""A carelessly written driver gets an error at once, instead of losing money silently."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from math import inf, nan
from typing import Any, cast

import pytest

from muybridge_protocol.fleet import Fleet
from muybridge_protocol.fleet.throttle import Throttle
from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)
from muybridge_protocol.operations import (
    Call,
    Create,
    DeleteAsset,
    Download,
    Operation,
    Poll,
)
from muybridge_protocol.operations.download import DownloadStage
from muybridge_protocol.operations.operation import Step
from muybridge_protocol.operations.text import OpenStream, TextCall

from .driving import (
    DONE,
    call,
    create,
    delete,
    download,
    lost,
    open_stream,
    poll,
    query,
    reply,
    result,
    task,
    text_call,
    unsent,
)

OPERATIONS: dict[str, Callable[..., Operation[Any]]] = {
    "create": create,
    "poll": poll,
    "query": query,
    "call": call,
    "delete": delete,
    "text call": text_call,
    "open stream": open_stream,
    "download": download,
    "download without a link": partial(download, None, about=task()),
}
VIDEO = HttpHead(200, (("Content-Type", "video/mp4"),))
STEPS: dict[Step, Callable[[Any], object]] = {
    "receive": lambda operation: operation.receive(DONE, 1.0),
    "fail": lambda operation: operation.fail(lost(), 1.0),
    "accept": lambda operation: operation.accept(VIDEO, 1.0),
    "take": lambda operation: operation.take(b"\x80"),
    "end": lambda operation: operation.end(1.0),
}


def settled() -> dict[str, Operation[Any]]:
    """Return operations that have settled, by what they are."""
    return {
        "created": create().receive(result("queued"), 1.0),
        "refused": create().receive(reply(400), 1.0),
        "ambiguous": create().fail(lost(), 1.0),
        "completed": poll().receive(DONE, 1.0),
        "queried": query().receive(result("queued"), 1.0),
        "called": call().receive(reply(200), 1.0),
        "deleted": delete().receive(reply(200, {"code": "0"}), 1.0),
        "answered": text_call().receive(reply(400), 1.0),
        "streaming": open_stream().accept(HttpHead(200), 1.0),
        "downloaded": download().accept(VIDEO, 0.0).take(b"\x80").end(1.0),
        "not found": download().accept(HttpHead(404), 1.0),
    }


@pytest.mark.parametrize("name", settled())
def test_a_settled_operation_takes_no_more(name: str) -> None:
    """Every further step of a settled operation is rejected."""
    operation = settled()[name]
    assert operation.settled is not None
    for step, take in STEPS.items():
        if hasattr(operation, step):
            with pytest.raises(RuntimeError, match=rf"{step} was called, .* has settled"):
                take(operation)


def download_at(stage: DownloadStage) -> Download:
    """Return a download at *stage*."""
    return {
        DownloadStage.FETCHING: download(),
        DownloadStage.READING: download().accept(VIDEO, 0.0),
        DownloadStage.REFRESHING: download(None, about=task()),
    }[stage]


LAWFUL: dict[DownloadStage, set[Step]] = {
    DownloadStage.FETCHING: {"accept", "fail"},
    DownloadStage.READING: {"take", "end", "fail"},
    DownloadStage.REFRESHING: {"receive", "fail"},
}


@pytest.mark.parametrize("stage", DownloadStage, ids=lambda stage: stage.name.lower())
@pytest.mark.parametrize("step", STEPS)
def test_a_download_takes_each_step_in_its_turn(stage: DownloadStage, step: Step) -> None:
    """A piece before the head, a second head, and an end without a body are refused."""
    operation = download_at(stage)
    assert operation.stage is stage
    if step in LAWFUL[stage]:
        STEPS[step](operation)
        return
    with pytest.raises(RuntimeError, match=rf"Download\.{step} was called, .* expects ") as caught:
        STEPS[step](operation)
    for lawful in LAWFUL[stage]:
        assert lawful in str(caught.value)
    assert operation == download_at(stage)


@pytest.mark.parametrize("name", OPERATIONS)
def test_something_else_than_a_response_is_refused(name: str) -> None:
    """A library's own response, or a failure in the place of a response, is a TypeError."""
    operation = cast("Any", OPERATIONS[name]())
    if name != "download":
        for wrong in ({"status": 200}, unsent(), HttpHead(200), None):
            with pytest.raises(TypeError, match=r"receive must be HttpResponse, not "):
                operation.receive(wrong, 1.0)
    for wrong in (TimeoutError(), reply(200), None):
        with pytest.raises(TypeError, match=r"fail must be TransportFailure, not "):
            operation.fail(wrong, 1.0)


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_clock_shows_a_number(name: str) -> None:
    """A driver whose clock shows no number is refused, for every wait would be wrong."""
    with pytest.raises(ValueError, match="now must be a number"):
        OPERATIONS[name]().fail(unsent(), nan)


def test_an_operation_starts_at_a_number() -> None:
    """So is one whose clock shows none at the start."""
    with pytest.raises(ValueError, match="now must be a number"):
        create(now=nan)


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("timeout", [nan, 0.0, -1.0, -inf])
def test_a_timeout_is_above_nothing(name: str, timeout: float) -> None:
    """A timeout that no exchange can keep is refused before anything is sent."""
    with pytest.raises(ValueError, match=r"timeout must be positive \(got "):
        OPERATIONS[name](timeout=timeout)


def test_other_times_are_numbers() -> None:
    """So are the times that only some operations have."""
    with pytest.raises(ValueError, match=r"wait must be a number \(got nan\)"):
        poll(wait=nan)
    with pytest.raises(ValueError, match=r"poll_interval must be at least 0 \(got -1\)"):
        poll(poll_interval=-1)
    with pytest.raises(ValueError, match="poll_interval must be at least 0"):
        poll(poll_interval=nan)
    with pytest.raises(ValueError, match="deadline must be a number"):
        download(deadline=nan)


@pytest.mark.parametrize("kind", [HttpHead, HttpResponse])
@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "5"},
        {"ab": "c"},
        [("Retry-After", "5")],
        (("Retry-After", b"5"),),
        (("Retry-After", 5),),
        (("Retry-After",),),
        ("ab",),
        "Retry-After: 5",
        None,
    ],
    ids=repr,
)
def test_headers_are_pairs(kind: Any, headers: object) -> None:
    """Headers in another form are refused: a Retry-After in them would not be found."""
    with pytest.raises(TypeError, match=r"tuple of \(name, value\) pairs") as caught:
        kind(429, headers)
    assert "Retry-After" not in str(caught.value)  # what headers hold may be a secret
    with pytest.raises(TypeError, match=r"tuple of \(name, value\) pairs"):
        HttpRequest(method="GET", url="https://a.test", headers=cast("Any", headers))


@pytest.mark.parametrize("body", ['{"id": "t1"}', None, bytearray(b"{}"), {"id": "t1"}], ids=repr)
def test_bodies_are_bytes(body: object) -> None:
    """A body that is not bytes is refused: it would be taken for a response without an id."""
    with pytest.raises(TypeError, match=r"HttpResponse\.body must be bytes, not "):
        HttpResponse(200, (), cast("Any", body))


def test_a_status_is_a_number() -> None:
    """A status in text is refused: it would be one that nobody knows."""
    with pytest.raises(TypeError, match=r"HttpResponse\.status must be int, not str"):
        HttpResponse(cast("Any", "200"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("sent", None), ("sent", 0), ("phase", "head"), ("reason", "reset"), ("partial", "{")],
)
def test_failures_say_what_they_say_in_their_own_terms(name: str, value: object) -> None:
    """`sent=None` is refused: it would count as not sent, and a create would be sent again."""
    fields: dict[str, Any] = {"phase": Phase.HEAD, "sent": True, "reason": Reason.RESET}
    fields[name] = value
    with pytest.raises(TypeError, match=rf"TransportFailure\.{name} must be "):
        TransportFailure(**fields)


@pytest.mark.parametrize(
    "start",
    [
        Call.start,
        Create.start,
        DeleteAsset.start,
        Download.start,
        OpenStream.start,
        Poll.query,
        Poll.start,
        TextCall[Any].start,
        Operation,
        Fleet,
        Throttle,
    ],
    ids=lambda start: start.__qualname__,
)
def test_every_start_asks_for_a_seed(start: Any) -> None:
    """Nothing starts without a seed: processes with the same one would retry at the same time."""
    seed = signature(start).parameters["seed"]
    assert seed.kind is Parameter.KEYWORD_ONLY
    assert seed.default is Parameter.empty


@pytest.mark.parametrize("seed", [None, 0.5, "7"])
def test_a_seed_is_an_integer(seed: object) -> None:
    """Another seed is refused at the start, and not when the first retry is due."""
    with pytest.raises(TypeError, match="seed must be int"):
        create(seed=seed)
