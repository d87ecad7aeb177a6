"""Tasks and results: the records of the service, and the order of their statuses.

The transitions (spec, "States and transitions") are data. A service may report fewer states than a
task passes through, so skipped states are legal. A status that the specification does not name is
kept as it is and counts as not terminal. A terminal status never changes.

Reading is lenient, because a paid task must not be lost over an odd field: only an id, and for a
result a status, must be there. Everything else may be missing, and the whole record stays in `raw`.

A task that must outlive the process is saved as a token, one line of JSON without secrets. Its
times are Unix seconds, so that any machine can resume from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Self, TypeVar

import attrs

from muybridge_protocol.arguments import check_type
from muybridge_protocol.families import FAMILIES, family_of_model
from muybridge_protocol.families.family import Family
from muybridge_protocol.http import shown_url, without_query
from muybridge_protocol.local_errors import LocalError
from muybridge_protocol.records.convert import (
    View,
    attributes,
    ours,
    structure,
    unstructure,
    wire,
    wire_names,
)
from muybridge_protocol.records.json import InvalidJson, JsonObject, one_line, read_object, readable
from muybridge_protocol.records.json_value import JsonValue
from muybridge_protocol.records.lenient import (
    ERROR_LIMIT,
    NAME_LIMIT,
    optional_count,
    optional_name,
    optional_text,
    optional_time,
    optional_whole_time,
)
from muybridge_protocol.service import check_identifier, is_identifier

T = TypeVar("T")

TOKEN_VERSION = 1


class Status(StrEnum):
    """The statuses that the specification names."""

    QUEUED = "queued"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED})

TRANSITIONS: Mapping[Status | None, frozenset[Status]] = {
    None: frozenset({Status.QUEUED, Status.PROCESSING, Status.FAILED}),
    Status.QUEUED: frozenset({Status.PROCESSING, Status.CANCELLED}),
    Status.PROCESSING: frozenset({Status.COMPLETED, Status.FAILED, Status.CANCELLED}),
    Status.COMPLETED: frozenset(),
    Status.FAILED: frozenset(),
    Status.CANCELLED: frozenset(),
}
"""The steps of a task. None is its state before its creation."""


def is_terminal(status: str) -> bool:
    """Whether a task with *status* has ended, so that no other status may follow."""
    return status in TERMINAL


def may_follow(before: str | None, after: str) -> bool:
    """Whether *after* may be reported after *before*: no terminal status ever changes."""
    return before is None or before == after or not is_terminal(before)


_KNOWN: Mapping[str, Status] = {status.value: status for status in Status}


def _status(status: Any, _: object = None) -> str:
    if not isinstance(status, str):
        raise InvalidJson("its status is not a string")
    return _KNOWN.get(status) or one_line(status, NAME_LIMIT)


def _optional_status(status: Any, _: object = None) -> str | None:
    return _status(status) if isinstance(status, str) else None


def _error_text(error: Any, _: object = None) -> str | None:
    if error is None:
        return None
    return readable(error if isinstance(error, str) else json.dumps(error), ERROR_LIMIT)


@attrs.frozen(kw_only=True)
class Task(JsonValue):
    """A task that the service has accepted (spec, "Task record").

    Args:
        id: The task's identifier.
        family: The family that it was created in, or None if only the id is known.
        model: The model that the service names.
        requested_model: The model that was requested, which determines the poll interval.
        status: The status at creation. A status that the specification does not name is a
            plain string.
        object: The record's `object`.
        created: When the service created it, Unix seconds.
        error: Why it failed, or None.
        submitted_at: When this library received the id, Unix seconds by this machine's clock.
        next_poll_at: The earliest time of the next poll, Unix seconds, or None for any time. The
            error that ends a wait sets it, so that the next wait keeps the pace.
        raw: The unchanged record.
    """

    id: str
    """The task's identifier."""
    family: str | None = attrs.field(default=None, metadata=ours(optional_name))
    """The family that it was created in, or None if only the id is known."""
    model: str | None = attrs.field(default=None, metadata=wire(optional_name))
    """The model that the service names."""
    requested_model: str | None = attrs.field(default=None, metadata=ours(optional_name))
    """The model that was requested, which determines the poll interval."""
    status: Status | str | None = attrs.field(default=None, metadata=wire(_optional_status))
    """The status at creation. A status that the specification does not name is a plain string."""
    object: str | None = attrs.field(default=None, metadata=wire(optional_name))
    """The record's `object`."""
    created: int | None = attrs.field(default=None, metadata=wire(optional_whole_time))
    """When the service created it, Unix seconds."""
    error: str | None = attrs.field(default=None, metadata=wire(_error_text))
    """Why it failed, or None."""
    submitted_at: float | None = attrs.field(default=None, metadata=ours(optional_time))
    """When this library received the id, Unix seconds by this machine's clock."""
    next_poll_at: float | None = attrs.field(default=None, eq=False, metadata=ours(optional_time))
    """The earliest time of the next poll, Unix seconds, or None for any time.

    The error that ends a wait sets it, so that the next wait keeps the pace.
    """
    raw: JsonObject = attrs.field(factory=dict[str, Any], repr=False, eq=False, metadata=ours())
    """The unchanged record."""

    @property
    def known_family(self) -> Family | None:
        """The family's rules and tables, or None if neither family nor model is known."""
        if self.family is None:
            return family_of_model(self.requested_model or self.model)
        return FAMILIES.get(self.family)

    @property
    def began_at(self) -> float | None:
        """When the task was created, Unix seconds, by the best clock that is known."""
        return self.submitted_at if self.submitted_at is not None else self.created

    @property
    def unknown(self) -> Mapping[str, Any]:
        """The record's fields that the specification does not name."""
        return {name: value for name, value in self.raw.items() if name not in _TASK_NAMES}

    def to_dict(self) -> dict[str, Any]:
        """Return the task as a JSON object, without `raw`. It contains no secret."""
        return attributes(self, *_TASK_FIELDS)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return the task that `to_dict` has written.

        Raises:
            ValueError: It is not a task, or its id is invalid.
        """
        return _from_dict(cls, record)

    @classmethod
    def _json_schema(cls) -> dict[str, Any]:
        return _json_schema_of(_TASK_FIELDS, required=("id",))

    @property
    def reference(self) -> str:
        """Its id, or its token if the id alone could be misread: what `wait` and `get` take."""
        return self.id if is_bare(self.id) else self.to_token()

    def to_token(self) -> str:
        """Return the task as one line of JSON, which `from_token` reads on any machine.

        It contains no secret.
        """
        fields = {"muybridge_task": TOKEN_VERSION, **unstructure(self, _TOKEN)}
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_token(cls, token: str) -> Task:
        """Return the task that *token* describes.

        Raises:
            LocalError: It is not a token, or has a newer version than this library knows.
        """
        check_type("token", token, (str, bytes), "a token", "task.to_token()")
        try:
            fields = read_object(token)
            version = fields.get("muybridge_task")
            if type(version) is not int or version != TOKEN_VERSION:
                raise LocalError(
                    f"This is not a task token of version {TOKEN_VERSION}; a newer muybridge may "
                    "have written it.",
                    argument="token",
                )
            task = structure(fields, _TOKEN)
        except InvalidJson as error:
            raise LocalError(f"This is not a task token: {error}.", argument="token") from None
        if not is_identifier(task.id):
            raise LocalError("This is not a task token: its id is not valid.", argument="token")
        return task

    def to_result(self) -> Result:
        """Return the task's own record as a result, for a task that ended when it was created."""
        shared = _shared(self)
        shared["status"] = self.status or ""
        return Result(**shared)

    def _repr_html_(self) -> str:
        """Return the task as HTML for a notebook: status, model and error."""
        from muybridge_protocol.notebook import moment, record_html

        requested = self.requested_model
        return record_html(
            {
                "task": self.id,
                **attributes(self, "status", "error", "family", "model"),
                "requested model": None if requested == self.model else requested,
                "created": moment(self.created),
                "submitted": moment(self.submitted_at),
            }
        )


