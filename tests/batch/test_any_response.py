"""Whatever the service answers, a batch comes to its end, and no item and no id is lost."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import trio
from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

from any_json import EXTREMES, responses
from client.drivers import DRIVERS
from client.event_loops import ClockEventLoop, TrioClock
from client.fleets import run_all
from client.in_process import AsyncFace, InProcessTransport
from muybridge import AsyncClient, Client, ImgbRequest, batch
from muybridge.batch import Report, Stage
from muybridge.cli.batch_progress import entry_record
from muybridge.cli.commands import muybridge as command
from muybridge_protocol.errors import ServiceError
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.records.json import RAW_LIMIT, as_object
from muybridge_protocol.records.tasks import Result
from sampling import examples

from .scripted_world import Script, ScriptedWorld, prompts

MEMORY = Path("/dev/shm")  # noqa: S108  each test has a folder of its own there
STOPPING = {401, 402, 429}
"""The statuses after which nothing more is created."""
EXAMPLES = settings(max_examples=examples(20, nightly=settings().max_examples // 2))
STATUSES = st.sampled_from([200] * 8 + [201, 302, 400, 401, 402, 404, 409, 429, 500])
HEADERS: st.SearchStrategy[tuple[tuple[str, str], ...]] = st.sampled_from(
    [(), (("Retry-After", "1"),), (("Content-Type", "image/png"),)]
)


def answers(task: str) -> st.SearchStrategy[HttpResponse]:
    bodies = responses(task) | responses() | responses(task)
    return st.builds(HttpResponse, STATUSES, HEADERS, bodies)


SCRIPTS = st.builds(
    Script,
    create=st.none() | answers("id-horse1"),
    polls=st.lists(answers("id-horse1"), max_size=3).map(tuple),
    media=st.none() | answers("id-horse1"),
)


def _created(**values: Any) -> Script:
    record = {"id": "id-horse1", "object": "image", "status": "queued", **values}
    return Script(create=HttpResponse(200, (), json.dumps(record).encode()))


def _ended(**values: Any) -> Script:
    record = {"id": "id-horse1", "object": "image", "status": "failed", **values}
    return Script(polls=(HttpResponse(200, (), json.dumps(record).encode()),))


KNOWN = [
    _created(created=2**63 - 1),
    _created(created=2**64 - 1, model="\ud83d"),
    _created(id="\N{HORSE}" * 9_000),
    _ended(error="blocked: \ud83d"),
    _ended(created=2**63 - 1, status="completed"),
    *(Script(create=HttpResponse(200, (), body)) for body in EXTREMES),
    *(Script(polls=(HttpResponse(200, (), body),) * 3) for body in EXTREMES[3:6]),
]


def _known(test: Callable[..., None]) -> Callable[..., None]:
    for script in KNOWN:
        test = example(script=script)(test)
    return test


def scripted(script: Script) -> ScriptedWorld:
    """Return a world with the item of *script* between those that nothing happens to."""
    return ScriptedWorld(prompts([script, Script(), Script()]))


ITEMS = [
    {"family": "imgb", "model": "imgb-2", "prompt": f"horse{number}", "name": f"h{number}"}
    for number in (1, 2, 3)
]


def run_requests(world: ScriptedWorld, source: Any, out: Path) -> Report:
    """Run a batch in threads, on the world's clock."""
    inside: dict[str, Any] = {"transport": InProcessTransport(world), "clock": world.clock}
    with Client(world.key, world.url, **inside) as client:
        return batch.run(client, source, out, concurrency=1, timeout=200)


async def run_async(world: ScriptedWorld, source: Any, out: Path) -> Report:
    transport = AsyncFace(InProcessTransport(world))
    async with AsyncClient(
        world.key, world.url, transport=transport, wall=world.clock.wall
    ) as client:
        return await batch.run_async(client, source, out, concurrency=1, timeout=200)


def run_trio(world: ScriptedWorld, source: Any, out: Path) -> Report:
    """Run a batch under trio, on the world's clock."""
    return trio.run(run_async, world, source, out, clock=TrioClock(world.clock))


def run_asyncio(world: ScriptedWorld, source: Any, out: Path) -> Report:
    """Run a batch under asyncio, on the world's clock."""
    with asyncio.Runner(loop_factory=lambda: ClockEventLoop(world.clock)) as runner:
        return runner.run(run_async(world, source, out))


