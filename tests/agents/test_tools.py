"""The tools, as the official client sees them in this process."""

from __future__ import annotations

import base64
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import BlobResourceContents, ImageContent, ResourceLink, TextContent
from PIL import Image

from agents.hosts import HORSE, Person, error, facts, horse, hosted
from agents.relay import Relay
from muybridge import Budget, load_prices
from stores import purchases_at

pytestmark = pytest.mark.anyio
SCHEMAS = 4096
"""Most bytes of all tools, which are part of every conversation."""


async def test_a_picture(relay: Relay, tmp_path: Path, mode: str) -> None:
    """A person consents; the picture is created, awaited and saved, with a preview and a link."""
    person = Person()
    async with hosted(relay, tmp_path, mode, person=person) as host:
        made = facts(await host.call_tool("generate", HORSE))
        steps: list[str] = []

        async def progress(progress: float, total: float | None, message: str | None) -> None:
            steps.append(f"{message}, {progress} of {total}")

        done = facts(
            await host.call_tool("wait", {"token": made["token"]}, progress_callback=progress)
        )
        saved = await host.call_tool("save", {"token": made["token"], "name": "horses/one"})
        link = saved.content[-1]
        assert isinstance(link, ResourceLink)
        read = (await host.read_resource(link.uri)).contents[0]
        listed = (await host.list_resources()).resources
    assert (made["sent"], made["charged"]) == (True, "yes")
    assert (done["done"], done["state"]) == (True, "completed")
    assert steps
    path = tmp_path / "results" / "horses" / "one.png"
    assert facts(saved)["path"] == str(path)
    assert isinstance(read, BlobResourceContents)
    assert base64.b64decode(read.blob) == path.read_bytes()
    assert [one.name for one in listed] == ["horses/one.png"]
    preview = saved.content[1]
    assert isinstance(preview, ImageContent)
    picture = base64.b64decode(preview.data)
    assert len(picture) < 60_000
    assert max(Image.open(io.BytesIO(picture)).size) == 480
    assert len(person.questions) == 1
    assert relay.creates == 1
    [purchase] = purchases_at(tmp_path / "store.sqlite3")
    assert purchase.tags == ("via=mcp",)


async def test_the_question_quotes_what_is_paid(relay: Relay, tmp_path: Path, mode: str) -> None:
    """It names the model, what it consumes and costs, the number, and the agent's prompt."""
    (tmp_path / "prices.toml").write_text(
        'currency = "USD"\nprices = [{model = "imgb-2", tier = "low", per_picture = 0.25}]\n'
    )
    person = Person(consents=False)
    prices = load_prices(tmp_path / "prices.toml")
    async with hosted(relay, tmp_path, mode, person=person, prices=prices) as host:
        said = facts(await host.call_tool("generate", horse("a horse\n" * 200, again=2)))
    assert said["state"] == "declined"
    assert (said["sent"], said["charged"]) == (False, "no")
    [question] = person.questions
    for part in ("imgb-2", "1 picture", "0.25 USD", "number 2", "a horse a horse", "..."):
        assert part in question
    assert len(question) < 600
    assert relay.creates == 0


async def test_nobody_can_be_asked(relay: Relay, tmp_path: Path, mode: str) -> None:
    """Without a person and a budget, nothing is sent."""
    async with hosted(relay, tmp_path, mode) as host:
        said = error(await host.call_tool("generate", HORSE))
    assert said.startswith("Nothing was sent.")
    assert "--max-creates" in said
    assert relay.creates == 0


async def test_a_budget_that_does_not_limit_it(relay: Relay, tmp_path: Path) -> None:
    """A budget of calls is no leave to create a picture, and one of creates none to ask a model."""
    async with hosted(relay, tmp_path, budget=Budget(calls=5)) as host:
        assert "no budget that limits it" in error(await host.call_tool("generate", HORSE))
    async with hosted(relay, tmp_path, budget=Budget(creates=5, per="day")) as host:
        asked = {"model": "textg-2.5-pro", "prompt": "Why?"}
        assert "a budget of calls or cost" in error(await host.call_tool("text", asked))
    assert sum(relay.posts.values()) == 0


async def test_a_budget_outlives_the_server(relay: Relay, tmp_path: Path, mode: str) -> None:
    """Two creates a day: the third is stopped, also by servers that are started afterwards."""
    for start in range(3):
        async with hosted(relay, tmp_path, mode, budget=Budget(creates=2, per="day")) as host:
            for number in range(2):
                result = await host.call_tool("generate", horse(f"horse {start} {number}"))
                if start == 0:
                    assert facts(result)["sent"]
                else:
                    assert "over budget" in error(result)
                    assert facts(result)["error"]["charged"] == "no"
            spent = facts(await host.call_tool("spent", {}))
            creates = {"limit": "2", "spent": "2"}
            assert spent["budgets"] == [{"tag": "via=mcp", "per": "day", "creates": creates}]
    assert relay.creates == 2


