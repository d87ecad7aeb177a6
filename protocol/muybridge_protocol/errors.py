"""Errors and warnings: one class for each possible next step.

A `LocalError`, such as `InvalidRequest`, is raised before anything is sent. A
`ServiceError` says that the request failed on its way to the service, that the service reported a
problem, or that a budget would be exceeded. A few others, such as `NoText` and `StoreUnusable`,
derive from `MuybridgeError` alone. An error about a task carries the task, which `Task.to_token`
can save.

A `ServiceError` is an attrs class. Its fields say what happened, and its message has three
sentences: what happened, to which task, and what to do next. Each error equals only itself, and
can be pickled and copied. Fields with `repr=False` hold responses of the service, which may
contain signed links, so that neither `repr` nor `args` shows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from muybridge_protocol.durations import shown_seconds
from muybridge_protocol.http import Phase, Reason, TransportFailure
from muybridge_protocol.identifiers import is_identifier, shown_id
from muybridge_protocol.local_errors import (
    IgnoredSetting,
    InvalidAddress,
    InvalidInput,
    InvalidRequest,
    LocalError,
    MuybridgeError,
    MuybridgeWarning,
    PlainHttpWarning,
)
from muybridge_protocol.problems import InputProblem
from muybridge_protocol.records.json import readable
from muybridge_protocol.remedies import (
    Charged,
    Face,
    Remedy,
    RemedyKind,
    as_sentence,
    in_python,
    message,
)
from muybridge_protocol.rules.values import shown

if TYPE_CHECKING:
    from muybridge_protocol.records.tasks import Result, Task

__all__ = [
    "AssetDeleteFailed",
    "AssetDeleteUnknown",
    "CreateAmbiguous",
    "DownloadFailed",
    "Forbidden",
    "IgnoredSetting",
    "InputProblem",
    "InvalidAddress",
    "InvalidInput",
    "InvalidRequest",
    "LinkExpired",
    "LocalError",
    "MuybridgeError",
    "MuybridgeWarning",
    "NotCompleted",
    "NotSent",
    "OverBudget",
    "PlainHttpWarning",
    "ProtocolViolation",
    "RateLimited",
    "Refused",
    "ResultExpired",
    "ResultIncomplete",
    "ServiceError",
    "ServiceUnreachable",
    "TaskFailed",
    "TaskNotFound",
    "TextAmbiguous",
    "Unauthorized",
    "WaitTimeout",
]

_SENTENCE_LIMIT = 2_000
"""Longest sentence in a message, in characters: it may quote the service."""


def _plain(value: object) -> object:
    """Return *value* as a JSON value: numbers that JSON lacks as null, and all else as text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if isfinite(value) else None
        case _:
            to_dict = getattr(value, "to_dict", None)
            return str(value) if to_dict is None else to_dict()


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class ServiceError(MuybridgeError):
    """The request failed on its way to the service, or the service reported a problem.

    Args:
        task: The task that is affected, or None. It is not lost: its result can still be queried.
        advice: What its reader can do about this very occurrence, before anything else.
    """

    _charged: ClassVar[Charged | None] = None
    _usual: ClassVar[tuple[Remedy, ...]] = ()
    """What to do next if no task is affected."""

    task: Task | None = None
    advice: tuple[Remedy, ...] = attrs.field(default=(), repr=False)

    def describe(self, face: Face = in_python) -> str:
        """Return what happened, to which task, and what to do, in the words of *face*."""
        parts = (self.what(), self.about(face), self.next_step(face))
        return " ".join(readable(part, _SENTENCE_LIMIT) for part in parts if part)

    def to_dict(self, face: Face = in_python) -> dict[str, Any]:
        """Return what the error says and its fields as JSON has them, without responses."""
        fields = {name: _plain(getattr(self, name)) for name in self._shown()}
        return {**fields, **super().to_dict(face)}

    @property
    def charged(self) -> Charged:
        """Whether what the error is about was charged: "yes" for a task that was accepted."""
        return self._charged or ("no" if self.task is None else "yes")

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What to do, as data."""
        return (*self.advice, *self._remedies())

    def __repr__(self) -> str:
        # Once for all errors: generating it for each of them would take 3 ms of every start.
        values = (f"{name}={getattr(self, name)!r}" for name in self._shown())
        return f"{type(self).__qualname__}({', '.join(values)})"

    def __attrs_post_init__(self) -> None:
        # attrs would put every field into `args`, but responses may contain signed links.
        self.args: tuple[Any, ...] = tuple(getattr(self, name) for name in self._shown())

    def _shown(self) -> Iterator[str]:
        """Yield the names of the fields that may be shown."""
        return (field.name for field in attrs.fields(type(self)) if field.repr)

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in attrs.fields(type(self))}
        return partial(type(self), **values), (), self.__dict__  # keeps the notes

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The service could not be used."

    def about(self, face: Face = in_python) -> str:  # noqa: ARG002  it is the same for all here
        """Return which task is affected, as a sentence, or ""."""
        if self.task is None:
            return ""
        model = f" ({self.task.model})" if self.task.model else ""
        return f"Task {shown_id(self.task.id)}{model} is not affected."

    def next_step(self, face: Face = in_python) -> str:
        """Return what to do next, as a sentence, or ""."""
        return message((*self._facts(), *self.remedies), face)

    def _facts(self) -> tuple[str, ...]:
        """Return what a reader needs to know for the next step, as sentences."""
        return ()

    def _remedies(self) -> tuple[Remedy, ...]:
        """Return what to do after an error of this class."""
        if self.task is None:
            return self._usual
        return (Remedy(kind=RemedyKind.WAIT, task=self.task.reference),)


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class NotSent(ServiceError):
    """The request never reached the service: no byte of it was handed to the network.

    It is safe to send it again.

    Args:
        failure: Why it could not be sent.
        attempts: How often it was attempted.
    """

    _charged = "no"

    failure: TransportFailure
    attempts: int = 1

    def what(self) -> str:
        """Return what happened, as a sentence."""
        attempts = f" ({self.attempts} attempts)" if self.attempts > 1 else ""
        return as_sentence(f"The request could not be sent{attempts}: {self.failure}")

    def _facts(self) -> tuple[str, ...]:
        return ("Nothing was charged.",)

    def _remedies(self) -> tuple[Remedy, ...]:
        fixes = self.failure.remedies
        if not fixes:
            kind = RemedyKind.CHECK_NETWORK
            if self.failure.reason is Reason.REFUSED_HERE:
                kind = RemedyKind.FIX
            elif self.failure.phase is Phase.PROXY:
                kind = RemedyKind.CHECK_PROXY
            fixes = (Remedy(kind=kind),)
        return (*fixes, Remedy(kind=RemedyKind.RESEND))


class OverBudget(NotSent):
    """The request would exceed a budget, so it was not sent. Nothing was charged.

    `failure.detail` says which limit, how much of it is left, and what to do.
    """

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return as_sentence(
            f"The request was not sent, because it is over budget: {self.failure.detail}"
        )

    def _remedies(self) -> tuple[Remedy, ...]:
        return self.failure.remedies  # the detail says the rest


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class Refused(ServiceError):
    """The service refused the request.

    Args:
        status: The HTTP status.
        message: The service's own message, at most 500 characters.
        body: The response's body, at most 64 KiB.
    """

    _usual = (Remedy(kind=RemedyKind.FIX), Remedy(kind=RemedyKind.RESEND))

    status: int
    message: str = ""
    body: bytes = attrs.field(default=b"", repr=False)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        reason = f": {self.message}" if self.message else ""
        return as_sentence(f"The service refused the request with status {self.status}{reason}")


class Unauthorized(Refused):
    """The API key is missing, wrong or revoked (status 401)."""

    def _remedies(self) -> tuple[Remedy, ...]:
        return (Remedy(kind=RemedyKind.CHECK_KEY),)


class Forbidden(Refused):
    """The API key may not use this endpoint, model or feature (status 403)."""

    def _facts(self) -> tuple[str, ...]:
        return ("The key is valid, but may not use this endpoint, model or feature.",)

    def _remedies(self) -> tuple[Remedy, ...]:
        return (Remedy(kind=RemedyKind.CHOOSE_MODEL), Remedy(kind=RemedyKind.ASK_OPERATOR))


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class RateLimited(Refused):
    """The service asks to slow down (status 429), and retrying did not help or takes too long.

    Args:
        retry_after: Seconds to wait, as the service asks, or None if it does not say.
    """

    retry_after: float | None = None

    def _facts(self) -> tuple[str, ...]:
        return () if self.task is not None else ("Nothing was charged.",)

    def _remedies(self) -> tuple[Remedy, ...]:
        return (Remedy(kind=RemedyKind.SLOW_DOWN, seconds=self.retry_after),)


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class CreateAmbiguous(ServiceError):
    """A request that costs money may or may not have been accepted. It was not sent again.

    This error deliberately inherits from no timeout or connection class: a generic retry decorator
    would catch it and pay twice.

    Args:
        reason: What happened, in words.
        failure: How the exchange failed, or None if a response was read.
        status: The response's status, or None if none was read.
        raw: The part of the response that arrived, at most 64 KiB.
        candidate_id: A task id that the response seems to contain, unchanged, or None.
    """

    _charged = "perhaps"

    reason: str
    failure: TransportFailure | None = None
    status: int | None = None
    raw: bytes = attrs.field(default=b"", repr=False)
    candidate_id: str | None = None

    def what(self) -> str:
        """Return what happened, as a sentence."""
        lost = as_sentence(
            "The request may have been accepted and charged, but the response is missing or "
            f"unusable: {self.reason}"
        )
        return f"{lost} It was not sent again."

    def _facts(self) -> tuple[str, ...]:
        if not self.candidate_id:
            return ()
        if is_identifier(self.candidate_id):
            return (f"The response contains the id {shown_id(self.candidate_id)}.",)
        unusable = shown(self.candidate_id)
        return (f"The response contains {unusable} as the id, which is not a valid id.",)

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What to do, as data: look whether it was accepted, and then decide."""
        return (*self._remedies(), *self.advice)

    def _remedies(self) -> tuple[Remedy, ...]:
        if is_identifier(self.candidate_id):
            return (Remedy(kind=RemedyKind.QUERY, task=str(self.candidate_id)),)
        return (Remedy(kind=RemedyKind.CHECK_ACCOUNT),)


