"""Clients of many processes on one store, while everything fails that can: paid once each.

The service counts. A name is paid for at most once, and nothing is sent under it once it may have
been accepted; all names together stay within the budget, of which every such request is a part.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from batch.billing import BillingServer, Fault, at_random
from muybridge import Budget, Client, CreateAmbiguous, ImgbRequest, OverBudget, Task
from processes import Nursery

from .spender import KEY

HARMLESS = frozenset({Fault.THROTTLED, Fault.REFUSED})
"""The faults after which a request certainly did nothing."""
WEIGHTS = {
    Fault.NONE: 4, Fault.ACCEPTED_RESET: 1, Fault.ACCEPTED_CUT: 1, Fault.LOST_RESET: 1,
    Fault.LOST_GATEWAY: 1, Fault.REFUSED: 1, Fault.THROTTLED: 10,
}  # fmt: skip
ORDERS = [(f"order {number}", f"horse {number}") for number in range(40)]
"""Names, and what is asked for under them."""
WORKERS = {"requests": 8, "trio": 4, "asyncio": 4}
CAP = 30


@pytest.fixture(scope="module")
def nurseries() -> Iterator[list[Nursery]]:
    """What forks four processes at once."""
    with ExitStack() as stack:
        yield [stack.enter_context(Nursery("purchases.spender")) for _ in range(4)]


def spent_names(server: BillingServer) -> dict[str, bool]:
    """Return the prompts that may have been paid for, and whether they were accepted.

    Each of them was sent no more after that, and accepted at most once.
    """
    found: dict[str, bool] = {}
    for prompt, faults in server.asked.items():
        *before, last = faults
        assert HARMLESS.issuperset(before), f"{prompt} was sent again: {', '.join(faults)}"
        assert len(server.accepted[prompt]) <= 1
        if last not in HARMLESS:
            found[prompt] = bool(server.accepted[prompt])
    return found


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 30))]
)
def test_everything_at_once(nurseries: list[Nursery], tmp_path: Path, seed: int) -> None:
    """Whatever fails, and whoever is killed, no name is paid twice, and the budget is kept."""
    store = tmp_path / "store.sqlite3"
    with BillingServer(at_random(seed, WEIGHTS)) as server, ThreadPoolExecutor(4) as pool:

        def at_once(number: int, fails: float) -> list[Any]:
            order: dict[str, Any] = {
                "url": server.url, "store": str(store), "workers": WORKERS, "cap": CAP,
                "unsent": 0.2, "fails": fails,
            }  # fmt: skip
            seeds = range(seed * 1000 + number, seed * 1000 + number + 4)
            pids = [
                nursery.start(**order, seed=one, orders=random.Random(one).choices(ORDERS, k=128))  # noqa: S311  names, not secrets
                for nursery, one in zip(nurseries, seeds, strict=True)
            ]
            running = [pool.submit(nursery.wait) for nursery in nurseries]
            if number == 0:
                mortal = pids[seed % 4]

                def kill(_: str) -> None:
                    if server.posts == 30:
                        os.kill(mortal, signal.SIGKILL)

                server.on_create = kill
            return [one.result() for one in running]

        told = [at_once(number, fails) for number, fails in ((0, 0.1), (10, 0.1))]
        assert told[0].count(-signal.SIGKILL) == 1
        spent = spent_names(server)
        assert len(spent) <= CAP

        posts = server.posts
        with Client(KEY, server.url, store=store) as client:
            for name, prompt in ORDERS:
                request = ImgbRequest(model="imgb-2", prompt=prompt)
                if prompt in spent:
                    ended = _ended(client, name, request)
                    assert ended is CreateAmbiguous or spent[prompt]
        with (
            Client(KEY, server.url, store=store, budget=Budget(creates=len(spent))) as client,
            pytest.raises(OverBudget),
        ):
            client.create(ImgbRequest(model="imgb-2", prompt="one horse more"))
        assert server.posts == posts


def _ended(client: Client, name: str, request: ImgbRequest) -> type[Task | CreateAmbiguous]:
    try:
        return type(client.create_once(name, request))
    except CreateAmbiguous as error:
        return type(error)
