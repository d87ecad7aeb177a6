"""Whether users of a store that cannot be used are refused, in time and with the right words."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from muybridge.purchases import StoreUnusable

TOLD = r"Nothing (more )?is sent\. Make the database reachable and writable"


def refused(*uses: Callable[[], object]) -> None:
    """Use a store in several threads: each is refused, and told what to do, within 30 seconds."""
    told: list[object] = []

    def run(use: Callable[[], object]) -> None:
        try:
            told.append(f"it returned {use()}")
        except Exception as error:  # noqa: BLE001  it is looked at below
            told.append(error)

    threads = [threading.Thread(target=run, args=(use,), daemon=True) for use in uses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive(), "it waits for more than 30 seconds"
    assert len(told) == len(uses)
    for error in told:
        assert isinstance(error, StoreUnusable), repr(error)
        assert re.search(TOLD, str(error)), error
