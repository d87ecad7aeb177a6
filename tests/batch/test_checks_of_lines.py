"""Checking a file of requests costs little more than reading it: each line is checked once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

import moments
from muybridge import batch
from muybridge.verbs.validation import validate
from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import FAMILIES, Family
from muybridge_protocol.families.family import any_link
from muybridge_protocol.families.request import parse

from .billing import BillingServer
from .conftest import Run

COUNT = 30


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of 30 requests."""
    lines = (
        json.dumps({"family": "imgb", "model": "imgb-2", "prompt": f"horse {number}"})
        for number in range(COUNT)
    )
    path = tmp_path / "b.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One member for each check of a request."""
    seen: list[None] = []
    moments.at("request checked").strike(lambda: seen.append(None), put=monkeypatch.setattr)
    return seen


def _validated(path: Path, _: Path) -> None:
    file: BinaryIO
    with path.open("rb") as file:
        assert all(verdict.ok for verdict in validate(file))


def _read(path: Path, _: Path) -> None:
    batch.read_items(path)


def _previewed(path: Path, out: Path) -> None:
    batch.preview(path, out)


@pytest.mark.parametrize("work", [_validated, _read, _previewed])
def test_a_line_is_checked_once(
    work: Callable[[Path, Path], None], file: Path, tmp_path: Path, checks: list[None]
) -> None:
    """Whatever looks at a file of valid requests checks each of them once."""
    work(file, tmp_path / "out")
    assert len(checks) == COUNT


def test_a_resume_checks_a_line_once(
    server: BillingServer, run: Run, file: Path, checks: list[None]
) -> None:
    """A run that resumes with its file, and finds that all is done, checks each line once."""
    run(server, file)
    checks.clear()
    assert run(server, file).done
    assert len(checks) == COUNT


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize(
    "more",
    [
        {"unknown": 1},
        {"prompt": None},
        {"prompt": 7, "model": "no-such-model"},
        {"model": None, "unknown": object()},
        {},
    ],
    ids=["unknown", "no prompt", "two problems", "no model", "sound"],
)
def test_a_refusal_names_what_the_whole_check_names(
    family: Family, more: dict[str, object]
) -> None:
    """A request that is refused lists the problems that a check of all fields finds."""
    report = family.check(more, own=any_link)
    if report.ok:
        parse(family, more)
        return
    with pytest.raises(InvalidRequest) as refused:
        parse(family, more)
    assert refused.value.problems == report.problems
