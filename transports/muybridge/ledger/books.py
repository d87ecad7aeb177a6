"""What a client books its paid requests with: the budgets, the prices, and the ledger.

`Booking` accompanies one paid operation. It is armed before each attempt, is told the outcome of
each exchange, and records it:

    withheld = await booking.arm()        # None: it may be sent
    ...
    booking.take(operation)               # after the exchange; the id is known from here on
    await booking.record()                # in a thread, to its end, whoever is cancelled

The ledger is written after the response has reached the operation and the listeners, so no
cancellation and no slow disk can come between a paid response and the place where its id is kept.
A process that dies in between leaves the entry armed, which counts as spent.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from muybridge.credentials import Credentials
from muybridge.drivers.notes import BrokenOff, interruption_of
from muybridge.drivers.runtime import Runtime
from muybridge.ledger.entries import Entry, Purchase, State
from muybridge.ledger.errors import Exceeded, LedgerUnusable, NameHeld
from muybridge.ledger.ledger import Ledger
from muybridge_protocol.errors import CreateAmbiguous
from muybridge_protocol.estimates import PriceList, estimate_of, text_quantities
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.operations.create import Create
from muybridge_protocol.operations.operation import Operation
from muybridge_protocol.operations.paid import PaidOperation
from muybridge_protocol.purchases import UNKNOWN_CALL, Amounts, Budget, amounts_of, judged
from muybridge_protocol.records.json import read_object, readable
from muybridge_protocol.text.responses import GenerateContentResponse, UsageMetadata

_LONGEST_NAME: Final = 200
_TEXT_KINDS: Final = ("text", "text stream")
_MODEL_IN_PATH: Final = re.compile(r"/models/([^/]+):[A-Za-z]+\Z")


class Books:
    """What a client books its paid requests with.

    Args:
        ledger: The ledger, its file, or None for the default one.
        budgets: What must not be exceeded.
        credentials: The client's.
        prices: What requests cost, or None if that is not known.
        dedupe: Whether identical requests join.
    """

    def __init__(
        self,
        ledger: Ledger | str | os.PathLike[str] | None,
        budgets: Sequence[Budget],
        credentials: Credentials,
        *,
        prices: PriceList | None = None,
        dedupe: bool,
    ) -> None:
        self.prices = prices
        self.dedupe: bool = dedupe
        self.ledger: Ledger = ledger if isinstance(ledger, Ledger) else open_ledger(ledger)
        self.budgets = budgets
        self._credentials = credentials
        self._account: str | None = None

    @property
    def account(self) -> str:
        """Whose requests they are. Reads the ledger on first use."""
        if self._account is None:
            self._account = self.ledger.account(self._credentials.fingerprint)
        return self._account

    def booking(
        self,
        operation: Operation[Any],
        runtime: Runtime,
        *,
        once: str | None = None,
        digest: str | None = None,
        if_held: TransportFailure | None = None,
    ) -> Booking | None:
        """Return what books *operation*, or None if it costs nothing.

        Args:
            operation: The operation at its beginning.
            runtime: The client's.
            once: The name under which it is paid for once, or None.
            digest: The digest of the request, or None without a name.
            if_held: The failure if another request has the name, or None to raise `NameHeld`.
        """
        if not isinstance(operation, PaidOperation) or not operation.http_request.paid:
            return None
        return Booking(self, operation, runtime, once=once, digest=digest, if_held=if_held)

    def named(self, once: str, digest: str) -> Entry | None:
        """Return the entry that has the name *once*, or None if the name is free.

        Raises:
            OnceTaken: It belongs to another request.
        """
        return self.ledger.named(self.account, once, digest)


class Booking:
    """One paid operation in the ledger.

    Args:
        books: The client's.
        operation: The operation at its beginning.
        runtime: The client's.
        once: The name under which it is paid for once, or None.
        digest: The digest of the request, or None without a name.
        if_held: The failure if another request has the name, or None to raise `NameHeld`.
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
    ) -> None:
        self._books = books
        self._runtime = runtime
        self._operation = operation
        self._once = once
        self._digest = digest
        self._if_held = if_held
        self.key: str = secrets.token_hex(6)
        """The key of the entry of its current attempt, or of the next one before that."""
        self._is_used: bool = False
        self._armed: bool = False
        self._outcome: object = None
        self.concluded: Entry | None = None
        """The entry with its outcome, once that is recorded."""

    @property
    def ledger(self) -> str:
        """Where the ledger is."""
        return self._books.ledger.place

    async def arm(self) -> TransportFailure | BrokenOff | None:
        """Reserve what the operation consumes. Return None, or why it must not be sent.

        Raises nothing, unless its coroutine is closed.
        """
        # Each attempt has an entry of its own, so that no outcome of one ever reaches another.
        if self._is_used:
            self.key = secrets.token_hex(6)
        self._is_used = True
        try:
            await self._runtime.in_thread(self._arm)
        except Exceeded as error:
            return TransportFailure(
                phase=Phase.CONNECT, sent=False, reason=Reason.OVER_BUDGET, detail=str(error)
            )
        except GeneratorExit:  # the coroutine is closed: nothing can be awaited
            raise
        except BaseException as error:  # noqa: BLE001  the driver raises it again
            if isinstance(error, NameHeld) and self._if_held is not None:
                return self._if_held
            if not isinstance(error, LedgerUnusable | NameHeld):
                # An interruption may come when the entry has just been written.
                self._armed, self._outcome = True, None
                await self.record()
            return BrokenOff(error, interruption_of(error, sent=False))
        # Until an outcome is known, it may have been accepted.
        self._armed, self._outcome = True, _UNDER_WAY
        return None

    def take(self, operation: Operation[Any]) -> None:
        """Take the operation after an exchange."""
        self._outcome = None if operation.settled is None else operation.settled.outcome

    def judge(self, came: HttpResponse | TransportFailure | BrokenOff, now: float) -> None:
        """Take the end of an exchange, as the operation judges it."""
        if isinstance(came, HttpResponse):
            self.take(self._operation.receive(came, now))
        else:
            failure = came.failure if isinstance(came, BrokenOff) else came
            self.take(self._operation.fail(failure, now))

    async def record(self) -> None:
        """Record the outcome, if the operation is armed.

        If the ledger cannot be written, the entry stays armed. It then counts as spent, and becomes
        ambiguous when this process has ended. The outcome itself is not lost: the caller has it.
        """
        if not self._armed:
            return
        self._armed = False
        answer = self._outcome
        usage = answer.usage_metadata if isinstance(answer, GenerateContentResponse) else None
        known = judged(answer)
        await self._conclude(
            State(known.state),
            token=None if known.task is None else known.task.to_token(),
            candidate=known.candidate,
            reason=known.reason,
            cost=self._cost(usage),
        )

    async def record_usage(self, usage: UsageMetadata) -> None:
        """Record what a stream that was read to its end has cost, if its tokens have a price."""
        cost = self._cost(usage)
        if cost is not None:
            await self._conclude(State.ACCEPTED, cost=cost)

    async def _conclude(self, state: State, **facts: Any) -> None:
        conclude = partial(self._books.ledger.conclude, self.key, state, **facts)
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

    def _arm(self) -> None:
        family, model, tier, amounts = _described(self._operation, self._books.prices)
        purchase = Purchase(
            key=self.key,
            account=self._books.account,
            family=family,
            model=model,
            tier=tier,
            amounts=amounts,
            once=self._once,
            digest=self._digest,
        )
        self._books.ledger.arm(purchase, self._books.budgets, self._runtime.wall())


_UNDER_WAY: Final = CreateAmbiguous(reason="its response did not arrive")


def _unless_unusable(conclude: partial[Entry | None]) -> Entry | None:
    with suppress(LedgerUnusable):
        return conclude()
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


def open_ledger(path: str | os.PathLike[str] | None = None) -> Ledger:
    """Return the ledger in the file *path*, or the default one.

    The file is created when it is first written.

    Args:
        path: The file, or None for `MUYBRIDGE_LEDGER`, or else a file in the user's state folder.
    """
    from muybridge.ledger.sqlite_store import SqliteStore, default_path

    return Ledger(SqliteStore(default_path() if path is None else Path(path)))