@attrs.frozen(kw_only=True)
class Result(JsonValue):
    """What the service says about a task (spec, "Result record").

    A notebook displays it with its picture or video. The saved notebook then contains the link with
    its signature, so that anybody who gets it can open the link until it expires. `repr` omits the
    signature.

    Args:
        id: The task's identifier.
        status: Its status. A status that the specification does not name is a plain string.
        family: The family that it was created in, or that its model belongs to, or None.
        model: The model that the service names. It may differ from the requested one.
        object: The record's `object`.
        created: When the service created it, Unix seconds.
        image_url: Where the image is, once the task is completed.
        video_url: Where the MP4 is, once the task is completed.
        actual_duration: The video's real length in seconds.
        total_tokens: Tokens that the task consumed.
        error: Why it failed, or None.
        raw: The unchanged record.
    """

    id: str
    """The task's identifier."""
    status: Status | str = attrs.field(metadata=wire(_status))
    """Its status. A status that the specification does not name is a plain string."""
    family: str | None = attrs.field(default=None, metadata=ours())
    """The family that it was created in, or that its model belongs to, or None."""
    model: str | None = attrs.field(default=None, metadata=wire(optional_name))
    """The model that the service names. It may differ from the requested one."""
    object: str | None = attrs.field(default=None, metadata=wire(optional_name))
    """The record's `object`."""
    created: int | None = attrs.field(default=None, metadata=wire(optional_whole_time))
    """When the service created it, Unix seconds."""
    image_url: str | None = attrs.field(default=None, repr=shown_url, metadata=wire(optional_text))
    """Where the image is, once the task is completed."""
    video_url: str | None = attrs.field(default=None, repr=shown_url, metadata=wire(optional_text))
    """Where the MP4 is, once the task is completed."""
    actual_duration: float | None = attrs.field(
        default=None, metadata=wire(optional_count, name="actualDuration")
    )
    """The video's real length in seconds."""
    total_tokens: int | float | None = attrs.field(
        default=None, metadata=wire(optional_count, name="totalTokens")
    )
    """Tokens that the task consumed."""
    error: str | None = attrs.field(default=None, metadata=wire(_error_text))
    """Why it failed, or None."""
    raw: JsonObject = attrs.field(factory=dict[str, Any], repr=False, eq=False, metadata=ours())
    """The unchanged record."""

    @property
    def is_terminal(self) -> bool:
        """Whether the status is terminal, so that no other will follow."""
        return is_terminal(self.status)

    @property
    def url(self) -> str | None:
        """Where the image or video is, or None."""
        return self.image_url or self.video_url or None

    @property
    def expires_at(self) -> int | None:
        """When the URL expires, Unix seconds, or None if that is not specified.

        A task that is not completed, or has no URL, has nothing that expires.
        """
        if self.status != Status.COMPLETED or self.url is None:
            return None
        return retained_until(self)

    @property
    def unknown(self) -> Mapping[str, Any]:
        """The record's fields that the specification does not name."""
        return {name: value for name, value in self.raw.items() if name not in _RESULT_NAMES}

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a JSON object, with its link but without `raw`."""
        return attributes(self, *_RESULT_FIELDS)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Return the result that `to_dict` has written.

        Raises:
            ValueError: It is not a result, or its id is invalid.
        """
        return _from_dict(cls, record)

    @classmethod
    def _json_schema(cls) -> dict[str, Any]:
        return _json_schema_of(_RESULT_FIELDS, required=("id", "status"))

    def to_task(self) -> Task:
        """Return the task that this result belongs to."""
        return Task(**_shared(self))

    def _repr_html_(self) -> str:
        """Return the result as HTML for a notebook, with its picture or video.

        Unlike `repr`, it contains the whole link, which anybody who gets the saved notebook can
        open until it expires.
        """
        from muybridge_protocol.notebook import media_html, moment, record_html

        media = media_html(
            self.id,
            {"picture": self.image_url, "video": self.video_url},
            expires_at=self.expires_at,
            is_over=self.is_terminal and not self.error,
        )
        length = self.actual_duration
        rows: dict[str, Any] = {
            "task": self.id,
            **attributes(self, "status", "error", "family", "model"),
            "length": None if length is None else f"{length} s",
            "tokens": self.total_tokens,
            "created": moment(self.created),
        }
        return record_html(rows, *media)


