"""A process that forks one of its own for each call, so that its memory can be measured.

It reads orders from its standard input, a JSON object a line, and answers each with another.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from client.answers import ASKED, MODEL
from client.drivers import AnyStream
from client.requests_made import image
from muybridge import MuybridgeError
from muybridge.drivers import text_calls

from .bad_variants import VARIANTS
from .clients import DRIVERS, requests_driver
from .hostile_server import TASK_ID

__all__ = ["text_calls"]  # what a client loads with its first text is there before it is measured

STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


def _kilobytes(name: str) -> int:
    found = re.search(rf"{name}:\s+([0-9]+) kB", STATUS.read_text())
    assert found is not None
    return int(found[1])


def measured(order: dict[str, Any]) -> dict[str, Any]:
    """Make one call, and return what came of it and the bytes that the process grew by."""
    with ExitStack() as closing:
        variant = order.get("variant")
        driver = DRIVERS[order["driver"]]
        made = (
            requests_driver(closing, None, lambda _: VARIANTS[variant]())
            if variant
            else driver(closing, None)
        )
        client = made(order["url"], timeout=order["timeout"]).client
        client.get(TASK_ID)  # so that what is made once is there
        limit: Any = order.get("size_limit")

        def read(stream: AnyStream[Any]) -> None:
            with stream:
                for _ in stream:
                    pass

        calls = {
            "create": lambda: client.create(image()),
            "get": lambda: client.get(TASK_ID),
            "delete": lambda: client.delete_asset("asset-1"),
            "download": lambda: client.download(
                f"{order['url']}/media/a.png", order["folder"], size_limit=limit
            ),
            "text": lambda: client.generate_content(MODEL, "x", size_limit=limit),
            "text stream": lambda: read(
                client.stream_generate_content(MODEL, "x", size_limit=limit)
            ),
            "messages stream": lambda: read(client.stream_messages(ASKED, size_limit=limit)),
        }
        gc.collect()
        RESET.write_text("5")  # the peak begins here
        before = _kilobytes("VmRSS")
        try:
            value = calls[order["call"]]()
        except MuybridgeError as error:
            outcome, candidate = type(error).__name__, getattr(error, "candidate_id", None)
        else:
            outcome, candidate = "ok", getattr(value, "id", None)
        peak = _kilobytes("VmHWM")
    return {"outcome": outcome, "id": candidate, "growth": (peak - before) * 1024}


def main() -> None:
    """Take orders until there are no more."""
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                print(json.dumps(measured(json.loads(line))), flush=True)  # noqa: T201  the answer
                os._exit(0)
            except BaseException as error:  # noqa: BLE001  told to the test by its own words
                print(json.dumps({"outcome": f"{error!r}", "growth": 0}), flush=True)  # noqa: T201  the answer
            finally:
                os._exit(1)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
