"""The DBOS workflow of docs/budgets.md, whose process kills itself at a given step.

`python -m ledger.dbos_app ORDER [STEP]` runs the workflow of an order, or recovers it, and prints
how it ended.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import muybridge

from .spender import KEY, STEPS

# Imported by its name: not every environment has it.
dbos: Any = import_module("dbos")
DBOS = dbos.DBOS
PLACE = Path(os.environ["LEDGER_TEST_FOLDER"])


@DBOS.step()
def make_picture(order: str) -> str:
    url, budget = os.environ["LEDGER_TEST_URL"], muybridge.Budget(creates=10_000)
    with muybridge.Client(KEY, url, ledger=PLACE / "l.sqlite3", budget=budget) as client:
        request = muybridge.ImgbRequest(model="imgb-2", prompt=f"a horse for {order}")
        return client.create_once(order, request).to_token()


@DBOS.workflow()
def fulfil(order: str) -> str:
    return str(make_picture(order))


def main(order: str, step: str | None = None) -> None:
    database = f"sqlite:///{PLACE / 'dbos.sqlite'}"
    DBOS(config={"name": "orders", "system_database_url": database, "run_admin_server": False})
    if step is not None:
        STEPS[step](1)
    DBOS.launch()  # which also resumes what a killed process has left
    with dbos.SetWorkflowID(order):
        running = DBOS.start_workflow(fulfil, order)
    try:
        running.get_result()
    except muybridge.MuybridgeError as error:
        print(type(error).__name__)  # noqa: T201  the test reads it
    else:
        print("Task")  # noqa: T201  the same
    DBOS.destroy()


if __name__ == "__main__":
    main(*sys.argv[1:])
