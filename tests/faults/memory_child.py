"""Calls in processes of their own, so that their memory can be measured."""

from __future__ import annotations

import gc
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from client.answers import ASKED, MODEL
from client.drivers import AnyStream
from client.requests_made import image
from muybridge import MuybridgeError
from muybridge.drivers import text_calls
from processes import serve

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


def measured(**order: Any) -> dict[str, Any]:
    """Make one call, and return its outcome and the bytes that the process grew by."""
    with ExitStack() as closing:
        variant = order.get("variant")
        driver = DRIVERS[order["driver"]]
        made = (
            requests_driver(closing, None, lambda _: VARIANTS[variant]())
            if variant
            else driver(closing, None)
        )
        client = made(order["url"], timeout=order.get("timeout", 20.0)).client
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


if __name__ == "__main__":
    gc.freeze()
    serve(measured)
