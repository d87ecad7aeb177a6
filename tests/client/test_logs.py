"""What a client writes into Python's own logs."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import muybridge
import muybridge_protocol
from muybridge import CreateAmbiguous, TaskNotFound
from muybridge.observability.facts import facts
from muybridge_protocol.emulator import Timing
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure

from .answers import MODEL, PROMPT
from .drivers import MakeClient
from .fleets import run_all
from .heard import Heard
from .in_process import World
from .requests_made import image

HOMES = [
    str(Path(str(module.__file__)).parent.parent) for module in (muybridge, muybridge_protocol)
]
LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.RESET, detail="said elsewhere")


@pytest.fixture
def logs(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """The records of our loggers, all levels."""
    with caplog.at_level(logging.DEBUG, logger="muybridge"):
        yield caplog


def test_a_run(make_client: MakeClient, logs: pytest.LogCaptureFixture) -> None:
    """Each step of a run is one line, at a level that fits it."""
    world = World(latency=0.25, timing=Timing(image_processing=20))
    world.instead.extend([HttpResponse(429, (("Retry-After", "7"),)), None, LOST])
    make_client(world).run(image())
    lines = [
        (record.levelname, record.name.rpartition(".")[2], record.message.partition(": ")[2])
        for record in logs.records
    ]
    assert lines[:13] == [
        ("DEBUG", "calls", "begins"),
        ("DEBUG", "requests", "POST https://service.test:443/v1/imga/images, 47 bytes"),
        ("DEBUG", "requests", "status 429, 0 bytes after 0.250 s"),
        ("WARNING", "calls", "the service asks to slow down; create resumes in 7 s"),
        ("DEBUG", "requests", "POST https://service.test:443/v1/imga/images, 47 bytes, once more"),
        ("DEBUG", "requests", "status 200, 98 bytes after 0.250 s"),
        ("INFO", "tasks", "accepted, processing"),
        ("INFO", "calls", "done after 7.500 s, processing"),
        ("DEBUG", "calls", "begins"),
        ("DEBUG", "requests", "GET https://service.test:443/v1/result/task-2, 0 bytes"),
        (
            "DEBUG",
            "requests",
            (
                "connection reset while waiting for the response after 0.250 s; "
                "the request may have arrived"
            ),
        ),
        ("WARNING", "calls", lines[11][2]),
        ("DEBUG", "requests", "GET https://service.test:443/v1/result/task-2, 0 bytes, once more"),
    ]
    assert lines[11][2].startswith("retrying poll in ")
    assert lines[11][2].endswith(" s: connection reset while waiting for the response")
    assert lines[-2] == ("INFO", "tasks", "is now completed")
    assert lines[-1][:2] == ("INFO", "calls")
    assert ("DEBUG", "tasks", "is still processing") in lines


def test_whose_line_it_is(make_client: MakeClient, logs: pytest.LogCaptureFixture) -> None:
    """Each line begins with its call, and with its task once that is known."""
    make_client(World()).create(image())
    first, last = logs.records[0], logs.records[-1]
    number = vars(first)["muybridge_call"]
    assert first.message == f"create {number}: begins"
    assert last.message.startswith(f"create {number} (task-1): done after ")


def test_records_for_programs(make_client: MakeClient, logs: pytest.LogCaptureFixture) -> None:
    """A record has the facts of its event as attributes, the same that `facts` gives."""
    heard = Heard()
    run_all(make_client(World(), on_event=heard), [image(), image()], concurrency=2)
    told = [
        {
            name.removeprefix("muybridge_"): value
            for name, value in vars(record).items()
            if name.startswith("muybridge_")
        }
        for record in logs.records
    ]
    assert told == [facts(event) for event in heard.events]
    assert {record["call_work"] for record in told} == {0, 1}


@pytest.mark.parametrize("answer", [LOST, HttpResponse(500, (), b'{"message": "no horses"}')])
def test_an_open_question(
    make_client: MakeClient, world: World, logs: pytest.LogCaptureFixture, answer: object
) -> None:
    """An ambiguous paid request is logged as an error, without any words of the service."""
    world.always = answer  # type: ignore[assignment]  # one of the two that it takes
    with pytest.raises(CreateAmbiguous):
        make_client(world).create(image())
    (record,) = [record for record in logs.records if record.levelno == logging.ERROR]
    assert record.name == "muybridge.calls"
    assert "may or may not have been accepted" in record.message
    assert "no horses" not in logs.text


def test_the_end_of_other_calls(
    make_client: MakeClient, world: World, logs: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """The end of a call reports its outcome: bytes, tokens, an error, or that it was left."""
    client = make_client(world)
    task = client.create(image())
    client.download(client.wait(task), tmp_path)
    client.generate_content(MODEL, PROMPT)
    with client.stream_generate_content(MODEL, PROMPT) as stream:
        next(stream)
    with pytest.raises(TaskNotFound):
        client.get("task-99")
    ends = [
        (record.levelname, record.message.partition(": ")[2])
        for record in logs.records
        if vars(record)["muybridge_event"] == "CallEnded"
    ][2:]
    assert [level for level, _ in ends] == ["INFO", "INFO", "INFO", "WARNING"]
    assert ends[0][1].endswith(" s, 708 bytes")
    assert ends[1][1].endswith(" tokens")
    assert ends[2][1].startswith("left after ")
    assert ends[3][1].startswith("failed with TaskNotFound after ")


def test_a_handler_that_raises(
    make_client: MakeClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log that fails interrupts nothing that costs money."""

    def fail(_: object) -> None:
        raise OSError("the disk is full")

    handler = logging.Handler()
    monkeypatch.setattr(handler, "handle", fail)
    logger = logging.getLogger("muybridge.tasks")
    monkeypatch.setattr(logger, "level", logging.DEBUG)
    logger.addHandler(handler)
    try:
        assert make_client(world).run(image()).id == "task-1"
    finally:
        logger.removeHandler(handler)


def alone(code: str) -> str:
    """Run *code* in a fresh interpreter against an address where nobody is; return its output."""
    prelude = f"""
import sys
sys.path[:0] = {HOMES!r}
import muybridge
def call():
    client = muybridge.Client("key", "http://127.0.0.1:9")
    try:
        client.create(muybridge.ImgaRequest(model="imga", prompt="a horse"))
    except muybridge.NotSent:
        pass
import time
time.sleep = lambda seconds: None
"""
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-I", "-c", prelude + code],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout + done.stderr


def test_silence() -> None:
    """Where a program does not log, nothing is printed, and what follows calls is not loaded."""
    assert alone("call(); print('muybridge.drivers.tracking' in sys.modules)") == "False\n"


def test_import_brings_no_logging() -> None:
    """`import muybridge` does not load `logging`."""
    assert alone("print('logging' in sys.modules)") == "False\n"


def test_one_handler_is_no_reason_to_print_the_rest() -> None:
    """A handler on one of the loggers gets its records, and Python prints no other by itself."""
    code = """
import logging
logging.getLogger("muybridge.requests").addHandler(logging.StreamHandler(sys.stdout))
logging.getLogger("muybridge.requests").setLevel("DEBUG")
call()
"""
    lines = alone(code).splitlines()
    assert len(lines) == 6  # three tries, three failures
    assert all("POST" in line or "connection refused" in line for line in lines)
