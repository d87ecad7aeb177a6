"""A transport that does not work at all is shown its own exception, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITES = {
    "blocking": """
from contextlib import contextmanager
from muybridge.testing.conformance import TransportConformance


class Broken:
    @contextmanager
    def stream(self, request, *, timeout, authorization=None):
        yield {}["the transport's own mistake"]

    def close(self):
        pass


class TestBroken(TransportConformance):
    def make_transport(self, ssl_context):
        return Broken()
""",
    "trio": """
from contextlib import asynccontextmanager
from muybridge.testing.conformance import AsyncTransportConformance


class Broken:
    @asynccontextmanager
    async def stream(self, request, *, timeout, authorization=None):
        yield {}["the transport's own mistake"]

    async def close(self):
        pass


class TestBroken(AsyncTransportConformance):
    def make_async_transport(self, ssl_context):
        return Broken()
""",
    "not made": """
from muybridge.testing.conformance import TransportConformance


class TestBroken(TransportConformance):
    def make_transport(self, ssl_context):
        return {}["the transport's own mistake"]
""",
    "fails always": """
from contextlib import contextmanager
from muybridge.testing.conformance import TransportConformance
from muybridge.wire.transport import TransportError
from muybridge_protocol.http import Phase, Reason, TransportFailure


class Broken:
    @contextmanager
    def stream(self, request, *, timeout, authorization=None):
        detail = "the transport's own mistake"
        raise TransportError(
            TransportFailure(phase=Phase.SEND, sent=True, reason=Reason.OTHER, detail=detail)
        )
        yield

    def close(self):
        pass


class TestBroken(TransportConformance):
    def make_transport(self, ssl_context):
        return Broken()
""",
}


def checked(folder: Path, suite: str, *options: str) -> str:
    """Return what pytest prints of *suite*, of which something must have failed."""
    file = folder / "test_broken.py"
    file.write_text(suite)
    done = subprocess.run(  # noqa: S603  # our own code
        [sys.executable, "-m", "pytest", "-p", "muybridge.testing.plugin", "-p", "no:cacheprovider",
         "-ra", f"--rootdir={folder}", *options, str(file)],
        capture_output=True, text=True, check=False, cwd=folder,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # the others take a second
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", SUITES)
def test_a_broken_transport_is_shown_its_own_exception(tmp_path: Path, kind: str) -> None:
    """One check fails, with the transport's exception; all others point to it in one line."""
    printed = checked(tmp_path, SUITES[kind])
    assert re.search(r"=+ 1 failed, [0-9]{3} skipped in", printed), printed[-2000:]
    assert "the transport's own mistake" in printed
    assert "FAILED test_broken.py::TestBroken::test_smoke" in printed
    assert "run TestBroken::test_smoke first" in printed
    assert len(printed.splitlines()) < 200
    if kind != "fails always":
        assert 'KeyError: "the transport\'s own mistake"' in printed
        assert re.search(r"^test_broken.py:[0-9]+: KeyError", printed, re.MULTILINE)
        assert "This is your transport's own exception" in printed


def test_one_check_of_a_broken_transport_fails(tmp_path: Path) -> None:
    """A check that is run without the smoke check fails in one line, and is never skipped."""
    printed = checked(tmp_path, SUITES["blocking"], "-k", "test_request_line")
    assert re.search(r"=+ [0-9]{3} deselected, 1 error in", printed), printed[-2000:]
    assert "the smoke check fails with KeyError: run TestBroken::test_smoke first" in printed
    assert "given:" not in printed
