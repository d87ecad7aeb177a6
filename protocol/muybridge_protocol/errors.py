"""What can go wrong, told apart by what its reader has to do next.

Local mistakes (`InvalidRequest`, `InvalidKey`, `InvalidIdentifier`, `InvalidAddress`) are found
before anything is sent. Everything else is a `ServiceError`: something happened on the way to
the service, or the service said so. Errors of a task carry the task, and `Task.to_token` keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from muybridge_protocol.codec import readable
from muybridge_protocol.http import Reason, TransportFailure

if TYPE_CHECKING:
    from muybridge_protocol.rules import Problem
    from muybridge_protocol.tasks import Result, Task

_SENTENCE_LIMIT = 2_000
"""Most characters of a sentence in a message, because the service's own words may be in it."""


class MuybridgeError(Exception):
    """Every error that this library raises on purpose."""


class IgnoredSetting(UserWarning):
    """A setting was accepted, but the service ignores or overrides it."""


class PlainHttpWarning(UserWarning):
    """The API key travels in clear text."""


class PollingTooOften(UserWarning):
    """The poll interval is below the minimum that the service states."""


class LocalError(MuybridgeError, ValueError):
    """A mistake found on this machine: nothing was sent."""


class InvalidRequest(LocalError):
    """The service would not accept the request.

    Args:
        family: The request's family.
        problems: Every problem found.
    """

    def __init__(self, family: str, problems: Iterable[Problem]) -> None:
        self.family = family
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(family, self.problems)

    def __str__(self) -> str:
        count = len(self.problems)
        lines = [f"  {problem}" for problem in self.problems]
        heading = f"{count} problem{'s' if count != 1 else ''} in the {self.family} request"
        return "\n".join([f"{heading} (nothing was sent):", *lines])


class UnknownFamily(LocalError):
    """The service has no family of that name."""


class InvalidKey(LocalError):
    """The API key is missing or cannot be sent as it is. The message never shows it."""


class InvalidIdentifier(LocalError):
    """A task id, asset id or model name cannot stand in a path."""


class InvalidAddress(LocalError):
    """A base URL, path or download URL is not one that may be used."""


class InvalidToken(LocalError):
    """A task token cannot be read."""


class ServiceError(MuybridgeError):
    """Something happened on the way to the service, or the service said so.

    Args:
        task: The task that it happened to, or None where there is none. It is safe: its result
            can be asked for again.
    """

    __slots__ = ("_names", "task")
    task: Task | None
    _names: tuple[str, ...]
    _hidden: ClassVar[frozenset[str]] = frozenset({"body", "raw"})
    """What `repr` and `args` leave out: replies of the service, with whatever links they hold."""

    def __init__(self, *, task: Task | None = None) -> None:
        self._keep(task=task)

    def __str__(self) -> str:
        parts = (self.what(), self.about(), self.next_step())
        return " ".join(readable(part, _SENTENCE_LIMIT) for part in parts if part)

    def _keep(self, **values: object) -> None:
        """Keep what the error is made with. Classes of attrs would take 5 ms of a program's start.

        Args:
            values: By name of the argument of `__init__`.
        """
        for name, value in values.items():
            setattr(self, name, value)
        shown = (value for name, value in values.items() if name not in self._hidden)
        super().__init__(*shown)  # which sets `args`
        self._names = tuple(values)

    def __repr__(self) -> str:
        shown = (name for name in self._names if name not in self._hidden)
        told = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({told})"

    def __reduce__(self) -> tuple[Any, ...]:
        values = {name: getattr(self, name) for name in self._names}
        return (_rebuild, (type(self), values))

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The service could not be used."

    def about(self) -> str:
        """Return which task it happened to, as a sentence, or ""."""
        if self.task is None:
            return ""
        model = f" ({self.task.model})" if self.task.model else ""
        return f"Task {_shown_id(self.task.id)}{model} is safe."

    def next_step(self) -> str:
        """Return what to do next, as a sentence, or ""."""
        return "" if self.task is None else "Ask for it again later with its id."


