"""`muybridge check` looks at files and URLs before anything is paid, and needs no key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from client.test_check import asked, ranges, serving
from media.corpus import picture, sound, video
from muybridge_protocol.families import FAMILIES

from .conftest import Invoke


def test_a_good_file(invoke: Invoke, tmp_path: Path) -> None:
    """A file that keeps every rule is said to do so, with the rules that only the service knows."""
    (tmp_path / "horse.png").write_bytes(picture("PNG", 1280, 720))
    done = invoke("check", "vidsb", "--file", "reference_images=horse.png")
    assert done.exit_code == 0
    size = (tmp_path / "horse.png").stat().st_size
    assert done.stdout.splitlines() == [
        f"referenceImages[0] horse.png: PNG, 1280x720 px ({size:,} bytes)",
        (
            "- undecided: only the service can tell. A reference image with human faces or virtual "
            "avatars must be an asset."
        ),
        "no problems found; 4 of 5 rules could be checked",
    ]
    assert done.stderr == ""


def test_a_bad_file(invoke: Invoke, tmp_path: Path) -> None:
    """Each broken rule is a line, and the exit code is 1."""
    for name in "ab":
        (tmp_path / f"{name}.wav").write_bytes(sound(9))
    (tmp_path / "c.wav").write_bytes(b"<html>")
    files = [word for name in "abc" for word in ("--file", f"reference-audios={name}.wav")]
    done = invoke("check", "vidsb", *files)
    assert done.exit_code == 1
    problems = [line for line in done.stdout.splitlines() if "problem" in line]
    assert problems == [
        "- problem: is a web page or another text. The field takes sounds.",
        (
            "referenceAudios problem: they last 18 s together. All reference sounds together last "
            "at most 15 s."
        ),
        "2 problems found; 10 of 10 rules could be checked",
    ]


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["@square.png", "--aspect-ratio", "9:16"], 1, "must have 720x1280 px"),
        (["@text.png"], 1, "text.png is a web page or another text"),
        (["@square.png", "--aspect-ratio", "9:16", "--size", "9"], 2, "--size (size)"),
        (["@none.png"], 2, "none.png cannot be read"),
    ],
)
def test_a_bad_file_to_send(
    invoke: Invoke, tmp_path: Path, words: list[str], code: int, why: str
) -> None:
    """A file to send that breaks a rule ends with 1, too; other mistakes in the request, with 2."""
    (tmp_path / "square.png").write_bytes(picture("PNG", 1024, 1024))
    (tmp_path / "text.png").write_bytes(b"<html>")
    done = invoke("check", "vidr", "--allow-inline", "--json", "--image-urls", *words)
    assert (done.exit_code, why in done.stderr) == (code, True)
    record = json.loads(done.stdout)
    assert (record["ok"], record["error"]["exit_code"]) == (False, code)


def test_json(invoke: Invoke, tmp_path: Path) -> None:
    """With --json there is one document with the facts, the problems and what is undecided."""
    (tmp_path / "horse.mp4").write_bytes(video(640, 480, 2, fragmented=True))
    done = invoke("check", "videos", "--file", "referenceVideos=horse.mp4", "--json")
    assert done.exit_code == 1
    size = (tmp_path / "horse.mp4").stat().st_size
    assert json.loads(done.stdout) == {
        "ok": False,
        "media": [
            {
                "field": "referenceVideos",
                "index": 0,
                "source": "horse.mp4",
                "kind": "video",
                "format": "MP4",
                "width": 640,
                "height": 480,
                "seconds": None,
                "bytes": size,
                "content_credentials": False,
            }
        ],
        "problems": [
            {
                "field": "referenceVideos",
                "index": 0,
                "why": "has 640x480 px",
                "rule": "Each reference video has a resolution between 720 px and 2160 px.",
            }
        ],
        "undecided": [
            {
                "field": "referenceVideos",
                "index": None,
                "why": "how long some of them last is not known",
                "rule": "All reference videos together last at most 15 s.",
            }
        ],
        "rules": {"decided": 3, "total": 4},
    }


def test_a_url(invoke: Invoke) -> None:
    """A URL is fetched without the key, and shown without its query."""
    with serving(ranges(picture("JPEG", 1280, 720))) as server:
        done = invoke(
            "check", "vidr", "--size", "1280x720", "--image-urls", f"{server.url}/a.jpg?sign=x",
            "--allow-insecure-downloads", env={"MUYBRIDGE_API_KEY": "the-key"},
        )  # fmt: skip
        assert b"the-key" not in server.received
        assert b"uthorization" not in server.received
    assert done.exit_code == 0
    assert f"{server.url}/a.jpg?...: JPEG, 1280x720 px" in done.stdout
    assert "sign=x" not in done.output


def test_an_address_that_is_not_fetched(invoke: Invoke) -> None:
    """A private address is not fetched, and the line names the option that allows it."""
    done = invoke("check", "imga", "--image-urls", "http://10.1.2.3/a.png")
    assert done.exit_code == 0
    assert "to look at it anyway, use --allow-insecure-downloads" in done.stdout
    assert done.stdout.splitlines()[0] == "image_urls[0] http://10.1.2.3/a.png: could not be read"


def test_the_rest_of_the_request_is_checked(invoke: Invoke, tmp_path: Path) -> None:
    """What is given of the request must be valid; what is required and missing does not matter."""
    (tmp_path / "horse.png").write_bytes(picture("PNG", 500, 400))
    done = invoke("check", "vidd", "--file", "last_image=horse.png", "--resolution", "8k")
    assert done.exit_code == 2
    assert "--resolution (resolution): '8k' is not accepted" in done.stderr
    assert "--last-image (last_image): needs first_image" in done.stderr
    assert "prompt" not in done.stderr


def test_too_many_files(invoke: Invoke, tmp_path: Path) -> None:
    """Files count as references of the request."""
    (tmp_path / "horse.png").write_bytes(picture("PNG", 500, 400))
    files = ["--file", "image_urls=horse.png"] * 7
    done = invoke("check", "imga", *files)
    assert done.exit_code == 2
    assert "there are 7 items; use at most 6" in done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--file", "prompt=a.png"], "'prompt=a.png' is not FIELD=PATH; FIELD is one of: "),
        (["--file", "first_image"], "'first_image' is not FIELD=PATH"),
        (["--file", "first_image=none.png"], "--file none.png: No such file or directory"),
        (["--file", "first_image=."], "--file .: not a regular file"),
        (
            ["--file", "first_image=a.png", "--file", "first_image=b.png"],
            "first_image takes one",
        ),
        (
            ["--file", "first_image=a.png", "--first-image", "https://a.example.com/a.png"],
            "give --first-image or --file first_image=..., not both",
        ),
    ],
)
def test_wrong_files(invoke: Invoke, words: list[str], why: str) -> None:
    """A file that cannot be checked is a mistake in the command line."""
    done = invoke("check", "vidd", *words)
    assert done.exit_code == 2
    assert why in done.stderr


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(invoke: Invoke, family: str) -> None:
    """Each family has the command, its help has an example, and nothing must be given."""
    done = invoke("check", family)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "there is no picture, video or sound to check\n"
    assert f"muybridge check {family}" in invoke("check", family, "--help").stdout


def test_the_media_of_a_file_of_requests(invoke: Invoke, tmp_path: Path) -> None:
    """`validate --media` looks at the media of each valid item, and at no others."""
    body = {"model": "vidrPro", "prompt": "A horse"}
    with serving(ranges(picture("PNG", 1280, 720))) as server:
        url = f"{server.url}/a.png?sign=x"
        items = [
            {"family": "vidr", **body, "size": "1280x720", "image_urls": [url]},
            {"family": "vidr", **body, "size": "720x1280", "image_urls": [url]},
            {"family": "vidr", **body, "size": "big", "image_urls": [url]},
            {"family": "vidr", **body},
        ]
        text = "".join(json.dumps(item) + "\n" for item in items)
        (tmp_path / "requests.jsonl").write_text(text, encoding="utf-8")
        done = invoke("validate", "requests.jsonl", "--media", "--allow-insecure-downloads")
        assert len(asked(server)) == 2
    assert done.exit_code == 1
    first, second, third, fourth = map(json.loads, done.stdout.splitlines())
    (undecided,) = first["undecided"]
    assert first["ok"]
    assert undecided["field"] == "image_urls[0]"
    assert undecided["message"].startswith("only the service can tell. A real portrait")
    assert second["errors"] == [
        {
            "field": "image_urls[0]",
            "message": "has 1280x720 px, but must have 720x1280 px. A reference image has "
            "1280x720 px for 16:9, and 720x1280 px for 9:16.",
        }
    ]
    assert [error["field"] for error in third["errors"]] == ["size"]
    assert fourth == {"line": 4, "family": "vidr", "ok": True, "errors": []}
