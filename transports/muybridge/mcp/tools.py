"""The tools: a name, what a model reads about it, its arguments, and what it does.

A list of all tools is part of every conversation, so their texts are short: what a family accepts
is told by `describe`. A wrong argument is answered with one clear sentence.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeVar

import anyio
import attrs
from anyio.to_thread import run_sync
from mcp_types import InputRequiredResult, Tool, ToolAnnotations

from muybridge.batch.items.reading import WrongItem, read_item
from muybridge.cli.purchase_records import purchase_record, store_words, sums_record
from muybridge.cli.totals import plain
from muybridge.mcp.answers import Answer, problems_of, quoted
from muybridge.mcp.buyer import Buyer, Setup, consumed
from muybridge.mcp.consent import Call
from muybridge.mcp.texts import Texts, is_text, shortened
from muybridge.purchases.once import task_of
from muybridge.verbs import catalogue, decisions, generation, spending
from muybridge_protocol.errors import (
    LocalError,
    NotCompleted,
    TaskFailed,
    WaitTimeout,
)
from muybridge_protocol.families import Family, Model, find_family
from muybridge_protocol.families.examples import smallest_example
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.http import MEBIBYTE
from muybridge_protocol.identifiers import shown_id
from muybridge_protocol.purchases import EVERYTHING, Amounts, Measure, Purchase, amounts_of
from muybridge_protocol.purchases.tags import is_key
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.records.json import JsonObject, readable
from muybridge_protocol.records.tasks import Result, Task, as_task
from muybridge_protocol.rules.values import shown

T = TypeVar("T")

LONGEST_WAIT: Final = 45.0
"""Most seconds that a call of `wait` takes: hosts give up after 60."""
_SLICE: Final = 2.0
"""Seconds after which a wait reports progress, and notices that its call was cancelled."""
_MOST_WAITS: Final = 16
"""Most waits that occupy threads, so that other calls always find one."""
_LARGEST_CALL: Final = 4 * MEBIBYTE
_LONGEST_TOKEN: Final = 20_000
"""Most characters of a token that is read."""
_MOST_ROWS: Final = 50
"""Most rows of a table that is returned: the newest."""
_NOTHING: Final[Amounts] = dict.fromkeys(Measure, Decimal(0))
_OWN_FIELDS: Final = ("extra", "unlisted_model", "allow_inline")
_KINDS: Final[Mapping[str, tuple[type[Any], ...]]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "object": (dict,),
}  # fmt: skip
_NAMED: Final = {
    "string": "a string", "integer": "a whole number", "number": "a number",
    "object": "a JSON object",
}  # fmt: skip


class Tools:
    """The tools of one server.

    Args:
        setup: What it serves with.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._buyer = Buyer(setup)
        self._texts = Texts(setup)
        self._waits = anyio.CapacityLimiter(_MOST_WAITS)

    async def call(self, call: Call) -> Answer | InputRequiredResult:
        """Carry out a call.

        Raises:
            LocalError: There is no such tool, or its arguments are wrong.
            MuybridgeError: It failed.
        """
        name = call.params.name
        tool = _BY_NAME.get(name)
        if tool is None:
            raise LocalError(
                f"There is no tool {shown(name)}. The tools are {', '.join(_BY_NAME)}."
            )
        given = call.params.arguments or {}
        size = len(json.dumps(given))
        if size > _LARGEST_CALL:
            raise LocalError(
                f"The arguments are too large ({size:,} bytes; at most {_LARGEST_CALL:,}). Nothing "
                "was sent. For a file, put it into the folder of this server and name it with @."
            )
        arguments = _read(tool, given)
        if tool.converses:
            arguments["call"] = call
        return await tool.act(self, **arguments)

    async def families(self) -> Answer:
        """List the families and their models."""
        selection = catalogue.select()
        return Answer({
            "families": [
                {
                    **attributes(family, "name", "media"),
                    "models": [model.name for model in family.models],
                }
                for family, _ in selection.families
            ],
            "text_models": [model.name for model in selection.texts],
        })  # fmt: skip

    async def describe(self, *, name: str) -> Answer:
        """Describe one family, or one model of it."""
        selection = catalogue.select(name)
        if not selection.families:
            return Answer({"text_models": [model.name for model in selection.texts]})
        [(family, models)] = selection.families
        return Answer(_family_record(family, models))

    async def estimate(self, *, family: str, fields: JsonObject) -> Answer:
        """Say what a request consumes and costs."""
        request = await run_sync(self._request, family, fields)
        prices = self._setup.prices
        amounts = amounts_of(request.quantities(), prices)
        return Answer({
            "consumes": consumed(amounts, prices),
            **{str(one): None if it is None else plain(it) for one, it in amounts.items()},
            "currency": None if prices is None else prices.currency,
            "needs_consent": not self._setup.limits(amounts),
        })  # fmt: skip

    async def check(self, *, family: str, fields: JsonObject) -> Answer:
        """Check a request, and the pictures, videos and sounds in it."""
        request = await run_sync(self._request, family, fields)
        report = await run_sync(partial(self._setup.client.check, request, timeout=LONGEST_WAIT))
        return Answer({
            "ok": report.ok,
            "problems": [
                {**attributes(one, "field", "rule"), "why": readable(one.reason(_silent))}
                for one in report.problems
            ],
            "undecided": [
                {**attributes(one, "field"), "why": readable(one.reason(_silent))}
                for one in report.undecided
            ],
        })  # fmt: skip

    async def generate(
        self, call: Call, *, family: str, fields: JsonObject, again: int = 1
    ) -> Answer | InputRequiredResult:
        """Create a task, or join the one of the same content and number."""
        request = await run_sync(self._request, family, fields)
        return await self._buyer.create(call, request, again)

    async def wait(self, call: Call, *, token: str, seconds: float = LONGEST_WAIT) -> Answer:
        """Wait for a task, and return within 45 seconds."""
        seconds = min(seconds, LONGEST_WAIT)
        if is_text(token):
            return shortened(await self._texts.wait(call, token, seconds))
        task = await run_sync(self._task, token)
        begin = anyio.current_time()
        seen: Result | None = None
        trouble = ""

        def update(result: Result) -> None:
            nonlocal seen
            seen = result

        while True:
            passed = anyio.current_time() - begin
            state = str(task.status or "submitted") if seen is None else str(seen.status)
            if passed >= seconds:
                facts = {"done": False, "state": state, "token": token}
                message = f"It is not done after {passed:.0f} s. Call wait again: that is free."
                return Answer({**facts, "message": message, **quoted(trouble)})
            await call.progress(round(passed, 1), seconds, state)
            limit = min(_SLICE, seconds - passed)
            wait = partial(
                generation.wait, self._setup.client, task, timeout=limit, on_update=update
            )
            outcome = None
            try:
                with anyio.move_on_after(seconds - passed):  # others may occupy all threads
                    outcome = await run_sync(wait, limiter=self._waits)
            except WaitTimeout as error:
                trouble = error.reason
            except TaskFailed as error:
                return _ended(error.result)
            if outcome is not None and outcome.result is not None:
                return _done(task, outcome.result)

    async def save(self, *, token: str, name: str = "") -> Answer:
        """Save a task's result in the folder."""
        task, folder = await run_sync(self._task, token), self._setup.folder
        target = folder.place(name) if name else folder.root

        def save() -> Answer:
            path = folder.saved(name, task.id) if name else None
            again = path is not None
            if path is None:
                target.parent.mkdir(parents=True, exist_ok=True)
                folder.root.mkdir(exist_ok=True)
                outcome = generation.download(
                    self._setup.client, task, target, timeout=LONGEST_WAIT, sidecar=True
                )
                assert outcome.path is not None  # noqa: S101  the target is a path
                path = outcome.path
            preview = folder.preview(path)
            blocks = () if preview is None else (preview,)
            facts = {
                "path": str(path),
                "file": path.relative_to(folder.root).as_posix(),
                "bytes": path.stat().st_size,
                "saved_before": again,
                "task": task.id,
            }
            return Answer(facts, (*blocks, folder.link(path)))

        try:
            return await run_sync(save)
        except NotCompleted:
            raise LocalError(
                "The task is not done yet, and nothing was saved. Call wait first."
            ) from None

    async def text(
        self, call: Call, *, model: str, prompt: str, system: str = "", max_tokens: int = 0
    ) -> Answer:
        """Ask a text model."""
        settings: dict[str, Any] = {"system_instruction": system or None}
        if max_tokens:
            settings["generation_config"] = {"max_output_tokens": max_tokens}
        answer = await self._texts.ask(call, model, prompt, settings, LONGEST_WAIT)
        return shortened(answer)

    async def spent(self) -> Answer:
        """Say what this server's purchases have consumed, and what is left of its budgets."""
        return await run_sync(self._spent)

    def _spent(self) -> Answer:
        setup = self._setup
        key, has_value, value = setup.tag.partition("=")
        report = spending.spent(setup.store, ("day", "family", "model", key))
        rows = [
            _spent_record(one)
            for one in report.groups
            if one.labels[-1] == (value if has_value else key)
        ]
        return Answer({
            "tag": setup.tag,
            "spent": rows[-_MOST_ROWS:],
            "budgets": [
                _usage_record(one, setup.tag)
                for one in spending.budgets(setup.store)
                if one.stored.tag in {setup.tag, key, EVERYTHING}
            ],
        })  # fmt: skip

    async def undecided(self) -> Answer:
        """List this server's purchases about which a person has to decide."""
        return await run_sync(self._undecided)

    def _undecided(self) -> Answer:
        setup = self._setup
        purchases = [one for one in decisions.undecided(setup.store) if setup.tag in one.tags]
        place = " ".join(store_words(setup.store))
        return Answer({
            "undecided": [*map(_undecided_record, purchases[-_MOST_ROWS:])],
            "message": "A person decides about each, with: "
            f"{' '.join(filter(None, ('muybridge decide', place, 'KEY')))}"
            if purchases
            else "There is nothing to decide.",
        })  # fmt: skip

    def _task(self, token: str) -> Task:
        """Return the task of a token, as the store has it.

        A server serves only what its account has bought in its store: a caller of tools has no
        business with other tasks.

        Raises:
            LocalError: It is too long or not a token, or the task is not in the store.
        """
        if len(token) > _LONGEST_TOKEN:
            raise LocalError(f"token is too long to be one ({len(token):,} characters).")
        task_id = as_task(token).id
        bought = self._setup.bought(task_id)
        if bought is None:
            raise LocalError(
                f"The store of this server has no task {shown_id(task_id)} of its account: it may "
                "belong to another account, or to another store."
            )
        return task_of(bought, self._setup.store)

    def _request(self, family: str, fields: JsonObject) -> MediaRequest:
        """Return the request of *family* with *fields*, which may name files of the folder.

        Raises:
            LocalError: There is no such family, or the request is not valid. The message lists
                every problem.
        """
        setup = self._setup
        setup.folder.check_fields(find_family(family), fields)
        own: JsonObject = {name: fields[name] for name in _OWN_FIELDS if name in fields}
        body = {name: value for name, value in fields.items() if name not in own}
        item: JsonObject = {"family": family, "body": body, **own}
        try:
            return read_item(item, setup.folder.root, setup.client.service.gave_out)[1]
        except WrongItem as error:
            raise LocalError(problems_of(error.problems)) from None


