"""The recordings: they show what the code does today, and nothing of the machine they come from."""

from __future__ import annotations

import re
from difflib import unified_diff
from pathlib import Path

import pytest

from .disk import Mark, Write
from .program import ordered
from .recording import COMMAND, load, order, path_of
from .scenes import SCENES
from .service import KEY

STEADY = [name for name, scene in SCENES.items() if scene.is_steady]


@pytest.mark.parametrize("name", STEADY)
def test_the_code_writes_in_the_recorded_order(name: str, tmp_path: Path) -> None:
    """Where the library makes, names, syncs and commits in another order, record anew."""
    now = ordered(name, tmp_path / "run")
    changes = unified_diff(order(load(name)), now, "recorded", "now", lineterm="")
    assert now == order(load(name)), "\n".join(
        [f"The recordings are out of date. Record anew: {COMMAND}", *changes]
    )
    assert any(line.startswith("sync") for line in now)
    assert any(line.startswith("mark") for line in now)


@pytest.mark.parametrize("name", SCENES)
def test_recordings_are_neutral(name: str) -> None:
    """A recording has no path of a machine and no key, neither in its lines nor in its data."""
    lines = path_of(name).read_text("ascii").partition("\ndata:\n")[0]
    data = b"".join(one.data for one in load(name) if isinstance(one, Write))
    for text in (lines, data.decode("latin-1")):
        assert KEY not in text
        assert re.search(r"/(tmp|home|root|work|var|Users)\b", text) is None
    assert not re.search(r"^(?!mark|#).*\s/", lines, re.MULTILINE)


@pytest.mark.parametrize("name", SCENES)
def test_something_happens_in_a_recording(name: str) -> None:
    """Recordings without a purchase or a saved file would prove nothing."""
    marks = {one.text.split()[0] for one in load(name) if isinstance(one, Mark)}
    wanted = {"accepted", "declined", "told", "saved"}
    if name.startswith("names"):
        wanted = {"accepted", "declined", "told"}
    if name == "pictures":
        wanted = {"saved", "changed"}
    assert marks == wanted


def test_the_figure_in_the_documentation() -> None:
    """The page about safety says after how many operations the power is cut."""
    operations = sum(len(load(name)) for name in SCENES)
    page = Path(__file__).parents[2] / "docs" / "safety.md"
    assert f"after each of {operations:,} operations" in page.read_text("utf-8")
