"""What a client books its paid requests with: the budgets, the prices, and the store.

`Booking` accompanies one paid operation. It is armed before each attempt, is told the outcome of
each exchange, and records it:

    withheld = await booking.arm(deadline)  # None: it may be sent
    ...
    booking.take(operation)                 # after the exchange; the id is known from here on
    await booking.record()                  # in a thread, to its end, whoever is cancelled

Each attempt is a purchase of its own, so no outcome of one ever reaches another.

The store is written after the response has reached the operation and the listeners, so no
cancellation and no slow disk can come between a paid response and the place where its id is kept.
A process that dies in between leaves the purchase armed, which counts as spent.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import attrs

from muybridge.credentials import Credentials
from muybridge.drivers.notes import BrokenOff, interruption_of
from muybridge.drivers.pauses import paused, seconds_awake_or_asleep
from muybridge.drivers.runtime import Runtime
from muybridge.purchases import open_store
from muybridge.purchases.environment import place_in_commands
from muybridge.purchases.errors import Exceeded, NameHeld, OnceTaken, StoreUnusable
from muybridge.purchases.history import History
from muybridge.purchases.items import Place
from muybridge.purchases.store import Store
from muybridge_protocol.arguments import NO_TAGS
from muybridge_protocol.errors import CreateAmbiguous
from muybridge_protocol.estimates import PriceList, estimate_of, text_quantities
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.operations.create import Create
from muybridge_protocol.operations.operation import Operation
from muybridge_protocol.operations.paid import PaidOperation
from muybridge_protocol.purchases import (
    UNKNOWN_CALL,
    Amounts,
    Budget,
    Order,
    Outcome,
    Purchase,
    State,
    Tags,
    amounts_of,
    judged,
    labels_of,
    tags_in,
)
from muybridge_protocol.purchases.names import Dedupe
from muybridge_protocol.records.json import read_object, readable
from muybridge_protocol.remedies import Remedy, RemedyKind
from muybridge_protocol.text.responses import GenerateContentResponse, UsageMetadata

T = TypeVar("T")

_LONGEST_NAME: Final = 200
"""Most characters of a name, of a purchase or of a model."""
_TEXT_KINDS: Final = ("text", "text stream")
_MODEL_IN_PATH: Final = re.compile(r"/models/([^/]+):[A-Za-z]+\Z")
_NAMES_ANOTHER: Final = (
    "The name given to create_once was already used for another request, and nothing was sent. Use "
    "another name for this request, or send the same request as before."
)


class Books:
    """What a client books its paid requests with.

    Args:
        store: The store, its place, or None for the default one.
        budgets: What must not be exceeded.
        credentials: The client's.
        prices: What requests cost, or None if that is not known.
        dedupe: Whether identical requests join, and whether also across tags.
        tags: The tags of every purchase, which were checked.
        account: Whose requests they are, or None for what the store makes of the key.
    """

    def __init__(
        self,
        store: Store | str | os.PathLike[str] | None,
        budgets: Sequence[Budget],
        credentials: Credentials,
        *,
        prices: PriceList | None = None,
        dedupe: Dedupe,
        tags: Tags = NO_TAGS,
        account: str | None = None,
    ) -> None:
        self.prices = prices
        self.tags: Tags = tags
        self.dedupe: Dedupe = dedupe
        self._owns_store = not isinstance(store, Store)
        self.store: Store = store if isinstance(store, Store) else open_store(store)
        self.budgets = budgets
        self._credentials = credentials
        self._account: str | None = account

    @property
    def account(self) -> str:
        """Whose requests they are. Reads the store on first use."""
        if self._account is None:
            self._account = self.store.account(self._credentials.fingerprint)
        return self._account

    def booking(
        self,
        operation: Operation[Any],
        runtime: Runtime,
        *,
        once: str | None = None,
        digest: str | None = None,
        if_held: TransportFailure | None = None,
        tags: Tags = NO_TAGS,
    ) -> Booking | None:
        """Return what books *operation*, or None if it costs nothing.

        Args:
            operation: The operation at its beginning.
            runtime: The client's.
            once: The name under which it is paid for once, or None.
            digest: The digest of the request, or None without a name.
            if_held: The failure if another request has the name, or None to raise `NameHeld`.
            tags: The purchase's tags besides the client's, which they may replace.
        """
        if not isinstance(operation, PaidOperation) or not operation.http_request.paid:
            return None
        return Booking(
            self,
            operation,
            runtime,
            once=once,
            digest=digest,
            if_held=if_held,
            tags={**self.tags, **tags},
        )

    def named(self, once: str, digest: str) -> Purchase | None:
        """Return the purchase that has the name *once*, or None if the name is free.

        Raises:
            OnceTaken: It belongs to another request.
            StoreUnusable: The store cannot be read or written.
        """
        purchase = self.store.named(self.account, once)
        if purchase is not None and purchase.digest != digest:
            raise OnceTaken(_NAMES_ANOTHER)
        return purchase

    def history(self, task: str) -> History | None:
        """Return how long tasks like *task* have taken, or None if the store does not know it."""
        with suppress(StoreUnusable):  # whoever waits has no need of it
            return self.store.history(self._credentials.fingerprint, task)
        return None

    def tags_of(self, task: str) -> Tags | None:
        """Return the tags of the purchase of *task*, or None if the store does not know it.

        Nothing is created, and a store that cannot be used knows nothing.
        """
        with suppress(StoreUnusable):
            if self.store.database.exists():
                purchase = self.store.bought(self.account, task)
                return None if purchase is None else tags_in(purchase.tags)
        return None

    def close(self) -> None:
        """Close the store, unless it was given as one."""
        if self._owns_store:
            self.store.close()


class Booking:
    """One paid operation in the store.

    Args:
        books: The client's.
        operation: The operation at its beginning.
        runtime: The client's.
        once: The name under which it is paid for once, or None.
        digest: The digest of the request, or None without a name.
        if_held: The failure if another request has the name, or None to raise `NameHeld`.
        tags: The purchase's tags.
    """

    def __init__(
        self,
        books: Books,
        operation: PaidOperation[Any],
        runtime: Runtime,
        *,
        once: str | None = None,
        digest: str | None = None,
        if_held: TransportFailure | None = None,
        tags: Tags,
    ) -> None:
        self._books = books
        self._runtime = runtime
        self._operation = operation
        self._once = once
        self._digest = digest
        self._if_held = if_held
        self.tags: Tags = tags
        """The purchase's tags."""
        self.key: str = _fresh_key()
        """The key of the purchase of its current attempt, or of the next one before that."""
        self._is_used: bool = False
        self._armed: bool = False
        self._armed_at: float = 0.0
        self._outcome: object = None
        self.concluded: Purchase | None = None
        """The purchase with its outcome, once that is recorded."""
        self.exceeded: Exceeded | None = None
        """Why it does not fit into a budget, or None."""

    @property
    def is_armed(self) -> bool:
        """Whether it is armed, and nothing is recorded of its outcome."""
        return self._armed

    async def arm(self, deadline: float) -> TransportFailure | BrokenOff | None:
        """Reserve what the operation consumes. Return None, or why it must not be sent.

        Raises nothing, unless its coroutine is closed.

        Args:
            deadline: When its exchange has certainly ended, on the runtime's clock.
        """
        if self._is_used:
            self.key = _fresh_key()
        # Before the store is asked: an attempt that failed may have been written all the same.
        self._is_used = True
        try:
            await self._runtime.in_thread(partial(self._arm, deadline - self._runtime.now()))
        except Exceeded as error:
            self.exceeded = error
            return TransportFailure(
                phase=Phase.CONNECT,
                sent=False,
                reason=Reason.OVER_BUDGET,
                detail=str(error),
                remedies=error.remedies,
            )
        except GeneratorExit:  # the coroutine is closed: nothing can be awaited
            raise
        except BaseException as error:  # noqa: BLE001  the driver raises it again
            if isinstance(error, NameHeld) and self._if_held is not None:
                return self._if_held
            # A store that is unusable withdraws by itself what it may have written.
            if not isinstance(error, StoreUnusable | NameHeld):
                # An interruption may come when the purchase has just been written.
                withdraw = partial(self._books.store.withdraw, self.key)
                await self._runtime.finish_in_thread(partial(_unless_unusable, withdraw))
            return BrokenOff(error, interruption_of(error, sent=False))
        # Until an outcome is known, it may have been accepted.
        self._armed, self._outcome = True, _UNDER_WAY
        return None

    def withheld(self) -> TransportFailure | None:
        """Return why the request must not be sent any more, or None, at the last moment before.

        Where many machines share the store, others believe it gone after a while.
        """
        seconds = seconds_awake_or_asleep() - self._armed_at
        return paused(seconds) if seconds > self._books.store.send_within else None

    def take(self, operation: Operation[Any]) -> None:
        """Take the operation after an exchange."""
        self._outcome = None if operation.settled is None else operation.settled.outcome
        self.explain(self._outcome)

    def explain(self, outcome: object) -> None:
        """Tell whoever gets *outcome*, if it is ambiguous, how a person decides about it."""
        if isinstance(outcome, CreateAmbiguous):
            outcome.advice = (*outcome.advice, to_decide(self.key, self._books.store))

    def judge(self, end: HttpResponse | TransportFailure | BrokenOff, now: float) -> None:
        """Take the end of an exchange, as the operation judges it."""
        if isinstance(end, HttpResponse):
            self.take(self._operation.receive(end, now))
        else:
            failure = end.failure if isinstance(end, BrokenOff) else end
            self.take(self._operation.fail(failure, now))

    async def record(self) -> None:
        """Record the outcome, if the operation is armed.

        If the store cannot be written, the purchase stays armed, and counts as spent. The next use
        of the store records the outcome. If this process ends before that, the purchase becomes
        ambiguous. The outcome itself is not lost: the caller has it.
        """
        if not self._armed:
            return
        # Recorded once, even if this is interrupted: from here on, the store repeats it.
        self._armed = False
        answer = self._outcome
        usage = answer.usage_metadata if isinstance(answer, GenerateContentResponse) else None
        await self._conclude(attrs.evolve(judged(answer), cost=self._cost(usage)))

    async def conclude(self, outcome: Outcome) -> Purchase:
        """Record *outcome*, and return the purchase as it is then.

        Raises:
            LookupError: The store lacks the purchase.
            StoreUnusable: It could not be recorded.
        """
        self._armed = False
        conclude = partial(self._books.store.conclude, self.key, outcome)
        self.concluded = await self._runtime.finish_in_thread(conclude)
        return self.concluded

    @property
    def outcome(self) -> Outcome:
        """The outcome as it is recorded: ambiguous as long as an exchange is under way."""
        return judged(self._outcome)

    async def record_usage(self, usage: UsageMetadata) -> None:
        """Record what a stream that was read to its end has cost, if its tokens have a price."""
        cost = self._cost(usage)
        if cost is not None:
            await self._conclude(Outcome(state=State.ACCEPTED, cost=cost))

    async def _conclude(self, outcome: Outcome) -> None:
        conclude = partial(self._books.store.conclude, self.key, outcome)
        self.concluded = await self._runtime.finish_in_thread(partial(_unless_unusable, conclude))

    def _cost(self, usage: UsageMetadata | None) -> Decimal | None:
        """Return what the response's tokens cost, or None if that is not known."""
        if usage is None or usage.total_token_count is None:
            return None
        model = _text_model(self._operation.http_request)
        consumed = text_quantities(
            model,
            usage.total_token_count,
            input_tokens=usage.prompt_token_count,
            output_tokens=usage.candidates_token_count,
        )
        return estimate_of(consumed, self._books.prices).cost

    def _order(self) -> Order:
        family, model, tier, amounts = _described(self._operation, self._books.prices)
        return Order(
            account=self._books.account,
            family=family,
            model=model,
            tier=tier,
            tags=labels_of(self.tags),
            amounts=amounts,
            name=self._once,
            digest=self._digest,
        )

    def _arm(self, lasts: float, item: Place | None = None) -> None:
        order = self._order()
        # Before the store reads its clock, so that no more time has passed for the others than for
        # us.
        self._armed_at = seconds_awake_or_asleep()
        self._books.store.arm(
            order, key=self.key, lasts=lasts, budgets=self._books.budgets, item=item
        )


