"""A Celery task that pays once, however often its worker is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from batch.billing import BillingServer
from processes import environment

from .spender import STEPS

pytestmark = pytest.mark.skipif(find_spec("celery") is None, reason="celery is not installed")

WORKER = ("-m", "celery", "-A", "ledger.celery_app", "worker", "-P", "prefork", "-c", "8")
# These happen once in a ledger's life.
AGAIN = tuple(step for step in STEPS if "creating" not in step)


@pytest.mark.parametrize(
    "steps",
    [AGAIN, pytest.param([*AGAIN] * (1000 // len(AGAIN) + 1), marks=pytest.mark.nightly)],
    ids=["few", "many"],
)
def test_killed_workers(tmp_path: Path, steps: Sequence[str]) -> None:
    """Celery runs a killed task again: it gets its task, or says that it is ambiguous."""
    for name in ("queue", "control", "results", "killed"):
        (tmp_path / name).mkdir()
    kills = len(steps)
    with BillingServer() as server:
        settings = environment(LEDGER_TEST_FOLDER=str(tmp_path), LEDGER_TEST_URL=server.url)
        worker = subprocess.Popen(  # noqa: S603  our own program
            [sys.executable, *WORKER],
            env={**settings, "C_FORCE_ROOT": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            sent = subprocess.run(  # noqa: S603  the same
                [sys.executable, "-m", "ledger.celery_app", *steps],
                env=settings,
                capture_output=True,
                text=True,
                timeout=180 + 5 * kills,
                check=False,
            )
        finally:
            worker.send_signal(signal.SIGTERM)
            said = worker.communicate(timeout=60)[0]
        assert sent.returncode == 0, (sent.stderr, said[-3000:])
        ended: dict[str, str] = json.loads(sent.stdout)
        assert server.doubles == []
        paid = {prompt.replace("horse", "order") for prompt in server.accepted}
    assert len(ended) == kills
    assert set(ended.values()) <= {"Task", "CreateAmbiguous"}
    assert {order for order, how in ended.items() if how == "Task"} <= paid
    # What was paid for without a token to show for it is known to be ambiguous.
    assert all(ended[order] in ("Task", "CreateAmbiguous") for order in paid)
    for order, how in ended.items():
        step = steps[int(order.removeprefix("order "))]
        certain = ("enlisting", "summing up", "writing a row", "before arming")
        if step.endswith(certain):
            assert how == "Task", step
    assert said.count("signal 9 (SIGKILL)") >= kills, said[-3000:]