def retained_until(record: Task | Result) -> int | None:
    """Return until when the service keeps a result, Unix seconds, or None if not specified.

    The retention time (spec, "Result retention") is counted from `created`. So it is known before
    the task is completed.
    """
    family = None if record.family is None else FAMILIES.get(record.family)
    if family is None or family.retention.seconds is None or record.created is None:
        return None
    return record.created + family.retention.seconds


def _shared(value: Task | Result) -> dict[str, Any]:
    """Return the fields that tasks and results have in common."""
    names = attrs.fields_dict(Task).keys() & attrs.fields_dict(Result).keys()
    return {name: getattr(value, name) for name in names}


_LINK = r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//|[Dd][Aa][Tt][Aa]:"


def is_bare(task_id: str) -> bool:
    """Whether *task_id* can be passed to `as_task` and shown without being misread."""
    if task_id.startswith("{") or re.match(_LINK, task_id):
        return False
    return is_identifier(task_id) and task_id.isprintable() and task_id.strip() == task_id


def as_task(task: Task | Result | str) -> Task:
    """Return the task for a task, a result, a token or a bare id.

    Wrap an id that looks like a token or a link, or has blanks around it, in a `Task`, or give its
    token.

    Raises:
        LocalError: A token cannot be read; or a bare id is not valid, is a link, or has blanks
            around it.
        TypeError: It is something else.
    """
    if isinstance(task, Task):
        return task
    if isinstance(task, Result):
        return task.to_task()
    line = "outcome.task" if isinstance(getattr(task, "task", None), Task) else ""
    check_type("the task", task, str, "a Task, a Result, a token or an id", line)
    if task.lstrip().startswith("{"):
        return Task.from_token(task)
    if re.match(_LINK, task):
        raise LocalError(
            f"{without_query(task)[:80]} is a link, not a task id. Nothing was sent.",
            argument="task_id",
        )
    if task.strip() != check_identifier(task, "task id"):
        raise LocalError(
            f"{task[:80]!r} begins or ends with a blank. Remove it, or wrap the id in a Task. "
            "Nothing was sent.",
            argument="task_id",
        )
    return Task(id=task)


