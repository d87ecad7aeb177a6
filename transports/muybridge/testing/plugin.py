"""The pytest plugin: fixtures, and a guard that keeps tests from paying.

pytest imports this module at every start, so the module imports little. If the extra `local` is not
installed, a test that uses a fixture fails with the pip command.

Paid requests to other machines are refused from before the first conftest file is imported until
pytest ends, except while a marked test and its function-scoped fixtures run. A fixture of a wider
scope serves tests that are not marked, so it may not pay, whichever test happens to set it up.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import pytest

from muybridge.payment_guard import MARKER, paid_requests

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from muybridge.async_client import AsyncClient
    from muybridge.client import Client
    from muybridge.local import LocalService
    from muybridge.trio_client import TrioClient

AnyClient = TypeVar("AnyClient")

_SPEED = "1000"
_POLL_INTERVAL = 0.005
"""Seconds between result queries: the service is on this machine and fast."""


class MakeAsyncClient(Protocol):
    """Makes an `AsyncClient` that speaks to the service of the tests."""

    def __call__(self, **options: Any) -> AsyncClient:
        """Return a client, to be entered with `async with` in the event loop that it works in.

        Args:
            options: Arguments of `AsyncClient`.
        """
        ...


class MakeTrioClient(Protocol):
    """Makes a `TrioClient` that speaks to the service of the tests."""

    def __call__(self, **options: Any) -> TrioClient:
        """Return a client, to be entered with `async with` in the event loop that it works in.

        Args:
            options: Arguments of `TrioClient`.
        """
        ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting for the speed of the service."""
    help_text = "how much faster than the real one the service of muybridge_service is"
    parser.addini("muybridge_speed", help_text, default=_SPEED)


_GUARD: Final = pytest.StashKey[ExitStack]()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Refuse paid requests before the first conftest file is imported."""
    _raise_guard(early_config)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse paid requests even if a conftest file names this plugin; register the mark."""
    _raise_guard(config)
    config.addinivalue_line("markers", f"{MARKER}: the test may send paid Muybridge requests")


def _raise_guard(config: pytest.Config) -> None:
    if _GUARD not in config.stash:
        guard = config.stash[_GUARD] = ExitStack()
        guard.enter_context(paid_requests(refused=True))
        config.add_cleanup(guard.close)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Allow paid requests while the fixtures of a marked test are set up."""
    with paid_requests(refused=not _may_pay(item)):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Allow paid requests while a marked test runs."""
    with paid_requests(refused=not _may_pay(item)):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Refuse paid requests in fixtures that outlive the test."""
    may_pay = fixturedef.scope == "function" and _may_pay(request.node)
    with paid_requests(refused=not may_pay):
        return (yield)


def _may_pay(item: pytest.Item) -> bool:
    return item.get_closest_marker(MARKER) is not None


@pytest.fixture(scope="session")
def muybridge_service(pytestconfig: pytest.Config) -> Generator[LocalService]:
    """The whole service on this machine, with its own key; one for all tests of a run."""
    try:
        from muybridge.local import LocalService  # an extra
    except ModuleNotFoundError as error:
        pytest.fail(str(error), pytrace=False)
    with LocalService(speed=float(pytestconfig.getini("muybridge_speed"))) as service:
        yield service


@pytest.fixture
def muybridge_client(muybridge_service: LocalService) -> Generator[Client]:
    """A client of `muybridge_service`, closed after the test."""
    import muybridge  # loaded on first use

    with _maker(muybridge.Client, muybridge_service)() as client:
        yield client


@pytest.fixture
def muybridge_async_client(muybridge_service: LocalService) -> MakeAsyncClient:
    """A function that makes clients of `muybridge_service` for asyncio and trio.

    It is not a client, because an `AsyncClient` belongs to an event loop, and this fixture runs
    outside of it: `async with muybridge_async_client() as client:`.
    """
    import muybridge  # loaded on first use

    return _maker(muybridge.AsyncClient, muybridge_service)


@pytest.fixture
def muybridge_trio_client(muybridge_service: LocalService) -> MakeTrioClient:
    """A function that makes clients of `muybridge_service` for trio alone, used as the other."""
    import muybridge  # loaded on first use

    return _maker(muybridge.TrioClient, muybridge_service)


def _maker(kind: Callable[..., AnyClient], service: LocalService) -> Callable[..., AnyClient]:
    """Return a function that makes clients of *service*, given more options."""
    return partial(
        kind,
        api_key=service.api_key,
        base_url=service.base_url,
        text_base_url=service.text_base_url,
        poll_interval=_POLL_INTERVAL,
    )