async def test_budgets_of_two_tags(relay: Relay, tmp_path: Path) -> None:
    """Each tag has its own budget, and its own names."""
    for project in ("film", "book"):
        tags = {"project": project}
        async with hosted(relay, tmp_path, budget=Budget(creates=1), tags=tags) as host:
            assert facts(await host.call_tool("generate", HORSE))["sent"]
            assert "over budget" in error(await host.call_tool("generate", horse(again=2)))
            spent = facts(await host.call_tool("spent", {}))
            assert [one["requests"] for one in spent["spent"]] == [1]
    assert relay.creates == 2


async def test_a_repeated_call_joins(relay: Relay, tmp_path: Path, mode: str) -> None:
    """The same fields give the same task, whatever their order; a number gives another one."""
    person = Person()
    async with hosted(relay, tmp_path, mode, person=person) as host:
        made = facts(await host.call_tool("generate", HORSE))
        await host.call_tool("wait", {"token": made["token"]})
    mixed = {"family": "imgb", "fields": {"prompt": "a horse", "model": "imgb-2"}}
    async with hosted(relay, tmp_path, mode, person=person) as host:
        joined = facts(await host.call_tool("generate", mixed))
        second = facts(await host.call_tool("generate", horse(again=2)))
        replay = facts(await host.call_tool("generate", horse(again=2)))
    assert (joined["joined"], joined["sent"], joined["task"]) == (True, False, made["task"])
    assert (joined["state"], joined["again_needed"]) == ("completed", False)
    assert joined["age_seconds"] >= 0
    assert '"again": 2' in joined["message"]
    assert second["task"] != made["task"]
    assert replay["task"] == second["task"]
    assert len(person.questions) == 2
    assert relay.creates == 2


async def test_joining_what_has_failed(relay: Relay, tmp_path: Path, mode: str) -> None:
    """The answer says that the task has failed, and that another number is needed."""
    asked = horse("a horse that must fail [fail:content-policy]")
    async with hosted(relay, tmp_path, mode, person=Person()) as host:
        made = facts(await host.call_tool("generate", asked))
        ended = facts(await host.call_tool("wait", {"token": made["token"]}))
        joined = facts(await host.call_tool("generate", asked))
    assert (ended["done"], ended["state"]) == (True, "failed")
    assert ended["service_text"]
    assert (joined["state"], joined["again_needed"]) == ("failed", True)
    assert '"again": 2' in joined["message"]
    assert relay.creates == 1


async def test_joining_what_has_expired(relay: Relay, tmp_path: Path, mode: str) -> None:
    """The answer says that the link has expired, and that another number is needed."""
    async with hosted(relay, tmp_path, mode, person=Person()) as host:
        made = facts(await host.call_tool("generate", HORSE))
        await host.call_tool("wait", {"token": made["token"]})
    later = time.time() + 3 * 86_400
    async with hosted(relay, tmp_path, mode, person=Person(), wall=lambda: later) as host:
        joined = facts(await host.call_tool("generate", HORSE))
    assert (joined["state"], joined["again_needed"]) == ("expired", True)
    assert joined["age_seconds"] > 2 * 86_400
    assert '"again": 2' in joined["message"]
    assert relay.creates == 1


async def test_an_answer_that_cannot_be_saved(relay: Relay, tmp_path: Path, mode: str) -> None:
    """It is paid for, so it is told all the same, and the server goes on."""
    (tmp_path / "results").write_text("this is no folder")
    relay.service.script(["Because it can."])
    async with hosted(relay, tmp_path, mode, budget=Budget(calls=2, creates=1)) as host:
        asked = {"model": "textg-2.5-pro", "prompt": "Why?"}
        assert facts(await host.call_tool("text", asked))["answer"] == "Because it can."
        token = facts(await host.call_tool("generate", HORSE))["token"]
        await host.call_tool("wait", {"token": token})
        assert error(await host.call_tool("save", {"token": token}))
    assert (relay.creates, relay.texts) == (1, 1)


async def test_a_lost_response(relay: Relay, tmp_path: Path, mode: str) -> None:
    """It is no error, but data: do not repeat it, and what a person should look at."""
    person = Person()
    relay.loses = True
    async with hosted(relay, tmp_path, mode, person=person) as host:
        first = await host.call_tool("generate", HORSE)
        relay.loses = False
        second = await host.call_tool("generate", HORSE)
        undecided = facts(await host.call_tool("undecided", {}))
    for result in (first, second):
        said = facts(result)
        assert not result.is_error
        assert (said["state"], said["charged"], said["repeat"]) == ("ambiguous", "perhaps", False)
        assert "Do not send it again" in said["message"]
        assert said["person_runs"][-1].split()[:2] == ["muybridge", "decide"]
        assert said["person_runs"][-1].endswith(said["purchase"])
    assert [one["key"] for one in undecided["undecided"]] == [facts(first)["purchase"]]
    assert "muybridge decide" in undecided["message"]
    assert relay.creates == 1
    assert len(person.questions) == 1


async def test_a_token_survives(relay: Relay, tmp_path: Path, mode: str) -> None:
    """A server that is started later knows the token, and so does the command."""
    async with hosted(relay, tmp_path, mode, person=Person()) as host:
        token = facts(await host.call_tool("generate", HORSE))["token"]
    async with hosted(relay, tmp_path, mode) as host:
        assert facts(await host.call_tool("wait", {"token": token}))["state"] == "completed"
        assert facts(await host.call_tool("save", {"token": token}))["file"] == f"{token}.png"


