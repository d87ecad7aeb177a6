"""The workflows, which run elsewhere: who starts them, what they may do, whose code they run."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())
STARTS = True
"""What YAML reads the key `on` as."""


def read(path: Path) -> dict[Any, Any]:
    workflow: dict[Any, Any] = yaml.safe_load(path.read_text("utf-8"))
    return workflow


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned(path: Path) -> None:
    """Actions of others are named by commit: a tag that is moved changes nothing here."""
    used = re.findall(r"uses: *(\S+)", path.read_text("utf-8"))
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", one)] == []


def test_only_a_maintainer_starts_a_release() -> None:
    """Nothing but a start by hand leads to a release, and another person must approve it."""
    workflow = read(ROOT / ".github/workflows/release.yml")
    assert list(workflow[STARTS]) == ["workflow_dispatch"]
    assert workflow["jobs"]["publish"]["environment"] == "pypi"


def test_the_job_that_publishes_runs_nothing_of_ours() -> None:
    """Only it may ask for an identity; it checks nothing out, and there is no password."""
    path = ROOT / ".github/workflows/release.yml"
    jobs = read(path)["jobs"]
    allowed = {name: job["permissions"] for name, job in jobs.items()}
    assert allowed == {"build": {"contents": "read"}, "publish": {"id-token": "write"}}
    steps = jobs["publish"]["steps"]
    assert not any("actions/checkout" in step.get("uses", "") for step in steps)
    assert "secrets." not in path.read_text("utf-8")
    assert steps[-1]["with"]["attestations"] is True


def test_checks_may_write_nothing() -> None:
    """Anybody's change runs the checks, so they have no secret and may only read."""
    path = ROOT / ".github/workflows/checks.yml"
    workflow = read(path)
    assert "pull_request" in workflow[STARTS]
    assert workflow["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in workflow["jobs"].values())
    assert "secrets." not in path.read_text("utf-8")


def test_the_newest_python() -> None:
    """3.14 is tried by the workflow, which no classifier claims before it has passed."""
    matrix = read(ROOT / ".github/workflows/checks.yml")["jobs"]["pythons"]["strategy"]["matrix"]
    assert "3.14" in matrix["python"]


def test_every_python_is_tried() -> None:
    """The versions that classifiers claim are those of the nightly run, and tried by the rest."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert f">={claimed[0]}" == project["requires-python"]
    nightly = (ROOT / ".ci" / "nightly").read_text("utf-8")
    (runs,) = re.findall(r"^    python-3.*$", nightly, re.MULTILINE)
    assert runs.split() == [f"python-{one}" for one in claimed], "correct `all` of .ci/nightly"
    (ours,) = re.findall(
        r"^supported=\((.*)\)$", (ROOT / ".ci/pythons").read_text("utf-8"), re.MULTILINE
    )
    jobs = read(ROOT / ".github/workflows/checks.yml")["jobs"]
    ran = [claimed[0], *jobs["pythons"]["strategy"]["matrix"]["python"]]
    assert ours.split() == ran, "try the same versions in .ci/pythons and in checks.yml"
    assert set(claimed) <= set(ran), "try what a classifier of pyproject.toml claims"
