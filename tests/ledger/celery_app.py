"""The Celery task of docs/budgets.md on a broker in a folder, killed at a given step.

`python -m ledger.celery_app STEP...` sends one order for each step, and prints how each ended.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import muybridge

from .spender import KEY, STEPS

PLACE = Path(os.environ["LEDGER_TEST_FOLDER"])

# Imported by its name: not every environment has it.
app: Any = import_module("celery").Celery(
    "orders", broker="filesystem://", backend=(PLACE / "results").as_uri()
)
app.conf.worker_lost_wait = 0.1
app.conf.broker_transport_options = {
    "data_folder_in": str(PLACE / "queue"),
    "data_folder_out": str(PLACE / "queue"),
    "control_folder": str(PLACE / "control"),
}


def make_picture(order: str, prompt: str) -> str:
    url, budget = os.environ["LEDGER_TEST_URL"], muybridge.Budget(creates=10_000)
    with muybridge.Client(KEY, url, ledger=PLACE / "l.sqlite3", budget=budget) as client:
        request = muybridge.ImgbRequest(model="imgb-2", prompt=prompt)
        return client.create_once(order, request).to_token()


@app.task(name="picture", acks_late=True, reject_on_worker_lost=True)
def picture(order: str, prompt: str, step: str) -> str:
    """Kill this worker at *step* once; Celery then runs the task again in another one."""
    killed = PLACE / "killed" / order
    try:
        killed.touch(exist_ok=False)
    except FileExistsError:
        pass
    else:
        STEPS[step](1)
    return make_picture(order, prompt)


def main(steps: list[str]) -> None:
    sent = {
        f"order {number}": picture.delay(f"order {number}", f"horse {number}", step)
        for number, step in enumerate(steps)
    }
    ended: dict[str, str] = {}
    for order, result in sent.items():
        outcome = result.get(timeout=600, propagate=False)
        ended[order] = "Task" if isinstance(outcome, str) else type(outcome).__name__
    print(json.dumps(ended))  # noqa: T201  the test reads it


if __name__ == "__main__":
    main(sys.argv[1:])
