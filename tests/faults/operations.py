"""The operations that a fault is committed on: one entry here is one more column of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs

import muybridge
from muybridge.batch import Report, State
from muybridge_protocol.tasks import Result, Task

from .clients import Driven
from .hostile_server import ASSET_ID, SIGNATURE

OK = "ok"


@attrs.frozen(kw_only=True)
class Setting:
    """What an operation is done with.

    Attributes:
        url: The base URL.
        folder: Where files go.
        task: What is asked for.
        link: What is downloaded, or None for a link of this service.
        prompt: The prompt of a create, which is its mark in the books.
        patience: Seconds that waiting and downloading may take.
    """

    url: str
    folder: Path
    task: Task | Result | str
    link: str | None
    prompt: str
    patience: float

    def request(self) -> muybridge.MediaRequest:
        return muybridge.ImgaRequest(model="imga", prompt=self.prompt)


@attrs.frozen(kw_only=True)
class Operation:
    """One kind of call.

    Attributes:
        run: Does it, and returns what comes of it.
        paid: Whether it costs money.
        told: Returns the outcome that a value stands for.
    """

    run: Callable[[Driven, Setting], Any]
    paid: bool = False
    told: Callable[[Any], str] = lambda _: OK


def _download(driven: Driven, setting: Setting) -> Path:
    link = setting.link or f"{setting.url}/media/a.png?{SIGNATURE}"
    return driven.client.download(link, setting.folder / "a.png", timeout=setting.patience)


def _batch(driven: Driven, setting: Setting) -> Report:
    return driven.batch([setting.request()], setting.folder / "batch")


_STATES = {
    State.AMBIGUOUS: "CreateAmbiguous",
    State.QUEUED: "NotSent",
    State.REFUSED: "Refused",
}
"""What became of the create of a batch's one item; in every other state it has its id."""


def _batch_outcome(report: Report) -> str:
    (entry,) = report.entries
    return _STATES.get(entry.state, OK)


OPERATIONS: Mapping[str, Operation] = {
    "create": Operation(
        run=lambda driven, setting: driven.client.create(setting.request()), paid=True
    ),
    "batch": Operation(run=_batch, paid=True, told=_batch_outcome),
    "call": Operation(
        run=lambda driven, _: driven.client.call("POST", "/v1/any", {"prompt": "x"}),
        paid=True,
    ),
    "get": Operation(run=lambda driven, setting: driven.client.get(setting.task)),
    "wait": Operation(
        run=lambda driven, setting: driven.client.wait(setting.task, timeout=setting.patience)
    ),
    "delete": Operation(run=lambda driven, _: driven.client.delete_asset(ASSET_ID)),
    "download": Operation(run=_download),
}
"""By name. One more entry is one more column: `test_table.py` then asks each row about it."""