def _usage_record(used: spending.Usage, tag: str) -> JsonObject:
    stored = used.stored
    # Of a budget for a key, only what counts under the tag of this server concerns it.
    amounts = used.spent.get(tag if is_key(stored.tag) else stored.tag, _NOTHING)
    record: JsonObject = {"tag": stored.tag or None, "per": stored.budget.per}
    for measure, limit in stored.budget.limits.items():
        spent = amounts[measure]
        record[str(measure)] = {
            "limit": plain(limit),
            "spent": "unknown" if spent is None else plain(spent),
        }
    return record


def _undecided_record(purchase: Purchase) -> JsonObject:
    record = purchase_record(purchase)
    names = ("key", "time", "family", "model", "candidate_id")
    return {name: record[name] for name in names} | quoted(purchase.reason)


def _spent_record(one: spending.Spent) -> JsonObject:
    day, family, model, _ = one.labels
    facts: JsonObject = {"day": day, "family": family, "model": model, "state": str(one.state)}
    return facts | {"requests": one.purchases, **sums_record(one.sums)}


def _silent(_: object) -> str:
    return ""


def _done(task: Task, result: Result) -> Answer:
    return Answer({
        "done": True,
        "state": str(result.status),
        "token": task.reference,
        **attributes(result, "url", "expires_at", "actual_duration"),
        "next": "call save to get the file, or use the url as a reference in another request",
    })  # fmt: skip


