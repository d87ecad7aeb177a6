"""An application with the page's DBOS workflow, in a process of its own, to be killed."""

from __future__ import annotations

import warnings
from pathlib import Path

from moments import Moment
from processes import serve

from .strikes import CREATING, CREATING_NAIVELY, SELF, Kill, Strikes
from .workers import load_recipe

_POLL = 0.02
_CHECKPOINT = Moment(
    "dbos._sys_db:SystemDatabase.record_operation_result",
    when=lambda _self, result, *_, **__: result["function_name"].startswith("create"),
)


def strikes(folder: Path, most: int, *, naive: bool) -> Strikes:
    """Return the kills of the applications in *folder*.

    Args:
        folder: The folder of the run.
        most: How many kills there are.
        naive: Whether the step is the naive one.
    """
    moments = {
        **(CREATING_NAIVELY if naive else CREATING),
        "before the checkpoint": Kill(_CHECKPOINT),
        "after the checkpoint": Kill(_CHECKPOINT, after=True),
    }
    return Strikes(folder / "kills", moments, {(name, SELF): 1 for name in moments}, most)


def work(
    folder: str, url: str, *, orders: list[str], most: int = 0, naive: bool = False
) -> list[str]:
    """Recover the workflows in *folder*, start new ones, and return the errors of the *orders*.

    Args:
        folder: The folder of the run.
        url: Where the service is.
        orders: The orders. DBOS starts one workflow for each, however often it is asked to.
        most: How many kills there are.
        naive: Whether the step is the naive one.
    """
    from dbos import DBOS

    app = load_recipe(Path(folder), url)
    strikes(Path(folder), most, naive=naive).install()
    DBOS.launch()
    for order in orders:
        app.begin(order, order)
    errors: list[str] = []
    for order in orders:
        try:
            DBOS.retrieve_workflow(order).get_result(polling_interval_sec=_POLL)
        except Exception as error:  # noqa: BLE001  the test looks at it
            errors.append(type(error).__name__)
    return errors


if __name__ == "__main__":
    warnings.resetwarnings()  # other people's libraries may warn
    serve(
        work,
        "dbos",
        "sqlalchemy.dialects.sqlite",
        "muybridge.purchases.once",
        "muybridge.purchases.sqlite",
        "muybridge.wire.requests_transport",
        "muybridge_protocol.families.imgb",
    )
