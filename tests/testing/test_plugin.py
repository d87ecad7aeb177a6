"""The fixtures work as soon as Muybridge is installed, and cost nothing where they are not used."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
import trio

import muybridge
from muybridge.extras import install_command
from muybridge.local import LocalService
from muybridge.testing.plugin import MakeAsyncClient

REQUEST = muybridge.ImgaRequest(model="imga", prompt="a horse")
HOME = Path(muybridge.__file__).parent.parent


def test_client(muybridge_client: muybridge.Client, tmp_path: Path) -> None:
    """The client makes a picture on the service, text included."""
    result = muybridge_client.run(REQUEST)
    assert muybridge_client.download(result, tmp_path).stat().st_size > 0
    assert muybridge_client.generate_content("textg-2.5-pro", "Why?").text


def run_asyncio(function: Callable[[], Coroutine[Any, Any, Any]]) -> object:
    return asyncio.run(function())


@pytest.mark.parametrize(
    ("fixture", "run"),
    [
        ("muybridge_trio_client", trio.run),
        ("muybridge_async_client", trio.run),
        ("muybridge_async_client", run_asyncio),
    ],
)
def test_async_clients(
    request: pytest.FixtureRequest,
    muybridge_service: LocalService,
    fixture: str,
    run: Callable[[Callable[[], Coroutine[Any, Any, Any]]], object],
) -> None:
    """A factory makes clients for any event loop, with options of their own."""
    make: MakeAsyncClient = request.getfixturevalue(fixture)

    async def main() -> str | None:
        seen: list[object] = []
        async with make(on_event=seen.append) as client:
            result = await client.run(REQUEST)
            assert str(client.service) == str(muybridge_service.base_url) or seen
            return result.image_url

    assert [bool(run(main)) for _ in range(2)] == [True, True]


def test_registered() -> None:
    """pytest finds the plugin by itself."""
    (found,) = entry_points(group="pytest11", name="muybridge")
    assert found.value == "muybridge.testing.plugin"


def test_cheap() -> None:
    """The plugin adds nothing to pytest's start but itself: no extra has to be installed."""
    code = (
        f"import sys; sys.path[:0] = [{str(HOME)!r}]; import pytest; before = set(sys.modules)\n"
        "import muybridge.testing.plugin, muybridge.testing\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(  # noqa: S603  # our own code
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    packages = {name.partition(".")[0] for name in done.stdout.split()}
    assert packages == {"muybridge"}


@pytest.mark.parametrize(
    "fixture",
    [
        "muybridge_service",
        "muybridge_client",
        "muybridge_async_client",
        "muybridge_trio_client",
    ],
)
def test_what_to_install(tmp_path: Path, fixture: str) -> None:
    """Without the extra for the service, a test that needs it says how to install it."""
    missing = "import sys; sys.modules['hypercorn'] = None\n"
    (tmp_path / "conftest.py").write_text(missing, encoding="utf-8")
    test = f"def test_it({fixture}):\n    pass\n"
    (tmp_path / "test_it.py").write_text(test, encoding="utf-8")
    paths = os.pathsep.join(map(str, (HOME, HOME.parent / "protocol")))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "muybridge.testing.plugin"]
    done = subprocess.run(  # noqa: S603  # our own code
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        # Other people's plugins take a second to load.
        env={**os.environ, "PYTHONPATH": paths, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    assert done.returncode == 1
    assert "muybridge.local needs hypercorn" in done.stdout
    assert install_command("local") in done.stdout


def test_names() -> None:
    """Every public name is there, and no other."""
    import muybridge.testing as kit  # as a reader would

    assert dir(kit) == sorted(kit.__all__)
    assert {getattr(kit, name).__name__ for name in kit.__all__} == set(kit.__all__)
    assert not hasattr(kit, "FakeClock")
