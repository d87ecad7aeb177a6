"""Buys for an agent: each content and number once, and nothing without consent or a budget.

The order of steps decides what can be paid twice, so it stands in one function, `Buyer.create`:

1. The request is checked, and its name found. The store has what was bought under that name.
2. If somebody is sending it, wait for the outcome: nothing is asked, and nothing sent.
3. If it was bought, join it: nothing is asked, and nothing sent.
4. Ask a person, or see that the budget limits what it consumes. A cancelled call ends here.
5. Buy it under its name. If another process was faster meanwhile, this joins as well.

From the first byte on, the call runs in a thread to its end, whoever is cancelled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from typing import TYPE_CHECKING, Final, cast
from weakref import WeakValueDictionary

import anyio
import attrs
from anyio.to_thread import run_sync
from mcp_types import InputRequiredResult

from muybridge.cli.totals import plain
from muybridge.credentials import Credentials
from muybridge.mcp.answers import Answer, ambiguous, quoted
from muybridge.mcp.consent import Call, Consents
from muybridge.mcp.folder import Folder
from muybridge.purchases.booking import check_once
from muybridge.purchases.once import task_of
from muybridge_protocol.errors import (
    CreateAmbiguous,
    LocalError,
    MuybridgeError,
    ResultExpired,
    TaskNotFound,
)
from muybridge_protocol.purchases import (
    Amounts,
    Budget,
    Measure,
    Purchase,
    State,
    Tags,
    amounts_of,
    labels_of,
)
from muybridge_protocol.purchases.tags import OwnTags
from muybridge_protocol.records.json import JsonObject, readable
from muybridge_protocol.records.tasks import Result, Status, Task

if TYPE_CHECKING:
    from muybridge.client import Client
    from muybridge.purchases import Store
    from muybridge_protocol.estimates import PriceList
    from muybridge_protocol.families.request import MediaRequest

VIA: Final[Tags] = OwnTags(via="mcp")
"""The tag of a server's purchases, unless another one is given."""
_LOOK: Final = 5.0
"""Seconds in which a joined task's state is looked up."""
_PAUSE: Final = 0.5
_UNDER_WAY: Final = 40.0
"""Seconds to wait for somebody else who is sending the same request: hosts give up after 60."""
_SHOWN_PROMPT: Final = 300
"""Most characters of a prompt that a person is asked about."""
_NOT_ALLOWED: Final = (
    "Nothing was sent. This request costs money, and nothing allows it: the host cannot ask a "
    "person (elicitation), and the server has no budget that limits it. The person can restart "
    "the server with a budget, such as `muybridge mcp --max-creates 5`."
)


@attrs.frozen(kw_only=True)
class Setup:
    """What a server serves with.

    Args:
        client: Sends the requests, and books them in the store.
        store: The store.
        credentials: The client's.
        folder: Where results are saved.
        tags: The one tag of the purchases.
        budget: The budget that was given at the start, which the store keeps for the tag, or None.
        prices: What requests cost, or None if that is not known.
        wall: Returns Unix seconds.
    """

    client: Client
    store: Store
    credentials: Credentials
    folder: Folder
    tags: Tags = VIA
    budget: Budget | None = None
    prices: PriceList | None = None
    wall: Callable[[], float] = time.time

    def __attrs_post_init__(self) -> None:
        check_once(_name(self.tag, "family", "0" * 64, 10**6))  # the tag may be too long
        if self.budget is not None:
            self.store.limit(self.tag, self.budget)

    @property
    def tag(self) -> str:
        """The tag as the store has it."""
        [tag] = labels_of(self.tags)
        return tag

    def bought(self, task_id: str) -> Purchase | None:
        """Return the purchase that has a task, or None."""
        return self.store.bought(self.account, task_id)

    @property
    def account(self) -> str:
        """Whose purchases they are."""
        return self.store.account(self.credentials.fingerprint)

    def limits(self, amounts: Amounts) -> bool:
        """Whether the budget limits what has these *amounts*: then it is leave to send it."""
        limits = {} if self.budget is None else self.budget.limits
        return any(amounts[measure] != 0 for measure in limits)


