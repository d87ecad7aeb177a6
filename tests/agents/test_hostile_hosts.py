"""Hosts that do whatever hosts have been seen to do, and worse. The service's count is the judge.

No content and number is ever sent twice, no budget is exceeded, and each wrong call is answered
with one clear sentence.
"""

from __future__ import annotations

import contextlib
import json
import random
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client as Host
from mcp.shared.exceptions import MCPError
from mcp_types import ElicitRequestParams, ElicitResult, ErrorData

from agents.hosts import (
    HELLO,
    HORSE,
    MODES,
    Person,
    command,
    error,
    facts,
    horse,
    hosted,
    piped,
    serving,
)
from agents.relay import Relay
from muybridge import Budget
from muybridge.local import LocalService
from muybridge.purchases import State
from muybridge_protocol.emulator import Access
from stores import purchases_at

psutil = pytest.importorskip("psutil", reason="psutil is not installed")
pytestmark = pytest.mark.anyio
SEEDS = [1, 2, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(3, 9))]

HUGE = "x" * 10_000_000
WRONG: list[tuple[str, Any, str]] = [
    ("generate", horse(again=True), "again must be a whole number"),
    ("generate", horse(again=0), "of at least 1"),
    ("generate", horse(again=10**30), "at most 999999"),
    ("generate", horse(again="2"), "again must be a whole number"),
    ("generate", horse(agian=2), "no argument 'agian'"),
    ("generate", {"family": "imgb"}, "needs the argument fields"),
    ("generate", {"family": "imgb", "fields": "prompt"}, "fields must be a JSON object"),
    ("generate", {"family": ["imgb"], "fields": {}}, "family must be a string"),
    ("generate", {"family": "imgz", "fields": {}}, "imgz"),
    ("generate", {"family": HUGE, "fields": {}}, "too large"),
    ("generate", {"family": HUGE[:9_000], "fields": {}}, "family"),
    ("generate", {"family": "imgb", "fields": {}}, "prompt: is required"),
    ("generate", horse(HUGE), "too large"),
    ("generate", {"family": "imgb", "fields": {"prompt": "a", "model": 1.5}}, "model"),
    ("generate", {"family": "imgb", "fields": {"model": "imgb-2", "prompt": "\0\ud800"}}, ""),
    ("generate", {"family": "vidg", "fields": {"duration": 1e300}}, "duration"),
    ("generate", {"family": "imgb", "fields": {HUGE[:9_000]: 1}}, "not valid"),
    ("describe", {"name": HUGE[:9_000]}, "family"),
    ("estimate", {"family": "imgb", "fields": {"prompt": 7}}, "prompt"),
    ("check", {"family": "nothing", "fields": {}}, "nothing"),
    ("wait", {"token": HUGE[:90_000]}, "too long"),
    ("wait", {"token": "{}"}, "token"),
    ("wait", {"token": "https://example.com/a.png"}, "is a link"),
    ("wait", {"token": "../../etc"}, ""),
    ("wait", {"token": "task-1", "seconds": -1}, "at least 0"),
    ("text", {"model": "textg-2.5-pro", "prompt": "a", "max_tokens": 0}, "max_tokens must be"),
    ("spent", {"by": "day"}, "no argument 'by'"),
    ("unheard", {}, "There is no tool 'unheard'"),
    (HUGE[:200_000], {}, "There is no tool"),
]
PATHS = ["/etc/passwd", "../secret.png", "a/../../secret.png", "link/secret.png", "."]


@pytest.mark.parametrize(("tool", "given", "told"), WRONG, ids=[str(n) for n in range(len(WRONG))])
async def test_wrong_calls(relay: Relay, tmp_path: Path, tool: str, given: Any, told: str) -> None:
    """Each is answered with a short text that says what is wrong, and nothing is sent."""
    person = Person()
    async with hosted(relay, tmp_path, person=person, budget=Budget(calls=3)) as host:
        said = error(await host.call_tool(tool, given))
    assert told in said
    assert len(said) < 2_100
    assert "Traceback" not in said
    assert person.questions == []
    assert sum(relay.posts.values()) == 0


