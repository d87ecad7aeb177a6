"""What a shell completes, and what is said of a command that does not exist."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from muybridge.cli.commands import muybridge

from .conftest import Invoke


def suggested(line: str) -> list[str]:
    """Return what may follow *line*, whose last word is being typed."""
    *words, typed = line.split(" ")
    shell = ShellComplete(muybridge, {}, "muybridge", "_MUYBRIDGE_COMPLETE")
    return [
        item.value if item.type == "plain" else f"<{item.type}>"
        for item in shell.get_completions(words, typed)
    ]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("comp", ["completion"]),
        ("run im", ["imga", "imgb"]),
        ("create vidr", ["vidr"]),
        ("models te", ["text"]),
        ("models vidd", ["vidd"]),
        ("run imgb --model ", ["imgb-2", "imgb-2-r"]),
        ("run imgb --ratio 16", ["16:9"]),
        ("run imgb --ratio 2:", ["2:3", "2:1"]),
        ("run vidr --duration ", ["4", "8", "12"]),
        ("run vidv --resolution 4", ["4K"]),
        ("check imga --resolution ", ["1k", "2k", "4k"]),
        ("text textg-3.1-f", ["textg-3.1-flash-lite-preview"]),
        ("run imga -o h", ["<file>"]),
        ("run imga --prices ", ["<file>"]),
        ("batch run ", ["<file>"]),
        ("batch run --out ", ["<file>"]),
        ("schema --out ", ["<file>"]),
        ("text textg-2.5-pro Hello --image ", ["<file>"]),
        ("run imga --prompt ", []),
        ("run imga --image-urls ", ["@horse.png", "@pictures/"]),
        ("run imga --image-urls @h", ["@horse.png"]),
        ("run imga --image-urls @pictures/", ["@pictures/a b.png"]),
        ("run imga --image-urls @.", ["@.hidden"]),
        ("run imga --image-urls @./h", ["@./horse.png"]),
        ("run imga --image-urls @nowhere/", []),
        ("run imga --image-urls https://", []),
        ("run vidd --first-image ", []),
        ("completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_suggestions(
    line: str, offered: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands, families, models, values and files are suggested from the tables."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pictures").mkdir()
    for name in ("horse.png", "pictures/a b.png", ".hidden"):
        (tmp_path / name).touch()
    assert suggested(line) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(invoke: Invoke, shell: str) -> None:
    """The script for a shell is printed, and what that shell can read."""
    script = invoke("completion", shell).stdout
    assert "_MUYBRIDGE_COMPLETE" in script
    program = shutil.which(shell)
    if program is not None:
        read = subprocess.run([program, "-n"], input=script, text=True, check=False)  # noqa: S603  a shell
        assert read.returncode == 0


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("runn", "There is no command 'runn'; did you mean run?"),
        ("modles", "There is no command 'modles'; did you mean models?"),
        (
            "xyz",
            (
                "There is no command 'xyz'. Use run for pictures and videos, and text for text. "
                'Write `muybridge run imga --model imga --prompt "A horse at a gallop" -o '
                'horse.png` or `muybridge text textg-2.5-pro "Why does a horse gallop?"`.'
            ),
        ),
    ],
)
def test_unknown_commands(invoke: Invoke, typed: str, said: str) -> None:
    """For an unknown command, the error names the closest one."""
    done = invoke(typed, "imga")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: {said} (see `muybridge --help`)")


def test_no_shell(invoke: Invoke) -> None:
    """Without a shell, one line says which there are."""
    done = invoke("completion")
    said = "Name the shell: muybridge completion bash, zsh or fish."
    assert (done.exit_code, done.stderr) == (
        2, f"error: {said} (see `muybridge completion --help`)\n",
    )  # fmt: skip


@pytest.mark.parametrize("key", ["", "a-key"])
def test_without_a_service(invoke: Invoke, key: str) -> None:
    """Without a key or an address, the error says how to do without."""
    env = {"MUYBRIDGE_API_KEY": key or None, "MUYBRIDGE_BASE_URL": None}
    env |= {} if key else {"MUYBRIDGE_BASE_URL": "https://api.example.com"}
    done = invoke("run", "imga", "--model", "imga", "--prompt", "-a", env=env)
    assert done.exit_code == 2
    first, second = done.stderr.splitlines()
    assert first.startswith(f"error: There is no {'base URL' if key else 'API key'}. ")
    assert "--local" in second
    assert "`muybridge serve`" in second
