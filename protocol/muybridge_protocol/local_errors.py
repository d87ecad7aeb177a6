"""The base of all errors, the warnings, and the errors of mistakes on this machine.

They name no record, so that everything below the records can raise them. Users import them from
`muybridge_protocol.errors`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from muybridge_protocol.problems import list_problems

if TYPE_CHECKING:
    from muybridge_protocol.rules.values import Problem


class MuybridgeError(Exception):
    """Base class of every error that this library raises on purpose."""


class IgnoredSetting(UserWarning):
    """A setting was accepted, but the service ignores or overrides it."""


class PlainHttpWarning(UserWarning):
    """The API key is sent in clear text."""


class NameChanged(UserWarning):
    """A result was saved under another name, because a file has the given one already."""


class WrongSuffix(UserWarning):
    """A result was saved under a name whose suffix is that of another format."""


class PollingTooOften(UserWarning):
    """The poll interval is below the minimum that the service states."""


class LocalError(MuybridgeError, ValueError):
    """The mistake was found on this machine, and nothing was sent."""


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

    def __str__(self) -> str:
        return list_problems(self.problems, f"the {self.family} request")


class UnknownFamily(LocalError):
    """The service has no family with that name."""


class InvalidKey(LocalError):
    """The API key is missing, or cannot be sent as it is. The message never contains it."""


class InvalidIdentifier(LocalError):
    """A task id, asset id or model name cannot be part of a path."""


class InvalidAddress(LocalError):
    """A base URL, path or download URL cannot be used."""


class InvalidToken(LocalError):
    """A task token cannot be read."""
