"""A port that was written from the documentation passes the vectors, and mistakes in it do not."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
from pathlib import Path

import attrs
import pytest

from .fresh_vectors import write_vectors

PORT = Path(__file__).parent
VECTORS = PORT.parent / "vectors" / "data"
REPLAYED = {
    "delivery", "families", "intervals", "invalid-requests", "operations", "responses", "requests",
    "rules",
}  # fmt: skip
"""The files of which the port has the behaviour: of the others it checks the form."""

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not installed, and the port is in JavaScript"
)


@attrs.frozen
class Mistake:
    """A mistake in the port.

    Args:
        name: What it is.
        file: Where it is made.
        right: What stands there.
        wrong: What it is replaced by.
        found_by: The case that fails.
    """

    name: str
    file: str
    right: str
    wrong: str
    found_by: str


MISTAKES = (
    Mistake("growth", "poll.mjs", "GROWTH = 1.25", "GROWTH = 1.5", "intervals: vidv vidv_3_1_fast"),
    Mistake(
        "a model's pace", "tables.mjs", "?? family).pacing", "&& family).pacing",
        "intervals: vidsa vidsa_1_5_pro_480p",
    ),
    Mistake(
        "a bare id's pace", "poll.mjs", "shortest: 5,", "shortest: 4,", "intervals: a bare id",
    ),
    Mistake(
        "pace in an outage", "poll.mjs", "shortest: 30,", "shortest: 5,",
        "operations: polls that fail, and then do not",
    ),
    Mistake(
        "a lost response", "delivery.mjs", 'lost: "ambiguous"', 'lost: "retry"',
        "operations: a create whose response is lost",
    ),
    Mistake(
        "a verdict", "delivery.mjs", '404: "refused", 405', '409: "refused", 404: "refused", 405',
        "delivery: create: 409",
    ),
    Mistake(
        "a task in a refusal", "create.mjs", "if (id !== undefined)", "if (false)",
        """responses: create 400 b'{"taskId": "task-7", "error": "because"}'""",
    ),
    Mistake(
        "a number of attempts", "create.mjs", "THROTTLED_TRIES = 4", "THROTTLED_TRIES = 5",
        "operations: a create that is always throttled",
    ),
    Mistake(
        "Retry-After", "poll.mjs", "asked >= 0", "asked >= 600",
        "operations: polls that are throttled",
    ),
    Mistake(
        "a new task", "poll.mjs", "NEWBORN = 60", "NEWBORN = 0",
        "operations: a new task that is not known yet",
    ),
    Mistake(
        "a refused value", "requests.mjs", "<= rule.longest_ratio", "< rule.longest_ratio",
        'requests: imgb {"model": "imgb-2", "prompt": "A horse at a gallop", "ratio": "1:1", '
        '"size": "1440x480"}',
    ),
    Mistake(
        "an accepted value", "requests.mjs", "value.length <= high", "value.length <= high + 1",
        'invalid-requests: vidc {"model": "vidc_o3", "prompt": "A horse at a gallop", '
        '"referenceVideos": ["https://media.example.com/0.png", "https://media.example.com/1.png"]}',
    ),
    Mistake(
        "the order of fields", "requests.mjs", "...Object.fromEntries(ordered)", "...sent",
        'requests: videos {"model": "videos", "prompt": "A horse at a gallop", "duration": 4, '
        '"image": "https://media.example.com/horse.png", '
        '"last_image": "https://media.example.com/horse.png"}',
    ),
)  # fmt: skip


def replayed(port: Path, vectors: Path = VECTORS) -> subprocess.CompletedProcess[str]:
    """Return what the port in the folder *port* says about the vectors in *vectors*."""
    return subprocess.run(  # noqa: S603  our own script
        ["node", str(port / "replay.mjs")],  # noqa: S607  whichever is installed
        env={**os.environ, "VECTORS": str(vectors)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_port_passes_all_vectors() -> None:
    """Creates, refusals, polling and pacing of every family are as the vectors have them."""
    done = replayed(PORT)
    assert done.stderr == ""
    told = re.findall(
        r"^([\w-]+): (\d+) of the right form, (?:(\d+) passed|not ported)$",
        done.stdout,
        re.MULTILINE,
    )
    assert done.stdout.count("\n") == len(told), done.stdout
    assert done.returncode == 0
    assert {name for name, *_ in told} == {path.stem for path in VECTORS.glob("*.json")}
    assert {name for name, _, passed in told if passed} == REPLAYED


ALWAYS_PLANTED = ("a model's pace", "a verdict", "a refused value")
"""A few mistakes that every run of the tests plants: the nightly run plants all."""


@pytest.mark.parametrize(
    "mistake",
    [
        pytest.param(
            one, id=one.name, marks=() if one.name in ALWAYS_PLANTED else pytest.mark.nightly
        )
        for one in MISTAKES
    ],
)
def test_mistakes_are_found_by_name(mistake: Mistake, tmp_path: Path) -> None:
    """A mistake in the port makes a case fail whose name says what is wrong."""
    for file in PORT.glob("*.mjs"):
        text = file.read_text(encoding="utf-8")
        if file.name == mistake.file:
            assert text.count(mistake.right) == 1
            text = text.replace(mistake.right, mistake.wrong)
        (tmp_path / file.name).write_text(text, encoding="utf-8")
    done = replayed(tmp_path)
    assert done.returncode == 1
    assert f"failed: {mistake.found_by}" in done.stdout.splitlines()


@pytest.mark.parametrize("name", ["streams", "operations", "budgets"])
def test_the_form_is_checked(name: str, tmp_path: Path) -> None:
    """A file that does not satisfy its schema fails, also if the port does not replay it."""
    vectors = tmp_path / "data"
    shutil.copytree(VECTORS, vectors)
    file = vectors / f"{name}.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"name": ', '"nmae": ', 1), encoding="utf-8")
    done = replayed(PORT, vectors)
    assert done.returncode == 1
    assert f"failed: {name}: its schema" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("count", "fresh"),
    [(50, False), pytest.param(3_000, True, marks=pytest.mark.nightly)],
    ids=["the same", "fresh"],
)
def test_the_port_does_what_the_core_does(count: int, fresh: bool, tmp_path: Path) -> None:  # noqa: FBT001
    """Requests and scripts that nobody has written end in the same way; others each night."""
    seed = secrets.randbits(32) if fresh else 0
    write_vectors(tmp_path / "data", count, seed)
    done = replayed(PORT, tmp_path / "data")
    assert done.returncode == 0, f"seed {seed}: {done.stdout[:3000]}"
    assert f"operations: {count} of the right form, {count} passed" in done.stdout
    assert re.findall("^(.*requests): .* passed$", done.stdout, re.MULTILINE) == [
        "invalid-requests",
        "requests",
    ]


def test_the_port_needs_nothing_else() -> None:
    """It imports only its own files and modules of Node, and none of the Python core."""
    for file in PORT.glob("*.mjs"):
        imported = re.findall(r'from "([^"]+)"', file.read_text(encoding="utf-8"))
        assert all(re.fullmatch(r"node:\w+|\./\w+\.mjs", name) for name in imported), file.name
