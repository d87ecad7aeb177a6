"""What is printed is printed once, whenever Ctrl-C comes."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

from muybridge.cli.standard_streams import guard_streams
from muybridge.cli.terminal import answer_piece


def _interrupted(number: int) -> bool:
    """Print a piece, with Ctrl-C at its step of that *number*, and return whether it had so many.

    The steps are the calls and returns of functions, where Python looks whether Ctrl-C has come.
    """
    steps = itertools.count()

    def interrupt(*_: object) -> None:
        if next(steps) == number:
            sys.setprofile(None)
            raise KeyboardInterrupt

    try:
        sys.setprofile(interrupt)
        answer_piece("A horse ")
        sys.setprofile(None)
    except KeyboardInterrupt:
        return True
    return False


def test_a_piece_is_printed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C at any step of printing does not print a piece twice, nor lose what comes after it."""
    written = tmp_path / "stdout"
    shown: list[str] = []
    for number in range(1000):
        with written.open("w") as file, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", sys.stdin)
            patch.setattr(sys, "stdout", file)
            patch.setattr(sys, "stderr", file)
            guard_streams()
            interrupted = _interrupted(number)
            answer_piece("gallops.")
        shown.append(written.read_text())
        if not interrupted:
            break
    assert set(shown) == {"gallops.", "A horse gallops."}
    assert shown[-1] == "A horse gallops."
    assert len(shown) > 5