def _ended(result: Result) -> Answer:
    return Answer({
        "done": True,
        "state": str(result.status),
        "charged": "perhaps",
        "message": "It has ended without a result, and will not change any more. To pay for "
        "another attempt, ask the person, and then call generate with the next number in `again`.",
        **quoted(result.error),
    })  # fmt: skip


def _family_record(family: Family, models: tuple[Model, ...]) -> JsonObject:
    return {
        **attributes(family, "name", "media"),
        "fields": {
            field.wire: {
                "type": str(field.kind),
                **attributes(field, "required", "takes_files"),
                "about": field.text(str),
                "accepts": "; ".join(rule.accepted for rule in field.rules),
                "default": field.service_default,
            }
            for field in family.fields
        },
        "rules": [relation.sentence() for relation in family.relations],
        "models": {
            model.name: "; ".join(filter(None, (model.note, *_limits(model)))) for model in models
        },
        "example": smallest_example(family),
    }


def _limits(model: Model) -> list[str]:
    return [f"{wire}: {rule.accepted}" for wire, rules in model.limits.items() for rule in rules]


@attrs.frozen(kw_only=True)
class Described:
    """One tool, as a model reads about it.

    Args:
        name: Its name.
        about: What it does.
        arguments: The schemas of its arguments. The required ones come first.
        required: How many are required.
        act: Carries out a call, with these arguments.
        converses: Whether it needs the call itself: it asks the host, or reports progress.
        reads: Whether it only reads.
        repeats: Whether a repeated call has no further effect.
    """

    name: str
    about: str
    arguments: Mapping[str, JsonObject] = attrs.field(factory=dict[str, JsonObject])
    required: int = 0
    act: Callable[..., Awaitable[Answer | InputRequiredResult]]
    converses: bool = False
    reads: bool = True
    repeats: bool = True

    def listed(self) -> Tool:
        """Return the tool as hosts list it."""
        schema: JsonObject = {"type": "object", "properties": dict(self.arguments)}
        if self.required:
            schema["required"] = [*self.arguments][: self.required]
        hints = ToolAnnotations(read_only_hint=True)
        if not self.reads:
            hints = ToolAnnotations(idempotent_hint=self.repeats, destructive_hint=False)
        return Tool(
            name=self.name, description=self.about, input_schema=schema, annotations=hints,
            output_schema={"type": "object"},
        )  # fmt: skip


