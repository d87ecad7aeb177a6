"""A database vanishes without a reset, in each phase of a create: no id is lost or doubled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from muybridge.batch import SharedBatch

from .namespaces import CREATES, LOST, PHASES

if sys.platform != "linux":
    pytest.skip("network namespaces are Linux's", allow_module_level=True)

TESTS = Path(__file__).parents[1]
AS_ROOT = [] if os.geteuid() == 0 else ["--map-root-user"]


def in_a_namespace(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a network namespace of its own."""
    try:
        return subprocess.run(  # noqa: S603  our own
            ["unshare", *AS_ROOT, "--net", *command],  # noqa: S607  the one that is installed
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
            timeout=300,
        )
    except FileNotFoundError as error:
        pytest.skip(f"network namespaces need {error.filename}")


@pytest.fixture(scope="module", autouse=True)
def _allowed() -> None:
    done = in_a_namespace("ip", "link", "add", "near", "type", "veth", "peer", "far")
    if done.returncode:
        pytest.skip(f"network namespaces are not allowed here: {done.stderr.strip()}")


@pytest.mark.nightly
@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("phase", PHASES)
def test_a_database_that_vanishes(phase: str, lost: str, shared: SharedBatch) -> None:
    """Whatever is lost, each accepted create is made once and downloaded.

    If the response to arming is lost, the create is not sent, and a person is asked about it. This
    may also happen to another create, which is arming while the first one is in the phase.
    """
    done = in_a_namespace(sys.executable, "-m", "batch.namespaces", phase, lost, str(shared.store))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["heard"] >= 1
    assert (found["doubles"], found["wrong"], found["strays"]) == ([], [], 0)
    unsent = found["states"].pop("ambiguous", 0)
    arming = CREATES if (phase, lost) == ("arming", "responses") else CREATES - 1
    assert unsent <= (0 if lost == "requests" else arming)
    assert found["states"] == {"downloaded": 6 - unsent}
    assert found["posts"] == 6 - unsent