def _shown_id(text: str) -> str:
    from muybridge_protocol.service import shown_id  # noqa: PLC0415  it needs this module

    return shown_id(text)


def _rebuild(kind: type[ServiceError], values: dict[str, Any]) -> ServiceError:
    return kind(**values)


class NotSent(ServiceError):
    """The request never reached the service: no byte of it was handed to the network.

    Sending it again is safe.

    Args:
        failure: What stood in the way.
        attempts: How often it was tried.
    """

    __slots__ = ("attempts", "failure")
    failure: TransportFailure
    attempts: int

    def __init__(
        self,
        *,
        task: Task | None = None,
        failure: TransportFailure,
        attempts: int = 1,
    ) -> None:
        self._keep(task=task, failure=failure, attempts=attempts)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        tries = f" in {self.attempts} tries" if self.attempts > 1 else ""
        return f"The request was not sent{tries}: {self.failure}."

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        here = self.failure.reason is Reason.REFUSED_HERE
        mend = "mend that" if here else "check the address and the network"
        return f"Nothing was charged; {mend}, then send it again."


class Refused(ServiceError):
    """The service answered, and refused.

    Args:
        status: The HTTP status.
        message: What the service said, at most 500 characters.
        body: The reply's body, at most 64 KiB.
    """

    __slots__ = ("body", "message", "status")
    status: int
    message: str
    body: bytes

    def __init__(
        self,
        *,
        task: Task | None = None,
        status: int,
        message: str = "",
        body: bytes = b"",
    ) -> None:
        self._keep(task=task, status=status, message=message, body=body)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        said = f": {self.message}" if self.message else ""
        return f"The service refused the request with status {self.status}{said}."

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        mend = "Mend what the service names, then send it again."
        return mend if self.task is None else super().next_step()


class Unauthorized(Refused):
    """The API key is missing, wrong or revoked (status 401)."""

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        return (
            "Check that MUYBRIDGE_API_KEY holds the key alone and belongs to this service; "
            "a revoked key is replaced by the service's operator."
        )


class Forbidden(Refused):
    """The API key may not use this endpoint, model or feature (status 403)."""

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        return (
            "The key is valid, but not provisioned for this endpoint, model or feature: "
            "choose another model, or ask the service's operator."
        )


class RateLimited(Refused):
    """The service asks to slow down (status 429), for longer than it is worth waiting.

    Args:
        retry_after: Seconds that the service asks to wait, or None.
    """

    __slots__ = ("retry_after",)
    retry_after: float | None

    def __init__(
        self,
        *,
        task: Task | None = None,
        status: int,
        message: str = "",
        body: bytes = b"",
        retry_after: float | None = None,
    ) -> None:
        self._keep(task=task, status=status, message=message, body=body, retry_after=retry_after)

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        wait = f" in {self.retry_after:.0f} s" if self.retry_after is not None else " later"
        return f"Nothing was charged; try again{wait}."


class CreateAmbiguous(ServiceError):
    """A request that costs money may or may not have been accepted. It was not sent again.

    This error is deliberately of no timeout or connection class, so that a general retry does
    not catch it and pay twice.

    Args:
        reason: What happened, in words.
        failure: How the exchange failed, or None where a reply was read.
        status: The reply's status, or None where none was read.
        raw: What had arrived of the reply, at most 64 KiB.
        candidate_id: A task id that the response seems to hold, as it came, or None.
    """

    __slots__ = ("candidate_id", "failure", "raw", "reason", "status")
    reason: str
    failure: TransportFailure | None
    status: int | None
    raw: bytes
    candidate_id: str | None

    def __init__(
        self,
        *,
        task: Task | None = None,
        reason: str,
        failure: TransportFailure | None = None,
        status: int | None = None,
        raw: bytes = b"",
        candidate_id: str | None = None,
    ) -> None:
        self._keep(
            task=task,
            reason=reason,
            failure=failure,
            status=status,
            raw=raw,
            candidate_id=candidate_id,
        )

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return (
            f"The request may have been accepted and charged, but its reply is missing or "
            f"unusable: {self.reason}. It was not sent again."
        )

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        if not self.candidate_id:
            return "Look at the account for a new task before sending it again."
        from muybridge_protocol.rules import shown  # noqa: PLC0415  needed only here
        from muybridge_protocol.service import is_identifier  # noqa: PLC0415  it needs this module

        if is_identifier(self.candidate_id):
            return (
                f"The response names the id {_shown_id(self.candidate_id)}: "
                "ask for its result first."
            )
        return (
            f"The response names {shown(self.candidate_id)} as the id, which cannot be asked for: "
            "look at the account for a new task before sending it again."
        )


