"""The async transport knows no event loop: all of it but a small binding serves any of them."""

from __future__ import annotations

import pytest

from test_purity import imported_by

LIBRARIES = {"trio", "asyncio", "anyio", "uvloop"}


def test_no_event_loop_is_imported() -> None:
    """The transport brings no event loop with it; only its binding does."""
    found = imported_by("import muybridge.wire.http1.transport, muybridge.wire.http1.socket_stream")
    assert "muybridge.wire.http1.response" in found
    assert found & LIBRARIES == set()


@pytest.mark.parametrize(
    ("name", "library"), [("TrioTransport", "trio"), ("AsyncioTransport", "asyncio")]
)
def test_a_binding_imports_its_own(name: str, library: str) -> None:
    """Each binding imports its own event loop, and no other transport's library."""
    found = imported_by(f"import muybridge; muybridge.{name}")
    assert found & {*LIBRARIES, "requests"} == {library}
