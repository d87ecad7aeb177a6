"""No case silently disappears: the table's rows say what they must."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from pathlib import Path

import pytest

import muybridge
from muybridge_protocol.errors import LocalError, ServiceError
from tables import table

from .operations import OPERATIONS, WORDS
from .rows import Elsewhere, NotApplicable, Row
from .table import CHAPTERS, ROWS, Chapter

TESTS = Path(__file__).parent.parent
CASES = range(1, 100)
AMBIGUITIES = {"CreateAmbiguous", "TextAmbiguous", "StreamInterrupted"}


def test_chapters_are_whole() -> None:
    """The chapters hold the cases 1 to 99, each in one of them."""
    numbers = [number for chapter in CHAPTERS.values() for number in chapter.numbers]
    assert numbers == list(CASES)


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=CHAPTERS)
def test_no_case_is_missing(chapter: Chapter) -> None:
    """Every case of a chapter is in it, and no other."""
    found = {number for entry in chapter.entries for number in entry.numbers}
    assert found == set(chapter.numbers)


def test_rows_have_names_of_their_own() -> None:
    """No two rows have the same name."""
    assert [name for name, count in Counter(row.name for row in ROWS).items() if count > 1] == []


@table("row", ROWS)
def test_rows_are_whole(row: Row) -> None:
    """A row names each operation with its outcome, or says why not, and does something."""
    assert set(row.always) | set(row.without) == set(OPERATIONS)
    assert not set(row.always) & set(row.without)
    assert set(row.once) <= set(row.always)
    assert row.does
    assert all(row.without.values())
    acts = row.on_connection, row.on_request
    assert acts.count(None) >= 1
    if acts == (None, None):
        assert row.where.name != "SERVER" or row.certificate != "good" or row.link is not None
        assert not row.once
    assert set(row.schemes) <= {"http", "https"}
    for outcome in (*row.always.values(), *row.once.values()):
        for name in outcome.split("|"):
            if name not in WORDS:
                assert issubclass(getattr(muybridge, name), ServiceError | LocalError)


def test_what_is_paid_is_never_tried_again() -> None:
    """A create that was committed a fault on once ends as if it had always been: or was unsent."""
    for row in ROWS:
        for name in row.once:
            open_ends = AMBIGUITIES & set(row.always[name].split("|"))
            if OPERATIONS[name].paid and open_ends:
                assert open_ends <= set(row.once[name].split("|")), row.name


@functools.cache
def _tests_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    suites = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    tests = {node.name for body in (tree.body, *suites) for node in body if isinstance(node, kinds)}
    for node in tree.body:  # the test of a state machine is made from its class
        if isinstance(node, ast.Assign):
            tests |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(tests)


@pytest.mark.parametrize("chapter", CHAPTERS.values(), ids=CHAPTERS)
def test_tests_elsewhere_exist(chapter: Chapter) -> None:
    """Whatever a row says is proved elsewhere names a test that there is."""
    for entry in chapter.entries:
        if isinstance(entry, Elsewhere):
            assert entry.tests
            for test in entry.tests:
                path, _, name = test.partition("::")
                assert name in _tests_in(TESTS / path), f"there is no {test}"
        elif isinstance(entry, NotApplicable):
            assert entry.reason
