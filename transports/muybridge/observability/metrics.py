"""OpenTelemetry metrics: what is created, what it consumes and costs, and how long it takes.

    pip install "muybridge[otel]"

    client = Client(on_event=Metrics())

Attributes hold only facts that `facts` allows, and the tags whose keys are named.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from muybridge.configuration import PRICES_VARIABLE, check_part, check_prices
from muybridge.observability.semantics import TEXT, Listener, generation, tags_of
from muybridge.version import __version__
from muybridge_protocol.arguments import check_type
from muybridge_protocol.estimates.quantities import Quantities
from muybridge_protocol.events import Polled
from muybridge_protocol.observations import AnyEvent, CallBegan, CallEnded, CallInfo, RequestSent
from muybridge_protocol.purchases import UNKNOWN_CALL, Measure, amounts_of
from muybridge_protocol.records.tasks import Result, Status

if TYPE_CHECKING:
    from muybridge_protocol.estimates import PriceList

try:
    from opentelemetry import metrics
    from opentelemetry.metrics import MeterProvider
except ModuleNotFoundError as _missing:
    raise ModuleNotFoundError(
        f'muybridge.observability.metrics needs {_missing.name}: pip install "muybridge[otel]"',
        name=_missing.name,
    ) from None

_SECONDS: Final = (
    0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 240.0, 300.0, 420.0,
    600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0,
)  # fmt: skip
"""The bounds of durations: a video may take many minutes, and a wait lasts an hour by default."""
_TOKENS: Final = tuple(4.0**power for power in range(14))
"""The bounds of token counts, as the semantic conventions recommend them."""

_Attributes = dict[str, str]


class Metrics(Listener):
    """A listener that records metrics. Any number of clients can share one.

        Client(on_event=Metrics())
        Client(on_event=Metrics(provider, tags=["customer"], prices=load_prices("prices.toml")))

    Args:
        meter_provider: Where metrics go, or None for the program's global provider.
        tags: The keys of the tags that become attributes. Each value is a time series of its own,
            so name only keys with few values.
        prices: What requests cost, or None for the prices in the file `MUYBRIDGE_PRICES`, if set.
        on_event: Another listener, which receives the same events, or None.

    Raises:
        InvalidInput: The price file is not valid.
        OSError: The price file cannot be read.
        TypeError: An argument is something else.
    """

    def __init__(
        self,
        meter_provider: MeterProvider | None = None,
        *,
        tags: Sequence[str] = (),
        prices: PriceList | None = None,
        on_event: Callable[[AnyEvent], None] | None = None,
    ) -> None:
        super().__init__(on_event)
        if meter_provider is not None:
            check_part("meter_provider", meter_provider, ["get_meter"], "a MeterProvider")
        self._tags = _checked(tags)
        self._prices = _read(prices)
        self._guard = threading.Lock()
        self._in_flight: dict[int, _Attributes] = {}
        meter = metrics.get_meter("muybridge", __version__, meter_provider)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="Time from a task's creation to its end, or from a text request to the end "
            "of its answer",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._token_usage = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens that text requests consume",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )
        self._calls = meter.create_counter(
            "muybridge.paid_calls", unit="{call}", description="Calls that cost money, by outcome"
        )
        self._pictures = meter.create_counter(
            "muybridge.pictures", unit="{picture}", description="Pictures that creates ask for"
        )
        self._seconds = meter.create_counter(
            "muybridge.video_seconds", unit="s", description="Seconds of video that creates ask for"
        )
        self._tokens = meter.create_counter(
            "muybridge.tokens", unit="{token}", description="Tokens that the service reports"
        )
        self._cost = meter.create_counter(
            "muybridge.cost", unit="{money}", description="Cost by the user's prices"
        )
        self._unknown = meter.create_counter(
            "muybridge.unknown_amounts",
            unit="{call}",
            description="Accepted calls whose pictures, seconds or cost are unknown, and so not "
            "counted",
        )
        self._tasks = meter.create_up_down_counter(
            "muybridge.tasks_in_flight",
            unit="{task}",
            description="Tasks that are being created or waited for",
        )
        self._polls = meter.create_counter(
            "muybridge.polls", unit="{poll}", description="Result queries that were sent"
        )

    def _record(self, event: AnyEvent, info: CallInfo) -> None:
        match event:
            case CallBegan() if info.kind in ("create", "wait"):
                attributes = self._attributes(info)
                with self._guard:
                    self._in_flight[info.number] = attributes
                self._tasks.add(1, attributes)
            case RequestSent(method="GET", template=str(template)) if template.endswith(_RESULT):
                self._polls.add(1, self._attributes(info))
            case Polled(took=took) if took is not None:
                self._finish(event.result, took, self._attributes(info))
            case CallEnded():
                self._end(event, info)
            case _:
                pass

    def _finish(self, result: Result, took: float, attributes: _Attributes) -> None:
        """Record that a task has ended. Whoever looks again later does not record it again."""
        if result.total_tokens is not None:
            self._tokens.add(result.total_tokens, attributes)
        if result.status != Status.COMPLETED:
            attributes = attributes | {"error.type": str(result.status)}
        self._duration.record(took, attributes)

    def _end(self, event: CallEnded, info: CallInfo) -> None:
        with self._guard:  # what was added is taken away, whatever is known of the task by now
            at_start = self._in_flight.pop(info.number, None)
        if at_start is not None:
            self._tasks.add(-1, at_start)
        attributes = self._attributes(info)
        error = {} if event.error is None else {"error.type": event.error}
        if event.outcome is not None:
            outcome = {"muybridge.outcome": event.outcome.replace(" ", "_")}
            kind = {"muybridge.call.kind": info.kind}
            self._calls.add(1, attributes | kind | outcome | error)
            if event.outcome in ("submitted", "ambiguous"):
                self._consume(event.consumed, attributes | outcome)
        if info.kind in TEXT:
            self._answer(event, attributes, error)

    def _answer(self, event: CallEnded, attributes: _Attributes, error: _Attributes) -> None:
        """Record the end of a text request."""
        if not event.left:
            self._duration.record(event.duration, attributes | error)
        for kind, count in (("input", event.prompt_tokens), ("output", event.answer_tokens)):
            if count is not None and count >= 0:
                self._token_usage.record(count, attributes | {"gen_ai.token.type": kind})
        if event.total_tokens is not None and event.total_tokens >= 0:
            self._tokens.add(event.total_tokens, attributes)

    def _consume(self, consumed: Quantities | None, attributes: _Attributes) -> None:
        money = {} if self._prices is None else {"muybridge.currency": self._prices.currency}
        for measure, amount in self._amounts(consumed):
            if amount is None:
                self._unknown.add(1, attributes | {"muybridge.measure": str(measure)})
            elif amount:
                match measure:
                    case Measure.PICTURES:
                        self._pictures.add(int(amount), attributes)
                    case Measure.SECONDS:
                        self._seconds.add(float(amount), attributes)
                    case _:
                        self._cost.add(float(amount), attributes | money)

    def _amounts(self, consumed: Quantities | None) -> Iterator[tuple[Measure, Decimal | None]]:
        known = UNKNOWN_CALL if consumed is None else amounts_of(consumed, self._prices)
        for measure in (Measure.PICTURES, Measure.SECONDS, Measure.COST):
            if measure is not Measure.COST or self._prices is not None:
                yield measure, known[measure]

    def _attributes(self, info: CallInfo) -> _Attributes:
        """Return what all metrics of a call have."""
        family = {} if info.family is None else {"muybridge.family": info.family}
        return generation(info) | family | tags_of(info, self._tags)


_RESULT: Final = "/v1/result/{id}"
"""How the template of a result query ends."""


def _checked(tags: Sequence[str]) -> tuple[str, ...]:
    line = 'tags=["customer"]'
    check_type("tags", tags, (list, tuple, set, frozenset), "a list of keys", line)
    for key in tags:
        check_type("a key in tags", key, str, "a string", line)
    return tuple(tags)


def _read(prices: PriceList | None) -> PriceList | None:
    check_prices(prices)
    path = os.environ.get(PRICES_VARIABLE)
    if prices is None and path:
        from muybridge.files.prices import load_prices

        return load_prices(path)
    return prices
