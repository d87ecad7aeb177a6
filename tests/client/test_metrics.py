"""The metrics that a client records for OpenTelemetry."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import HistogramDataPoint

from muybridge import ImgbRequest, OverBudget, VideosRequest
from muybridge.observability.metrics import Metrics
from muybridge.observability.opentelemetry import Tracing
from muybridge.purchases import Budget
from muybridge_protocol.emulator import FAILURES
from muybridge_protocol.errors import MuybridgeError, TaskFailed
from muybridge_protocol.estimates import parse_prices
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.observations import AnyEvent, CallEnded, RequestSent

from .answers import MODEL, PROMPT, spend
from .drivers import AnyClient, MakeClient
from .fleets import run_all
from .heard import Heard
from .in_process import World
from .meters import Meters
from .requests_made import image
from .spans import Spans, told

UNSENT = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.TIMED_OUT)
REFUSED = HttpResponse(400, (), b'{"error": {"message": "no"}}')
OUTCOME = "muybridge.outcome"
PRICES = parse_prices(
    'currency = "EUR"\nprices = [{model = "imga", per_call = 0.04}, '
    f'{{model = "videos", per_call = 0.5}}, {{model = "{MODEL}", per_1000_tokens = 2}}]'
)
BODY = {"model": "imga", "prompt": "a horse"}
FILM = VideosRequest(model="videos", prompt="a horse", duration=5)


@pytest.fixture
def meters() -> Iterator[Meters]:
    made = Meters()
    yield made
    made.provider.shutdown()


def test_a_run(make_client: MakeClient, world: World, meters: Meters) -> None:
    """A run is one submitted create, and one task with its time, its polls and its model."""
    make_client(world, on_event=Metrics(meters.provider)).run(image())
    (point,) = meters.points("muybridge.paid_calls")
    assert point.attributes == {
        "gen_ai.operation.name": "generate_content",
        "gen_ai.provider.name": "muybridge",
        "gen_ai.request.model": "imga",
        "gen_ai.output.type": "image",
        "muybridge.family": "imga",
        "muybridge.call.kind": "create",
        OUTCOME: "submitted",
    }
    assert meters.total("muybridge.pictures") == 1
    assert meters.total("muybridge.polls") == len(world.queries)
    (time,) = meters.points("gen_ai.client.operation.duration")
    assert isinstance(time, HistogramDataPoint)
    assert time.sum == world.clock.elapsed
    assert (time.attributes or {})["gen_ai.request.model"] == "imga"
    assert meters.total("muybridge.tasks_in_flight") == 0


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(None, "submitted"), (REFUSED, "refused"), (LOST, "ambiguous"), (UNSENT, "not_sent")],
    ids=["submitted", "refused", "ambiguous", "not sent"],
)
@pytest.mark.parametrize("kind", ["create", "text", "text stream", "call", "run_all"])
def test_outcomes(
    make_client: MakeClient,
    meters: Meters,
    kind: str,
    answer: HttpResponse | TransportFailure | None,
    outcome: str,
) -> None:
    """Each paid call counts once under what has become of it, however often it was sent."""
    world = World()
    world.always = answer
    client = make_client(world, on_event=Metrics(meters.provider, prices=PRICES))
    with suppress(MuybridgeError):
        PAYING[kind](client)
    assert meters.sums("muybridge.paid_calls", OUTCOME) == {outcome: 1}
    if outcome in ("refused", "not_sent"):
        assert not meters.sums("muybridge.pictures")
        assert not meters.sums("muybridge.cost")
    elif kind in ("create", "run_all"):
        assert meters.sums("muybridge.cost", OUTCOME) == {outcome: 0.04}


PAYING: dict[str, Callable[[AnyClient], object]] = {
    "create": lambda client: client.create(image()),
    "text": lambda client: client.generate_content(MODEL, PROMPT),
    "text stream": lambda client: spend(client, "stream_generate_content"),
    "call": lambda client: client.call("POST", "/v1/imga/images", BODY),
    "run_all": lambda client: run_all(client, [image()]),
}


def test_a_create_over_budget(
    make_client: MakeClient, world: World, meters: Meters, path: Path
) -> None:
    """What a budget holds back was not sent."""
    client = make_client(
        world, on_event=Metrics(meters.provider), store=path, budget=Budget(creates=0)
    )
    with pytest.raises(OverBudget):
        client.create(image())
    assert meters.sums("muybridge.paid_calls", OUTCOME, "error.type") == {
        ("not_sent", "OverBudget"): 1
    }
    assert not world.posts


def test_what_is_consumed(make_client: MakeClient, world: World, meters: Meters) -> None:
    """Pictures, seconds and tokens are counted, and cost by the user's prices; unknown is not 0."""
    client = make_client(world, on_event=Metrics(meters.provider, prices=PRICES))
    client.create(image())
    client.create(FILM)
    client.create(ImgbRequest(model="imgb-2", prompt="a horse"))  # has no price
    answer = client.generate_content(MODEL, PROMPT)
    assert answer.usage_metadata is not None
    tokens = answer.usage_metadata.total_token_count
    assert tokens
    assert meters.total("muybridge.pictures") == 2
    assert meters.total("muybridge.video_seconds") == 5
    assert meters.total("muybridge.tokens") == tokens
    assert meters.total("muybridge.cost") == pytest.approx(0.04 + 0.5 + tokens * 2 / 1000)
    assert set(meters.sums("muybridge.cost", "muybridge.currency")) == {"EUR"}
    assert meters.sums("muybridge.unknown_amounts", "muybridge.measure", "muybridge.family") == {
        ("cost", "imgb"): 1
    }
    assert meters.sums("gen_ai.client.token.usage", "gen_ai.token.type") == {
        "input": answer.usage_metadata.prompt_token_count,
        "output": answer.usage_metadata.candidates_token_count,
    }


