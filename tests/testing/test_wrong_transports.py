"""The kit refuses transports that are wrong on purpose, and says what is to be learnt."""

from __future__ import annotations

import inspect
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muybridge.testing.certificates import client_context
from muybridge.testing.conformance import Capabilities, NotConforming, TransportConformance
from muybridge.testing.conformance.calling import authority
from muybridge.testing.conformance.lessons import promises
from muybridge.wire.requests_transport import RequestsTransport
from muybridge.wire.transport import Transport

from . import naive_transports as naive
from . import wrong_transports as wrong
from .lessons_taught import ROWS

Run = Callable[..., None]
PAGE = Path(__file__).parents[2] / "docs" / "write-a-transport.md"


@pytest.fixture
def tls() -> None:
    """A plain server is enough to be wrong with."""


@pytest.fixture
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """What runs one check of the kit on one transport."""
    closing: list[Transport] = []

    def run_check(
        make: Callable[..., Transport],
        check: str,
        capabilities: Capabilities | None = None,
        /,
        **arguments: Any,
    ) -> None:
        def make_transport(_: object, ssl_context: ssl.SSLContext) -> Transport:
            made = make(ssl_context=ssl_context)
            closing.append(made)
            return made

        declared = {"capabilities": capabilities or Capabilities()}
        suite = type(
            "Suite", (TransportConformance,), {**declared, "make_transport": make_transport}
        )()
        method = getattr(suite, check)
        given = arguments
        for name in inspect.signature(method).parameters:
            if name == "transport":
                given = {**given, name: suite.make_transport(client_context(authority()))}
            if name not in given:
                given[name] = request.getfixturevalue(name)
        method(**given)

    yield run_check
    for made in closing:
        made.close()


@pytest.mark.parametrize(
    ("kind", "check", "arguments", "taught"),
    ROWS,
    ids=[f"{getattr(kind, '__name__', kind)} {check}" for kind, check, _, _ in ROWS],
)
def test_lesson(
    run: Run,
    kind: Callable[..., Transport],
    check: str,
    arguments: dict[str, Any],
    taught: list[str],
) -> None:
    """A mistake fails its check with what was expected, why it matters and where to look."""
    with pytest.raises(NotConforming) as caught:
        run(kind, check, **arguments)
    message = str(caught.value)
    for words in ("given: ", "expected: ", "found: ", "why: ", "look at: ", *taught):
        assert words in message


def test_the_page_shows_a_lesson(run: Run) -> None:
    """What the page on writing a transport shows of a failed check is what is printed."""
    with pytest.raises(NotConforming) as caught:
        run(wrong.TakesCutForWhole, "test_cut_tls")
    assert str(caught.value) in PAGE.read_text(encoding="utf-8").replace("```console", "")


def test_every_mistake_is_caught() -> None:
    """Each of the wrong transports stands in the table."""
    written = {*wrong.Wrong.__subclasses__(), *naive.Naive.__subclasses__()}
    assert {kind for kind, *_ in ROWS} == written


def test_every_check_can_fail() -> None:
    """For each check of the kit there is a transport that is refused by it."""
    checks = {name for name in dir(TransportConformance) if name.startswith("test_")}
    assert checks - {check for _, check, *_ in ROWS} == {"test_smoke"}  # it has tests of its own


@pytest.mark.parametrize(("kind", "check", "arguments", "taught"), ROWS[:1])
def test_the_right_one(
    run: Run, kind: object, check: str, arguments: dict[str, Any], taught: object
) -> None:
    """What the mistakes are made around passes, so that it is they that are caught."""
    del kind, taught
    run(RequestsTransport, check, **arguments)


def test_declared(run: Run) -> None:
    """What a transport declares not to do is an expected failure, told as such."""
    declared = Capabilities(checks_connected_address=False)
    with pytest.raises(pytest.xfail.Exception, match="checks_connected_address=False"):
        run(wrong.GoesAnywhere, "test_private_address", declared, host="127.0.0.1")


def test_declared_and_done(run: Run) -> None:
    """What it declares not to do, and does, is to be declared."""
    declared = Capabilities(checks_connected_address=False)
    with pytest.raises(NotConforming, match="declare checks_connected_address=True"):
        run(RequestsTransport, "test_rebound_name", declared)
    run(RequestsTransport, "test_private_address", declared, host="127.0.0.1")


def test_declared_and_worse(run: Run) -> None:
    """An exception that no driver knows fails its check, whatever is declared."""
    declared = Capabilities(keeps_cut_heads=False)
    with pytest.raises((NotConforming, pytest.xfail.Exception)) as caught:
        run(wrong.RaisesItsOwn, "test_cut_head", declared)
    assert "a driver knows no other exception" in str(caught.value)
    assert "or declare" not in str(caught.value)


def test_no_such_capability() -> None:
    """A check of a capability that nobody can declare is a mistake of the kit's own."""
    with pytest.raises(ValueError, match="no capability"):
        promises("flies")


def test_not_told_how() -> None:
    """Whoever forgets to say how the transport is made is told so."""
    with pytest.raises(NotImplementedError, match="how its transport is made"):
        TransportConformance().make_transport(ssl.create_default_context())


def test_every_check_is_a_sentence() -> None:
    """Each check says what must be true."""
    for name, check in inspect.getmembers(TransportConformance, inspect.isfunction):
        if name.startswith("test_"):
            assert (check.__doc__ or "").strip().endswith("."), name


def test_every_id_can_be_read() -> None:
    """What a check is run with has a name of its own, and no number."""
    for name, check in inspect.getmembers(TransportConformance, inspect.isfunction):
        marks: list[pytest.Mark] = getattr(check, "pytestmark", [])
        for mark in marks:
            if mark.name != "parametrize":
                continue
            values = mark.kwargs.get("ids") or mark.args[1]
            assert all(isinstance(value, str | int | float) for value in values), name