RAW: list[tuple[str, str]] = [
    ('"generate","arguments":{"family":"imgb","fields":{"model":"imgb-2","prompt":"a"},"again":NaN}',
     "again must be"),
    ('"generate","arguments":{"family":"imgb","fields":{"model":"imgb-2","prompt":NaN}}', "prompt"),
    ('"wait","arguments":{"token":"task-1","seconds":NaN}', "seconds must be"),
    ('"wait","arguments":{"token":"task-1","seconds":-Infinity}', "seconds must be"),
    ('"generate","arguments":[1,2]', ""),
    ('"generate","arguments":"' + HUGE + '"', ""),
    ('"generate","arguments":{"family":"imgb","fields":{"prompt":"' + HUGE + '"}}', "too large"),
    ('7,"arguments":{}', ""),
]  # fmt: skip


def test_raw_lines(relay: Relay, tmp_path: Path) -> None:
    """What is no JSON is told, NaN fits nowhere, and the server goes on after each line."""
    parameters = command(relay, tmp_path, "--max-creates", "1")
    lines = [json.dumps(HELLO), '{"jsonrpc":"2.0","method":"notifications/initialized"}']
    lines += ["{", "\x00\xff", "[]", '{"jsonrpc":"2.0","id":99,"method":"tools/call"}']
    for number, (call, _) in enumerate(RAW, start=1):
        head = f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":'
        lines.append(f"{head}{call}}}}}")
    with piped(parameters) as (process, stdin, stdout):
        stdin.write("\n".join([*lines, ""]))
        stdin.flush()
        answers: dict[Any, Any] = {}
        while len(RAW) not in answers:
            one = json.loads(stdout.readline())
            answers[one.get("id")] = one
        stdin.close()
        process.wait(30)
    for number, (_, told) in enumerate(RAW, start=1):
        answer = answers[number]
        assert "error" in answer or answer["result"]["isError"], answer
        said = json.dumps(answer)
        assert told in said
        assert len(said) < 6_000
        assert "Traceback" not in said
    assert process.returncode == 0
    assert relay.creates == 0


@pytest.mark.parametrize("path", PATHS)
async def test_paths_outside_the_folder(relay: Relay, tmp_path: Path, path: str) -> None:
    """No file outside the folder is read or written, whatever leads there."""
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "link").symlink_to(tmp_path)
    before = _pictures(tmp_path)
    async with hosted(relay, tmp_path, budget=Budget(creates=1)) as host:
        token = facts(await host.call_tool("generate", HORSE))["token"]
        await host.call_tool("wait", {"token": token})
        assert "outside the folder" in error(
            await host.call_tool("save", {"token": token, "name": path})
        )
        if path != ".":
            given = {**HORSE["fields"], "image_urls": [f"@{path}"], "allow_inline": True}
            for tool in ("check", "estimate", "generate"):
                said = await host.call_tool(tool, {"family": "imgb", "fields": given})
                assert "outside the folder" in error(said)
    assert _pictures(tmp_path) == before
    assert relay.creates == 1


def _pictures(folder: Path) -> dict[Path, int]:
    return {one: one.stat().st_mtime_ns for one in folder.rglob("*.png")}


async def test_another_file_is_not_replaced(relay: Relay, tmp_path: Path) -> None:
    """A name that a file of something else has is refused, and the same task is not saved twice."""
    async with hosted(relay, tmp_path, budget=Budget(creates=2)) as host:
        tokens = [
            facts(await host.call_tool("generate", horse(again=number)))["token"]
            for number in (1, 2)
        ]
        for token in tokens:
            await host.call_tool("wait", {"token": token})
        first, other = tokens
        saved = facts(await host.call_tool("save", {"token": first, "name": "a.png"}))
        again = facts(await host.call_tool("save", {"token": first, "name": "a.png"}))
        refused = error(await host.call_tool("save", {"token": other, "name": "a.png"}))
    assert (saved["saved_before"], again["saved_before"]) == (False, True)
    assert "another file" in refused