def test_no_cost_without_prices(make_client: MakeClient, world: World, meters: Meters) -> None:
    """Who has no prices gets no metric of cost, and not one of unknown cost either."""
    make_client(world, on_event=Metrics(meters.provider)).create(image())
    names = {metric.name for metric in meters.metrics}
    assert not names & {"muybridge.cost", "muybridge.unknown_amounts"}


def test_the_prices_of_the_environment(
    make_client: MakeClient,
    world: World,
    meters: Meters,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without prices of its own, it takes those that a client takes."""
    file = tmp_path / "prices.toml"
    file.write_text('currency = "USD"\nprices = [{model = "imga", per_call = 0.5}]\n', "utf-8")
    monkeypatch.setenv("MUYBRIDGE_PRICES", str(file))
    make_client(world, on_event=Metrics(meters.provider)).create(image())
    assert meters.sums("muybridge.cost", "muybridge.currency") == {"USD": 0.5}


def test_a_task_that_fails(make_client: MakeClient, world: World, meters: Meters) -> None:
    """A failed task was submitted and paid for, and its time has the status as error."""
    with pytest.raises(TaskFailed):
        make_client(world, on_event=Metrics(meters.provider)).run(
            image(f"[fail:{next(iter(FAILURES))}]")
        )
    assert meters.sums("muybridge.paid_calls", OUTCOME) == {"submitted": 1}
    assert set(meters.sums("gen_ai.client.operation.duration", "error.type")) == {"failed"}


def test_whoever_looks_late_does_not_know_how_long_it_took(
    make_client: MakeClient, world: World, meters: Meters
) -> None:
    """The time of a task that may have ended long before is not recorded."""
    task = make_client(world).create(image())
    world.clock.sleep(3600)
    client = make_client(world, on_event=Metrics(meters.provider))
    client.wait(task)
    client.wait(task)
    assert not list(meters.points("gen_ai.client.operation.duration"))


def test_tasks_in_flight(make_client: MakeClient, world: World, meters: Meters) -> None:
    """What is being created or waited for is in flight, and nothing is left of it at the end."""
    seen: list[float] = []

    def look(event: AnyEvent) -> None:
        if isinstance(event, RequestSent | CallEnded):
            seen.append(meters.total("muybridge.tasks_in_flight"))

    listener = Metrics(meters.provider, on_event=look)
    run_all(make_client(world, on_event=listener), [image(str(n)) for n in range(6)], concurrency=3)
    assert max(seen) == 3
    assert meters.total("muybridge.tasks_in_flight") == 0


def test_buckets_up_to_an_hour(make_client: MakeClient, world: World, meters: Meters) -> None:
    """The bounds of durations reach an hour, because a video may take many minutes."""
    make_client(world, on_event=Metrics(meters.provider)).run(image())
    (point,) = meters.points("gen_ai.client.operation.duration")
    assert isinstance(point, HistogramDataPoint)
    assert max(point.explicit_bounds) == 3600
    assert sum(bound > 100 for bound in point.explicit_bounds) >= 10


class Broken:
    """A meter provider whose instruments raise. What it raises contains a secret."""

    def __init__(self) -> None:
        self.calls = 0

    def get_meter(self, *_: object, **__: object) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("create_"):
            return self.get_meter
        return self._raise

    def _raise(self, *_: object, **__: object) -> None:
        self.calls += 1
        raise OSError("sk-secret cannot be recorded")


def test_a_provider_that_raises(
    make_client: MakeClient, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A provider that raises ends no call and takes nothing from others; it is said once."""
    broken, heard = Broken(), Heard()
    listener = Metrics(broken, prices=PRICES, on_event=heard)  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING, "muybridge"):
        client = make_client(world, on_event=listener)
        assert client.run(image()).url
        assert client.run(image("another horse")).url
    assert broken.calls > 4
    assert len(world.posts) == 2
    assert heard.kinds.count("CallEnded") == 4
    said = [record.getMessage() for record in caplog.records if "provider" in record.getMessage()]
    assert said == [
        "Metrics cannot record everything: the provider raised OSError. No call is affected."
    ]
    assert "sk-secret" not in caplog.text


