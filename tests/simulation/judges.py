"""The judges: what must be true of every world, whatever went wrong in it."""

from __future__ import annotations


class Verdict(AssertionError):
    """What a judge has found wrong.

    Args:
        judge: Whose verdict it is.
        finding: What is wrong, in a sentence.
    """

    def __init__(self, judge: str, finding: str) -> None:
        super().__init__(f"{judge}: {finding}")
        self.judge = judge
        self.finding = finding


def require(judge: str, holds: object, finding: str) -> None:
    """Raise the *judge*'s verdict unless what it asks for holds."""
    if not holds:
        raise Verdict(judge, finding)
