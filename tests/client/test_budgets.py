"""No budget is exceeded, whichever call spends, and every paid request is in the store."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, NoReturn

import pytest

import moments
from muybridge import (
    CreateAmbiguous,
    GenerateContentResponse,
    ImgbRequest,
    MediaRequest,
    NotSent,
    OverBudget,
    RateLimited,
    Refused,
    Task,
    TextAmbiguous,
    VideosRequest,
)
from muybridge.drivers.notes import NOT_SENT, UNDER_WAY
from muybridge.purchases import Budget, Choice, Measure, State, Store, StoreUnusable
from muybridge_protocol.estimates import parse_prices
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.observations import RequestSent
from stores import at, decide, purchases_at

from .drivers import AnyClient, MakeClient
from .fleets import run_all
from .in_process import World
from .requests_made import image

UNSENT = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.TIMED_OUT)
REFUSED = HttpResponse(400, (), b'{"error": {"message": "no"}}')
SLOW_DOWN = HttpResponse(429, (("Retry-After", "1"),), b"{}")
BROKEN = HttpResponse(200, (), b"nonsense")
FAILED_RECORD = HttpResponse(200, (), b'{"id": "t1", "status": "failed", "error": "no horses"}')

DAY = 86_400.0
NOON = 1_772_280_000.0  # 2026-02-28, 12:00 UTC


def states(place: str) -> Counter[State]:
    return Counter(one.state for one in purchases_at(place))


ASKED = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def chat(client: AnyClient) -> object:
    return client.chat_completions(
        {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    )


def stream(client: AnyClient) -> object:
    with client.stream_chat_completions(ASKED) as chunks:
        return list(chunks)


def create(client: AnyClient) -> object:
    return client.create(image())


def run(client: AnyClient) -> object:
    return client.run(image())


def call(client: AnyClient) -> object:
    return client.call("POST", "/v1/imga/images", {"model": "imga", "prompt": "a horse"})


def run_two(client: AnyClient) -> object:
    outcome = run_all(client, [image(), image("another horse")], concurrency=1)[-1]
    return outcome.unwrap()


PAYING: dict[str, tuple[Callable[[AnyClient], object], dict[str, Any]]] = {
    "create": (create, {"creates": 1}),
    "run": (run, {"creates": 1}),
    "run_all": (run_two, {"creates": 2}),
    "call": (call, {"creates": 1}),
    "text": (chat, {"calls": 1}),
    "text stream": (stream, {"calls": 1}),
}
paying = pytest.mark.parametrize("way", PAYING)


@paying
def test_a_limit_is_kept(make_client: MakeClient, world: World, place: str, way: str) -> None:
    """Each way to spend uses up the budget; then nothing is sent, and the error says why."""
    pay, limits = PAYING[way]
    client = make_client(world, budget=Budget(**limits), store=place)
    pay(client)
    paid = len(world.posts)
    assert paid == sum(limits.values())
    with pytest.raises(
        OverBudget, match=r"and none of the limit of . .* is left\. Raise the limit.*\. Nothing was"
    ):
        pay(client)
    assert len(world.posts) == paid
    assert states(place) == {State.ACCEPTED: paid}


@pytest.mark.parametrize("way", sorted(PAYING.keys() - {"run_all"}))
def test_only_what_is_permitted_is_told(
    make_client: MakeClient, world: World, place: str, way: str
) -> None:
    """Listeners are told that a request is sent once the store has permitted it."""
    pay, limits = PAYING[way]
    told: list[str] = []

    def listen(event: object) -> None:
        told.append(type(event).__name__)

    client = make_client(world, budget=Budget(**limits), store=place, on_event=listen)
    pay(client)
    assert told[:2] == ["CallBegan", "RequestSent"]
    told.clear()
    with pytest.raises(OverBudget):
        pay(client)
    assert told == ["CallBegan", "CallEnded"]


def test_a_listener_that_forbids_a_request(
    make_client: MakeClient, world: World, place: str
) -> None:
    """If a listener raises when it is told of a request, nothing is sent or counted as spent."""

    def forbid(event: object) -> None:
        if isinstance(event, RequestSent):
            raise ZeroDivisionError

    client = make_client(world, store=place, on_event=forbid)
    with pytest.raises(ZeroDivisionError) as caught:
        client.create(image())
    assert UNDER_WAY not in getattr(caught.value, "__notes__", [])
    assert world.posts == []
    assert states(place) == {State.RELEASED: 1}


@paying
def test_another_client_shares_it(
    make_client: MakeClient, world: World, place: str, way: str
) -> None:
    """What one client has spent is missing from the budget of the next one."""
    pay, limits = PAYING[way]
    pay(make_client(world, store=place))
    paid = len(world.posts)
    with pytest.raises(OverBudget):
        pay(make_client(world, budget=Budget(**limits), store=place))
    assert len(world.posts) == paid


def test_nothing_is_recorded_without_a_store(
    make_client: MakeClient, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client without a budget or a store writes no file."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    make_client(world).create(image())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "error"),
    [(UNSENT, NotSent), (REFUSED, Refused), (SLOW_DOWN, RateLimited)],
    ids=["not sent", "refused", "rate-limited"],
)
def test_what_did_nothing_is_released(
    make_client: MakeClient,
    world: World,
    place: str,
    answer: HttpResponse | TransportFailure,
    error: type[Exception],
) -> None:
    """A request that certainly did nothing does not use up the budget, and the store says why."""
    client = make_client(world, budget=Budget(creates=1), store=place)
    world.always = answer
    with pytest.raises(error) as caught:
        client.create(image())
    assert not isinstance(caught.value, OverBudget)
    attempts = purchases_at(place)
    assert {one.state for one in attempts} == {State.RELEASED}
    assert attempts[-1].reason
    world.always = None
    client.create(image())
    assert states(place) == {State.RELEASED: len(attempts), State.ACCEPTED: 1}


def test_a_retry_spends_once(make_client: MakeClient, world: World, place: str) -> None:
    """A create that is retried after a 429 and a failed connection uses up one create."""
    world.instead.extend([SLOW_DOWN, UNSENT])
    make_client(world, budget=Budget(creates=1), store=place).create(image())
    assert states(place) == {State.RELEASED: 2, State.ACCEPTED: 1}


@pytest.mark.parametrize("answer", [LOST, BROKEN], ids=["lost", "unreadable"])
def test_ambiguous_stays_spent(
    make_client: MakeClient, world: World, place: str, answer: HttpResponse | TransportFailure
) -> None:
    """A request that may have been accepted stays spent until a person decides."""
    client = make_client(world, budget=Budget(creates=1), store=place)
    world.instead.append(answer)
    with pytest.raises(CreateAmbiguous) as caught:
        client.create(image())
    with pytest.raises(OverBudget):
        client.create(image())
    [bought] = purchases_at(place)
    assert [one.purchase for one in caught.value.remedies if one.purchase] == [bought.key]
    assert bought.key in str(caught.value)
    assert bought.state is State.AMBIGUOUS
    assert bought.reason
    decide(place, bought.key, Choice.RELEASE)
    client.create(image())


@pytest.mark.parametrize("way", ["text", "text stream"])
def test_an_ambiguous_text_request(
    make_client: MakeClient, world: World, place: str, way: str
) -> None:
    """A text request that may have been charged is ambiguous, and the store says why."""
    world.instead.append(LOST)
    with pytest.raises(TextAmbiguous) as caught:
        PAYING[way][0](make_client(world, store=place))
    [bought] = purchases_at(place)
    assert re.search(rf"o decide: muybridge decide .*{bought.key}", str(caught.value))
    assert bought.state is State.AMBIGUOUS
    assert bought.reason


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (200, State.ACCEPTED),
        (201, State.ACCEPTED),
        (400, State.RELEASED),
        (429, State.RELEASED),
        (302, State.AMBIGUOUS),
        (500, State.AMBIGUOUS),
    ],
)
def test_any_call(
    make_client: MakeClient, world: World, place: str, status: int, state: State
) -> None:
    """A call to any endpoint counts as its status says; only a refusal certainly did nothing."""
    world.instead.append(HttpResponse(status, (), b"{}"))
    assert make_client(world, store=place).call("POST", "/v1/new", {}).status == status
    assert states(place) == {state: 1}


def test_what_any_call_may_consume(make_client: MakeClient, world: World, place: str) -> None:
    """A call to any endpoint counts as one create and one text request, and nothing else is known.

    It may be either.
    """
    make_client(world, store=place).call("POST", "/v1/new", {})
    [bought] = purchases_at(place)
    assert bought.amounts == {
        **dict.fromkeys(Measure, None), Measure.CREATES: 1, Measure.CALLS: 1,
    }  # fmt: skip


def test_a_call_that_costs_nothing(make_client: MakeClient, world: World, path: Path) -> None:
    """Queries and deletions are not recorded."""
    client = make_client(world, store=path, budget=Budget(creates=0, calls=0))
    assert client.call("GET", "/v1/anything").status == 404
    client.delete_asset("asset-1")
    assert not path.exists()


def test_a_failed_task_stays_spent(make_client: MakeClient, world: World, place: str) -> None:
    """A task that fails when it is created may be charged, so it stays spent."""
    client = make_client(world, budget=Budget(creates=1), store=place)
    world.instead.append(FAILED_RECORD)
    assert client.create(image()).status == "failed"
    with pytest.raises(OverBudget):
        client.create(image())


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        (Budget(cost=1000), "its cost is unknown"),
        (Budget(seconds=1000), r"its seconds are unknown\. Set its length"),
        (Budget(pictures=1000), r"its pictures are unknown\. Leave that limit out"),
    ],
)
def test_an_unknown_amount_is_refused(
    make_client: MakeClient, world: World, place: str, budget: Budget, said: str
) -> None:
    """A limit is never compared with an unknown amount: nothing is sent."""
    client = make_client(world, budget=budget, store=place)
    with pytest.raises(OverBudget, match=said):
        client.call("POST", "/v1/imga/images", {"model": "imga", "prompt": "a horse"})
    assert world.posts == []


PRICES = """
currency = "USD"
prices = [{family = "imga", per_call = 0.04}, {family = "vidm", per_call = 0.5}]
"""


def test_a_limit_on_cost(make_client: MakeClient, world: World, place: str) -> None:
    """With prices, a limit on cost is kept to the last hundredth; without one, nothing is sent."""
    prices = parse_prices(PRICES)
    client = make_client(world, budget=Budget(cost="0.12"), store=place, prices=prices)
    for _ in range(3):
        client.create(image())
    with pytest.raises(OverBudget, match=r"it needs 0\.04 in cost, and none of the limit of 0\.12"):
        client.create(image())
    with pytest.raises(OverBudget, match="its cost is unknown"):
        client.create(ImgbRequest(model="imgb-2", prompt="a horse"))
    assert len(world.posts) == 3


def test_an_earlier_unknown_amount_is_refused(
    make_client: MakeClient, world: World, place: str
) -> None:
    """A cost that the store does not know is not taken for 0."""
    make_client(world, store=place).create(image())
    budget, prices = Budget(cost=1000), parse_prices(PRICES)
    client = make_client(world, budget=budget, store=place, prices=prices)
    with pytest.raises(OverBudget, match="the store has requests whose cost is unknown"):
        client.create(image())
    assert len(world.posts) == 1


def test_a_limit_on_seconds_and_pictures(make_client: MakeClient, world: World, place: str) -> None:
    """Pictures and seconds of video are counted apart; one does not use up the other."""
    client = make_client(world, budget=Budget(pictures=1, seconds=5), store=place)
    client.create(image())
    with pytest.raises(OverBudget, match="it needs 1 picture, and none of"):
        client.create(image())
    video = VideosRequest(model="videos", prompt="a horse", duration=5)
    client.create(video)
    with pytest.raises(OverBudget, match="it needs 5 seconds, and none of"):
        client.create(video)
    assert len(world.posts) == 2


def test_what_consumes_nothing_of_a_limit(
    make_client: MakeClient, world: World, place: str
) -> None:
    """A limit on seconds does not stop a picture, even if the seconds spent are unknown."""
    call(make_client(world, store=place))
    client = make_client(world, budget=Budget(seconds=5), store=place)
    client.create(image())
    with pytest.raises(OverBudget, match="the store has requests whose seconds are unknown"):
        client.create(VideosRequest(model="videos", prompt="a horse", duration=5))


def test_a_limit_that_is_lowered(make_client: MakeClient, world: World, place: str) -> None:
    """If more is spent than a limit allows, nothing of it is left, rather than less than that."""
    for prompt in ("a horse", "another horse", "a third horse"):
        make_client(world, store=place).create(image(prompt))
    client = make_client(world, budget=Budget(creates=1), store=place)
    with pytest.raises(OverBudget, match="and none of the limit of 1 create is left"):
        client.create(image())


@pytest.mark.parametrize("per", ["day", "month", None])
def test_a_period(
    make_client: MakeClient, world: World, place: str, per: Any, request: pytest.FixtureRequest
) -> None:
    """A budget per day or month starts afresh at midnight UTC; one without a period never does."""

    def client_at(wall: float) -> AnyClient:
        store = at(place, wall)
        request.addfinalizer(store.close)
        return make_client(world, budget=Budget(creates=1, per=per), store=store)

    client = client_at(NOON)
    client.create(image())
    advice = "Raise the limit" if per is None else f"Raise the limit, or wait for the next {per}"
    with pytest.raises(OverBudget, match=rf"{advice}\."):
        client.create(image())
    client = client_at(NOON + DAY)
    if per == "day":
        client.create(image())
    client = client_at(NOON + 32 * DAY)
    if per is not None:
        client.create(image())
    with pytest.raises(OverBudget):
        client.create(image())


def test_the_environment_limits_every_client(
    make_client: MakeClient, world: World, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A team's limit applies to a client that has a larger budget of its own, or none."""
    monkeypatch.setenv("MUYBRIDGE_STORE", place)
    monkeypatch.setenv("MUYBRIDGE_MAX_CREATES", "2")
    make_client(world).create(image())
    client = make_client(world, budget=Budget(creates=10))
    client.create(image())
    with pytest.raises(OverBudget, match="none of the limit of 2 creates is left"):
        client.create(image())
    with pytest.raises(OverBudget):
        make_client(world).create(image())


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("MUYBRIDGE_MAX_CREATES", "many"),
        ("MUYBRIDGE_MAX_COST", "-1"),
        ("MUYBRIDGE_MAX_COST", "nan"),
        ("MUYBRIDGE_MAX_COSTS", "5"),
    ],
)
def test_a_wrong_environment(
    make_client: MakeClient,
    world: World,
    variable: str,
    value: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit that cannot be read, or that does not exist, is not taken for no limit."""
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=variable):
        make_client(world)


def test_run_all_goes_on(make_client: MakeClient, world: World, place: str) -> None:
    """In a run, requests beyond the budget end with an error, and the others are completed."""
    client = make_client(world, budget=Budget(creates=3), store=place)
    work: list[MediaRequest] = [image(f"horse {number}") for number in range(8)]
    outcomes = run_all(client, work, concurrency=4)
    assert len(outcomes) == 8
    assert sum(outcome.result is not None for outcome in outcomes) == 3
    assert all(isinstance(one.error, OverBudget) for one in outcomes if one.result is None)
    assert len(world.posts) == 3


def test_an_ambiguous_outcome_of_a_run(make_client: MakeClient, world: World, place: str) -> None:
    """In a run, an outcome that nobody knows names its purchase."""
    world.instead.append(LOST)
    [outcome] = run_all(make_client(world, store=place), [image()])
    [bought] = purchases_at(place)
    assert re.search(rf"o decide: muybridge decide .*{bought.key}", str(outcome.error))


@paying
def test_an_unusable_store(make_client: MakeClient, world: World, path: Path, way: str) -> None:
    """If the store cannot be used, nothing is sent."""
    path.write_bytes(b"no store, but something else that matters to somebody" * 100)
    client = make_client(world, store=path)
    with pytest.raises(StoreUnusable, match="Nothing is sent"):
        PAYING[way][0](client)
    assert world.posts == []


def test_a_listener_that_raises(make_client: MakeClient, world: World, place: str) -> None:
    """An exception from a listener leaves the purchase as the response says."""

    def told(_: object) -> NoReturn:
        raise RuntimeError("the listener is broken")

    client = make_client(world, store=place, on_submitted=told)
    with pytest.raises(RuntimeError, match="the listener is broken"):
        client.create(image())
    [bought] = purchases_at(place)
    assert bought.state is State.ACCEPTED
    assert bought.task is not None


class Late(Exception):
    """What the handler of a signal raises."""


@paying
def test_interrupted_while_reserving(
    make_client: MakeClient,
    world: World,
    place: str,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What interrupts a request while its amount is reserved says that nothing was sent."""

    def struck(*_: object, **__: object) -> NoReturn:
        raise Late

    monkeypatch.setattr(*moments.at("purchase armed").place, struck)
    with pytest.raises(Late) as caught:
        PAYING[way][0](make_client(world, store=place))
    assert world.posts == []
    assert caught.value.__notes__[0] == NOT_SENT


def test_the_store_hears_of_a_task_last(
    make_client: MakeClient, world: World, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If something strikes while the store hears of an accepted task, a run still knows its id."""

    def struck(*_: object, **__: object) -> NoReturn:
        raise Late

    monkeypatch.setattr(*moments.at("verdict booked").place, struck)
    submitted: list[Task] = []
    client = make_client(world, store=place, on_submitted=submitted.append)
    with suppress(Late):
        run_all(client, [image()])
    assert len(submitted) == 1
    assert states(place)[State.ACCEPTED] == 0


def test_the_key_is_not_in_the_store(make_client: MakeClient, world: World, path: Path) -> None:
    """The store holds neither the key nor a digest of it that another store shares."""
    places = (path, path.with_name("other.sqlite3"))
    for each in places:
        make_client(world, store=each).create(image())
    accounts = [one.account for each in places for one in purchases_at(each)]
    assert len(set(accounts)) == 2
    assert world.key.encode() not in path.read_bytes()


TOKENS = parse_prices("""
currency = "EUR"
prices = [{model = "textg-2.5-pro", per_1000_tokens = 2.0}]
""")


TOKENS_APART = """
currency = "EUR"
prices = [{model = "textg-2.5-pro", per_1000_input_tokens = 2, per_1000_output_tokens = 7}]
"""


def generate(client: AnyClient) -> GenerateContentResponse:
    return client.generate_content("textg-2.5-pro", "hello")


def generate_in_pieces(client: AnyClient) -> GenerateContentResponse:
    with client.stream_generate_content("textg-2.5-pro", "hello") as chunks:
        return chunks.collect()


@pytest.mark.parametrize("ask", [generate, generate_in_pieces])
def test_tokens_are_counted_once_they_are_reported(
    make_client: MakeClient,
    world: World,
    place: str,
    ask: Callable[[AnyClient], GenerateContentResponse],
) -> None:
    """A text request costs what its tokens cost, as soon as the response has reported them."""
    client = make_client(world, store=place, prices=TOKENS)
    usage = ask(client).usage_metadata
    assert usage is not None
    assert usage.total_token_count
    (bought,) = purchases_at(place)
    assert bought.amounts[Measure.COST] == Decimal(usage.total_token_count) * 2 / 1000
    assert bought.state is State.ACCEPTED


@pytest.mark.parametrize("ask", [generate, generate_in_pieces])
@pytest.mark.parametrize("counts", [(10**40,), (10**36, 1)], ids=["huge", "huge and small"])
def test_a_cost_that_cannot_be_counted(
    make_client: MakeClient,
    world: World,
    place: str,
    ask: Callable[[AnyClient], GenerateContentResponse],
    counts: tuple[int, ...],
) -> None:
    """An answer that reports absurdly many tokens is spent at an unknown cost, and others go on."""
    client = make_client(world, store=place, prices=TOKENS)
    for tokens in counts:
        answer = (
            b'{"candidates": [{"content": {"role": "model", "parts": [{"text": "hello"}]}, '
            b'"finishReason": "STOP"}], "usageMetadata": {"totalTokenCount": %d}}' % tokens
        )
        if ask is generate_in_pieces:
            stream = (("Content-Type", "text/event-stream"),)
            world.instead.append(HttpResponse(200, stream, b"data: %b\r\n\r\n" % answer))
        else:
            world.instead.append(HttpResponse(200, (), answer))
        assert ask(client).text == "hello"
    run(client)
    first, *_ = purchases_at(place)
    assert first.amounts[Measure.COST] is None
    assert states(place) == {State.ACCEPTED: len(counts) + 1}
    budget = Budget(cost=10**20)
    with pytest.raises(OverBudget, match="the store has requests whose cost is unknown"):
        create(make_client(world, budget=budget, store=place, prices=parse_prices(PRICES)))


@pytest.mark.parametrize("ask", [generate, generate_in_pieces])
def test_input_and_output_tokens_have_prices(
    make_client: MakeClient,
    world: World,
    place: str,
    ask: Callable[[AnyClient], GenerateContentResponse],
) -> None:
    """With a price for each, a text request costs what its input and output tokens cost."""
    prices = parse_prices(TOKENS_APART)
    usage = ask(make_client(world, store=place, prices=prices)).usage_metadata
    assert usage is not None
    assert usage.prompt_token_count
    assert usage.candidates_token_count
    (bought,) = purchases_at(place)
    cost = usage.prompt_token_count * Decimal(2) + usage.candidates_token_count * Decimal(7)
    assert bought.amounts[Measure.COST] == cost / 1000


@pytest.mark.parametrize(
    ("ask", "model"),
    [
        (generate, "textg-2.5-pro"),
        (generate_in_pieces, "textg-2.5-pro"),
        (chat, "m"),
        (stream, "m"),
    ],
)
def test_the_model_of_a_text_request(
    make_client: MakeClient,
    world: World,
    place: str,
    ask: Callable[[AnyClient], object],
    model: str,
) -> None:
    """The store says which model a text request was for, whether its path or its body names it."""
    ask(make_client(world, store=place))
    (bought,) = purchases_at(place)
    assert (bought.family, bought.model) == ("text", model)


def test_tokens_of_a_stream_that_is_left(make_client: MakeClient, world: World, place: str) -> None:
    """The cost of an answer that is not read to its end stays unknown, and is not 0."""
    client = make_client(world, store=place, prices=TOKENS)
    with client.stream_generate_content("textg-2.5-pro", "hello") as chunks:
        next(iter(chunks))
    (bought,) = purchases_at(place)
    assert bought.amounts[Measure.COST] is None
    assert bought.state is State.ACCEPTED


def test_tokens_of_a_stream_whose_beginning_was_not_recorded(
    make_client: MakeClient, world: World, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store cannot be written when an answer begins, the answer is spent at its end."""
    writing, writes = moments.at("transaction begun").value, itertools.count(1)

    def write(store: Store, *waited: float) -> AbstractContextManager[Any]:
        if next(writes) == 3:  # after reading the salt, and the reservation
            raise StoreUnusable("database or disk is full")
        begun: AbstractContextManager[Any] = writing(store, *waited)
        return begun

    monkeypatch.setattr(*moments.at("transaction begun").place, write)
    usage = generate_in_pieces(make_client(world, store=place, prices=TOKENS)).usage_metadata
    assert usage is not None
    assert usage.total_token_count
    (bought,) = purchases_at(place)
    assert bought.amounts[Measure.COST] == Decimal(usage.total_token_count) * 2 / 1000
    assert bought.state is State.ACCEPTED