class TextAmbiguous(CreateAmbiguous):
    """A text request may or may not have been answered and charged. It was not sent again.

    If a whole response was read but not understood, `raw` contains all of it.
    """

    def next_step(self, face: Face = in_python) -> str:
        """Return what to do next, as a sentence."""
        where = " ".join(filter(None, map(face, self._remedies())))
        sentence = f"The response {where}." if where else ""
        lost = "" if self._has_response else "The answer is lost."
        decide = message(self.advice, face)
        return f"{sentence}{lost} Asking again may cost again. {decide}".strip()

    @property
    def _has_response(self) -> bool:
        """Whether a whole response was read, but not understood."""
        return bool(self.raw) and self.status is not None and 200 <= self.status <= 299  # noqa: PLR2004  the class of success

    def _remedies(self) -> tuple[Remedy, ...]:
        read = Remedy(kind=RemedyKind.READ, attribute="raw")
        return (read,) if self._has_response else ()


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class TaskFailed(ServiceError):
    """The task ended without a result (status `failed` or `cancelled`).

    Args:
        result: The result record with the service's reason.
    """

    _charged = "perhaps"

    result: Result

    def what(self) -> str:
        """Return what happened, as a sentence."""
        task = f"Task {shown_id(self.result.id)}"
        if self.result.status == "cancelled":
            return f"{task} was cancelled."
        return as_sentence(f"{task} failed: {self.result.error or 'no reason was given'}")

    def about(self, face: Face = in_python) -> str:  # noqa: ARG002  it is the same for all here
        """Return "": the first sentence already names the task."""
        return ""

    def _facts(self) -> tuple[str, ...]:
        return ("The task will not change any more.",)

    def _remedies(self) -> tuple[Remedy, ...]:
        return (Remedy(kind=RemedyKind.CREATE),)


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class WaitTimeout(ServiceError):
    """The task did not end before the timeout of the wait.

    Args:
        waited: Seconds waited.
        status: The last known status, or None.
        silent: Seconds since the last valid response, or None if the last poll got one.
        reason: Why the last poll got none, in words.
    """

    waited: float
    status: str | None = None
    silent: float | None = None
    reason: str = ""

    def what(self) -> str:
        """Return what happened, as a sentence."""
        seen = f" (last status: {self.status})" if self.status else ""
        sentence = f"The task did not end within {shown_seconds(self.waited)}{seen}"
        if self.silent is None:
            return f"{sentence}."
        why = f": {self.reason}" if self.reason else ""
        silence = f"{shown_seconds(self.silent)}{why}"
        return as_sentence(f"{sentence}; the service gave no valid response for the last {silence}")


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class ServiceUnreachable(ServiceError):
    """A query got no valid response, or the service cannot be reached at all.

    Waiting for a task continues through an outage of any length. It ends with this error only if
    every retry would fail in the same way, for example because of an invalid certificate.

    Args:
        silent: Seconds without a valid response.
        reason: The last failure, in words.
    """

    _usual = (Remedy(kind=RemedyKind.CHECK_CONNECTION), Remedy(kind=RemedyKind.RETRY))

    silent: float
    reason: str

    def what(self) -> str:
        """Return what happened, as a sentence."""
        length = f" for {shown_seconds(self.silent)}" if self.silent >= 1 else ""
        return as_sentence(f"There was no valid response{length}: {self.reason}")