def test_a_listener_that_raises(make_client: MakeClient, world: World, meters: Meters) -> None:
    """Another listener that raises ends the call as it would alone, and nothing stays in flight."""

    def refuse(event: AnyEvent) -> None:
        if isinstance(event, RequestSent):
            raise ZeroDivisionError

    client = make_client(world, on_event=Metrics(meters.provider, on_event=refuse))
    with pytest.raises(ZeroDivisionError):
        client.create(image())
    assert not world.posts
    assert meters.total("muybridge.tasks_in_flight") == 0
    assert meters.sums("muybridge.paid_calls", OUTCOME) == {"not_sent": 1}


def test_only_the_tags_that_are_named(
    make_client: MakeClient, world: World, meters: Meters, path: Path
) -> None:
    """Tags of a client or a call become attributes if their keys are named, and no others do."""
    listener = Metrics(meters.provider, tags=["customer", "absent"])
    client = make_client(
        world, on_event=listener, store=path, tags={"customer": "acme", "project": "derby"}
    )
    client.run(image())
    client.create(image("another horse"), tags={"customer": "duck"})
    for point in meters.points("muybridge.paid_calls"):
        found = {name for name in point.attributes or {} if name.startswith("muybridge.tag.")}
        assert found == {"muybridge.tag.customer"}
    for metric in ("muybridge.paid_calls", "muybridge.pictures"):
        assert meters.sums(metric, "muybridge.tag.customer") == {"acme": 1, "duck": 1}
    assert set(meters.sums("muybridge.polls", "muybridge.tag.customer")) == {"acme"}
    assert set(meters.sums("gen_ai.client.operation.duration", "muybridge.tag.customer")) == {
        "acme"
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"meter_provider": "prometheus"},
        {"tags": "customer"},
        {"tags": [1]},
        {"tags": {"customer": "acme"}},
        {"prices": 0.04},
        {"on_event": 1},
    ],
    ids=str,
)
def test_wrong_arguments(wrong: dict[str, Any]) -> None:
    """A wrong argument is a TypeError at once that says what to write, and nothing is sent."""
    with pytest.raises(TypeError, match=r"must be .*Nothing was sent"):
        Metrics(**wrong)


def test_beside_tracing(make_client: MakeClient, world: World, meters: Meters) -> None:
    """Spans and metrics of one client name the same generation."""
    spans = Spans()
    make_client(world, on_event=Tracing(spans.provider, on_event=Metrics(meters.provider))).run(
        image()
    )
    create, wait = told(spans.one("muybridge create")), told(spans.one("muybridge wait"))
    assert create["gen_ai.operation.name"] == "generate_content"
    assert create["gen_ai.output.type"] == "image"
    assert create["gen_ai.response.id"] == create["muybridge.task.id"]
    assert create[OUTCOME] == "submitted"
    assert "gen_ai.operation.name" not in wait  # a generation is counted once
    (point,) = meters.points("muybridge.paid_calls")
    assert (point.attributes or {}).items() >= {
        name: value for name, value in create.items() if name.startswith("gen_ai.request")
    }.items()


def test_it_is_an_extra() -> None:
    """Without OpenTelemetry, the error says which extra to install."""
    code = (
        f"import sys; sys.path[:0] = {sys.path!r}\n"
        "sys.modules['opentelemetry'] = None\n"
        "import muybridge.observability.metrics"
    )
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert 'needs opentelemetry: pip install "muybridge[otel]"' in done.stderr.splitlines()[-1]
