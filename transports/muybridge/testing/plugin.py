"""The fixtures that pytest knows as soon as Muybridge is installed.

pytest imports this module at every start, so that nothing is imported here before a test asks for
it. What a fixture needs and is not installed is told by that test, with the pip command.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from muybridge.client import Client
    from muybridge.local import LocalService
    from muybridge.trio_client import TrioClient

_SPEED = "1000"
_SERVICE = "muybridge.local.service"
_POLL_INTERVAL = 0.005
"""Seconds between result queries: the service is on this machine and fast."""


class MakeTrioClient(Protocol):
    """Makes a `TrioClient` that speaks to the service of the tests."""

    def __call__(self, **options: Any) -> TrioClient:
        """Return a client, to be entered with `async with` in the event loop that it works in.

        Args:
            options: Arguments of `TrioClient`.
        """
        ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the service's speed be set in pytest's configuration."""
    help_text = "how much faster than the real one the service of muybridge_service is"
    parser.addini("muybridge_speed", help_text, default=_SPEED)


@pytest.fixture(scope="session")
def muybridge_service(pytestconfig: pytest.Config) -> Generator[LocalService]:
    """The whole service on this machine, with a key of its own; one for all tests of a run."""
    _need("muybridge_service", "local", _SERVICE)
    from muybridge.local import LocalService  # noqa: PLC0415  # loaded on first use

    with LocalService(speed=float(pytestconfig.getini("muybridge_speed"))) as service:
        yield service


@pytest.fixture
def muybridge_client(request: pytest.FixtureRequest) -> Generator[Client]:
    """A client of `muybridge_service`, closed after the test."""
    _need("muybridge_client", "local,requests", "muybridge.wire.requests_transport", _SERVICE)
    import muybridge  # noqa: PLC0415  # loaded on first use

    service: LocalService = request.getfixturevalue("muybridge_service")
    with muybridge.Client(
        service.api_key,
        service.base_url,
        service.text_base_url,
        poll_interval=_POLL_INTERVAL,
    ) as client:
        yield client


@pytest.fixture
def muybridge_trio_client(request: pytest.FixtureRequest) -> MakeTrioClient:
    """What makes clients of `muybridge_service` for trio.

    A function and not a client, because a `TrioClient` belongs to one event loop, which this
    fixture is outside of: `async with muybridge_trio_client() as client:`.
    """
    _need("muybridge_trio_client", "local,trio", "muybridge.wire.trio_transport", _SERVICE)
    import muybridge  # noqa: PLC0415  # loaded on first use

    service: LocalService = request.getfixturevalue("muybridge_service")

    def make(**options: Any) -> TrioClient:
        settings: dict[str, Any] = {
            "api_key": service.api_key,
            "base_url": service.base_url,
            "text_base_url": service.text_base_url,
            "poll_interval": _POLL_INTERVAL,
        }
        return muybridge.TrioClient(**{**settings, **options})

    return make


def _need(fixture: str, extras: str, *modules: str) -> None:
    """Fail the test with the pip command, where what *fixture* stands on is not installed."""
    for module in modules:
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            library = (error.name or "muybridge").partition(".")[0]
            if library == "muybridge":
                raise
            command = f'pip install "muybridge[{extras}]"'
            pytest.fail(f"{fixture} needs {library}: {command}", pytrace=False)
