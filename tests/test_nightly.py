"""The parts of the nightly run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.mutation.groups import GROUPS

ROOT = Path(__file__).parent.parent
NIGHTLY = (ROOT / ".ci" / "nightly").read_text(encoding="utf-8").split()
FOLDERS = sorted(
    path.parent.name
    for path in ROOT.glob("tests/*/__init__.py")
    if not path.with_name("pytest.ini").exists()  # which has a command of its own in `.ci`
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_folder_of_tests_is_in_a_part(folder: str) -> None:
    """No tests are left out of the nightly run because nobody named their folder."""
    assert any(word.rstrip(";") == f"tests/{folder}" for word in NIGHTLY)


SCRIPTS = sorted(path for path in ROOT.glob(".ci/*") if path.is_file())


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda it: it.name)
def test_every_test_that_a_script_names_exists(script: Path) -> None:
    """A name that nothing has ends pytest before it runs any of the others."""
    named = re.findall(r"(?<!\S)tests/[\w/*.]+", script.read_text("utf-8"))
    assert [one for one in named if not [*ROOT.glob(one)]] == []


@pytest.mark.parametrize("group", GROUPS)
def test_every_group_of_mutants_is_in_a_part(group: str) -> None:
    """No group of mutants is left out of the nightly run."""
    assert any(word.rstrip(";") == group for word in NIGHTLY)
