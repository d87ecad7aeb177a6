"""Local files in requests: what is sent of them, and that nothing else shows their content."""

from __future__ import annotations

import base64
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

import muybridge
from media.corpus import picture
from muybridge_protocol.http import HttpRequest, HttpResponse, Phase, Reason, TransportFailure

from .drivers import MakeClient
from .in_process import World

DATA = picture("BMP", 300, 300)
CONTENT = base64.b64encode(DATA).decode()
SAMPLES = [CONTENT[at : at + 40] for at in range(0, len(CONTENT), len(CONTENT) // 20)]
"""Pieces of the content that must not be seen."""


class Recording(World):
    """A service that keeps the requests that it is sent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.bodies: list[bytes | None] = []

    def answer(self, request: HttpRequest, authorization: str | None) -> HttpResponse:
        self.bodies.append(request.body)
        return super().answer(request, authorization)


def request_with(media: str | muybridge.InlineMedia) -> muybridge.MediaRequest:
    return muybridge.VidgRequest(model="vidg_video3", prompt="A horse", image_urls=[media])


def shows_nothing(text: str) -> bool:
    return not any(sample in text for sample in SAMPLES)


def test_the_content_is_sent(make_client: MakeClient, tmp_path: Path) -> None:
    """A file is sent as a `data:` URI, and the task runs to its result."""
    path = tmp_path / "horse.bmp"
    path.write_bytes(DATA)
    world = Recording()
    result = make_client(world).run(request_with(muybridge.load_media(path)))
    assert result.status == "completed"
    assert f'"data:image/bmp;base64,{CONTENT}"'.encode() in (world.bodies[0] or b"")


@pytest.mark.parametrize("kind", [str, muybridge.InlineMedia])
def test_reprs_show_no_content(kind: type[object]) -> None:
    """A request, its body and its errors show the type and the size of a file."""
    media = muybridge.load_media(DATA)
    text = media.data_uri()
    request = request_with(text if kind is str else media)
    said = repr(request)
    assert shows_nothing(said)
    assert len(said) < 200
    assert f"{len(text):,} characters" in said if kind is str else f"{len(DATA):,} bytes" in said
    with pytest.raises(muybridge.InvalidRequest) as caught:
        muybridge.ViddRequest(
            model="viddq3-pro",
            prompt="-",
            first_image=request.to_body()["image_urls"][0],  # type: ignore[index]  # a list
        )
    assert shows_nothing(f"{caught.value} {caught.value!r}")


def test_logs_and_errors_show_no_content(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    """No log, event or traceback of a paid request has the content of its file."""
    caplog.set_level(logging.DEBUG)
    heard: list[object] = []
    world = World()
    lost = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.RESET)
    world.instead.append(lost)
    client = make_client(world, on_event=heard.append)
    with pytest.raises(muybridge.CreateAmbiguous) as caught:
        client.run(request_with(muybridge.load_media(DATA)))
    shown = "".join(traceback.format_exception(caught.value))
    assert shows_nothing(f"{shown} {caught.value!r} {heard!r} {caplog.text}")


def test_files_are_checked_without_being_fetched(make_client: MakeClient) -> None:
    """`check` reads a file in a request from memory, and calls it by its name."""
    media = muybridge.InlineMedia(DATA, name="horse.bmp")
    report = make_client("https://service.test").check(request_with(media))
    (medium,) = report.media
    assert (medium.source, medium.facts) == ("horse.bmp", media.facts)
    assert report.ok
