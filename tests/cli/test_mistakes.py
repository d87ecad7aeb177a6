"""Mistakes in a command line: the error says what would be right, and nothing is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from media.corpus import picture

from .conftest import Invoke

VIDSB = ("run", "vidsb", "--model", "vidsb_2_0", "--prompt", "-a")

MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "a file where none is taken": (
        (*VIDSB, "--reference-images", "@photo.png", "--allow-inline"),
        "<photo.png: PNG, 640x480 px (",
    ),
    "a permission that is close": (
        (*VIDSB, "--allow-plain"),
        "No such option '--allow-plain'. (see",
    ),
    "a field of another family": (
        (*VIDSB, "--image-urls", "https://a.example.com/a.png"),
        "No such option '--image-urls'. Did you mean '--reference-images'?",
    ),
    "a prompt without its option": (
        ("run", "imga", "a horse"),
        "Unexpected argument 'a horse'. Give the prompt as --prompt, in quotes if it has spaces.",
    ),
    "no family": (
        ("run", "--prompt", "-a"),
        (
            "The family comes before --prompt. Write muybridge run FAMILY --prompt ..., with one "
            "of imga, imgb,"
        ),
    ),
    "a family as the command": (
        ("imgb", "--prompt", "-a"),
        "imgb is a family. Write muybridge run imgb, then the options.",
    ),
    "a model as the family": (
        ("run", "vidg_video3", "--prompt", "-a"),
        "there is no family 'vidg_video3': vidg_video3 is a model of family vidg; give 'vidg'",
    ),
    "a command of another tool": (
        ("generate", "a horse"),
        "There is no command 'generate'. Use run for pictures and videos, and text for text.",
    ),
    "a limit with a currency": (
        ("run", "imga", "--model", "imga", "--prompt", "a", "--max-cost", "1EUR"),
        "--max-cost: a limit must be a number of at least 0 (got '1EUR'). Nothing was sent.",
    ),
    "a model as a family to list": (("models", "vidg_video3"), "is a model of family vidg"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    """What somebody types who comes from elsewhere is answered with what would be right."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photo.png").write_bytes(picture("PNG", 640, 480))
    words, said = MISTAKES[mistake]
    done = invoke(*words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "plain-http" not in done.stderr
