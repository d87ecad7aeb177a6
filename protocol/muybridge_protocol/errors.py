"""What can go wrong, told apart by what its reader has to do next.

Local mistakes (`InvalidRequest`, `InvalidKey`, `InvalidIdentifier`, `InvalidAddress`) are found
before anything is sent. Everything else is a `ServiceError`: something happened on the way to
the service, or the service said so. Errors of a task carry the task, and `Task.to_token` keeps it.

A `ServiceError` is an attrs class whose fields say what happened, and whose message is made of
three sentences: what happened, to which task, what to do next. It equals itself alone, and can be
pickled and copied. Fields with `repr=False` are replies of the service, with whatever links they
hold: they stand neither in `repr` nor in `args`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from muybridge_protocol.http import Reason, TransportFailure
from muybridge_protocol.identifiers import is_identifier, shown_id
from muybridge_protocol.records.json import readable
from muybridge_protocol.rules.values import shown

if TYPE_CHECKING:
    from muybridge_protocol.records.tasks import Result, Task
    from muybridge_protocol.rules.values import Problem

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


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class ServiceError(MuybridgeError):
    """Something happened on the way to the service, or the service said so.

    Args:
        task: The task that it happened to, or None where there is none. It is safe: its result
            can be asked for again.
    """

    _advice: ClassVar[str] = ""
    """What to do next where there is no task, as a sentence, or ""."""

    task: Task | None = None

    def __str__(self) -> str:
        parts = (self.what(), self.about(), self.next_step())
        return " ".join(readable(part, _SENTENCE_LIMIT) for part in parts if part)

    def __attrs_post_init__(self) -> None:
        # Not what attrs makes `args` of, which is everything: replies hold signed links.
        shown = (field.name for field in attrs.fields(type(self)) if field.repr)
        self.args: tuple[Any, ...] = tuple(getattr(self, name) for name in shown)

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        return partial(type(self), **values), (), self.__dict__  # with the notes

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The service could not be used."

    def about(self) -> str:
        """Return which task it happened to, as a sentence, or ""."""
        if self.task is None:
            return ""
        model = f" ({self.task.model})" if self.task.model else ""
        return f"Task {shown_id(self.task.id)}{model} is safe."

    def next_step(self) -> str:
        """Return what to do next, as a sentence, or ""."""
        return self._advice if self.task is None else "Ask for it again later with its id."


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class NotSent(ServiceError):
    """The request never reached the service: no byte of it was handed to the network.

    Sending it again is safe.

    Args:
        failure: What stood in the way.
        attempts: How often it was tried.
    """

    failure: TransportFailure
    attempts: int = 1

    def what(self) -> str:
        """Return what happened, as a sentence."""
        tries = f" in {self.attempts} tries" if self.attempts > 1 else ""
        return f"The request was not sent{tries}: {self.failure}."

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        here = self.failure.reason is Reason.REFUSED_HERE
        mend = "mend that" if here else "check the address and the network"
        return f"Nothing was charged; {mend}, then send it again."


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class Refused(ServiceError):
    """The service answered, and refused.

    Args:
        status: The HTTP status.
        message: What the service said, at most 500 characters.
        body: The reply's body, at most 64 KiB.
    """

    _advice = "Mend what the service names, then send it again."

    status: int
    message: str = ""
    body: bytes = attrs.field(default=b"", repr=False)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        said = f": {self.message}" if self.message else ""
        return f"The service refused the request with status {self.status}{said}."


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


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class RateLimited(Refused):
    """The service asks to slow down (status 429), for longer than it is worth waiting.

    Args:
        retry_after: Seconds that the service asks to wait, or None.
    """

    retry_after: float | None = None

    def next_step(self) -> str:
        """Return what to do next, as a sentence."""
        wait = f" in {self.retry_after:.0f} s" if self.retry_after is not None else " later"
        return f"Nothing was charged; try again{wait}."


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
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

    reason: str
    failure: TransportFailure | None = None
    status: int | None = None
    raw: bytes = attrs.field(default=b"", repr=False)
    candidate_id: str | None = None

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
        if is_identifier(self.candidate_id):
            named = shown_id(self.candidate_id)
            return f"The response names the id {named}: ask for its result first."
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


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class TaskEnded(ServiceError):
    """A task ended without a result.

    Args:
        result: The result record with the service's reason.
    """

    result: Result

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
        return f"Task {shown_id(self.result.id)} failed: {reason}."


class TaskCancelled(TaskEnded):
    """The task was cancelled (status `cancelled`)."""

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return f"Task {shown_id(self.result.id)} was cancelled."


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class WaitTimeout(ServiceError):
    """The task did not end within the time given to wait.

    Args:
        waited: Seconds that were waited.
        status: The last status seen, or None.
        silent: Seconds without a valid response at the end, or None if the last poll got one.
    """

    waited: float
    status: str | None = None
    silent: float | None = None

    def what(self) -> str:
        """Return what happened, as a sentence."""
        seen = f" (last status: {self.status})" if self.status else ""
        ended = f"The task did not end within {self.waited:.0f} s{seen}"
        if self.silent is None:
            return f"{ended}."
        return f"{ended}; the service gave no valid response for the last {self.silent:.0f} s."


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class ServiceUnreachable(ServiceError):
    """A query got no valid response, or the service cannot be reached at all.

    Waiting for a task does not end with it because of an outage, however long, but where retrying
    would fail in the same way, such as with an invalid certificate.

    Args:
        silent: Seconds without a valid response.
        reason: What happened last, in words.
    """

    _advice = "Check the network and the base URL, then try again."

    silent: float
    reason: str

    def what(self) -> str:
        """Return what happened, as a sentence."""
        length = f" for {self.silent:.0f} s" if self.silent >= 1 else ""
        return f"The service gave no valid reply{length}: {self.reason}."


class TaskNotFound(Refused):
    """The service does not know the task (status 404)."""

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The service does not know the task (status 404)."

    def about(self) -> str:
        """Return which task it happened to, as a sentence."""
        return f"Its id is {shown_id(self.task.id)}." if self.task is not None else ""

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


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class ResultIncomplete(ServiceError):
    """The task is completed, but its result has no URL, however often it was asked for.

    Args:
        result: The last result record.
    """

    result: Result

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The task is completed, but its result has no URL."


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class ProtocolViolation(ServiceError):
    """The service's reply breaks the protocol.

    Args:
        reason: What is wrong with it, in words.
        status: The reply's status.
        raw: The reply's body, at most 64 KiB.
    """

    _advice = "Check the base URL, or show the reply to the service's operator."

    reason: str
    status: int | None = None
    raw: bytes = attrs.field(default=b"", repr=False)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return f"The service's reply breaks the protocol: {self.reason}."


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class AssetError(ServiceError):
    """An asset may still exist.

    Args:
        asset_id: The asset's id.
    """

    asset_id: str


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class AssetDeleteFailed(AssetError):
    """The service did not delete the asset: `code` is not the string 0.

    Args:
        code: The reply's `code`.
        msg: The reply's `msg`.
    """

    _advice = "Check its id; deleting it again is harmless."

    code: str
    msg: str = ""

    def what(self) -> str:
        """Return what happened, as a sentence."""
        said = f": {self.msg}" if self.msg else ""
        return f"Asset {shown_id(self.asset_id)} was not deleted (code {self.code}){said}."


class AssetDeletePresumed(AssetDeleteFailed):
    """The service did not delete the asset now, after an earlier try whose reply was lost.

    That try may have deleted it.
    """

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return (
            f"Asset {shown_id(self.asset_id)} may be deleted already: the reply to an earlier try "
            f"was lost, and to the last one the service answered {self.code} {self.msg}".rstrip()
            + "."
        )


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class AssetDeleteUnknown(AssetError):
    """Whether the asset was deleted could not be learnt. Deleting it again is harmless.

    Args:
        reason: What happened, in words.
    """

    _advice = "Deleting it again is harmless."

    reason: str

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return f"Whether asset {shown_id(self.asset_id)} was deleted is unknown: {self.reason}."


@attrs.define(kw_only=True, slots=False, eq=False, auto_exc=False)
class DownloadFailed(ServiceError):
    """A result could not be saved. It is not lost.

    Args:
        reason: What happened, in words.
        status: The HTTP status, or None.
        lasting: Whether downloading again from there would meet the same.
    """

    reason: str
    status: int | None = None
    lasting: bool = False

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
