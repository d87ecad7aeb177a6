"""The command takes the links of a service on this machine, and refuses others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from muybridge.local import LocalService

from .conftest import Invoke

HERE = "http://127.0.0.1:9/media/horse.png"
REFUSED = f"{HERE!r} is not a public address; use a public http(s) URL"
REAL = {"MUYBRIDGE_API_KEY": "k", "MUYBRIDGE_BASE_URL": "https://api.example.com"}
NOWHERE = {"MUYBRIDGE_API_KEY": "", "MUYBRIDGE_BASE_URL": ""}

QUICK = ("--poll-interval", "0.1")
SINGLE = (
    ["run", "vidd", "--model", "viddq3-pro", "--prompt", "-", *QUICK, "--first-image"],
    ["create", "vidd", "--model", "viddq3-pro", "--prompt", "-", "--first-image"],
    ["run", "vidsb", "--model", "vidsb_2_0_pro", "--prompt", "-", *QUICK, "--first-image"],
    ["run", "vidg", "--model", "vidg_video3_max", "--prompt", "-", *QUICK, "--image-urls"],
    ["check", "vidd", "--first-image"],
)
WITH_FILE = (
    ["batch", "run", "items.jsonl", "--out", "out", "--dry-run"],
    ["batch", "run", "items.jsonl", "--out", "out", *QUICK],
    ["validate", "items.jsonl"],
    ["validate", "--media", "items.jsonl"],
    ["estimate", "items.jsonl"],
)


def write_items(folder: Path, url: str) -> None:
    item = {"family": "vidd", "model": "viddq3-pro", "prompt": "It runs", "first_image": url}
    (folder / "items.jsonl").write_text(json.dumps(item))


def picture(invoke: Invoke, settings: dict[str, str]) -> str:
    words = ("run", "imga", "--model", "imga", "--prompt", "A horse", *QUICK)
    done = invoke(*words, env=settings)
    assert done.exit_code == 0
    return done.stdout.strip()


def test_a_picture_becomes_a_video(
    invoke: Invoke, settings: dict[str, str], tmp_path: Path
) -> None:
    """The URL that one command printed is taken by the next, and by every one that checks."""
    url = picture(invoke, settings)
    for words in SINGLE:
        done = invoke(*words, url, env=settings, input="It runs")
        assert done.exit_code == 0, done.output
    write_items(tmp_path, url)
    for words in WITH_FILE:
        done = invoke(*words, env=settings)
        assert done.exit_code == 0, done.output
    assert len([*(tmp_path / "out").glob("*.mp4")]) == 1


def test_media_are_looked_at_without_a_key(
    invoke: Invoke, settings: dict[str, str], tmp_path: Path
) -> None:
    """`check` and `validate --media` read the picture from the local service."""
    url = picture(invoke, settings)
    keyless = {**settings, "MUYBRIDGE_API_KEY": ""}
    assert "PNG, " in invoke("check", "vidd", "--first-image", url, env=keyless).stdout
    write_items(tmp_path, url)
    line = json.loads(invoke("validate", "--media", "items.jsonl", env=keyless).stdout)
    assert (line["ok"], line.get("undecided")) == (True, None)


@pytest.mark.parametrize("env", [REAL, NOWHERE], ids=["real", "none"])
def test_the_real_service(invoke: Invoke, tmp_path: Path, env: dict[str, str]) -> None:
    """For a service elsewhere, and for one that is not named, such a URL is a problem."""
    for words in SINGLE:
        if env is REAL or words[0] == "check":
            done = invoke(*words, HERE, env=env, input="It runs")
            assert done.exit_code == 2, done.output
            assert REFUSED in done.stderr
    write_items(tmp_path, HERE)
    for words in WITH_FILE:
        if env is REAL or words[0] != "batch" or "--dry-run" in words:
            done = invoke(*words, env=env)
            assert done.exit_code in {1, 2}, done.output
            # `validate` quotes it within JSON.
            assert REFUSED in done.output.replace('\\"', '"')
    assert not (tmp_path / "out").exists()


def test_another_server(
    invoke: Invoke, settings: dict[str, str], service: LocalService, tmp_path: Path
) -> None:
    """A URL on this machine that is none of the service's own is refused before it is sent."""
    made = service.emulator.task_count
    for words in SINGLE:
        done = invoke(*words, HERE, env=settings, input="It runs")
        assert (done.exit_code, REFUSED in done.stderr) == (2, True)
    write_items(tmp_path, HERE)
    for words in WITH_FILE:
        assert REFUSED in invoke(*words, env=settings).output
    assert service.emulator.task_count == made


def test_the_embedded_service(invoke: Invoke) -> None:
    """With --local no URL on this machine is the service's own: it has only just begun."""
    words = [*SINGLE[0], HERE, "--local"]
    done = invoke(*words, input="It runs")
    assert (done.exit_code, REFUSED in done.stderr) == (2, True)
