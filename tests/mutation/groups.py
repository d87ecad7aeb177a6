"""What is mutated, and the tests that must notice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_CORE = "muybridge_protocol"
_BATCH = "muybridge.batch"


@dataclass(frozen=True)
class Group:
    """Modules, and the tests that are to kill their mutants.

    Args:
        name: What the group is called.
        modules: For each module what pytest runs, one after the other until one fails; the
            quickest first.
    """

    name: str
    modules: Mapping[str, tuple[str, ...]]


_RULES = ("tests/families/test_rules.py", "tests/families/test_family.py", "tests/families")
_JOURNAL = ("tests/batch/test_journal.py", "tests/batch/test_runners.py")

_ALL = (
    Group(
        "delivery",
        {
            f"{_CORE}.delivery": (
                "tests/core/test_delivery_tables.py",
                "tests/core/test_delivery.py",
            )
        },
    ),
    Group(
        "pacing",
        {
            f"{_CORE}.operations.poll": (
                "tests/core/test_poll_pacing.py",
                "tests/core/test_delivery.py",
            ),
            f"{_CORE}.operations.pending": ("tests/core/test_pending.py",),
            f"{_CORE}.throttle": ("tests/core/test_throttle.py",),
        },
    ),
    Group(
        "rules",
        {
            f"{_CORE}.rules": _RULES,
            f"{_CORE}.relations": _RULES,
            f"{_CORE}.families.family": _RULES[1:],
        },
    ),
    Group(
        "journal",
        {
            f"{_BATCH}.journal": _JOURNAL,
            f"{_BATCH}.journal_entries": _JOURNAL,
            f"{_BATCH}.recovery": _JOURNAL[::-1],
        },
    ),
)

GROUPS = {group.name: group for group in _ALL}

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        f"{_CORE}.delivery",
        "if 300 <= status <= 399: # noqa: PLR2004 the class of redirects",
        "if 299 <= status <= 399: # noqa: PLR2004 the class of redirects",
    ): "299 has been returned as a success before",
    **{
        (
            f"{_CORE}.delivery",
            "ceiling = min(LONGEST_BACKOFF, 2.0 ** min(attempt - 1, 10))",
            f"ceiling = min(LONGEST_BACKOFF, 2.0 ** min(attempt - 1, {bound}))",
        ): "the bound keeps the power from overflowing; from 5 on it is above the longest wait"
        for bound in (9, 11)
    },
}
"""Mutants that behave as the original does, and why: module, line before, line after."""