async def test_a_token_of_another_account(tmp_path: Path) -> None:
    """It is refused, whether it was bought in the same store or in another one."""
    keys = {"key-of-one-account": Access(), "key-of-another-account": Access()}
    with Relay(keys=keys) as relay:
        mine, other = keys
        async with hosted(relay, tmp_path, key=mine, budget=Budget(creates=1)) as host:
            token = facts(await host.call_tool("generate", HORSE))["token"]
        (tmp_path / "other").mkdir()
        for folder, key in ((tmp_path, other), (tmp_path / "other", mine)):
            async with hosted(relay, folder, key=key) as host:
                for tool in ("wait", "save"):
                    said = error(await host.call_tool(tool, {"token": token}))
                    assert "another account" in said
    assert relay.creates == 1


async def test_the_key_is_in_no_answer(tmp_path: Path, mode: str) -> None:
    """Not even where the service echoes it, nor in a prompt that contains it."""
    key = "key-that-nobody-may-ever-see"
    with Relay(keys={key: Access()}) as relay:
        relay.service.script([f"Your key is {key}."])
        budget = Budget(creates=2, calls=2)
        async with hosted(relay, tmp_path, mode, budget=budget) as host:
            results = [
                await host.call_tool("generate", {"family": key, "fields": {key: key}}),
                await host.call_tool("wait", {"token": key}),
                await host.call_tool("generate", horse(f"{key} [fail:content-policy]")),
                await host.call_tool("text", {"model": "textg-2.5-pro", "prompt": "a"}),
            ]
        with serving(relay, tmp_path, key="another-key-that-is-wrong", budget=budget) as server:
            async with Host(server, mode=mode) as host:
                results.append(await host.call_tool("generate", horse("b")))
    for result in results:
        text = result.model_dump_json()
        assert key not in text
        assert "another-key-that-is-wrong" not in text
    assert facts(results[-1])["error"]["type"] == "Unauthorized"


@pytest.mark.parametrize("answer", ["late", "no", "garbage", "cancel", "decline", "error"])
async def test_consents_that_are_none(relay: Relay, tmp_path: Path, answer: str) -> None:
    """Only a yes to this very question counts. A late answer to a cancelled call sends nothing."""
    asked = anyio.Event()
    late = anyio.Event()

    async def respond(context: Any, params: ElicitRequestParams) -> ElicitResult | ErrorData:  # noqa: ARG001  the SDK passes them
        asked.set()
        match answer:
            case "late":
                with anyio.CancelScope(shield=True):
                    await late.wait()
                return ElicitResult(action="accept", content={"spend": True})
            case "no":
                return ElicitResult(action="accept", content={"spend": False})
            case "garbage":
                return ElicitResult(action="accept", content={"spend": "true", "x": [HUGE[:9]]})
            case "error":
                return ErrorData(code=-1, message="There is nobody to ask.")
            case "cancel":
                return ElicitResult(action="cancel", content={"spend": True})
            case _:
                return ElicitResult(action="decline")

    with serving(relay, tmp_path) as server:
        async with Host(server, mode="legacy", elicitation_callback=respond) as host:
            if answer == "error":
                said = error(await host.call_tool("generate", HORSE))
                assert "could not ask the person" in said
            elif answer != "late":
                said = facts(await host.call_tool("generate", HORSE))
                assert said["state"] == "declined"
            else:
                async with anyio.create_task_group() as group:

                    async def call() -> None:
                        await host.call_tool("generate", HORSE)

                    group.start_soon(call)
                    await asked.wait()
                    group.cancel_scope.cancel()
                    late.set()
                await host.call_tool("spent", {})  # the server has read everything before this
    assert relay.creates == 0
    assert purchases_at(tmp_path / "store.sqlite3") == []


async def test_an_old_consent_counts_once(relay: Relay, tmp_path: Path) -> None:
    """An answer covers one question. With other fields, with another number, or again: none."""
    person = Person()
    with serving(relay, tmp_path) as server:
        async with Host(server, elicitation_callback=person.answer) as host:
            session: Any = host.session
            first = await session.call_tool("generate", HORSE, allow_input_required=True)
            [key] = first.input_requests
            yes = {key: ElicitResult(action="accept", content={"spend": True})}
            for given in (horse("another"), horse(again=2)):
                with pytest.raises(MCPError, match="requestState"):
                    await session.call_tool(
                        "generate", given, input_responses=yes,
                        request_state=first.request_state, allow_input_required=True,
                    )  # fmt: skip
            replays = [
                await session.call_tool(
                    "generate", HORSE, input_responses=yes, request_state=first.request_state,
                    allow_input_required=True,
                )
                for _ in range(3)
            ]  # fmt: skip
    assert [facts(one)["sent"] for one in replays] == [True, False, False]
    assert relay.creates == 1


