"""The emulator: it parses a request and responds as the service would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote

from muybridge_protocol.emulator.accounts import (
    Access,
    authenticate,
    check_model,
    forbidden,
    unauthorized,
)
from muybridge_protocol.emulator.intake import ServiceRequest, read_body
from muybridge_protocol.emulator.refused import Refused, wrong_method
from muybridge_protocol.emulator.responses import (
    error_response,
    json_response,
    result_record,
    task_record,
)
from muybridge_protocol.emulator.tasks import EmulatedTask, MediaState, Timing, accept, reject
from muybridge_protocol.emulator.text import Script, answer_text, read_answers, text_protocol
from muybridge_protocol.families import FAMILIES, IMGB, VIDSA, Family
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.rules.files import FILE_TEXT
from muybridge_protocol.rules.values import Problem
from muybridge_protocol.service import Service

_FAMILIES_BY_PATH: Mapping[str, Family] = {
    family.create_path: family for family in FAMILIES.values()
}


class Emulator:
    """The service's image, video, asset and text endpoints.

    It keeps its tasks and assets. Everything that it returns is immutable and depends on
    its inputs alone.

    Args:
        keys: What each API key may use.
        public_url: Where results are served from: their URLs are `{public_url}/media/{id}.png`
            and `.mp4`.
        timing: How long tasks take.
        assets: The ids of the assets in the library.
        strict: Whether fields and models that the specification does not list are refused. By
            default the service takes them: it ignores the fields, and holds the models to the
            rules of the family alone.
        answers: What the text endpoints say, in order: strings, or mappings with the fields that
            `muybridge.local.load_answers` describes.

    Raises:
        InvalidInput: The answers cannot be used.
    """

    def __init__(
        self,
        *,
        keys: Mapping[str, Access],
        public_url: str,
        timing: Timing | None = None,
        assets: Iterable[str] = (),
        strict: bool = False,
        answers: Iterable[str | Mapping[str, Any]] = (),
    ) -> None:
        self._strict = strict
        self._script = Script(read_answers(answers))
        self._keys = dict(keys)
        self._public_url = public_url.rstrip("/")
        self._here = Service(base_url=public_url, allow_plain_http=True)
        self._timing = timing if timing is not None else Timing()
        # They can only be deleted: how assets are uploaded is not shown.
        self._assets = dict.fromkeys(assets, True)
        """Whether each asset still exists."""
        self._tasks: dict[str, EmulatedTask] = {}
        self._users: dict[str, list[str]] = {}
        """Ids of the tasks that use each asset."""

    @property
    def assets(self) -> frozenset[str]:
        """The ids of the assets that exist."""
        return frozenset(asset for asset, exists in self._assets.items() if exists)

    @property
    def task_count(self) -> int:
        """How many tasks were made."""
        return len(self._tasks)

    def task(self, task_id: str) -> EmulatedTask | None:
        """Return the task with *task_id*, even if its record is deleted by now, or None."""
        return self._tasks.get(task_id)

    def newest(self, most: int) -> tuple[EmulatedTask, ...]:
        """Return the newest tasks, the newest first, and no more than *most*."""
        return tuple(islice(reversed(self._tasks.values()), most))

    def media(self, task_id: str, now: float) -> MediaState:
        """Return whether a task's image or video can be downloaded at *now*, Unix seconds."""
        task = self._tasks.get(task_id)
        return MediaState.UNKNOWN if task is None else task.media(now)

    def script(self, answers: Iterable[str | Mapping[str, Any]]) -> None:
        """Script what the text endpoints say from here on, in place of the answers that are left.

        Args:
            answers: Strings, or mappings with the fields that `muybridge.local.load_answers`
                describes.

        Raises:
            InvalidInput: The answers cannot be used. Those that are left stay.
        """
        self._script = Script(read_answers(answers))

    def cancel(self, task_id: str, now: float) -> bool:
        """Cancel a task of family `vidsa` that has not ended.

        The specification does not show how a task is cancelled, so there is no request for it.

        Args:
            task_id: The task's identifier.
            now: Unix seconds.

        Returns:
            Whether it was cancelled.
        """
        task = self._tasks.get(task_id)
        if task is None or task.family is not VIDSA or task.ended(now):
            return False
        self._tasks[task_id] = task.cancelled(now)
        return True

    def handle(self, request: ServiceRequest, *, now: float, new_id: str) -> HttpResponse:
        """Answer *request*.

        Args:
            request: The request, which may be invalid in any way.
            now: Unix seconds.
            new_id: The identifier of a new task, or the source of a text response's identifier. It
                must not have been used before.

        Returns:
            A response, which is a `StreamedResponse` for a streaming text request.

        Raises:
            ValueError: A task was made, and *new_id* belongs to another.
        """
        access = authenticate(self._keys, request.headers)
        # Found before anything can be refused, because each protocol words a refusal in its own
        # shape.
        protocol = text_protocol(request.target)
        try:
            if access is None:
                raise unauthorized()
            if protocol is None:
                return json_response(self._answer(request, access, now, new_id))
            return answer_text(
                protocol,
                request,
                access,
                timing=self._timing,
                strict=self._strict,
                script=self._script,
                now=now,
                new_id=new_id,
            )
        except Refused as refused:
            return error_response(refused) if protocol is None else protocol.refusal(refused)

    def _answer(
        self, request: ServiceRequest, access: Access, now: float, new_id: str
    ) -> Mapping[str, object]:
        """Return the record that answers a request for anything but text."""
        path = request.target.partition("?")[0]
        family = _FAMILIES_BY_PATH.get(path)
        if family is not None:
            return self._create(family, access, request, now, new_id)
        match [unquote(segment) for segment in path.split("/")]:
            case ["", "v1", "result", task_id] if task_id:
                return self._result(request, task_id, now)
            case ["", "vidsb", "asset", asset_id] if asset_id:
                return self._delete_asset(access, request, asset_id, now)
            case _:
                raise Refused(404, "there is no such endpoint", "not_found")

    def _create(
        self, family: Family, access: Access, request: ServiceRequest, now: float, new_id: str
    ) -> Mapping[str, object]:
        if not access.allows_family(family):
            raise forbidden(f"the key is not provisioned for family {family.name}")
        if request.method != "POST":
            raise wrong_method("POST")
        body = read_body(request)
        check_model(access, body.get("model"))
        report = family.check(body, keep_unknown=not self._strict, own=self._here.gave_out)
        # To the service, any text is a text.
        problems = tuple(problem for problem in report.problems if problem.rule != FILE_TEXT)
        # Other families refuse such a request. `imgb` creates a task that has failed (spec, "States
        # and transitions").
        if problems and (family is not IMGB or _concerns_model(problems)):
            raise _bad_request(problems)
        task = accept(family, body, sent=request.body, task_id=new_id, now=now, timing=self._timing)
        if problems:
            task = reject(task, _sentence(problems))
        return task_record(self._keep(task), now)

    def _keep(self, task: EmulatedTask) -> EmulatedTask:
        if task.id in self._tasks:
            raise ValueError(f"the id {task.id} is in use")
        missing = next((asset for asset in task.assets if not self._assets.get(asset)), None)
        if missing is not None:
            why = "was deleted" if missing in self._assets else "does not exist"
            task = task.failing(f"asset {missing} {why}")
        self._tasks[task.id] = task
        for asset_id in task.assets:
            self._users.setdefault(asset_id, []).append(task.id)
        return task

    def _result(self, request: ServiceRequest, task_id: str, now: float) -> Mapping[str, object]:
        if request.method != "GET":
            raise wrong_method("GET")
        task = self._tasks.get(task_id)
        if task is None or task.is_forgotten(now):
            raise Refused(404, "there is no such task", "not_found")
        return result_record(task, now, self._public_url)

    def _delete_asset(
        self, access: Access, request: ServiceRequest, asset_id: str, now: float
    ) -> Mapping[str, object]:
        if not access.assets:
            raise forbidden("the key is not provisioned for assets")
        if request.method != "DELETE":
            raise wrong_method("DELETE")
        if not self._assets.get(asset_id):
            return {"code": "1", "msg": "the asset does not exist", "data": None}
        self._assets[asset_id] = False
        for task_id in self._users.pop(asset_id, ()):
            task = self._tasks[task_id]
            if not task.ended(now):
                self._tasks[task_id] = task.failing(f"asset {asset_id} was deleted")
        return {"code": "0", "msg": "the asset was deleted", "data": None}


def _concerns_model(problems: Iterable[Problem]) -> bool:
    """Whether the request names no model that a task record could name."""
    return any(problem.field == "model" for problem in problems)


def _bad_request(problems: tuple[Problem, ...]) -> Refused:
    if any(problem.rule == "alias" for problem in problems):
        code = "parameter_conflict"
    elif any(problem.field == "model" and problem.rule == "one_of" for problem in problems):
        code = "unknown_model"
    else:
        code = "invalid_request"
    return Refused(400, _sentence(problems), code, problems=problems)


def _sentence(problems: Iterable[Problem]) -> str:
    return ". ".join(str(problem) for problem in problems)