def run_command(world: ScriptedWorld, source: Any, out: Path) -> Report:
    """Run a batch with the command, in this process, on the world's clock."""
    words = ["batch", "run", "--out", str(out), "--concurrency", "1", "--timeout", "200"]
    if source is not None:
        out.mkdir()
        (out / "b.json").write_text(json.dumps(source), encoding="utf-8")
        words.insert(2, str(out / "b.json"))
    with (
        patch("muybridge.RequestsTransport", return_value=InProcessTransport(world)),
        patch("muybridge.client.SystemClock", return_value=world.clock),
    ):
        env = {"MUYBRIDGE_API_KEY": world.key, "MUYBRIDGE_BASE_URL": world.url}
        done = CliRunner().invoke(command, words, env=env)
        shown = CliRunner().invoke(command, ["batch", "status", str(out), "--json"])
    assert done.exit_code in (0, 1, 3, 4, 5, 6), done.stderr
    assert shown.exit_code == done.exit_code
    check_lines(done.stderr.splitlines())
    return batch.status(out)


def check_lines(lines: Iterable[str]) -> None:
    """Check that each line is one of the command's own."""
    own = ("item ", "check your account", "stopped: ", "carry on: ", "to resume: ")
    for line in lines:
        assert line.startswith(own)
        assert line.isprintable()


RUNNERS: dict[str, Callable[[ScriptedWorld, Any, Path], Report]] = {
    "requests": run_requests,
    "trio": run_trio,
    "asyncio": run_asyncio,
    "command": run_command,
}


@contextmanager
def folder() -> Generator[Path, None, None]:
    """Give a folder in memory, where the system has one."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as made:
        yield Path(made) / "out"


@pytest.mark.parametrize("runner", RUNNERS)
@EXAMPLES
@_known
@given(script=SCRIPTS)
def test_any_response(runner: str, script: Script) -> None:
    """Any responses leave an item with its id, or ambiguous; the others are done, and so is it.

    Run again with a service that is well, the batch ends, and creates nothing a second time.
    """
    world = scripted(script)
    with folder() as out:
        report = RUNNERS[runner](world, ITEMS, out)
        check(report, world)
        posts = {prompt: len(found) for prompt, found in world.creates.items()}
        before = tuple(report.entries)
        world.recover()
        again = RUNNERS[runner](world, None, out)
        check(again, world)
        assert all(entry.state in ENDS for entry in again.entries)
        for entry in before:
            if entry.state is not Stage.QUEUED:
                assert len(world.creates[f"horse{entry.number}"]) == posts[f"horse{entry.number}"]


ENDS = {Stage.DOWNLOADED, Stage.FAILED, Stage.REFUSED, Stage.AMBIGUOUS}


def check(report: Report, world: ScriptedWorld) -> None:
    """Check that no item and no id is lost, and that all can be shown."""
    odd, *others = report.entries
    assert odd.owner is None
    assert not {Stage.CLAIMED, Stage.ARMED} & set(report.counts)
    assert {entry.state for entry in others} <= {Stage.DOWNLOADED} | (
        {Stage.QUEUED} if world.statuses & STOPPING else set[Stage]()
    )
    for response in world.creates["horse1"]:
        given_id = id_of(response)
        assert given_id is None or given_id in (odd.task_id, odd.candidate)
    assert report.sheet is not None
    assert report.sheet.read_bytes().decode().count("<figure") == len(report.entries)
    for entry in report.entries:
        told = json.dumps(entry_record(entry))
        assert len(entry.candidate or "") <= RAW_LIMIT
        assert len(told) - len(json.dumps(entry.candidate)) < 30_000  # no id is cut short
        assert (entry.reason or "").isprintable()


def id_of(response: HttpResponse) -> str | None:
    """Return the id that a response gives a task, if it plainly does."""
    try:
        record = as_object(json.loads(response.body)) or {}
    except (ValueError, RecursionError):
        return None
    plain = record.get("id") == "id-horse1" and "status" in record
    return "id-horse1" if plain and 200 <= response.status <= 299 else None


@pytest.mark.parametrize("driver", DRIVERS)
@EXAMPLES
@_known
@given(script=SCRIPTS)
def test_any_response_to_run_all(driver: str, script: Script) -> None:
    """Each request has one outcome, which can be shown, and the others are completed."""
    world = scripted(script)
    requests = [ImgbRequest(model="imgb-2", prompt=item["prompt"]) for item in ITEMS]
    with ExitStack() as closing:
        client = DRIVERS[driver](closing)(world)
        outcomes = run_all(client, requests, timeout=200)
    by_key = {outcome.key: outcome for outcome in outcomes}
    assert sorted(by_key) == [0, 1, 2]
    for key in (1, 2):
        assert isinstance(by_key[key].outcome, Result)
    odd = by_key[0]
    assert isinstance(odd.outcome, Result | ServiceError)
    for text in (str(odd.outcome), repr(odd.outcome), repr(odd.task)):
        assert text.encode()
        assert len(text) < 100_000
    for response in world.creates["horse1"]:
        given_id = id_of(response)
        candidate = getattr(odd.outcome, "candidate_id", None)
        assert given_id is None or given_id in (odd.task and odd.task.id, candidate)