class Buyer:
    """Buys for the calls of one server.

    Args:
        setup: What it serves with.
    """

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._consents = Consents()
        self._turns: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()

    async def create(
        self, call: Call, request: MediaRequest, again: int
    ) -> Answer | InputRequiredResult:
        """Create the task of *request* with the number *again*, or join the one that there is.

        Raises:
            LocalError: There is no leave. Nothing was sent.
            MuybridgeError: As `Client.create_once`, but for `CreateAmbiguous`.
        """
        family, digest = request.family.name, request.digest()
        name = _name(self._setup.tag, family, digest, again)
        # Of two calls for the same content, the second waits and joins: a person is asked once. The
        # dictionary is weak, so a lock goes with its last call.
        turn = self._turns.setdefault(name, anyio.Lock())
        async with turn:
            purchase = await self._bought(name)
            if purchase is not None:
                return await run_sync(self._joined, purchase, again)
            leave = await self._leave(call, request, again, digest)
            if leave is not None:
                return leave
            await call.progress(0, 1, "sending the request")
            return await run_sync(self._buy, name, request)

    async def _bought(self, name: str) -> Purchase | None:
        """Return what was bought under *name*, once nobody is sending it any more."""
        with anyio.move_on_after(_UNDER_WAY):
            while True:
                purchase = await run_sync(self._named, name)
                if purchase is None or purchase.state is not State.ARMED:
                    return purchase
                await anyio.sleep(_PAUSE)
        raise LocalError(
            "Another process is still sending this very request, and nothing was sent again. Call "
            "generate again later with the same arguments: it returns the same task."
        )

    def _named(self, name: str) -> Purchase | None:
        return self._setup.store.named(self._setup.account, f"once {name}")

    async def _leave(
        self, call: Call, request: MediaRequest, again: int, digest: str
    ) -> Answer | InputRequiredResult | None:
        """Return None if *request* may be sent, or what to answer instead.

        Raises:
            LocalError: Nobody can be asked.
        """
        setup = self._setup
        amounts = amounts_of(request.quantities(), setup.prices)
        if setup.limits(amounts):
            return None
        if not call.can_ask:
            raise LocalError(_NOT_ALLOWED)
        question = _question(request, amounts, setup.prices, digest, again)
        answer = await self._consents.ask(call, question, f"{digest} {again}")
        if isinstance(answer, InputRequiredResult):
            return answer
        if answer:
            return None
        return Answer({
            "state": "declined",
            "sent": False,
            "charged": "no",
            "message": "The person did not consent, and nothing was sent. Do not ask again unless "
            "they want it.",
        })  # fmt: skip

    def _buy(self, name: str, request: MediaRequest) -> Answer:
        try:
            task = self._setup.client.create_once(name, request, tags=self._setup.tags)
        except CreateAmbiguous as error:
            return ambiguous(error, self._setup.store, self._named(name))
        return Answer({"sent": True, **_bought_record(task)})

    def _joined(self, purchase: Purchase, again: int) -> Answer:
        """Return the answer to a call that joins *purchase*, which is not armed."""
        setup = self._setup
        try:
            task = task_of(purchase, setup.store)
        except CreateAmbiguous as error:
            return ambiguous(error, setup.store, purchase)
        state, why, result = _state_of(setup, task)
        age = max(0, round(setup.wall() - purchase.armed_at))
        facts: JsonObject = {
            "sent": False,
            "joined": True,
            **_bought_record(task),
            "state": state,
            "age_seconds": age,
            "again_needed": why is not None,
        }
        if why is not None:
            facts["message"] = (
                f"This request was sent {age} s ago as number {again}, and {why}. Nothing was sent "
                "now. To pay for another attempt, ask the person, and then call generate with "
                f'"again": {again + 1}.'
            )
        else:
            facts["message"] = (
                f"This request was sent {age} s ago, so you get its task, and nothing was sent "
                "now. If the person wants one more of the same, and wants to pay for it, call "
                f'generate with "again": {again + 1}.'
            )
        return Answer(facts | quoted(None if result is None else result.error))


def _name(tag: str, family: str, digest: str, again: int) -> str:
    """Return the name under which a content and a number are bought once."""
    return f"{tag} {family} {digest} {again}"


def _bought_record(task: Task) -> JsonObject:
    state = str(task.status or "submitted")
    has_failed = state == Status.FAILED
    return {
        "charged": "perhaps" if has_failed else "yes",
        "task": task.id,
        "token": task.reference,
        "state": state,
        "next": "call generate with the next number in `again`, if the person wants to pay again"
        if has_failed
        else "call wait with the token",
        **quoted(task.error),
    }


def _state_of(setup: Setup, task: Task) -> tuple[str, str | None, Result | None]:
    """Return a task's state, why it is of no use any more, or None, and its record if known."""
    try:
        records = cast("Generator[Result]", setup.client.watch(task, timeout=_LOOK))
        with closing(records):
            result = next(records)
    except (ResultExpired, TaskNotFound):
        return "expired", "the service does not have it any more", None
    except (MuybridgeError, StopIteration):
        return "unknown", None, None
    state = str(result.status)
    if state in {Status.FAILED, Status.CANCELLED}:
        return state, f"it has ended without a result ({state})", result
    if result.expires_at is not None and result.expires_at <= setup.wall():
        return "expired", "the link to its result has expired", result
    return state, None, result


def _question(
    request: MediaRequest, amounts: Amounts, prices: PriceList | None, digest: str, again: int
) -> str:
    """Return what a person reads before they consent."""
    prompt = readable(str(request.to_body().get("prompt", "")), _SHOWN_PROMPT)
    number = "" if again == 1 else f" It is number {again} of the same request."
    return (
        f"Create one paid task: {request.family.name} {request.model_name or ''}, which consumes "
        f"{consumed(amounts, prices)}.{number} Its prompt, written by the agent: «{prompt}». "
        f"(Content {digest[:12]}.) Send it and pay for it?"
    )


def consumed(amounts: Amounts, prices: PriceList | None) -> str:
    """Return what a request consumes, for people."""
    parts = [
        f"{plain(amount)} {_UNITS[measure]}{'' if amount == 1 else 's'}"
        if amount is not None
        else f"an unknown number of {_UNITS[measure]}s"
        for measure, amount in amounts.items()
        if measure in _UNITS and amount != 0
    ]
    cost = amounts[Measure.COST]
    money = "an unknown cost"
    if cost is not None:
        money = f"a cost of {plain(cost)} {'' if prices is None else prices.currency}".rstrip()
    return f"{', '.join(parts)}, at {money}"


_UNITS: Final = {Measure.PICTURES: "picture", Measure.SECONDS: "second", Measure.CALLS: "call"}