class TextAmbiguous(CreateAmbiguous):
    """A text request may or may not have been answered and charged. It was not sent again.

    A reply that was read to its end, but not understood, is in `raw` as a whole.
    """

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        if self.raw and self.status is not None and 200 <= self.status <= 299:  # noqa: PLR2004  the class of success
            return "What came of its answer is in the error's `raw`; asking again may cost again."
        return "Its answer is lost; asking again may cost again."


class TaskEnded(ServiceError):
    """A task ended without a result.

    Args:
        result: The result record with the service's reason.
    """

    __slots__ = ("result",)
    result: Result

    def __init__(self, *, task: Task | None = None, result: Result) -> None:
        self._keep(task=task, result=result)

    def about(self) -> str:
        """Return nothing: the sentence before names the task."""
        return ""

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        return "A task that has ended does not change: create another."


class TaskFailed(TaskEnded):
    """The service could not generate what was asked for (status `failed`)."""

    def what(self) -> str:
        """Return what happened, as a sentence."""
        reason = self.result.error or "no reason was given"
        return f"Task {_shown_id(self.result.id)} failed: {reason}."


class TaskCancelled(TaskEnded):
    """The task was cancelled (status `cancelled`)."""

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return f"Task {_shown_id(self.result.id)} was cancelled."


class WaitTimeout(ServiceError):
    """The task did not end within the time given to wait.

    Args:
        waited: Seconds that were waited.
        status: The last status seen, or None.
        silent: Seconds without a valid response at the end, or None if the last poll got one.
    """

    __slots__ = ("silent", "status", "waited")
    waited: float
    status: str | None
    silent: float | None

    def __init__(
        self,
        *,
        task: Task | None = None,
        waited: float,
        status: str | None = None,
        silent: float | None = None,
    ) -> None:
        self._keep(task=task, waited=waited, status=status, silent=silent)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        seen = f" (last status: {self.status})" if self.status else ""
        ended = f"The task did not end within {self.waited:.0f} s{seen}"
        if self.silent is None:
            return f"{ended}."
        return f"{ended}; the service gave no valid response for the last {self.silent:.0f} s."


class ServiceUnreachable(ServiceError):
    """A query got no valid response, or the service cannot be reached at all.

    Waiting for a task does not end with it because of an outage, however long, but where retrying
    would fail in the same way, such as with an invalid certificate.

    Args:
        silent: Seconds without a valid response.
        reason: What happened last, in words.
    """

    __slots__ = ("reason", "silent")
    silent: float
    reason: str

    def __init__(self, *, task: Task | None = None, silent: float, reason: str) -> None:
        self._keep(task=task, silent=silent, reason=reason)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        length = f" for {self.silent:.0f} s" if self.silent >= 1 else ""
        return f"The service gave no valid reply{length}: {self.reason}."

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        check = "Check the network and the base URL, then try again."
        return check if self.task is None else super().next_step()


class TaskNotFound(Refused):
    """The service does not know the task (status 404)."""

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The service does not know the task (status 404)."

    def about(self) -> str:
        """Return which task it happened to, as a sentence."""
        return f"Its id is {_shown_id(self.task.id)}." if self.task is not None else ""

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        return "Check the id and the base URL; a task created seconds ago may need a moment."


