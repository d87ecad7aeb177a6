"""Ctrl-C and errors in the caller's own code never lose a paid id."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from importlib import import_module

import pytest

from muybridge import Client, CreateAmbiguous
from muybridge.clock import SystemClock
from muybridge.signals import Terminated, hold_interrupts, terminating_on_signals
from muybridge_protocol.events import Ambiguous, Event, Polled, Submitted
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.records.tasks import Result, Task
from transport.scripted_server import (
    Peer,
    ScriptedServer,
    Step,
    hang,
    read_request,
    reply,
    send,
    serve,
)

from .alarms import ctrl_c
from .drivers import MakeClient
from .heard import tasks_alone
from .in_process import World
from .requests_made import image

CREATED = json.dumps({"id": "task-1", "status": "queued", "created": 1}).encode()

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals to a thread are posix")


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    """Ctrl-C is handled as in a fresh interpreter, and after the test as before it."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", ()))


def test_interrupted_while_waiting(make_client: MakeClient, world: World) -> None:
    """An interruption while `run` waits has the id in its notes, and the hook had it before."""
    told: list[Task] = []

    def interrupt(_: Result) -> None:
        raise KeyboardInterrupt

    client = make_client(world, on_submitted=told.append)
    with pytest.raises(KeyboardInterrupt) as caught:
        client.run(image(), on_update=interrupt)
    assert "task-1" in notes(caught.value)
    assert [task.id for task in told] == ["task-1"]


def test_ctrl_c_while_waiting(make_client: MakeClient) -> None:
    """Ctrl-C during a result query interrupts it at once, with the id in its notes."""
    # The byte wakes the client, should the signal have come just before it began to wait.
    script = [read_request, reply(200, CREATED), read_request, ctrl_c, send(b"H"), hang]
    with ScriptedServer(script) as server, pytest.raises(KeyboardInterrupt) as caught:
        make_client(server.url).run(image())
    assert "task-1" in notes(caught.value)