class TaskNotFound(Refused):
    """The service does not know the task (status 404)."""

    _charged: ClassVar[Charged | None] = "perhaps"

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The service does not know the task (status 404)."

    def about(self, face: Face = in_python) -> str:  # noqa: ARG002  it is the same for all here
        """Return which task it happened to, as a sentence."""
        return f"Its id is {shown_id(self.task.id)}." if self.task is not None else ""

    def _remedies(self) -> tuple[Remedy, ...]:
        return (Remedy(kind=RemedyKind.CHECK_TASK),)


class ResultExpired(TaskNotFound):
    """The service has deleted the task's record after its retention time."""

    _charged: ClassVar[Charged | None] = "yes"

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The service has deleted the task after its retention time (status 404)."

    def _facts(self) -> tuple[str, ...]:
        return ("It cannot be restored.",)

    def _remedies(self) -> tuple[Remedy, ...]:
        return (Remedy(kind=RemedyKind.CREATE),)


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class ResultIncomplete(ServiceError):
    """The task is completed, but its result still has no URL after several queries.

    Args:
        result: The last result record.
    """

    result: Result

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return "The task is completed, but its result has no URL."


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class ProtocolViolation(ServiceError):
    """The response violates the protocol.

    Args:
        reason: What is wrong with it, in words.
        status: The response's status.
        raw: The response's body, at most 64 KiB.
    """

    _usual = (Remedy(kind=RemedyKind.CHECK_BASE_URL), Remedy(kind=RemedyKind.REPORT))

    reason: str
    status: int | None = None
    raw: bytes = attrs.field(default=b"", repr=False)

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return as_sentence(f"The response violates the protocol: {self.reason}")


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class AssetDeleteFailed(ServiceError):
    """The service did not delete the asset (the response's `code` is not "0").

    Args:
        asset_id: The asset's id.
        code: The response's `code`.
        msg: The response's `msg`.
    """

    _charged = "no"
    _usual = (Remedy(kind=RemedyKind.CHECK_ASSET), Remedy(kind=RemedyKind.DELETE))

    asset_id: str
    code: str
    msg: str = ""

    def what(self) -> str:
        """Return what happened, as a sentence."""
        reason = f": {self.msg}" if self.msg else ""
        return as_sentence(
            f"Asset {shown_id(self.asset_id)} was not deleted (code {self.code}){reason}"
        )


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class AssetDeleteUnknown(ServiceError):
    """It is unknown whether the asset was deleted. Deleting it again is harmless.

    Args:
        asset_id: The asset's id.
        reason: What happened, in words.
        likely: Whether it was probably deleted: the response to one attempt was lost, and a later
            one was refused.
    """

    _charged = "no"
    _usual = (Remedy(kind=RemedyKind.DELETE),)

    asset_id: str
    reason: str
    likely: bool = False

    def what(self) -> str:
        """Return what happened, as a sentence."""
        state = "has probably been deleted" if self.likely else "may or may not be deleted"
        return as_sentence(f"Asset {shown_id(self.asset_id)} {state}: {self.reason}")


