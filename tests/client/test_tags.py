"""Tags: whom or what a purchase is for. They are checked before anything is sent, and recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

import moments
from muybridge import LocalError, OverBudget, Task
from muybridge.observability.opentelemetry import Tracing
from muybridge.purchases import Budget, Choosing, Measure, Purchase, open_store
from muybridge_protocol.estimates import parse_prices
from muybridge_protocol.purchases import OwnTags
from stores import purchases_at

from .answers import ASKED, MODEL, PLAIN, STREAMS
from .drivers import AnyClient, MakeClient
from .fleets import run_all
from .in_process import World
from .requests_made import PROMPT, image
from .spans import Spans, told

Pay = Callable[..., object]


def called(name: str, *arguments: object) -> Pay:
    """Return what calls the client's method *name*."""

    def pay(client: AnyClient, **options: Any) -> None:
        getattr(client, name)(*arguments, **options)

    return pay


def asked(name: str) -> Pay:
    """Return what asks for a text by the client's method *name*, to the end of the answer."""
    body = {**ASKED, "max_tokens": 99}
    words = (MODEL, PROMPT) if name.endswith("generate_content") else (body,)

    def pay(client: AnyClient, **options: Any) -> None:
        answer = getattr(client, name)(*words, **options)
        if name in STREAMS:
            with answer as chunks:
                assert [*chunks]

    return pay


def in_a_run(client: AnyClient, **options: Any) -> None:
    [outcome] = run_all(client, [image()], **options)
    outcome.unwrap()


PAYING: Mapping[str, Pay] = {
    "create": called("create", image()),
    "create_once": called("create_once", "order 1", image()),
    "run": called("run", image()),
    "run_all": in_a_run,
    "call": called("call", "POST", "/v1/imga/images", {"model": "imga", "prompt": PROMPT}),
    **{name: asked(name) for name in (*PLAIN, *STREAMS)},
}
paying = pytest.mark.parametrize("way", PAYING)

LONG_KEY, LONG_VALUE = "k" * 64, "v" * 256
WRONG: Mapping[str, tuple[Mapping[Any, Any], str]] = {
    "no key": ({"": "acme"}, "a key must have 1 to 64 printable characters"),
    "no value": ({"customer": ""}, "the value of 'customer' must have 1 to 256 printable"),
    "a long key": ({f"{LONG_KEY}k": "acme"}, "a key must have 1 to 64 printable characters"),
    "a huge value": ({"customer": "x" * 10**7}, "the value of 'customer' must have 1 to 256"),
    "a tab": ({"cus\ttomer": "acme"}, "a key must have 1 to 64 printable characters"),
    "a line break": ({"customer": "ac\nme"}, "the value of 'customer' must have 1 to 256"),
    "half a character": ({"customer": "ac\ud800me"}, "the value of 'customer' must have 1 to 256"),
    "=": ({"a=b": "acme"}, "without = and comma"),
    "a space at the end": ({"customer": "acme "}, "no space at its ends"),
    "a number": ({"customer": 7}, "keys and values must be strings, not str and int"),
    "reserved": ({"via": "mcp"}, "the key 'via' is reserved"),
    "reserved, too": ({"batch": "b"}, "the key 'batch' is reserved"),
    "taken": ({"model": "imga"}, "the key 'model' is taken: `muybridge spent --by model`"),
    "too many": ({f"k{n}": "v" for n in range(17)}, "there are 17 tags; a request has at most 16"),
}
wrong = pytest.mark.parametrize(("tags", "problem"), WRONG.values(), ids=WRONG)


@pytest.fixture
def spans() -> Iterator[Spans]:
    made = Spans()
    yield made
    made.provider.shutdown()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests look more often for the one that they wait for."""
    monkeypatch.setattr(*moments.constant("pause before a name is looked up again"), 0.05)


def only(place: str | Path) -> Purchase:
    """Return the only purchase."""
    [bought] = purchases_at(place)
    return bought


@paying
def test_each_purchase_has_its_tags(
    make_client: MakeClient, world: World, place: str, way: str
) -> None:
    """Whatever is paid for is recorded with the client's tags and those of the call, which win."""
    client = make_client(world, store=place, tags={"customer": "acme", "team": "film"})
    PAYING[way](client, tags={"customer": "bear & sons", "project": "a=1"})
    assert only(place).tags == ("customer=bear & sons", "project=a=1", "team=film")
    assert len(world.posts) == 1