async def test_a_consent_for_what_was_refused_counts_once(tmp_path: Path) -> None:
    """If the service refuses the request, the same answer does not send it a second time."""
    keys = {"key-without-imgb-models": Access(families=frozenset({"imga"}))}
    with Relay(keys=keys) as relay, serving(relay, tmp_path) as server:
        async with Host(server, elicitation_callback=Person().answer) as host:
            session: Any = host.session
            first = await session.call_tool("generate", HORSE, allow_input_required=True)
            [key] = first.input_requests
            yes = {key: ElicitResult(action="accept", content={"spend": True})}
            again = [
                await session.call_tool(
                    "generate", HORSE, input_responses=yes, request_state=first.request_state,
                    allow_input_required=True,
                )
                for _ in range(2)
            ]  # fmt: skip
    assert facts(again[0])["error"]["type"] == "Forbidden"
    assert again[1].input_requests
    assert relay.creates == 1


async def test_many_at_once(relay: Relay, tmp_path: Path, mode: str) -> None:
    """Sixty parallel calls of three contents in two numbers, on two servers: six creates."""
    person = Person()
    made: list[dict[str, Any]] = []

    async def call(host: Host, number: int) -> None:
        given = horse(f"horse {number % 3}", again=1 + number % 2)
        made.append(facts(await host.call_tool("generate", given)))

    async with (
        hosted(relay, tmp_path, mode, person=person) as one,
        hosted(relay, tmp_path, mode, person=person) as two,
        anyio.create_task_group() as group,
    ):
        for number in range(60):
            group.start_soon(call, (one, two)[number % 4 > 1], number)
    assert len(made) == 60
    assert len({one["task"] for one in made}) == 6
    assert relay.most == 2  # the same body with the numbers 1 and 2
    assert relay.creates == 6


async def test_many_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, and however long they want to wait, each returns in time."""
    monkeypatch.setattr("muybridge.mcp.tools.LONGEST_WAIT", 1.0)
    with Relay(speed=1) as relay:
        async with hosted(relay, tmp_path, budget=Budget(creates=1)) as host:
            token = facts(await host.call_tool("generate", HORSE))["token"]
            said: list[bool] = []

            async def wait() -> None:
                result = await host.call_tool("wait", {"token": token, "seconds": 10_000})
                said.append(facts(result)["done"])

            with anyio.fail_after(30):  # each after the other would take 100 seconds
                async with anyio.create_task_group() as group:
                    for _ in range(100):
                        group.start_soon(wait)
    assert said == [False] * 100


@pytest.mark.parametrize(
    ("place", "number"),
    [
        ("sqlite", signal.SIGKILL),
        ("sqlite", signal.SIGTERM),
        ("postgres", signal.SIGTERM),
        pytest.param("postgres", signal.SIGKILL, marks=pytest.mark.nightly),  # waits for the dead
    ],
    indirect=["place"],
)
async def test_killed_while_a_create_is_under_way(
    relay: Relay, tmp_path: Path, place: str, number: signal.Signals
) -> None:
    """The next server does not send it again. What was terminated has awaited the response."""
    relay.open.clear()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:

            async def call() -> None:
                parameters = command(relay, tmp_path, "--max-creates", "3", place=place)
                with pytest.raises(BaseException):  # noqa: B017, PT011  however the client says so
                    async with Host(parameters) as host:
                        await host.call_tool("generate", HORSE)

            group.start_soon(call)
            await anyio.to_thread.run_sync(relay.arrived.wait)
            await anyio.to_thread.run_sync(_end, relay, tmp_path, number)
            group.cancel_scope.cancel()
    relay.open.set()
    is_known = number != signal.SIGKILL
    async with Host(command(relay, tmp_path, "--max-creates", "3", place=place)) as host:
        for _ in range(2):
            while "error" in (said := facts(await host.call_tool("generate", HORSE))):
                # A database takes a process for dead once its exchange has certainly ended.
                assert place.startswith("postgresql:")
                assert "still sending this very request" in said["error"]["message"]
            if is_known:
                assert said["joined"]
            else:
                assert (said["state"], said["repeat"]) == ("ambiguous", False)
        undecided = facts(await host.call_tool("undecided", {}))["undecided"]
        assert len(undecided) == (0 if is_known else 1)
    assert relay.creates <= 1
    [purchase] = purchases_at(place)
    assert purchase.state is (State.ACCEPTED if is_known else State.AMBIGUOUS)


def _end(relay: Relay, folder: Path, number: signal.Signals) -> None:
    """Send a signal to the server that has armed a purchase in the store, and await its end."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            words = process.cmdline()
            if "mcp" in words and str(folder / "results") in words:
                process.send_signal(number)
                if number != signal.SIGKILL:
                    relay.open.set()
                process.wait(30)


