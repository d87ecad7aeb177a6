"""With the pytest plugin, tests do not pay: what the guard refuses, and what it allows."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

import pytest
import trio
from tests.client.drivers import DRIVERS, AnyClient, MakeClient
from tests.client.fleets import run_all

import muybridge
from muybridge import batch
from muybridge.batch import Stage
from muybridge.payment_guard import PaidRequestBlocked, paid_requests
from muybridge.testing import AsyncFakeTransport, FakeTransport, ScriptedServer, json_response
from muybridge.testing.scripted_server import read_request, reply

REQUEST = muybridge.ImgaRequest(model="imga", prompt="a horse")
TASK = {"id": "task-1", "status": "queued"}
ELSEWHERE = "https://service.test"
HOME = Path(muybridge.__file__).parent.parent


def open_stream(client: AnyClient) -> None:
    with client.stream_generate_content("textg-2.5-pro", "Why?"):
        pass


PAID: dict[str, Callable[[AnyClient], object]] = {
    "create": lambda client: client.create(REQUEST),
    "run": lambda client: client.run(REQUEST),
    "run_all": lambda client: run_all(client, [REQUEST]),
    "call": lambda client: client.call("POST", "/v1/imga/images", {}),
    "text": lambda client: client.generate_content("textg-2.5-pro", "Why?"),
    "text stream": open_stream,
}


class Custom(FakeTransport):
    """A transport of somebody's own, which does not say whether it reaches a network."""

    offline = False


class AsyncCustom(AsyncFakeTransport):
    """The same for async clients."""

    offline = False


@pytest.fixture(params=DRIVERS)
def make_client(request: pytest.FixtureRequest) -> Iterator[MakeClient]:
    """What makes clients of the driver under test."""
    with ExitStack() as closing:
        yield DRIVERS[request.param](closing)


