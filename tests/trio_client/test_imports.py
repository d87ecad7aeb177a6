"""What the client for trio imports, and what it says where that is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHEAP = """
import sys, muybridge
assert not {"trio", "httptools", "requests"} & set(sys.modules)
muybridge.TrioClient
assert "trio" in sys.modules
muybridge.TrioTransport
assert not {"requests", "urllib3"} & set(sys.modules)
"""


def test_import() -> None:
    """The client for trio is imported when it is asked for, and without requests."""
    subprocess.run([sys.executable, "-c", CHEAP], check=True)  # noqa: S603  # this very interpreter


MISSING = """
import sys
sys.modules["{missing}"] = None
import muybridge
try:
    muybridge.{name}
except ModuleNotFoundError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("name", "missing", "extra"),
    [
        ("TrioClient", "trio", "trio"),
        ("TrioTransport", "httptools", "trio"),
        ("TrioTransport", "certifi", "trio"),
        ("RequestsTransport", "certifi", "requests"),
        ("RequestsTransport", "urllib3", "requests"),
    ],
)
def test_missing_extra(name: str, missing: str, extra: str) -> None:
    """Where an extra is missing, the error says which one, and how to install it."""
    program = MISSING.format(name=name, missing=missing)
    shown = subprocess.run(  # noqa: S603  # this very interpreter
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert shown == f'{name} needs {missing}: pip install "muybridge[{extra}]"\n'