async def test_a_wait_that_is_not_over(tmp_path: Path, mode: str) -> None:
    """It returns when its seconds are over, with the token to wait on."""
    with Relay(speed=1) as relay:
        async with hosted(relay, tmp_path, mode, person=Person()) as host:
            token = facts(await host.call_tool("generate", HORSE))["token"]
            said = facts(await host.call_tool("wait", {"token": token, "seconds": 0.3}))
            early = error(await host.call_tool("save", {"token": token}))
    assert (said["done"], said["token"]) == (False, token)
    assert said["state"] in {"queued", "processing"}
    assert "Call wait" in early


async def test_a_picture_as_reference(relay: Relay, tmp_path: Path) -> None:
    """A file of the folder goes into a request by its name; what it consumes is told before."""
    async with hosted(relay, tmp_path, budget=Budget(creates=2)) as host:
        still = facts(await host.call_tool("generate", HORSE))["token"]
        await host.call_tool("wait", {"token": still})
        await host.call_tool("save", {"token": still, "name": "still"})
        asked = {
            "family": "imgb",
            "fields": {
                "model": "imgb-2", "prompt": "bigger", "image_urls": ["@still.png"],
                "allow_inline": True,
            },
        }  # fmt: skip
        told = facts(await host.call_tool("estimate", asked))
        checked = facts(await host.call_tool("check", asked))
        made = facts(await host.call_tool("generate", asked))
    assert (told["creates"], told["needs_consent"]) == ("1", False)
    assert checked["ok"]
    assert made["sent"]
    [body] = [json.loads(body) for _, body in relay.posts if "bigger" in body]
    assert body["image_urls"][0].startswith("data:image/png;base64,")


async def test_text(relay: Relay, tmp_path: Path, mode: str) -> None:
    """A model is asked within a budget of calls, and its answer is kept as a file."""
    relay.service.script(["Because it can.", "A long answer. " * 5_000])
    asked = {"model": "textg-2.5-pro", "prompt": "Why does it gallop?"}
    async with hosted(relay, tmp_path, mode, budget=Budget(calls=2)) as host:
        short = facts(await host.call_tool("text", {**asked, "max_tokens": 50}))
        long = facts(await host.call_tool("text", asked))
        third = error(await host.call_tool("text", asked))
    async with hosted(relay, tmp_path, mode) as host:
        again = facts(await host.call_tool("wait", {"token": short["token"]}))
        lost = error(await host.call_tool("wait", {"token": "text-0123456789abcdef"}))
    assert short["answer"] == again["answer"] == "Because it can."
    assert "data" in short["about_answer"]
    assert long["answer_is_truncated"]
    assert len(long["answer"]) == 20_000
    kept = json.loads((tmp_path / "results" / f"{long['token']}.json").read_text())
    assert kept["answer"] == ("A long answer. " * 5_000)
    assert "over budget" in third
    assert "charged all the same" in lost
    assert relay.texts == 2


async def test_what_there_is(relay: Relay, tmp_path: Path) -> None:
    """All families are listed, and each is described with an example that is valid."""
    async with hosted(relay, tmp_path) as host:
        listed = facts(await host.call_tool("families", {}))["families"]
        assert len(listed) > 5
        for family in listed:
            told = await host.call_tool("describe", {"name": family["name"]})
            content = told.content[0]
            assert isinstance(content, TextContent)
            assert len(content.text) < 12_000
            example = {"family": family["name"], "fields": facts(told)["example"]}
            assert facts(await host.call_tool("estimate", example))["creates"] == "1"


async def test_the_schemas_are_small(relay: Relay, tmp_path: Path, mode: str) -> None:
    """All ten tools together take less than 4 KB, and say which of them cost money."""
    async with hosted(relay, tmp_path, mode) as host:
        tools = (await host.list_tools()).tools
    listed: list[dict[str, Any]] = [
        tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools
    ]
    assert len(json.dumps(listed, separators=(",", ":"))) < SCHEMAS
    assert [tool.name for tool in tools] == [
        "families", "describe", "estimate", "check", "generate", "wait", "save", "text", "spent",
        "undecided",
    ]  # fmt: skip
    paid = {tool.name for tool in tools if "COSTS MONEY" in str(tool.description)}
    assert paid == {"generate", "text"}


async def test_a_resource_elsewhere(relay: Relay, tmp_path: Path, mode: str) -> None:
    """Only results in the folder are read."""
    (tmp_path / "secret.png").write_bytes(b"secret")
    async with hosted(relay, tmp_path, mode) as host:
        for uri in (
            (tmp_path / "secret.png").as_uri(),
            f"file://{tmp_path}/results/../secret.png",
            f"file://{tmp_path}/results/%2e%2e/secret.png",
            "https://example.com/a.png",
            "file:///etc/passwd",
        ):
            with pytest.raises(MCPError, match="no such result"):
                await host.read_resource(uri)