_TASK_NAMES = frozenset(wire_names(Task).values())
_RESULT_NAMES = frozenset(wire_names(Result).values())
_TASK_FIELDS = tuple(name for name in attrs.fields_dict(Task) if name != "raw")
_RESULT_FIELDS = tuple(name for name in attrs.fields_dict(Result) if name != "raw")
_TOKEN = View(
    Task,
    only=(
        *("id", "family", "model", "requested_model", "status"),
        *("created", "submitted_at", "next_poll_at"),
    ),
)


def _from_dict(shape: type[T], record: Mapping[str, Any]) -> T:
    """Return the value of *shape* whose `to_dict` is *record*. Nulls and other fields are ignored.

    Raises:
        InvalidJson: It lacks a field, or one has the wrong type.
        LocalError: Its id is not valid.
    """
    names = wire_names(shape)
    fields = _TASK_FIELDS if shape is Task else _RESULT_FIELDS
    values = {names.get(one, one): record[one] for one in fields if record.get(one) is not None}
    check_identifier(values.get("id"), "task id")
    return structure(values, View(shape, only=fields))


def _json_schema_of(names: Iterable[str], *, required: Iterable[str]) -> dict[str, Any]:
    return {"properties": {name: {} for name in names}, "required": [*required]}


def read_task(
    record: JsonObject,
    *,
    family: str | None,
    requested_model: str | None,
    submitted_at: float | None,
) -> Task:
    """Return the task that the *record* from a create describes.

    Args:
        record: The response's JSON object.
        family: The family of the request.
        requested_model: The model that was requested.
        submitted_at: Unix seconds.

    Raises:
        InvalidJson: It has no id that can be queried.
    """
    task = structure(
        record,
        Task,
        family=family,
        requested_model=requested_model,
        submitted_at=submitted_at,
        next_poll_at=None,
        raw=record,
    )
    if not is_identifier(task.id):
        raise InvalidJson("its id cannot be used")
    return task


def read_result(record: JsonObject, *, family: str | None) -> Result:
    """Return the result that the *record* from a poll describes.

    Args:
        record: The response's JSON object.
        family: The family that the task was created in, or None for that of the record's model.

    Raises:
        InvalidJson: It has no id or no status.
    """
    result = structure(record, Result, family=family, raw=record)
    its_family = family_of_model(result.model) if family is None else None
    return result if its_family is None else attrs.evolve(result, family=its_family.name)