class ResultExpired(TaskNotFound):
    """The task's record is gone: the service keeps it for a limited time."""

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The service has deleted the task: its retention time is over (status 404)."

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        return "What is deleted stays deleted: create another task."


class ResultIncomplete(ServiceError):
    """The task is completed, but its result has no URL, however often it was asked for.

    Args:
        result: The last result record.
    """

    __slots__ = ("result",)
    result: Result

    def __init__(self, *, task: Task | None = None, result: Result) -> None:
        self._keep(task=task, result=result)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The task is completed, but its result has no URL."


class ProtocolViolation(ServiceError):
    """The service's reply breaks the protocol.

    Args:
        reason: What is wrong with it, in words.
        status: The reply's status.
        raw: The reply's body, at most 64 KiB.
    """

    __slots__ = ("raw", "reason", "status")
    reason: str
    status: int | None
    raw: bytes

    def __init__(
        self,
        *,
        task: Task | None = None,
        reason: str,
        status: int | None = None,
        raw: bytes = b"",
    ) -> None:
        self._keep(task=task, reason=reason, status=status, raw=raw)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return f"The service's reply breaks the protocol: {self.reason}."

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        check = "Check the base URL, or show the reply to the service's operator."
        return check if self.task is None else super().next_step()


class AssetError(ServiceError):
    """An asset may still exist.

    Args:
        asset_id: The asset's id.
    """

    __slots__ = ("asset_id",)
    asset_id: str

    def __init__(self, *, task: Task | None = None, asset_id: str) -> None:
        self._keep(task=task, asset_id=asset_id)


class AssetDeleteFailed(AssetError):
    """The service did not delete the asset: `code` is not the string 0.

    Args:
        code: The reply's `code`.
        msg: The reply's `msg`.
    """

    __slots__ = ("code", "msg")
    code: str
    msg: str

    def __init__(
        self,
        *,
        task: Task | None = None,
        asset_id: str,
        code: str,
        msg: str = "",
    ) -> None:
        self._keep(task=task, asset_id=asset_id, code=code, msg=msg)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        said = f": {self.msg}" if self.msg else ""
        return f"Asset {_shown_id(self.asset_id)} was not deleted (code {self.code}){said}."

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        return "Check its id; deleting it again is harmless."


class AssetDeletePresumed(AssetDeleteFailed):
    """The service did not delete the asset now, after an earlier try whose reply was lost.

    That try may have deleted it.
    """

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return (
            f"Asset {_shown_id(self.asset_id)} may be deleted already: the reply to an earlier try "
            f"was lost, and to the last one the service answered {self.code} {self.msg}".rstrip()
            + "."
        )


class AssetDeleteUnknown(AssetError):
    """Whether the asset was deleted could not be learnt. Deleting it again is harmless.

    Args:
        reason: What happened, in words.
    """

    __slots__ = ("reason",)
    reason: str

    def __init__(self, *, task: Task | None = None, asset_id: str, reason: str) -> None:
        self._keep(task=task, asset_id=asset_id, reason=reason)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return f"Whether asset {_shown_id(self.asset_id)} was deleted is unknown: {self.reason}."

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        return "Deleting it again is harmless."


class DownloadFailed(ServiceError):
    """A result could not be saved. It is not lost.

    Args:
        reason: What happened, in words.
        status: The HTTP status, or None.
        lasting: Whether downloading again from there would meet the same.
    """

    __slots__ = ("lasting", "reason", "status")
    reason: str
    status: int | None
    lasting: bool

    def __init__(
        self,
        *,
        task: Task | None = None,
        reason: str,
        status: int | None = None,
        lasting: bool = False,
    ) -> None:
        self._keep(task=task, reason=reason, status=status, lasting=lasting)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return f"The download failed: {self.reason.removesuffix('.')}."

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        if self.lasting:
            return "Trying again would meet the same: look at the link and what it leads to."
        return "Download it again: what has arrived is kept and the rest is fetched."


class LinkExpired(DownloadFailed):
    """The result's link does not work any more, and no fresh one is to be had."""

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        return "A link works for a limited time; ask for the result again, if its id is known."
