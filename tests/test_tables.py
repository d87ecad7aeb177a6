"""A table of cases hides no wrong row."""

from __future__ import annotations

import inspect

import pytest

from tables import table


def test_every_wrong_row_is_named() -> None:
    """Each wrong row is named, whatever is wrong about it, and the others are checked, too."""
    checked: list[tuple[int, str]] = []

    @table("number", range(3))
    @table(("letter", "found"), [("a", True), ("b", False)])
    def test(number: int, letter: str, *, found: bool) -> None:
        checked.append((number, letter))
        if number == 2:
            pytest.fail("two")
        if number == 1:
            raise KeyError(letter)
        assert found

    with pytest.raises(BaseExceptionGroup) as caught:
        test()
    assert checked == [(number, letter) for number in range(3) for letter in "ab"]
    told = str(caught.value)
    assert told.startswith("5 of 6 rows are wrong:")
    for row in (
        "number=0, letter='b', found=False: AssertionError(",
        "number=1, letter='a', found=True: KeyError('a')",
        "number=1, letter='b', found=False: KeyError('b')",
        "number=2, letter='a', found=True: two",
        "number=2, letter='b', found=False: two",
    ):
        assert f"\n  {row}" in told
    assert len(caught.value.exceptions) == 5


def test_fixtures_are_left_to_pytest() -> None:
    """pytest sees the parameters that are no columns, and what they are given reaches each row."""

    @table("row", "ab")
    def test(capsys: str, row: str) -> None:
        assert capsys + row in {"xa", "xb"}

    assert list(inspect.signature(test).parameters) == ["capsys"]
    test(capsys="x")


def test_a_table_has_rows() -> None:
    """A test of nothing proves nothing."""

    @table("row", [])
    def test(row: str) -> None:
        del row

    with pytest.raises(AssertionError, match="no row"):
        test()


def test_a_row_names_each_column() -> None:
    """A row that is too short or too long is a mistake of the table."""
    with pytest.raises(ValueError, match="shorter"):
        table(("one", "two"), [("a",)])
