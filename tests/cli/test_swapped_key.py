"""A key that is given where something else belongs is not shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Invoke

KEY = "sk-canary-5e1fa0b7c2d94"
ADDRESS = "https://api.example.com"
IMAGE = ("imgb", "--model", "imgb-2", "--prompt", "A horse")
TEXT = ("text", "textg-2.5-pro", "A horse")
COMMANDS = (
    ("create", *IMAGE),
    ("run", *IMAGE),
    ("get", "task-1"),
    ("wait", "task-1"),
    ("download", "https://cdn.example.net/a.png", "-o", "a.png"),
    ("asset", "delete", "asset-1", "--yes"),
    ("batch", "run", "items.jsonl", "--out", "out"),
    ("demo", "--real"),
)


def assert_hidden(invoke: Invoke, *words: str, env: dict[str, str]) -> str:
    """Run the command, and return what it says on stderr, having looked for the key."""
    ended = invoke(*words, env=env)
    assert ended.exit_code == 2
    assert KEY not in ended.output + ended.stderr
    return ended.stderr


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("more", [(), ("--json",)], ids=["plain", "JSON"])
def test_a_key_as_the_base_url(
    invoke: Invoke, command: tuple[str, ...], more: tuple[str, ...], tmp_path: Path
) -> None:
    """A key as --base-url or MUYBRIDGE_BASE_URL is not shown, and the swap is suspected."""
    (tmp_path / "items.jsonl").write_text('{"model": "imgb-2", "prompt": "A horse"}\n')
    env = {"MUYBRIDGE_API_KEY": ADDRESS, "MUYBRIDGE_BASE_URL": KEY}
    told = assert_hidden(invoke, *command, *more, env=env)
    assert more or "swapped" in told
    env["MUYBRIDGE_BASE_URL"] = ADDRESS
    told = assert_hidden(invoke, *command, *more, "--base-url", KEY, env=env)
    assert more or "--base-url cannot be used" in told


def test_a_key_as_the_text_base_url(invoke: Invoke) -> None:
    """So it is with --text-base-url and MUYBRIDGE_TEXT_BASE_URL."""
    env = {"MUYBRIDGE_API_KEY": ADDRESS, "MUYBRIDGE_TEXT_BASE_URL": KEY}
    assert "swapped" in assert_hidden(invoke, *TEXT, env=env)
    assert "swapped" in assert_hidden(invoke, *TEXT, "--text-base-url", KEY, env=env)


def test_a_key_as_the_file_with_the_key(invoke: Invoke) -> None:
    """A key as --api-key-file, which names a file, is not shown."""
    env = {"MUYBRIDGE_BASE_URL": ADDRESS}
    told = assert_hidden(invoke, "get", "task-1", "--api-key-file", KEY, env=env)
    assert "name of a file" in told
