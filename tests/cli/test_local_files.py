"""`@FILE` in place of a URL sends a local file."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from media.corpus import picture

from .conftest import Invoke
from .test_requests import sent

HORSE = picture("PNG", 1280, 720)
URI = f"data:image/png;base64,{base64.b64encode(HORSE).decode()}"
VIDG = ("vidg", "--model", "vidg_video3", "--prompt", "-a")
ALLOW = "--allow-inline"
IMGA = ("imga", "--model", "imga", "--prompt", "-a")


@pytest.fixture(autouse=True)
def _horse(tmp_path: Path) -> None:
    (tmp_path / "horse.png").write_bytes(HORSE)


def test_files_are_sent(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The content takes the place of `@FILE`, beside URLs, and by any path."""
    url = "https://example.com/a.png"
    words = [f"@{tmp_path}/horse.png", url, "@./horse.png"]
    options = [word for given in words for word in ("--image-urls", given)]
    body = sent(invoke, monkeypatch, *VIDG, *options)
    assert body == {"model": "vidg_video3", "prompt": "-a", "image_urls": [URI, url, URI]}


def test_the_home_folder(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A ~ behind the @ is the home folder, which no shell would expand there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir("/")
    body = sent(invoke, monkeypatch, *VIDG, "--image-urls", "@~/horse.png")
    assert body == {"model": "vidg_video3", "prompt": "-a", "image_urls": [URI]}


def test_files_are_sent_on_request(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the specification does not mention base64, --allow-inline sends the file."""
    body = sent(invoke, monkeypatch, *IMGA, "--image-urls", "@horse.png", "--allow-inline")
    assert body == {"model": "imga", "prompt": "-a", "image_urls": [URI]}


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "not allowed": (
        (*IMGA, "--image-urls", "@horse.png"),
        (
            "<horse.png: PNG, 1280x720 px (973 bytes)>: the specification does not say that the "
            "service reads files in this field, so it may charge for the request and ignore the "
            "file; use an http(s) URL, or send the file all the same with --allow-inline"
        ),
    ),
    "not there": (
        (*IMGA, "--image-urls", "@cow.png"),
        "cow.png cannot be read: No such file or directory; use a file or a URL",
    ),
    "no picture": (
        (*IMGA, "--image-urls", f"@{__file__}"),
        "test_local_files.py is a text; use a picture, video or sound",
    ),
    "forgotten": (
        (*IMGA, "--image-urls", "horse.png"),
        (
            "'horse.png' is not a URL; use an http(s) URL or a data:...;base64 URI, or @FILE for a "
            "local file"
        ),
    ),
    "refused": (
        ("vidd", "--model", "viddq3-pro", "--prompt", "-a", "--first-image", "@horse.png"),
        (
            "<horse.png: PNG, 1280x720 px (973 bytes)>: this field takes no files; use a public "
            "http(s) URL"
        ),
    ),
    "upright": (
        ("vidr", "--model", "vidrPro", "--prompt", "-a", "--image-urls", "@horse.png", ALLOW),
        (
            "horse.png has 1280x720 px, but must have 720x1280 px; a reference image has "
            "1280x720 px for 16:9, and 720x1280 px for 9:16"
        ),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files(invoke: Invoke, name: str) -> None:
    """A file that cannot be sent is one problem of the request, which says what would do."""
    words, said = WRONG[name]
    done = invoke("run", *words)
    assert done.exit_code == 2
    heading, line = done.stderr.splitlines()
    assert heading.startswith("error: 1 problem in the")
    assert line.partition("): ")[2] == said


def test_a_field_without_files_has_no_such_option(invoke: Invoke) -> None:
    """The help offers `@FILE` where files are taken, and --allow-inline where it is needed."""
    offered = {
        name: ("@FILE" in text, "--allow-inline" in text)
        for name in ("vidd", "vidg", "imga", "vidsa")
        for text in [invoke("run", name, "--help").stdout]
    }
    assert offered == {
        "vidd": (False, False),
        "vidg": (True, False),
        "imga": (True, True),
        "vidsa": (False, False),
    }


def test_checks_name_the_file(invoke: Invoke) -> None:
    """`check` calls a file by its name, and prints nothing of its content."""
    done = invoke("check", "imga", "--image-urls", "@horse.png", "--allow-inline", "--json")
    (medium,) = json.loads(done.stdout)["media"]
    assert (medium["source"], medium["width"]) == ("horse.png", 1280)
    assert URI[30:60] not in done.output


def test_files_in_a_batch(invoke: Invoke, tmp_path: Path) -> None:
    """`validate` and `estimate` read the files that items name, relative to the batch file."""
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "cow.png").write_bytes(HORSE)
    vidg = {"family": "vidg", "model": "vidg_video3", "prompt": "-"}
    vidr = {"family": "vidr", "model": "vidrPro", "prompt": "-", "allow_inline": True}
    items = [
        {**vidg, "image_urls": ["@cow.png"]},
        {**vidg, "image_urls": ["@horse.png"]},
        {**vidr, "image_urls": ["@cow.png"]},
    ]
    (tmp_path / "orders" / "batch.jsonl").write_text("\n".join(map(json.dumps, items)))
    done = invoke("validate", "orders/batch.jsonl")
    told = [json.loads(line)["errors"] for line in done.stdout.splitlines()]
    assert [[error["field"] for error in errors] for errors in told] == [
        [],
        ["image_urls"],
        ["image_urls"],
    ]
    assert "cannot be read" in told[1][0]["message"]
    assert "must have 720x1280 px" in told[2][0]["message"]
    estimated = json.loads(invoke("estimate", "orders/batch.jsonl", "--json").stdout)
    assert (estimated["total"]["requests"], estimated["invalid"]) == (1, 2)


def test_a_prompt_that_is_only_a_file(invoke: Invoke, tmp_path: Path) -> None:
    """A prompt that is a file's name or content is refused, with the option for the file."""
    (tmp_path / "notes").write_text("A horse at night.")
    (tmp_path / "photo").write_bytes(HORSE)
    lines = {
        "@prompt.txt": 'give "$(cat prompt.txt)", or - for stdin',
        "@notes": 'give "$(cat notes)", or - for stdin',
        "@photo": "put it into image_urls, as @photo",
        "horse.png": "put it into image_urls, as @horse.png",
        URI: "put it into image_urls, as a data: URI",
    }
    for prompt, line in lines.items():
        for words in (
            ("run", "vidg", "--model", "vidg_video3", "--prompt", prompt),
            ("check", "vidg", "--model", "vidg_video3", "--prompt", prompt),
            ("run", "vidg", "--model", "vidg_video3", "--prompt", "-"),
        ):
            done = invoke(*words, input=prompt)
            assert done.exit_code == 2, done.output
            assert done.stderr.endswith(f"{line}\n"), done.stderr
            assert "--prompt (prompt): " in done.stderr


def test_a_prompt_with_an_at(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt that begins with an @ but names no file is sent."""
    body = sent(invoke, monkeypatch, "vidg", "--model", "vidg_video3", "--prompt", "@ada rides")
    assert body == {"model": "vidg_video3", "prompt": "@ada rides"}
