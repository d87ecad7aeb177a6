"""The fixtures work as soon as Muybridge is installed, and cost nothing where they are not used."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import trio

import muybridge
from muybridge.local import LocalService
from muybridge.testing.plugin import MakeTrioClient

REQUEST = muybridge.ImgaRequest(model="imga", prompt="a horse")
HOME = Path(muybridge.__file__).parent.parent


def test_client(muybridge_client: muybridge.Client, tmp_path: Path) -> None:
    """The client makes a picture on the service, text included."""
    result = muybridge_client.run(REQUEST)
    assert muybridge_client.download(result, tmp_path).stat().st_size > 0
    assert muybridge_client.generate_content("textg-2.5-pro", "Why?").text


def test_trio_client(
    muybridge_trio_client: MakeTrioClient, muybridge_service: LocalService
) -> None:
    """The factory makes clients for any event loop, with options of their own."""

    async def main() -> str | None:
        seen: list[object] = []
        async with muybridge_trio_client(on_event=seen.append) as client:
            result = await client.run(REQUEST)
            assert str(client.service) == str(muybridge_service.base_url) or seen
            return result.image_url

    assert [bool(trio.run(main)) for _ in range(2)] == [True, True]


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
    assert done.stdout.split() == ["muybridge", "muybridge.testing", "muybridge.testing.plugin"]


def test_names() -> None:
    """Every public name is there, and no other."""
    import muybridge.testing as kit  # noqa: PLC0415  # as a reader would

    assert dir(kit) == sorted(kit.__all__)
    assert {getattr(kit, name).__name__ for name in kit.__all__} == set(kit.__all__)
    assert not hasattr(kit, "FakeClock")
