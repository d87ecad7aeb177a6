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


Resumes = Literal["yes", "a batch", "no"]
"""Whether the command that resumes is printed; "a batch" if only a batch can be resumed."""


class ExitCode(IntEnum):
    """How a command ends."""

    meaning: str
    """What the help and the documentation say."""
    accepted: Accepted
    """Whether a paid request was accepted."""
    resumes: Resumes
    """Whether the command that resumes is printed."""

    def __new__(cls, code: int, accepted: Accepted, resumes: Resumes, meaning: str) -> Self:
        """Make the member with the number *code*."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.accepted, member.resumes, member.meaning = accepted, resumes, meaning
        return member

    DONE = 0, "as asked", "no", "done"
    FAILED = 1, "as asked", "no", (
        "the task failed or was cancelled; for text: there is no answer; for validate and "
        "estimate: some items are not valid; for check: a rule is broken"
    )  # fmt: skip
    INVALID = 2, "no", "no", "the request or the command line is invalid (nothing was sent)"
    NOT_SENT = 3, "no", "a batch", "refused, unauthorized, rate-limited or not sent"
    AMBIGUOUS = 4, "perhaps", "yes", (
        "the request may have been accepted; check your account before you send it again; for "
        "text: the answer was interrupted or lost, and may have been charged"
    )  # fmt: skip
    SAFE = 5, "yes", "yes", (
        "no usable result yet; the task can be resumed (timeout, Ctrl-C, unreachable, ...)"
    )  # fmt: skip
    NOT_SAVED = 6, "yes", "yes", "the download or the file system failed; the task can be resumed"
    DEFECT = 70, "no", "no", (
        "a bug in Muybridge before anything was sent, with a traceback; please report it"
    )  # fmt: skip
    INTERRUPTED = 130, "no", "a batch", "Ctrl-C in a command that costs nothing"
    PIPE_CLOSED = 141, "as asked", "no", "the reader of stdout has gone"


DONE: Final = ExitCode.DONE
FAILED: Final = ExitCode.FAILED
INVALID: Final = ExitCode.INVALID
NOT_SENT: Final = ExitCode.NOT_SENT
AMBIGUOUS: Final = ExitCode.AMBIGUOUS
SAFE: Final = ExitCode.SAFE
NOT_SAVED: Final = ExitCode.NOT_SAVED
DEFECT: Final = ExitCode.DEFECT
INTERRUPTED: Final = ExitCode.INTERRUPTED
PIPE_CLOSED: Final = ExitCode.PIPE_CLOSED

OF_A_SIGNAL: Final = 128
"""A signal other than Ctrl-C ends a command with this plus its number, as in a shell."""
MEANINGS: Final[Mapping[ExitCode, str]] = {
    code: code.meaning for code in ExitCode if code < OF_A_SIGNAL
}
"""The meanings of the codes that the command chooses, for `muybridge --help`."""