@paying
def test_a_client_with_tags_has_a_store(
    make_client: MakeClient,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
) -> None:
    """Without a store of its own, a client with tags, or a call with tags, uses the default one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    default = tmp_path / "muybridge" / "store.sqlite3"
    if way != "create_once":
        PAYING[way](make_client(world))
        assert not default.exists()
    PAYING[way](make_client(world), tags={"customer": "acme"})
    assert only(default).tags == ("customer=acme",)
    default.unlink()
    PAYING[way](make_client(world, tags={"customer": "bear"}))
    assert only(default).tags == ("customer=bear",)


def test_a_call_with_tags_is_recorded_at_the_clients_prices(
    make_client: MakeClient, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that makes its client record requests records what they cost."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    prices = parse_prices('currency = "USD"\nprices = [{family = "imga", per_call = 0.25}]')
    client = make_client(world, prices=prices)
    client.create(image(), tags={"customer": "acme"})
    bought = only(tmp_path / "muybridge" / "store.sqlite3")
    assert bought.amounts[Measure.COST] == Decimal("0.25")


def test_tags_of_the_environment(
    make_client: MakeClient, world: World, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MUYBRIDGE_TAGS counts for every client, whose own tags win."""
    monkeypatch.setenv("MUYBRIDGE_STORE", place)
    monkeypatch.setenv("MUYBRIDGE_TAGS", "customer=acme, team=film")
    make_client(world).create(image())
    make_client(world, tags={"customer": "bear"}).create(image())
    assert [one.tags for one in purchases_at(place)] == [
        ("customer=acme", "team=film"), ("customer=bear", "team=film"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("customer", "'customer' is no tag: write KEY=VALUE, such as customer=acme"),
        ("customer=acme,", "'' is no tag"),
        ("customer=acme,customer=bear", "the key 'customer' is given twice"),
        ("batch=b", "the key 'batch' is reserved"),
        (",".join(f"k{n}=v" for n in range(17)), "there are 17 tags"),
    ],
)
def test_wrong_tags_of_the_environment(
    make_client: MakeClient, world: World, monkeypatch: pytest.MonkeyPatch, said: str, problem: str
) -> None:
    """A mistake in MUYBRIDGE_TAGS is an error of each client: nothing is spent without its tags."""
    monkeypatch.setenv("MUYBRIDGE_TAGS", said)
    with pytest.raises(LocalError, match="in MUYBRIDGE_TAGS") as caught:
        make_client(world)
    assert problem in str(caught.value)
    assert (caught.value.argument, caught.value.charged) == ("tags", "no")


@wrong
def test_wrong_tags_of_a_client(
    make_client: MakeClient, world: World, tags: Mapping[Any, Any], problem: str
) -> None:
    """Tags that cannot be used are an error when the client is made."""
    with pytest.raises(LocalError, match="nothing was sent") as caught:
        make_client(world, tags=tags)
    assert problem in str(caught.value)
    assert len(str(caught.value)) < 500


@wrong
@paying
def test_wrong_tags_of_a_call(
    make_client: MakeClient,
    world: World,
    path: Path,
    way: str,
    tags: Mapping[Any, Any],
    problem: str,
) -> None:
    """Tags that cannot be used are an error of the call, and nothing is sent or recorded."""
    client = make_client(world, store=path)
    with pytest.raises(LocalError) as caught:
        PAYING[way](client, tags=tags)
    assert problem in str(caught.value)
    assert (caught.value.argument, caught.value.charged) == ("tags", "no")
    assert (world.seen, path.exists()) == ([], False)


@paying
def test_tags_that_are_no_mapping(
    make_client: MakeClient, world: World, path: Path, way: str
) -> None:
    """Anything but a mapping is an error that says what to write."""
    with pytest.raises(TypeError, match=r"tags must be a mapping, not str"):
        make_client(world, tags="customer=acme")
    with pytest.raises(TypeError, match=r"tags must be .*mapping.*, not (set|str)"):
        PAYING[way](make_client(world, store=path), tags={"customer"})
    assert world.seen == []


def test_the_largest_tags(make_client: MakeClient, world: World, place: str) -> None:
    """Sixteen tags of the longest keys and values are kept as they are."""
    tags = {f"{n:02}{LONG_KEY[2:]}": f"{n:02}{'🐎' * 254}" for n in range(16)}
    make_client(world, store=place, tags=tags).create(image())
    assert only(place).tags == tuple(f"{key}={value}" for key, value in tags.items())


def test_reserved_tags_are_muybridges_own(
    make_client: MakeClient, world: World, place: str
) -> None:
    """What Muybridge sets itself may have a reserved key, and is checked otherwise."""
    client = make_client(world, store=place, tags=OwnTags({"via": "mcp", "team": "film"}))
    client.create(image(), tags={"customer": "acme"})
    assert only(place).tags == ("customer=acme", "team=film", "via=mcp")
    with pytest.raises(LocalError, match="the value of 'via'"):
        make_client(world, tags=OwnTags({"via": ""}))