def test_ctrl_c_during_a_create(
    make_client: MakeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C during a create is held back until the id is known, passed to the hook and noted."""
    told: list[Task] = []
    with ScriptedServer([read_request, ctrl_c, reply(200, CREATED)]) as server:
        client = make_client(server.url, on_submitted=told.append)
        with pytest.raises(KeyboardInterrupt) as caught:
            client.create(image())
        assert server.posts == 1
    assert "task-1" in notes(caught.value)
    assert [task.id for task in told] == ["task-1"]
    assert "Ctrl-C again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (serve(200, b'{"id": "task-1"'), "may have been accepted"),
        (serve(500, b""), "status 500"),
        (serve(401, b""), "status 401"),
    ],
)
def test_ctrl_c_during_a_create_that_goes_wrong(
    make_client: MakeClient, answer: Step, said: str
) -> None:
    """An interruption that was held back reports the outcome of the create."""

    def script(peer: Peer) -> None:
        peer.read_request()
        ctrl_c(peer)
        peer.sock.settimeout(5)
        answer(_Replayed(peer))

    with ScriptedServer(script) as server:
        with pytest.raises(KeyboardInterrupt) as caught:
            make_client(server.url).create(image())
        assert server.posts == 1
    assert said in notes(caught.value)


class _Replayed(Peer):
    """A peer whose request has been read already."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer.sock, peer.number, peer.stopping)
        self._has_read = False

    def read_request(self) -> bytes:
        if self._has_read:
            return super().read_request()
        self._has_read = True
        return b""


def test_ctrl_c_during_a_call(make_client: MakeClient) -> None:
    """The response to a paid call that arrived under Ctrl-C is reported by the interruption."""
    script = [read_request, ctrl_c, reply(200, CREATED)]
    with ScriptedServer(script) as server, pytest.raises(KeyboardInterrupt) as caught:
        make_client(server.url).call("POST", "/v1/imga/images", {"prompt": "x"})
    assert "task-1" in notes(caught.value)


class Impatient(io.StringIO):
    """A screen whose reader presses Ctrl-C at once."""

    def write(self, text: str, /) -> int:
        signal.raise_signal(signal.SIGINT)
        return super().write(text)


def test_ctrl_c_twice(
    make_client: MakeClient, driver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second Ctrl-C interrupts a create at once, and says that it may have been accepted."""
    if driver == "asyncio":
        pytest.skip("it ends the event loop, and the create goes on if somebody runs it again")
    monkeypatch.setattr(sys, "stderr", Impatient())
    # The byte wakes the client, should the signal have come just before it began to wait.
    with ScriptedServer([read_request, ctrl_c, send(b"H"), hang]) as server:
        with pytest.raises(KeyboardInterrupt) as caught:
            make_client(server.url).create(image())
        assert server.posts == 1
    assert "may have been accepted" in notes(caught.value)


class Broken(io.StringIO):
    def write(self, _: str, /) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("screen", [Broken(), None], ids=["broken", "none"])
def test_ctrl_c_without_a_screen(
    make_client: MakeClient,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    screen: io.StringIO | None,
) -> None:
    """A screen that cannot be written to does not cost the id that Ctrl-C is held back for."""
    monkeypatch.setattr(sys, "stderr", screen)
    script = [read_request, ctrl_c, reply(200, CREATED)]
    with ScriptedServer(script) as server, pytest.raises(KeyboardInterrupt) as caught:
        make_client(server.url).create(image())
    assert "task-1" in notes(caught.value)
    assert not capsys.readouterr().out


def test_a_handler_of_ones_own(make_client: MakeClient) -> None:
    """A program's own handler for Ctrl-C is called at once and kept."""
    seen: list[int] = []

    def own(number: int, _: object) -> None:
        seen.append(number)

    before = signal.signal(signal.SIGINT, own)
    try:
        with ScriptedServer([read_request, ctrl_c, reply(200, CREATED)]) as server:
            assert make_client(server.url).create(image()).id == "task-1"
        assert seen == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)


class Mine(Exception):
    """An error of the program's own."""


@pytest.mark.parametrize("error", [Mine("full disk"), KeyboardInterrupt(), SystemExit(3)])
@pytest.mark.parametrize("hook", ["on_submitted", "on_event"])
def test_a_hook_that_raises(
    make_client: MakeClient, world: World, hook: str, error: BaseException
) -> None:
    """If the hook that receives the id raises, its error has the id in its notes."""

    def fail(_: object) -> None:
        raise error

    listener = fail if hook == "on_submitted" else tasks_alone(fail)
    for method in ("create", "run"):
        with pytest.raises(type(error)) as caught:
            getattr(make_client(world, **{hook: listener}), method)(image())
        assert f"task-{len(world.seen)}" in notes(caught.value)
    assert len(world.posts) == 2


def test_both_hooks_learn_the_id(make_client: MakeClient, world: World) -> None:
    """`on_event` learns of a task although `on_submitted` raised."""
    events: list[Event] = []

    def fail(_: Task) -> None:
        raise Mine

    client = make_client(world, on_submitted=fail, on_event=tasks_alone(events.append))
    with pytest.raises(Mine):
        client.create(image())
    assert len(events) == 1


def test_a_hook_that_raises_while_waiting(make_client: MakeClient, world: World) -> None:
    """An error of a hook while `run` waits has the id in its notes."""

    def fail(event: Event) -> None:
        if isinstance(event, Polled):
            raise Mine

    with pytest.raises(Mine) as caught:
        make_client(world, on_event=fail).run(image())
    assert "task-1" in notes(caught.value)


def test_an_odd_error_during_a_create(
    make_client: MakeClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any error that interrupts a create says that it may have been accepted."""

    def broken(*_: object) -> HttpResponse:
        raise MemoryError

    monkeypatch.setattr(world, "answer", broken)
    with pytest.raises(MemoryError) as caught:
        make_client(world).create(image())
    assert "may have been accepted" in notes(caught.value)


def test_a_hook_that_raises_beside_an_odd_error(
    make_client: MakeClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook's error does not hide the one that interrupted the create, and is in its notes."""

    def broken(*_: object) -> HttpResponse:
        raise MemoryError

    def fail(event: object) -> None:
        if isinstance(event, Ambiguous):
            raise Mine("full disk")

    monkeypatch.setattr(world, "answer", broken)
    with pytest.raises(MemoryError) as caught:
        make_client(world, on_event=fail).create(image())
    assert "may have been accepted" in notes(caught.value)
    assert "Mine besides: full disk" in notes(caught.value)


def test_ambiguity_is_no_transient_error() -> None:
    """An error about a request that may have been paid is of no class that retries catch."""
    assert CreateAmbiguous.__mro__[1].__name__ == "ServiceError"
    assert not issubclass(CreateAmbiguous, OSError | TimeoutError | ConnectionError)


def test_interrupts_in_another_thread(make_client: MakeClient) -> None:
    """Outside the main thread nothing is held back, because Python interrupts nothing there."""
    ids: list[str] = []
    with ScriptedServer(serve(200, CREATED)) as server:
        client = make_client(server.url)
        thread = threading.Thread(target=lambda: ids.append(client.create(image()).id))
        thread.start()
        thread.join(10)
    assert ids == ["task-1"]


@pytest.mark.parametrize("call", ["create", "run"])
def test_ctrl_c_right_after_a_create(call: str) -> None:
    """Ctrl-C at the first look at the clock after the id is known has the id in its notes."""
    armed = False

    class Clock(SystemClock):
        def monotonic(self) -> float:
            nonlocal armed
            if armed:
                armed = False
                raise KeyboardInterrupt
            return super().monotonic()

    def arm(event: Event) -> None:
        nonlocal armed
        armed = isinstance(event, Submitted)

    with ScriptedServer([read_request, reply(200, CREATED)]) as server:
        client = Client("key", server.url, clock=Clock(), on_event=tasks_alone(arm))
        with client, pytest.raises(KeyboardInterrupt) as caught:
            getattr(client, call)(image())
    assert "task-1" in notes(caught.value)
    assert server.posts == 1


def test_handlers_are_those_that_signal_knows() -> None:
    """The functions that `signal` wraps read and replace the same handlers as its own."""
    unwrapped = import_module("_signal")
    before = signal.getsignal(signal.SIGTERM)
    assert unwrapped.signal(signal.SIGTERM, unwrapped.SIG_IGN) == before
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    assert signal.signal(signal.SIGTERM, before) == unwrapped.SIG_IGN
    assert unwrapped.getsignal(signal.SIGTERM) == before


def test_interrupted_while_it_begins_to_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that comes before its handler is replaced leaves none of ours in place."""
    unwrapped = import_module("_signal")
    install = unwrapped.signal

    def interrupted(number: int, action: object) -> object:
        if number == signal.SIGTERM and action is not before:
            raise Terminated(number)
        return install(number, action)

    with terminating_on_signals():
        before = signal.getsignal(signal.SIGTERM)
        with monkeypatch.context() as patch:
            patch.setattr(unwrapped, "signal", interrupted)
            with pytest.raises(Terminated), hold_interrupts(when=True):
                pass
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with hold_interrupts(when=True) as held:
            signal.raise_signal(signal.SIGINT)
    assert held.seen