async def test_the_host_hangs_up_while_a_create_is_under_way(relay: Relay, tmp_path: Path) -> None:
    """The server ends only after the response has come and is recorded."""
    relay.open.clear()
    arrived = anyio.to_thread.run_sync
    async with anyio.create_task_group() as group:

        async def call() -> None:
            async with hosted(relay, tmp_path, "legacy", budget=Budget(creates=1)) as host:
                group.start_soon(host.call_tool, "generate", HORSE)
                await arrived(relay.arrived.wait)
                relay.open.set()
                group.cancel_scope.cancel()

        group.start_soon(call)
    [purchase] = purchases_at(tmp_path / "store.sqlite3")
    assert purchase.state is State.ACCEPTED
    assert relay.creates == 1


@pytest.mark.parametrize("leave", ["budget", "consent"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_wild_host(tmp_path: Path, place: str, seed: int, leave: str) -> None:
    """It replays, cancels, restarts and asks at random. Nothing is bought twice, or over budget."""
    chance = random.Random(seed)  # noqa: S311  it only has to repeat
    consents = 0
    answers: Counter[str] = Counter()

    async def respond(context: Any, params: ElicitRequestParams) -> ElicitResult:  # noqa: ARG001  the SDK passes them
        nonlocal consents
        await anyio.sleep(chance.choice((0, 0, 0.05)))
        says_yes = chance.random() < 0.7
        consents += says_yes
        return ElicitResult(action="accept", content={"spend": says_yes})

    async def wild(relay: Relay, host: Host) -> None:
        prompt = f"horse {chance.randrange(4)}"
        given = horse(prompt, again=chance.randint(1, 3))
        relay.loses = chance.random() < 0.15
        with anyio.move_on_after(chance.choice((0, 0.01, 0.05, 5))):
            for _ in range(2):
                said = facts(await host.call_tool("generate", given))
                answers[str(said.get("state", "refused"))] += 1
        with anyio.move_on_after(chance.choice((0, 0.05, 5))):
            await host.call_tool("text", {"model": "textg-2.5-pro", "prompt": prompt})

    budget = Budget(creates=8, calls=3, per="day") if leave == "budget" else None
    with Relay() as relay:
        for _ in range(4):
            mode = chance.choice(MODES)
            with serving(relay, tmp_path, place=place, budget=budget) as server:
                async with (
                    Host(server, mode=mode, elicitation_callback=respond) as host,
                    anyio.create_task_group() as group,
                ):
                    for _ in range(10):
                        group.start_soon(wild, relay, host)
        bought = purchases_at(place)
        print(  # noqa: T201  the counts, for whoever wants to see them
            f"seed {seed}, {leave}: the service was given {relay.creates} creates and "
            f"{relay.texts} texts, each body at most {relay.most} times; {consents} consents; "
            f"answers {dict(answers)}"
        )
        names = Counter(one.once for one in bought if one.once and one.is_spent)
        assert max(names.values()) == 1
        assert relay.most <= 3  # a body with each of three numbers
        creates = [one for one in bought if one.family == "imgb" and one.is_spent]
        assert len(creates) == relay.creates
        assert relay.creates <= (8 if budget else consents)
        assert relay.texts <= (3 if budget else 0)
        assert not consents or not budget


def test_the_service_is_what_counts() -> None:
    """The relay counts what the service has: each create is a task there."""
    with Relay() as relay:
        assert isinstance(relay.service, LocalService)
        assert relay.creates == relay.service.emulator.task_count == 0
