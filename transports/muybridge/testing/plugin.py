"""The fixtures that pytest knows as soon as Muybridge is installed.

pytest imports this module at every start, so that nothing is imported here before a test asks for
it. What a fixture needs and is not installed is told by that test, with the pip command.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from muybridge.local import LocalService
    from muybridge.sync_client import Client
    from muybridge.trio_client import TrioClient

_SPEED = "1000"
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
    from muybridge.local import LocalService  # noqa: PLC0415  # loaded on first use

    with LocalService(speed=float(pytestconfig.getini("muybridge_speed"))) as service:
        yield service


@pytest.fixture
def muybridge_client(muybridge_service: LocalService) -> Generator[Client]:
    """A client of `muybridge_service`, closed after the test."""
    import muybridge  # noqa: PLC0415  # loaded on first use

    with muybridge.Client(
        muybridge_service.api_key,
        muybridge_service.base_url,
        muybridge_service.text_base_url,
        poll_interval=_POLL_INTERVAL,
    ) as client:
        yield client


@pytest.fixture
def muybridge_trio_client(muybridge_service: LocalService) -> MakeTrioClient:
    """What makes clients of `muybridge_service` for trio.

    A function and not a client, because a `TrioClient` belongs to one event loop, which this
    fixture is outside of: `async with muybridge_trio_client() as client:`.
    """
    import muybridge  # noqa: PLC0415  # loaded on first use

    def make(**options: Any) -> TrioClient:
        settings: dict[str, Any] = {
            "api_key": muybridge_service.api_key,
            "base_url": muybridge_service.base_url,
            "text_base_url": muybridge_service.text_base_url,
            "poll_interval": _POLL_INTERVAL,
        }
        return muybridge.TrioClient(**{**settings, **options})

    return make
