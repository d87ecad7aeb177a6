"""`demo` and `serve`: the service on this machine, through the whole path."""

from __future__ import annotations

import json
from pathlib import Path

import av
import pytest
from PIL import Image

from media.corpus import video
from muybridge.local import LocalService, result_files

from .conftest import Invoke, Start


def test_the_demo_makes_a_picture_and_a_video(start: Start, tmp_path: Path) -> None:
    """`demo` ends with a PNG and an MP4 of the size and length that were asked for."""
    process = start("demo", "--out", "both")
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0
    picture, video = (tmp_path / line for line in stdout.splitlines())
    assert (picture.parent, picture.suffix, video.suffix) == (tmp_path / "both", ".png", ".mp4")
    with Image.open(picture) as image:
        image.load()
        width, height = image.size
        assert (image.format, width * 9, width >= 1024) == ("PNG", height * 16, True)
    with av.open(video) as container:
        stream = container.streams.video[0]
        frames = sum(1 for _ in container.decode(stream))
        assert stream.average_rate is not None
        assert abs(frames / float(stream.average_rate) - 4) < 0.1
        assert stream.codec_context.name == "h264"
        assert stream.width * 9 == stream.height * 16
        assert container.streams.audio
    for word in ("ImgbRequest(model=", "VidsbRequest(model=", "task ", "saved both/", "--real"):
        assert word in stderr


@pytest.fixture
def plain_videos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Videos of one colour: to draw a horse takes seconds, and the test above has seen one."""

    def draw(_: object, path: Path) -> None:
        path.write_bytes(video(seconds=4))

    monkeypatch.setattr(result_files, "render_mp4", draw)


@pytest.mark.usefixtures("plain_videos")
def test_the_demo_in_json(invoke: Invoke, tmp_path: Path) -> None:
    """With --json the demo is one document with both tasks, results and paths."""
    ended = invoke("demo", "--json")
    told = json.loads(ended.stdout)
    assert (ended.exit_code, told["ok"], len(told["results"])) == (0, True, 2)
    for made in told["results"]:
        assert (tmp_path / made["path"]).exists()
        assert made["result"]["status"] == "completed"
    assert told["results"][1]["result"]["actualDuration"] == 4


@pytest.mark.usefixtures("plain_videos")
def test_the_demo_works_against_a_service(
    invoke: Invoke, service: LocalService, settings: dict[str, str]
) -> None:
    """`demo --real` takes the key and the address of the environment."""
    ended = invoke("demo", "--real", "--poll-interval", "0.05", env=settings)
    assert ended.exit_code == 0
    assert f"Client('{service.base_url}') talks to the real service" in ended.stderr


@pytest.mark.usefixtures("plain_videos")
def test_a_key_in_the_environment_is_not_used_without_real(
    invoke: Invoke, settings: dict[str, str]
) -> None:
    """Without --real nothing costs money, whatever the environment says."""
    settings = {**settings, "MUYBRIDGE_BASE_URL": "http://127.0.0.1:9"}
    ended = invoke("demo", env=settings)
    assert ended.exit_code == 0
    assert ended.stderr.splitlines()[-1].endswith("muybridge demo --real")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--real",), "--real needs MUYBRIDGE_API_KEY and MUYBRIDGE_BASE_URL"),
        (("--real", "--base-url", "https://x.example"), "--real needs MUYBRIDGE_API_KEY"),
        (("--base-url", "https://x.example"), "need --real, which costs money"),
        (("--out", "taken"), "--out taken/:"),
    ],
)
def test_the_demo_refuses(
    invoke: Invoke, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    """What the demo cannot do is reported before anything is sent."""
    (tmp_path / "taken").write_text("a file where a folder is wanted")
    ended = invoke("demo", *words)
    assert (ended.exit_code, ended.stdout) == (2, "")
    assert said in ended.stderr


def test_run_local_needs_no_key(invoke: Invoke, tmp_path: Path) -> None:
    """`run --local` makes a real file without a key or an address."""
    words = ("--model", "imga", "--prompt", "A horse", "-o", "a.png")
    ended = invoke("run", "imga", "--local", *words)
    assert (ended.exit_code, ended.stdout) == (0, "a.png\n")
    with Image.open(tmp_path / "a.png") as image:
        image.verify()


def test_serve_takes_a_key_of_its_users(start: Start, tmp_path: Path) -> None:
    """`serve --api-key-file` accepts that key, and prints the file's name and not the key."""
    (tmp_path / "key file").write_text("a-key-of-mine\n")
    process = start("serve", "--port", "0", "--json", "--api-key-file", "key file")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert (told["ok"], told["api_key"]) == (True, None)
    options = ("--api-key-file", "key file", "--base-url", told["base_url"])
    asked = start("create", "imga", "--model", "imga", "--prompt", "A horse", *options)
    asked.communicate(timeout=20)
    process.terminate()
    stdout, stderr = process.communicate(timeout=20)
    assert (asked.returncode, process.returncode, stdout) == (0, 0, "")
    assert "a-key-of-mine" not in stderr


def test_serve_warns_of_the_network(start: Start) -> None:
    """A host that others can reach is served with a warning."""
    process = start("serve", "--host", "0.0.0.0", "--port", "0")  # noqa: S104  what is tested
    assert process.stdout is not None
    process.stdout.readline()
    process.terminate()
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == 0
    assert stderr.startswith("warning: other machines can connect to 0.0.0.0")


def test_serve_can_be_strict(start: Start) -> None:
    """A model that is not listed is taken by `serve`, and refused by `serve --strict`."""
    asked = ("create", "imga", "--unlisted-model", "imga-9", "--prompt", "A horse")
    for options, code in (((), 0), (("--strict",), 3)):
        process = start("serve", "--port", "0", "--json", *options)
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        env = {"MUYBRIDGE_API_KEY": told["api_key"], "MUYBRIDGE_BASE_URL": told["base_url"]}
        creating = start(*asked, env=env)
        creating.communicate(timeout=20)
        process.terminate()
        process.communicate(timeout=20)
        assert creating.returncode == code


def test_wrong_scripted_answers_are_reported(invoke: Invoke, tmp_path: Path) -> None:
    """`serve --answers` refuses a file that it cannot use before it starts, with each problem."""
    (tmp_path / "a.jsonl").write_text('"Neigh."\n{"txt": 1}\n{}\n')
    for name, complaints in {
        "none.jsonl": ["--answers none.jsonl: No such file or directory."],
        "a.jsonl": [
            "--answers a.jsonl is not valid:",
            "line 2: answer has an unknown field 'txt'; did you mean text?",
            "line 3: answer says nothing;",
        ],
    }.items():
        ended = invoke("serve", "--port", "0", "--answers", name)
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert all(complaint in ended.stderr for complaint in complaints)


def test_it_is_said_that_every_picture_is_a_horse(invoke: Invoke) -> None:
    """Whoever starts the service of their own machine learns that it draws horses alone."""
    for command in ("serve", "demo"):
        shown = " ".join(invoke(command, "--help").stdout.split())
        assert "galloping horse" in shown
        assert "whatever the prompt says" in shown.lower()
