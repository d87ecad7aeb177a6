"""What the client for trio imports."""

from __future__ import annotations

import subprocess
import sys

CHEAP = """
import sys, muybridge
assert not {"trio", "httptools", "requests"} & set(sys.modules)
muybridge.TrioClient
muybridge.TrioTransport
assert "trio" in sys.modules
assert not {"requests", "urllib3"} & set(sys.modules)
"""


def test_import() -> None:
    """The client for trio is imported when it is asked for, and without requests."""
    subprocess.run([sys.executable, "-c", CHEAP], check=True)  # noqa: S603  # this very interpreter