def _read(tool: Described, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call.

    Raises:
        LocalError: One is unknown, missing or wrong.
    """
    known = ", ".join(tool.arguments) or "none"
    for name in given:
        if name not in tool.arguments:
            raise LocalError(f"{tool.name} has no argument {shown(name)}; its arguments: {known}.")
    for name in [*tool.arguments][: tool.required]:
        if given.get(name) is None:
            raise LocalError(f"{tool.name} needs the argument {name}; its arguments: {known}.")
    read: dict[str, Any] = {}
    for name, value in given.items():
        if value is not None:
            schema = tool.arguments[name]
            if not _fits(schema, value):
                raise LocalError(f"{name} must be {_wanted(schema)} (got {shown(value)}).")
            read[name] = value
    return read


def _fits(schema: JsonObject, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, _KINDS[schema["type"]]):
        return False
    least, most = schema.get("minimum"), schema.get("maximum")
    # NaN fits no limit.
    return (least is None or value >= least) and (most is None or value <= most)


def _wanted(schema: JsonObject) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    limits = [f"at least {least}"] if least is not None else []
    limits += [f"at most {most}"] if most is not None else []
    return f"{_NAMED[schema['type']]}{' of ' if limits else ''}{' and '.join(limits)}"


_FAMILY: Final = {"type": "string"}
_FIELDS: Final = {"type": "object"}
_TOKEN: Final = {"type": "string"}
_REQUEST: Final = {"family": _FAMILY, "fields": _FIELDS}

TOOLS: Final = (
    Described(
        name="families",
        about="List the families of pictures and videos, and their models. Free.",
        act=Tools.families,
    ),
    Described(
        name="describe",
        about="Describe a family or model: its fields for generate, with limits. Free.",
        arguments={"name": {"type": "string"}},
        required=1,
        act=Tools.describe,
    ),
    Described(
        name="estimate",
        about="What a request would consume and cost, and whether a person will be asked. Free.",
        arguments=_REQUEST,
        required=2,
        act=Tools.estimate,
    ),
    Described(
        name="check",
        about="Check a request and its media without sending it. Free.",
        arguments=_REQUEST,
        required=2,
        act=Tools.check,
    ),
    Described(
        name="generate",
        about=(
            "Create a picture or video. COSTS MONEY: a person is asked, or a budget covers it. "
            "Returns a token for wait. The same fields always give the same task, so a repeated "
            "call costs nothing. Only if the person wants to pay for one more of the same, set "
            "again to 2, 3, ... If the answer says `ambiguous`, do not repeat it. In fields for "
            'media, use a URL, or "@NAME" for a file of the folder.'
        ),
        arguments={**_REQUEST, "again": {"type": "integer", "minimum": 1, "maximum": 999_999}},
        required=2,
        act=Tools.generate,
        converses=True,
        reads=False,
    ),
    Described(
        name="wait",
        about="Wait for a task, at most 45 s. Free: call it again until done.",
        arguments={"token": _TOKEN, "seconds": {"type": "number", "minimum": 0}},
        required=1,
        act=Tools.wait,
        converses=True,
    ),
    Described(
        name="save",
        about="Save a finished task's file in the server's folder; shows a small preview. Free.",
        arguments={"token": _TOKEN, "name": {"type": "string", "description": "File name"}},
        required=1,
        act=Tools.save,
        reads=False,
    ),
    Described(
        name="text",
        about="Ask a text model. COSTS MONEY, within the server's budget: do not repeat it.",
        arguments={
            "model": {"type": "string"},
            "prompt": {"type": "string"},
            "system": {"type": "string"},
            "max_tokens": {"type": "integer", "minimum": 1},
        },
        required=2,
        act=Tools.text,
        converses=True,
        reads=False,
        repeats=False,
    ),
    Described(
        name="spent",
        about="What this server has spent, and its budgets. Free.",
        act=Tools.spent,
    ),
    Described(
        name="undecided",
        about="Requests that may have been charged and that a person must decide about. Free.",
        act=Tools.undecided,
    ),
)
_BY_NAME: Final = {tool.name: tool for tool in TOOLS}
