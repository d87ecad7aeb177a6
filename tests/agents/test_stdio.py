"""The command over stdin and stdout, as hosts start it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp.client.client import Client as Host

import muybridge.mcp
from agents.hosts import HELLO, HORSE, MODES, Person, command, error, facts, horse, piped
from agents.relay import Relay
from muybridge.version import __version__
from processes import environment

PACKAGE = Path(str(muybridge.mcp.__file__)).parent


@pytest.mark.anyio
@pytest.mark.parametrize("mode", MODES)
async def test_a_budget_over_stdio(relay: Relay, tmp_path: Path, place: str, mode: str) -> None:
    """Two creates, and a third that is stopped, also after the server was restarted."""
    parameters = command(relay, tmp_path, "--max-creates", "2", place=place)
    async with Host(parameters, mode=mode) as host:
        made = [facts(await host.call_tool("generate", horse(again=n))) for n in (1, 2)]
        stopped = [error(await host.call_tool("generate", horse(again=3)))]
    async with Host(parameters, mode=mode) as host:
        stopped.append(error(await host.call_tool("generate", horse(again=3))))
        done = facts(await host.call_tool("wait", {"token": made[0]["token"]}))
        saved = facts(await host.call_tool("save", {"token": made[0]["token"]}))
    assert all("over budget" in said for said in stopped)
    assert done["state"] == "completed"
    assert (await anyio.Path(saved["path"]).read_bytes()).startswith(b"\x89PNG")
    assert relay.creates == 2


@pytest.mark.anyio
async def test_consent_over_stdio(relay: Relay, tmp_path: Path) -> None:
    """The host asks the person."""
    person = Person()
    async with Host(command(relay, tmp_path), elicitation_callback=person.answer) as host:
        assert facts(await host.call_tool("generate", HORSE))["sent"]
    assert len(person.questions) == 1


@pytest.mark.anyio
async def test_the_local_service(tmp_path: Path, relay: Relay) -> None:
    """With --local nothing is charged, no key is needed, and the same rules hold."""
    parameters = command(relay, tmp_path, "--local", "--max-creates", "1", "--per", "ever")
    async with Host(parameters) as host:
        assert facts(await host.call_tool("generate", HORSE))["sent"]
        assert "over budget" in error(await host.call_tool("generate", horse(again=2)))
    assert relay.creates == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server(relay: Relay, tmp_path: Path, number: signal.Signals) -> None:
    """It does not stay until its host says something more, and says what ended it."""
    with piped(command(relay, tmp_path)) as (process, stdin, stdout):
        stdin.write(json.dumps(HELLO) + "\n")
        stdin.flush()
        assert json.loads(stdout.readline())["result"]
        process.send_signal(number)
        try:
            code = process.wait(20)
        finally:
            process.kill()
        assert process.stderr is not None
        assert "error: Interrupted" in process.stderr.read()
    assert code == 128 + number


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--max-creates", "many"], "--max-creates"),
        (["--per", "week"], "--per"),
        (["--tag", "x" * 300], "--tag"),
        (["--tag", "a\nb"], "--tag"),
        (["--local", "--base-url", "https://example.com"], "--local"),
        (["--folder", __file__], "--folder"),
        (["--store", "mysql://here"], "mysql"),
    ],
)
def test_wrong_options(relay: Relay, tmp_path: Path, words: list[str], told: str) -> None:
    """The command says what is wrong, before it serves anybody."""
    done = _run("mcp", *words, **relay.environment(MUYBRIDGE_STORE=str(tmp_path / "s.sqlite3")))
    assert done.returncode != 0
    assert told in done.stderr
    assert done.stdout == ""


def test_the_skill() -> None:
    """`muybridge skill` prints it, with the head that hosts read."""
    done = _run("skill")
    assert done.stdout.startswith("---\nname: muybridge\ndescription: ")
    assert len(done.stdout) < 4_000


def test_the_registry_file() -> None:
    """`server.json` names this version, the package, and every variable of the environment."""
    server = json.loads((PACKAGE / "server.json").read_text("utf-8"))
    [package] = server["packages"]
    assert server["version"] == package["version"] == __version__
    assert package["identifier"] == "muybridge"
    assert package["transport"] == {"type": "stdio"}
    secret = {one["name"] for one in package["environmentVariables"] if one.get("isSecret")}
    assert secret == {"MUYBRIDGE_API_KEY"}


def _run(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  our own command
        [sys.executable, "-m", "muybridge", *words],
        capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
        env=environment(**variables),
    )  # fmt: skip
