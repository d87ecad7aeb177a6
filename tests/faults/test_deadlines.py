"""Cases 3, 6, 10, 14 and 24 to 26: every call ends at its time, on total time.

That a call ends at all, and well, is tried for each row in `test_cells.py`. How long it takes is
measured here, in the nightly run alone: a busy machine is no fault.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from transport.scripted_server import deaf_port

from .cells import Surroundings
from .clients import DRIVERS
from .hostile_server import HostileServer
from .operations import OK, OPERATIONS, Setting
from .rows import Row, Where
from .table import ROWS

TIMEOUT = 1.0
SLACK = 0.5
TRIES = {"get": 3, "delete": 4}
"""How often one is tried whose tries each have the time for one exchange."""
UNSENT_TRIES = {"create": 3, "batch": 3, "call": 3, **TRIES}
"""The same where nothing is sent."""
HANGING = [row for row in ROWS if row.hangs]


@pytest.mark.nightly
@pytest.mark.parametrize("row", HANGING, ids=lambda row: row.name)
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("driver", DRIVERS)
def test_total_time(
    around: Surroundings, driver: str, scheme: str, row: Row, tmp_path: Path
) -> None:
    """However slowly a response comes, no exchange takes longer than its time and half a second."""
    if scheme not in row.schemes:
        pytest.skip("the fault is not one of this scheme")
    for name in set(row.always) - {"batch"}:
        tls = around.contexts[row.certificate]
        with (
            ExitStack() as closing,
            HostileServer(
                on_connection=row.on_connection, on_request=row.on_request, scheme=scheme, tls=tls
            ) as server,
        ):
            url = server.url
            if row.where is Where.DEAF:
                url = f"{scheme}://127.0.0.1:{closing.enter_context(deaf_port())}"
            driven = DRIVERS[driver](closing, around.trust)(url, timeout=TIMEOUT)
            setting = Setting(
                url=url,
                folder=tmp_path,
                task="task-1",
                link=None,
                prompt="horse" * (1_000_000 if row.long else 1),
                patience=TIMEOUT,
            )
            began = time.monotonic()
            outcome = None
            with suppress(Exception):  # which one is the table's matter
                outcome = OPERATIONS[name].told(OPERATIONS[name].run(driven, setting))
            took = time.monotonic() - began
        assert outcome != OK, name
        unsent = row.always[name] in ("NotSent", "ServiceUnreachable") and row.point in (
            "connecting",
            "the handshake",
        )
        tries = (UNSENT_TRIES if unsent else TRIES).get(name, 1)
        assert took <= tries * (TIMEOUT + SLACK), name
