"""Tags: whom or what a purchase is for. They are checked before anything is sent, and recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from muybridge import InvalidTags, Task
from muybridge.observability.opentelemetry import Tracing
from muybridge.purchases import Measure, Purchase
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
    with pytest.raises(InvalidTags, match="in MUYBRIDGE_TAGS") as caught:
        make_client(world)
    assert problem in str(caught.value)
    assert caught.value.charged == "no"


@wrong
def test_wrong_tags_of_a_client(
    make_client: MakeClient, world: World, tags: Mapping[Any, Any], problem: str
) -> None:
    """Tags that cannot be used are an error when the client is made."""
    with pytest.raises(InvalidTags, match="nothing was sent") as caught:
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
    with pytest.raises(InvalidTags) as caught:
        PAYING[way](client, tags=tags)
    assert problem in str(caught.value)
    assert caught.value.charged == "no"
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
    with pytest.raises(InvalidTags, match="the value of 'via'"):
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
    with pytest.raises(InvalidTags, match="1 problem in the tags of work 1"):
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
