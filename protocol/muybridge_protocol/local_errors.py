"""The base of all errors, the warnings, and the errors of mistakes on this machine.

They name no record, so that everything below the records can raise them. Users import them from
`muybridge_protocol.errors`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Final

from muybridge_protocol.problems import InputProblem, heading, list_problems
from muybridge_protocol.remedies import Charged, Face, Remedy, RemedyKind, in_python, message

if TYPE_CHECKING:
    from muybridge_protocol.rules.values import Problem


NOTHING_SENT: Final = "Nothing was sent."
"""A sentence of messages: what a mistake on this machine means for money."""


class MuybridgeError(Exception):
    """Base class of every error that this library raises on purpose.

    Args:
        parts: The message: texts, and the remedies among them.
    """

    _charged: ClassVar[Charged | None] = "no"
    """What `charged` is for errors of this class, or None if that depends on the task."""

    task: Any = None
    """The task that is affected, or None."""
    candidate_id: str | None = None
    """A task id that the response seems to contain, unchanged, or None."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)

    def __str__(self) -> str:
        return self.describe()

    @property
    def charged(self) -> Charged:
        """Whether what the error is about was charged. A task that was accepted counts as such."""
        return self._charged or "no"

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What to do, as data."""
        return tuple(part for part in self.args if isinstance(part, Remedy))

    def to_dict(self, face: Face = in_python) -> dict[str, Any]:
        """Return the error as a JSON object, with its message in the words of *face*."""
        return {
            "type": type(self).__name__,
            "message": self.describe(face),
            **{name: getattr(self, name) for name in ("charged", "candidate_id")},
            "task": None if self.task is None else self.task.to_dict(),
            "remedies": [remedy.to_dict() for remedy in self.remedies],
        }

    def describe(self, face: Face = in_python) -> str:
        """Return what happened and what to do, in the words of *face*."""
        return message((p if isinstance(p, Remedy) else str(p) for p in self.args), face)


class MuybridgeWarning(UserWarning):
    """Something works, but not as its caller may expect.

    A result was saved under another name, for example, or polls come faster than the service asks.
    """


class IgnoredSetting(MuybridgeWarning):
    """A setting was accepted, but the service ignores or overrides it."""


class PlainHttpWarning(MuybridgeWarning):
    """The API key is sent in clear text."""


class LocalError(MuybridgeError, ValueError):
    """The mistake was found on this machine, and nothing was sent.

    Args:
        parts: The message: texts, and the remedies among them.
        accepted: What would be accepted instead, or "" if the message says it.
        argument: The argument that is wrong, such as `tags` or `out`, or the environment variable;
            "" if it is another mistake.
    """

    def __init__(self, *parts: Any, accepted: str = "", argument: str = "") -> None:
        super().__init__(*parts)
        self.accepted = accepted
        self.argument = argument

    def to_dict(self, face: Face = in_python) -> dict[str, Any]:
        """Return the error as a JSON object, with the argument that is wrong."""
        return {**super().to_dict(face), "argument": self.argument}

    def describe(self, face: Face = in_python) -> str:
        """Return what happened and what to do, in the words of *face*."""
        if not self.accepted:
            return super().describe(face)
        what, *remedies = self.args
        return message((f"{what}; {self.accepted}", *remedies), face)


class InvalidRequest(LocalError):
    """The service would reject the request.

    Args:
        family: The request's family.
        problems: Every problem found.
    """

    def __init__(self, family: str, problems: Iterable[Problem]) -> None:
        self.family = family
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(family, self.problems)

    def to_dict(self, face: Face = in_python) -> dict[str, Any]:
        """Return the error and all of its problems as a JSON object."""
        problems = [problem.to_dict(face) for problem in self.problems]
        return {**super().to_dict(face), "family": self.family, "problems": problems}

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What to do, as data: fix the problems, and what each of them offers besides."""
        offered = (remedy for problem in self.problems for remedy in problem.remedies)
        return (Remedy(kind=RemedyKind.FIX), *dict.fromkeys(offered))

    @property
    def heading(self) -> str:
        """How many problems there are, as the first line of a message that lists them."""
        return heading(len(self.problems), self._where)

    def describe(self, face: Face = in_python) -> str:
        """Return every problem, in the words of *face*."""
        return list_problems([problem.describe(face) for problem in self.problems], self._where)

    @property
    def _where(self) -> str:
        return f"the {self.family} request"


class InvalidInput(LocalError):
    """A batch, a price file, a table of decisions or a script of answers is not valid.

    Args:
        what: What is not valid, such as `the batch`.
        problems: Every problem found.
        undone: What was not done because of them.
    """

    def __init__(
        self, what: str, problems: Iterable[InputProblem], undone: str = "nothing was sent"
    ) -> None:
        self.problems: tuple[InputProblem, ...] = tuple(problems)
        super().__init__(what, self.problems, undone)

    def to_dict(self, face: Face = in_python) -> dict[str, Any]:
        """Return the error and all of its problems as a JSON object."""
        return {**super().to_dict(face), "problems": [one.to_dict() for one in self.problems]}

    def describe(self, face: Face = in_python) -> str:  # noqa: ARG002  it is the same for all
        """Return every problem."""
        what, problems, undone = self.args
        return list_problems(problems, what, undone)


class InvalidAddress(LocalError):
    """A base URL, path or download URL cannot be used."""
