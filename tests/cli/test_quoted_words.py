"""The command words its own advice, and shows what others wrote as they wrote it."""

from __future__ import annotations

import json
import re
import shlex

import pytest
from tests.cli.conftest import Invoke
from tests.cli.crooked_service import CrookedService, always, reply

OURS = (
    "give out", "give api_key", "give base_url", "Use out=None", "raise max_output_tokens",
    "pass allow_plain_http=True", "load_media(path, allow_inline=True)", ", or give mime_type",
)  # fmt: skip


@pytest.mark.parametrize("words", OURS)
def test_a_value_that_reads_like_advice(invoke: Invoke, words: str) -> None:
    """A value is quoted unchanged, although Python's advice has the same words."""
    ended = invoke("run", "imga", "--model", words, "--prompt", "A horse", "--json")
    assert ended.exit_code == 2
    (problem,) = json.loads(ended.stdout)["error"]["problems"]
    assert problem["message"].startswith(repr(words))
    assert repr(words) in ended.stderr


@pytest.mark.parametrize("words", OURS)
def test_a_refusal_that_reads_like_advice(invoke: Invoke, words: str) -> None:
    """The service's own words come out unchanged, in the message and as data."""
    asked = ("run", "imga", "--model", "imga", "--prompt", "A horse", "--json")
    with CrookedService(always(reply(400, {"error": words}))) as service:
        ended = invoke(*asked, env=service.settings)
    error = json.loads(ended.stdout)["error"]
    assert (ended.exit_code, error["charged"]) == (3, "no")
    assert f"status 400: {words}." in error["message"]
    assert [remedy["kind"] for remedy in error["remedies"]] == ["fix", "resend"]


@pytest.mark.parametrize("name", ["-x1", "--all", "task 1"])
def test_the_command_for_a_candidate_works(invoke: Invoke, name: str) -> None:
    """The line that queries a candidate takes any id, also one that begins like an option."""
    held = reply(500, {"id": name, "status": "queued"})
    with CrookedService(always(held)) as service:
        ended = invoke("run", "imga", "--model", "imga", "--prompt", "A", env=service.settings)
        (line,) = re.findall("`muybridge (get .*?)`", ended.stderr)
        queried = invoke(*shlex.split(line), env=service.settings)
    assert ended.exit_code == 4
    assert queried.exit_code == 5, queried.stderr
