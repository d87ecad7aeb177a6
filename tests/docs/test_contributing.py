"""CONTRIBUTING.md names existing files."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOUSES = ("protocol", "transports", "tests", "docs")


def test_every_path_of_the_tables_exists() -> None:
    """Each file and folder in a table exists, so that newcomers find it."""
    paths = [f"/{path.relative_to(ROOT)}" for house in HOUSES for path in (ROOT / house).rglob("*")]
    known = {*paths, *(f"/{house}" for house in HOUSES)}
    page = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    cells = "\n".join(line for line in page.split("\n") if line.startswith("| "))
    named = re.findall(r"`(?:\.\.\.)?/?([a-z_0-9/]*(?:/|\.py))`", cells)
    assert len(named) > 50
    for name in named:
        ending = f"/{name.rstrip('/')}"
        assert any(path.endswith(ending) for path in known), name
