"""The operations that a fault is committed on: one entry here is one more column of the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

import attrs

import muybridge
from client.answers import MODEL
from client.drivers import AnyStream
from muybridge.batch import Report, Stage
from muybridge_protocol.records.tasks import Result, Task

from .clients import Driven
from .hostile_server import ASSET_ID, SIGNATURE, TEXTS

OK = "ok"
UNDECIDED = "undecided"
"""What a check could not find out: nothing is refused because of it."""
UNFIT = "unfit"
"""What a check found to break a rule."""
WORDS = (OK, UNDECIDED, UNFIT)
"""The outcomes that are no error's name."""
SHORTENED = "shortened"
"""A text that was taken for whole and is not: the outcome of no row."""
MEBIBYTES_8 = 8 * 1024**2


@attrs.frozen(kw_only=True)
class Setting:
    """What an operation is done with.

    Attributes:
        url: The base URL.
        folder: Where files go.
        task: What is asked for.
        link: What is downloaded or checked, or None for a link of this service.
        prompt: The prompt of a create or text request, which is its mark in the books.
        patience: Seconds that waiting, downloading and a text request may take.
        size_limit: Most bytes of a text, or of one event of a streamed one.
    """

    url: str
    folder: Path
    task: Task | Result | str
    link: str | None
    prompt: str
    patience: float
    size_limit: int = MEBIBYTES_8

    def request(self) -> muybridge.MediaRequest:
        return muybridge.ImgaRequest(model="imga", prompt=self.prompt)


@attrs.frozen(kw_only=True)
class Operation:
    """One kind of call.

    Attributes:
        run: Does it, and returns what comes of it.
        paid: Whether it costs money.
        once: Whether one deadline holds for all of its tries.
        told: Returns the outcome that a value stands for.
    """

    run: Callable[[Driven, Setting], Any]
    paid: bool = False
    once: bool = False
    told: Callable[[Any], str] = lambda _: OK


def _download(driven: Driven, setting: Setting) -> Path:
    link = setting.link or f"{setting.url}/media/a.png?{SIGNATURE}"
    return driven.client.download(link, setting.folder / "a.png", timeout=setting.patience)


def _check(driven: Driven, setting: Setting) -> muybridge.MediaReport:
    link = setting.link or f"{setting.url}/media/a.wav?{SIGNATURE}"
    request = muybridge.VidsbRequest(
        model="vidsb_2_0_pro", prompt=setting.prompt, reference_audios=[link]
    )
    return driven.client.check(request, timeout=setting.patience)


def _check_outcome(report: muybridge.MediaReport) -> str:
    if not report.ok:
        return UNFIT
    return UNDECIDED if report.undecided else OK


def _batch(driven: Driven, setting: Setting) -> Report:
    return driven.batch([setting.request()], setting.folder / "batch")


_STATES = {
    Stage.AMBIGUOUS: "CreateAmbiguous",
    Stage.QUEUED: "NotSent",
    Stage.REFUSED: "Refused",
}
"""What became of the create of a batch's one item; in every other state it has its id."""


def _batch_outcome(report: Report) -> str:
    (entry,) = report.entries
    return _STATES.get(entry.state, OK)


class _Bounds(TypedDict):
    timeout: float
    size_limit: int


def _bounds(setting: Setting) -> _Bounds:
    return {"timeout": setting.patience, "size_limit": setting.size_limit}


def _text(driven: Driven, setting: Setting) -> muybridge.GenerateContentResponse:
    return driven.client.generate_content(MODEL, setting.prompt, **_bounds(setting))


def _text_stream(driven: Driven, setting: Setting) -> list[Any]:
    return _read(driven.client.stream_generate_content(MODEL, setting.prompt, **_bounds(setting)))


def _messages_stream(driven: Driven, setting: Setting) -> list[Any]:
    body = {"model": MODEL, "messages": [{"role": "user", "content": setting.prompt}]}
    return _read(driven.client.stream_messages(body, **_bounds(setting)))


def _read(stream: AnyStream[Any]) -> list[Any]:
    with stream:
        return [getattr(chunk, "raw", chunk) for chunk in stream]


def _text_outcome(response: muybridge.GenerateContentResponse) -> str:
    return _whole([response.raw])


def _whole(records: list[Any]) -> str:
    """Return the outcome that records with an answer stand for: it is whole, or it is not."""
    texts = [record["candidates"][0]["content"]["parts"][0]["text"] for record in records]
    return OK if "".join(texts) == "".join(TEXTS) else SHORTENED


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
    "download": Operation(run=_download, once=True),
    "check": Operation(run=_check, once=True, told=_check_outcome),
    "text": Operation(run=_text, paid=True, once=True, told=_text_outcome),
    "text stream": Operation(run=_text_stream, paid=True, once=True, told=_whole),
    # The other protocols go the same way: they differ in what an event means.
    "messages stream": Operation(run=_messages_stream, paid=True, once=True, told=_whole),
}
"""By name. One more entry is one more column: `test_table.py` then asks each row about it."""