def test_a_run_with_tags_for_each(make_client: MakeClient, world: World, place: str) -> None:
    """Each piece of work has its own tags, besides those of the client."""
    client = make_client(world, store=place, tags={"team": "film"})
    work = [image(str(number)) for number in range(3)]
    run_all(client, work, tags=[{"customer": "a"}, None, {"team": "x"}], concurrency=1)
    assert [one.tags for one in purchases_at(place)] == [
        ("customer=a", "team=film"), ("team=film",), ("team=x",),
    ]  # fmt: skip


def test_wrong_tags_of_a_run(make_client: MakeClient, world: World, path: Path) -> None:
    """A run needs a mapping for each piece of work, and says which one is wrong."""
    client = make_client(world, store=path)
    work = [image(), Task(id="task-1")]
    with pytest.raises(ValueError, match=r"one mapping for each of 2 pieces of work \(got 1\)"):
        run_all(client, work, tags=[{"a": "1"}])
    with pytest.raises(LocalError, match="1 problem in the tags of work 1"):
        run_all(client, work, tags=[None, {"via": "me"}])
    assert world.seen == []


@pytest.mark.parametrize("way", sorted(PAYING.keys() - {"create_once"}))
def test_spans_have_them(
    make_client: MakeClient, world: World, place: str, spans: Spans, way: str
) -> None:
    """The span of each call for a purchase has its tags: of the create, and of the wait for it."""
    client = make_client(
        world,
        store=place,
        tags={"customer": "acme", "team": "film"},
        on_event=Tracing(spans.provider),
    )
    PAYING[way](client, tags={"customer": "bear"})
    calls = [one for one in spans.all if one.name.startswith("muybridge ")]
    assert len(calls) == (2 if way in ("run", "run_all") else 1)
    assert [tags_of(one) for one in calls] == [{"customer": "bear", "team": "film"}] * len(calls)
    assert PROMPT not in str([told(one) for one in spans.all])


def tags_of(span: ReadableSpan) -> dict[str, object]:
    """Return the tags in the attributes of *span*."""
    prefix = "muybridge.tag."
    return {
        name.removeprefix(prefix): value
        for name, value in told(span).items()
        if name.startswith(prefix)
    }


ACROSS = "across-tags"


def one(client: AnyClient, tags: Mapping[str, str], dedupe: object) -> str:
    """Return the task of a request that is created under *tags* in a run of its own."""
    del dedupe
    return client.create(image(), tags=tags).id


def in_run_all(client: AnyClient, tags: Mapping[str, str], dedupe: object) -> str:
    """The same, in `run_all`."""
    [outcome] = run_all(client, [image()], tags=tags, dedupe=dedupe)
    return outcome.unwrap().id


A, B = {"customer": "a"}, {"customer": "b"}
NONE: dict[str, str] = {}


@pytest.mark.parametrize(
    ("purchases", "sent"),
    [
        ([(A, True), (A, True), (NONE, True), (NONE, True), (B, True)], 3),
        ([(A, ACROSS), (B, ACROSS), (NONE, ACROSS)], 1),
        ([(A, True), (B, True), (NONE, ACROSS)], 2),
        ([(NONE, True), (A, ACROSS)], 1),
        ([(A, ACROSS), (A, True), (NONE, True), (B, True)], 3),
        ([(NONE, ACROSS), (NONE, True)], 1),
    ],
)
@pytest.mark.parametrize("create", [one, in_run_all])
def test_identical_requests_join_across_tags_only_if_told(
    make_client: MakeClient,
    world: World,
    place: str,
    create: Callable[[AnyClient, Mapping[str, str], object], str],
    purchases: Sequence[tuple[Mapping[str, str], object]],
    sent: int,
) -> None:
    """`dedupe=True` is for the same tags, "across-tags" for any; each joins what the other made."""
    tasks = [
        create(make_client(world, store=place, dedupe=dedupe), tags, dedupe)
        for tags, dedupe in purchases
    ]
    assert len(world.posts) == len({*tasks}) == sent


@pytest.mark.usefixtures("patient")
def test_twins_across_tags_at_the_same_moment(
    make_client: MakeClient, world: World, place: str
) -> None:
    """In one run, all of them wait for the first, whatever their tags, or for those like them."""
    tags = [{"customer": f"{number % 3}"} for number in range(9)]
    for dedupe, sent in ((True, 3), (ACROSS, 0)):
        world.seen.clear()
        outcomes = run_all(make_client(world, store=place), [image()] * 9, tags=tags, dedupe=dedupe)
        assert len({outcome.unwrap().id for outcome in outcomes}) == (3 if dedupe is True else 1)
        assert len(world.posts) == sent


