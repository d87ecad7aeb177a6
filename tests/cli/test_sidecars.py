"""`--sidecar` of `run`, `wait` and `download`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muybridge_protocol.families import ImgbRequest

from .conftest import Invoke

RUN = ("run", "imgb", "--model", "imgb-2", "--prompt", "A horse", "--poll-interval", "0.01")


def read(folder: Path, name: str = "horse.png.json") -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / name).read_bytes())
    return told


def test_run(invoke: Invoke, settings: dict[str, str], tmp_path: Path) -> None:
    """`run --sidecar` writes everything, because it knows the request and the task."""
    words = ("--sidecar", "--tag", "customer=acme", "--tag", "team=film")
    ended = invoke(*RUN, "-o", "horse.png", *words, env=settings)
    assert (ended.exit_code, ended.stdout) == (0, "horse.png\n")
    told = read(tmp_path)
    assert told["tags"] == {"customer": "acme", "team": "film"}
    assert told["request_sha256"] == ImgbRequest(model="imgb-2", prompt="A horse").digest()
    assert told["family"] == "imgb"
    assert None not in told.values()
    assert "A horse" not in (tmp_path / "horse.png.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("verb", ["wait", "download"])
def test_an_earlier_task(
    invoke: Invoke, settings: dict[str, str], tmp_path: Path, verb: str
) -> None:
    """`wait` and `download` know the task alone, so the digest is null."""
    done = invoke(*RUN, "-o", "first.png", "--json", env=settings)
    task = json.loads(done.stdout)["task"]
    for given in (task["id"], task["token"]):
        ended = invoke(verb, given, "-o", "horse.png", "--sidecar", env=settings)
        assert ended.exit_code == 0
        told = read(tmp_path)
        assert (told["task"], told["family"], told["model"]) == (task["id"], "imgb", "imgb-2")
        assert told["created"] == task["created"]
        assert told["request_sha256"] is None
        assert (told["submitted_at"] is None) == (given == task["id"])


def test_a_sidecar_needs_a_file(invoke: Invoke, settings: dict[str, str]) -> None:
    """`--sidecar` without `-o` is refused before anything is sent."""
    ended = invoke(*RUN, "--sidecar", env=settings)
    assert ended.exit_code == 2
    assert "--sidecar needs -o PATH. Nothing was sent." in ended.stderr


def test_a_file_in_its_place(invoke: Invoke, settings: dict[str, str], tmp_path: Path) -> None:
    """If the sidecar cannot be written, the picture is saved, and the exit code is 6."""
    (tmp_path / "horse.png.json").write_bytes(b"mine")
    ended = invoke(*RUN, "-o", "horse.png", "--sidecar", env=settings)
    assert (ended.exit_code, ended.stdout) == (6, "")
    assert "horse.png is saved, but its sidecar is not: horse.png.json: it is" in ended.stderr
    assert "to resume: muybridge download -o horse.png --sidecar" in ended.stderr
    assert (tmp_path / "horse.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "horse.png.json").read_bytes() == b"mine"