@pytest.mark.parametrize("call", PAID)
def test_own_transports(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """A paid request to another machine is refused before its name is looked up."""

    def look_up(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a name was looked up")

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    client = make_client(ELSEWHERE)
    with pytest.raises(PaidRequestBlocked, match=r"to service\.test.*muybridge_paid_requests"):
        PAID[call](client)


@pytest.mark.parametrize("call", PAID)
def test_custom_transports(make_client: MakeClient, call: str) -> None:
    """A custom transport is not even asked, and the error says that nothing was charged."""
    transport = Custom(otherwise=json_response(TASK))
    with pytest.raises(PaidRequestBlocked) as caught:
        PAID[call](make_client(ELSEWHERE, transport=transport))
    assert transport.requests == []
    notes = getattr(caught.value, "__notes__", [])
    assert not any("may have been" in note for note in notes)


@pytest.mark.muybridge_paid_requests
def test_marked(make_client: MakeClient) -> None:
    """A marked test may send them."""
    transport = Custom(json_response(TASK))
    assert make_client(ELSEWHERE, transport=transport).create(REQUEST).id == "task-1"


def test_free_requests(make_client: MakeClient) -> None:
    """Requests that cost nothing are sent."""
    transport = Custom(json_response(TASK))
    assert make_client(ELSEWHERE, transport=transport).get("task-1").status == "queued"


def test_offline(make_client: MakeClient) -> None:
    """A transport that says that it is offline, as fake ones do, is asked."""
    transport = FakeTransport(json_response(TASK))
    assert make_client(ELSEWHERE, transport=transport).create(REQUEST).id == "task-1"


def test_loopback(make_client: MakeClient) -> None:
    """This machine may be paid."""
    with ScriptedServer([read_request, reply(200, json_response(TASK).body)]) as server:
        assert make_client(server.url).create(REQUEST).id == "task-1"


def test_after_a_marked_test(make_client: MakeClient) -> None:
    """A client that was made while paid requests were allowed refuses them afterwards."""
    with paid_requests(refused=False):
        client = make_client(ELSEWHERE, transport=Custom())
    with pytest.raises(PaidRequestBlocked):
        client.create(REQUEST)


@pytest.mark.parametrize("driver", DRIVERS)
def test_batch(tmp_path: Path, driver: str) -> None:
    """A batch stops, and its store says that nothing was sent."""

    def run() -> None:
        with muybridge.Client("key", ELSEWHERE, transport=Custom()) as client:
            batch.run(client, [REQUEST], tmp_path)

    async def run_async() -> None:
        async with muybridge.AsyncClient("key", ELSEWHERE, transport=AsyncCustom()) as client:
            await batch.run_async(client, [REQUEST], tmp_path)

    runs: dict[str, Callable[[], object]] = {
        "requests": run,
        "trio": lambda: trio.run(run_async),
        "asyncio": lambda: asyncio.run(run_async()),
    }
    with pytest.raises(PaidRequestBlocked):
        runs[driver]()
    (entry,) = batch.status(tmp_path).entries
    assert entry.state is Stage.QUEUED


SUITE = {
    "conftest.py": """
        import pytest
        import muybridge
        from muybridge.testing import FakeTransport, json_response

        class Custom(FakeTransport):
            offline = False

        def pay():
            answer = json_response({"id": "task-1", "status": "queued"})
            client = muybridge.Client("key", "https://service.test", transport=Custom(answer))
            try:
                client.create(muybridge.ImgaRequest(model="imga", prompt="a horse"))
            except RuntimeError as error:
                return type(error).__name__
            return "paid"

        IMPORTED = pay()

        def pytest_collection_modifyitems(items):
            assert pay() == "PaidRequestBlocked"

        @pytest.fixture(scope="session")
        def session():
            return pay()

        @pytest.fixture
        def function(session):
            return pay()
        """,
    "test_them.py": """
        import subprocess
        import sys
        import threading
        import unittest
        import pytest
        from conftest import IMPORTED, pay

        COLLECTED = pay()
        BLOCKED = "PaidRequestBlocked"
        later = threading.Event()
        heard = []

        def child():
            done = subprocess.run(
                [sys.executable, "-c", "from conftest import pay; print(pay())"],
                stdout=subprocess.PIPE, text=True, check=True,
            )
            return done.stdout.strip()

        def wait():
            later.wait()
            heard.append(pay())

        @pytest.fixture(scope="module", autouse=True)
        def module():
            yield
            assert pay() == BLOCKED

        @pytest.mark.muybridge_paid_requests
        def test_marked(session, function):
            assert (session, function, pay()) == (BLOCKED, "paid", "paid")
            assert child() == "paid"
            thread = threading.Thread(target=wait)
            thread.start()
            heard.append(thread)

        def test_unmarked(function, monkeypatch):
            assert (IMPORTED, COLLECTED, function, pay()) == (BLOCKED,) * 4
            assert child() == BLOCKED
            later.set()
            heard.pop(0).join()
            assert heard == [BLOCKED]

        @pytest.mark.muybridge_paid_requests
        class TestUnit(unittest.TestCase):
            def setUp(self):
                assert pay() == "paid"

            def test_marked(self):
                assert pay() == "paid"
        """,
}


def python(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in *folder*."""
    paths = os.pathsep.join(map(str, (HOME, HOME.parent / "protocol")))
    return subprocess.run(  # noqa: S603  our own code
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, **environment},
    )


def test_scopes(tmp_path: Path) -> None:
    """Only a marked test, its function-scoped fixtures and its processes may pay.

    Conftest files, collection, wider fixtures and threads that a marked test left behind may not.
    """
    for name, text in SUITE.items():
        tmp_path.joinpath(name).write_text(text.replace("\n        ", "\n"), encoding="utf-8")
    done = python(tmp_path, "-m", "pytest", "-q", "--strict-markers", "-p", "no:xdist")
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_outside_of_tests(tmp_path: Path) -> None:
    """A pytest run within a program leaves no guard behind, nor does one that breaks."""
    tmp_path.joinpath("conftest.py").write_text(SUITE["conftest.py"].replace("\n        ", "\n"))
    tmp_path.joinpath("broken").mkdir()
    tmp_path.joinpath("broken", "conftest.py").write_text("1 / 0\n")
    code = (
        "import os; os.environ.pop('MUYBRIDGE_REFUSE_PAID_REQUESTS')\n"
        "import pytest\n"
        "pytest.main(['-q', 'broken']), pytest.main(['-q', '--no-such-option'])\n"
        "import conftest\n"
        "print(conftest.pay())"
    )
    assert python(tmp_path, "-c", code).stdout.splitlines()[-1] == "paid"


def test_command(tmp_path: Path) -> None:
    """The command, run by a test, sends nothing and says why."""
    done = python(
        tmp_path,
        *("-m", "muybridge", "create", "imga", "--model", "imga", "--prompt", "a horse"),
        MUYBRIDGE_API_KEY="key",
        MUYBRIDGE_BASE_URL=ELSEWHERE,
    )
    assert done.returncode == 70
    assert "Tests must not pay" in done.stderr