@attrs.define(kw_only=True, slots=False, eq=False, repr=False, auto_exc=False)
class DownloadFailed(ServiceError):
    """A result could not be downloaded. It is not lost.

    Args:
        reason: What happened, in words.
        status: The HTTP status, or None.
        lasting: Whether the same download would fail again in the same way.
        resumes: Whether a part of the file is kept that another download continues.
    """

    _charged = "yes"

    reason: str
    status: int | None = None
    lasting: bool = False
    resumes: bool = False

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return as_sentence(f"The download failed: {self.reason}")

    def _facts(self) -> tuple[str, ...]:
        if self.lasting and not self.advice:
            return ("A retry would fail in the same way:",)
        if any(remedy.kind is RemedyKind.CHOOSE_FILE for remedy in self.advice):
            return ("Nothing of it is kept.",)
        return ()

    def _remedies(self) -> tuple[Remedy, ...]:
        if any(remedy.action for remedy in self.advice):
            return ()  # it says what it is good for
        if self.lasting and not self.advice:
            return (Remedy(kind=RemedyKind.CHECK_LINK),)
        resumes = self.resumes and not self.advice
        return (Remedy(kind=RemedyKind.RESUME_DOWNLOAD if resumes else RemedyKind.DOWNLOAD),)


class LinkExpired(DownloadFailed):
    """The result's link has expired, and there is no fresh one."""

    def _facts(self) -> tuple[str, ...]:
        if self.task is None:
            return ("A link works for a limited time:",)
        sentence = "The client asked for a fresh link and got none that works"
        return (f"{sentence}: the result may be gone.",)

    def _remedies(self) -> tuple[Remedy, ...]:
        return () if self.task is not None else (Remedy(kind=RemedyKind.FRESH_LINK),)


class NotCompleted(DownloadFailed):
    """The task is not completed yet, so that there is nothing to download."""

    def what(self) -> str:
        """Return what happened, as a sentence."""
        return as_sentence(f"There is nothing to download yet: {self.reason}")

    def _remedies(self) -> tuple[Remedy, ...]:
        task = "" if self.task is None else self.task.reference
        return (Remedy(kind=RemedyKind.AWAIT_RESULT, task=task),)