def test_a_name_belongs_to_no_tags(make_client: MakeClient, world: World, place: str) -> None:
    """`create_once` gives the same task under other tags, and it keeps the tags of the first."""
    client = make_client(world, store=place)
    first = client.create_once("order 1", image(), tags=A)
    assert client.create_once("order 1", image(), tags=B).id == first.id
    assert (only(place).tags, len(world.posts)) == (("customer=a",), 1)


@pytest.mark.parametrize("dedupe", ["across", "yes", 1, None])
def test_a_wrong_dedupe(make_client: MakeClient, world: World, dedupe: object) -> None:
    """Anything else is an error that says what there is."""
    for attempt in (
        lambda: make_client(world, dedupe=dedupe),
        lambda: run_all(make_client(world), [image()], dedupe=dedupe),
    ):
        with pytest.raises(TypeError, match="dedupe must be True, False or 'across-tags', not"):
            attempt()
    assert world.seen == []


@paying
def test_a_budget_for_a_key(make_client: MakeClient, world: World, place: str, way: str) -> None:
    """Each value may spend as much, and nothing is sent without the key, whichever call spends."""
    with open_store(place) as store:
        store.limit("customer", Budget(creates=1, calls=1))
    client = make_client(world, store=place, tags={"team": "film"})
    pay = PAYING[way]
    pay(client, tags={"customer": "a"})
    if way == "create_once":
        pay = called("create_once", "order 2", image())
    for tags, problem in (
        ({}, "a stored budget holds for each value of the tag 'customer', and the request has no"),
        ({"customer": "a"}, "none of the limit of 1 .* is left.* stored budget of customer=a "),
    ):
        with pytest.raises(OverBudget, match=problem) as caught:
            pay(client, tags=tags)
        assert caught.value.charged == "no"
        told = [one.to_dict() for one in caught.value.remedies]
        assert told == ([] if tags else [{"kind": "tag", "option": "customer"}])
        assert ('Pass tags={"customer": ...}.' in str(caught.value)) == (not tags)
    assert len(world.posts) == 1
    pay(client, tags={"customer": "b"})
    assert [one.tags for one in purchases_at(place)] == [
        ("customer=a", "team=film"), ("customer=b", "team=film"),
    ]  # fmt: skip


def test_an_unknown_cost_blocks_until_it_is_given(
    make_client: MakeClient, world: World, place: str
) -> None:
    """It blocks limits on cost of its own tags alone; the error names the purchase to decide."""
    make_client(world, store=place, tags=A).create(image())
    unknown = only(place).key
    with open_store(place) as store:
        store.limit("customer", Budget(cost=1))
    prices = parse_prices('currency = "USD"\nprices = [{family = "imga", per_call = 0.25}]')
    client = make_client(world, store=place, prices=prices)
    client.create(image(), tags=B)
    with pytest.raises(OverBudget, match=rf"cost is unknown \(purchase {unknown}\)") as caught:
        client.create(image(), tags=A)
    [remedy] = caught.value.remedies
    assert (remedy.kind, remedy.purchase) == ("price", unknown)
    command = f"decide --store {'URL' if '://' in place else place} {unknown} --cost AMOUNT"
    assert f"To give a cost: muybridge {command}." in str(caught.value)
    with open_store(place) as store:
        store.decide_all([Choosing(unknown, None, cost=Decimal("0.5"))])
    for _ in range(2):
        client.create(image(), tags=A)
    with pytest.raises(OverBudget, match="none of the limit of 1 in cost is left"):
        client.create(image(), tags=A)
    assert len(world.posts) == 4


def test_sidecars_have_them(
    make_client: MakeClient, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever saves a result, now or later, finds its tags in the store, and never makes one."""
    state = tmp_path / "muybridge"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def saved(client: AnyClient, task: Task) -> object:
        path = client.save(client.wait(task), tmp_path / f"{task.id}.png", sidecar=True)
        return json.loads(path.with_name(f"{path.name}.json").read_bytes())["tags"]

    untagged = make_client(world).create(image("another horse"))
    assert saved(make_client(world), untagged) is None
    assert not state.exists()
    client = make_client(world, tags={"team": "film"})
    task = client.create(image(), tags=A)
    known = {"customer": "a", "team": "film"}
    assert saved(client, task) == saved(make_client(world), task) == known
    assert saved(make_client(world), untagged) is None
    assert saved(make_client(world, store=tmp_path / "other"), task) is None
    (state / "store.sqlite3").write_bytes(b"nonsense")
    assert saved(make_client(world), task) is None
