"""Orders that are DBOS workflows of an application that is killed."""

from __future__ import annotations

import signal
from pathlib import Path

from batch.billing import BillingServer
from processes import Nursery

from .audit import Audit, ambiguous_orders, audit, saved_orders
from .dbos_worker import strikes
from .recipes import save_recipe
from .strikes import Strikes
from .workers import last_output

_AT_ONCE = 4


def run(
    nursery: Nursery, folder: Path, server: BillingServer, *, kills: int, naive: bool
) -> tuple[Audit, Strikes]:
    """Kill applications while they work on orders, and return what became of the orders.

    Args:
        nursery: Forks `dbos_worker`.
        folder: The folder of the run.
        server: The service.
        kills: How many applications to kill.
        naive: Whether the step is the naive one.
    """
    recipe = folder / "orders.py"
    save_recipe("DBOS", recipe)
    if naive:
        once, always = "client.create_once(order, request)", "client.create(request)"
        code = recipe.read_text("utf-8")
        assert once in code
        recipe.write_text(code.replace(once, always), "utf-8")
    struck = strikes(folder, kills, naive=naive)
    orders: list[str] = []
    left: list[str] = []
    while left or not struck.are_over:
        if not struck.are_over:
            fresh = [f"order-{len(orders) + n}" for n in range(_AT_ONCE - len(left))]
            orders += fresh
            left += fresh
        ended = nursery.run(
            folder=str(folder), url=server.url, orders=left, most=kills, naive=naive
        )
        is_killed = ended == -signal.SIGKILL
        assert is_killed or isinstance(ended, list), last_output(folder)
        decided = saved_orders(folder) | ambiguous_orders(folder)
        left = [order for order in left if order not in decided]
        assert is_killed or not left, last_output(folder)
    return audit(folder, server, orders), struck