_UNDER_WAY: Final = CreateAmbiguous(reason="its response did not arrive")


def to_decide(key: str, store: Store) -> Remedy:
    """Return how a person decides about the purchase *key*, whose outcome nobody knows."""
    return Remedy(kind=RemedyKind.DECIDE, purchase=key, store=place_in_commands(store.place))


def _fresh_key() -> str:
    return secrets.token_hex(16)


def _unless_unusable(record: Callable[[], T]) -> T | None:
    # A store without the purchase was pruned, or is not the one that armed it.
    with suppress(StoreUnusable, LookupError):
        return record()
    return None


def _described(
    operation: PaidOperation[Any], prices: PriceList | None
) -> tuple[str, str, str | None, Amounts]:
    """Return the family, model and tier of a paid operation, and what it consumes."""
    if isinstance(operation, Create):
        wanted = operation.request.quantities()
    elif operation.kind in _TEXT_KINDS:
        wanted = text_quantities(_text_model(operation.http_request))
    else:
        return "", "", None, UNKNOWN_CALL
    amounts = amounts_of(wanted, prices)
    return wanted.family, wanted.model or "", wanted.tier, amounts


def _text_model(request: HttpRequest) -> str:
    """Return the model of a text request, or "" if it names none."""
    named = _MODEL_IN_PATH.search(urlsplit(request.url).path)
    if named is not None:
        return unquote(named[1])
    model = read_object(request.body or b"{}").get("model")
    return readable(model, _LONGEST_NAME) if isinstance(model, str) else ""


def check_once(once: object) -> str:
    """Check the name of a request, and return it.

    Raises:
        TypeError: It is not a string.
        ValueError: It is empty, too long, or contains characters that cannot be printed.
    """
    if not isinstance(once, str):
        raise TypeError(f"once must be a string, not {type(once).__name__}. Nothing was sent.")
    if not once or len(once) > _LONGEST_NAME or not once.isprintable():
        raise ValueError(
            f"once must have 1 to {_LONGEST_NAME} printable characters (got "
            f"{readable(repr(once), 80)}). Nothing was sent."
        )
    return once
