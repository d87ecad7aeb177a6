"""The message of an error that lists every problem of an input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from muybridge_protocol.records.json import readable

_SHOWN_PROBLEMS: Final = 50


class InputProblem(NamedTuple):
    """Something wrong in a file, a list of items or a table.

    Args:
        where: The place, such as `line 3` or `price 3 (imgb-2, low)`, or "" for the whole.
        message: What is wrong, and what would be accepted.
        field: The field's name on the wire, or "" if it concerns the place as a whole.
    """

    where: str
    message: str
    field: str = ""

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.where, self.field, self.message)))

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as a JSON object."""
        return dict(zip(self._fields, self, strict=True))


def list_problems(problems: Sequence[object], where: str, undone: str = "nothing was sent") -> str:
    """Return the message of an error that lists everything that is wrong.

    Args:
        problems: All that was found. The first 50 are listed.
        where: What they were found in.
        undone: What was not done because of them.
    """
    lines = [f"  {readable(str(problem), 1000)}" for problem in problems[:_SHOWN_PROBLEMS]]
    if len(problems) > _SHOWN_PROBLEMS:
        lines.append(f"  ... and {len(problems) - _SHOWN_PROBLEMS} more")
    return "\n".join([heading(len(problems), where, undone), *lines])


def heading(count: int, where: str, undone: str = "nothing was sent") -> str:
    """Return the first line of such a message, above *count* problems."""
    return f"{count} problem{'s' if count != 1 else ''} in {where} ({undone}):"
