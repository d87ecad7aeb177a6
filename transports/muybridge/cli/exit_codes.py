"""The exit codes of the command: each is stated here alone, with its meaning.

The help, the documentation and the code read them from here. A script may take a code as permission
to send the same request again, so each code says whether a request can have been accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final, Literal, Self

Accepted = Literal["no", "perhaps", "yes", "as asked"]
"""Whether a paid request was accepted; "as asked" if that depends on the command."""


class ExitCode(IntEnum):
    """How a command ends."""

    meaning: str
    """What the help and the documentation say."""
    accepted: Accepted
    """Whether a paid request was accepted."""

    def __new__(cls, code: int, accepted: Accepted, meaning: str) -> Self:
        """Make the member with the number *code*."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.accepted, member.meaning = accepted, meaning
        return member

    DONE = 0, "as asked", "done"
    FAILED = 1, "as asked", (
        "the task failed or was cancelled; for text: there is no answer; for validate and "
        "estimate: some items are not valid; for check: a rule is broken"
    )  # fmt: skip
    INVALID = 2, "no", "the request or the command line is invalid (nothing was sent)"
    NOT_SENT = 3, "no", "refused, unauthorized, rate-limited or not sent"
    AMBIGUOUS = 4, "perhaps", (
        "the request may have been accepted; check your account before you send it again; for "
        "text: the answer was interrupted or lost, and may have been charged"
    )  # fmt: skip
    SAFE = 5, "yes", (
        "no usable result yet; the task can be resumed (timeout, Ctrl-C, unreachable, ...)"
    )  # fmt: skip
    NOT_SAVED = 6, "yes", "the download or the file system failed; the task can be resumed"
    DEFECT = 70, "no", (
        "a bug in Muybridge before anything was sent, with a traceback; please report it"
    )  # fmt: skip
    INTERRUPTED = 130, "no", "Ctrl-C in a command that costs nothing"
    PIPE_CLOSED = 141, "as asked", "the reader of stdout has gone"


(
    DONE, FAILED, INVALID, NOT_SENT, AMBIGUOUS, SAFE, NOT_SAVED, DEFECT, INTERRUPTED, PIPE_CLOSED,
) = ExitCode  # fmt: skip

OF_A_SIGNAL: Final = 128
"""A signal other than Ctrl-C ends a command with this plus its number, as in a shell."""
MEANINGS: Final[Mapping[ExitCode, str]] = {
    code: code.meaning for code in ExitCode if code < OF_A_SIGNAL
}
"""The meanings of the codes that the command chooses, for `muybridge --help`."""
