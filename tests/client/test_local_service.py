"""The whole way over real sockets: a request in, a picture or a film on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muybridge import ImgaRequest, Refused, TaskFailed, Unauthorized, Unlisted
from muybridge.clock import SystemClock
from muybridge.local import LocalService
from muybridge.testing import SkippingClock
from muybridge_protocol.emulator import CANCEL
from muybridge_protocol.records.tasks import Status, Task

from .drivers import AnyClient, MakeClient
from .requests_made import FAMILIES, image, small


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=500) as running:
        yield running


@pytest.fixture
def client(make_client: MakeClient, service: LocalService) -> AnyClient:
    return make_client(
        service.base_url, api_key=service.api_key, clock=SystemClock(), poll_interval=0.02
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(client: AnyClient, service: LocalService, family: str) -> None:
    """A small request of any family ends as a completed result with a link."""
    result = client.run(small()[family], timeout=30)
    assert result.status is Status.COMPLETED
    assert result.url is not None
    assert result.url.startswith(service.base_url)


ON_PURPOSE = ImgaRequest(
    model=Unlisted("imga-9"), prompt="a horse", resolution="4k", extra={"seed": [7]}
)


def test_what_is_sent_on_purpose(client: AnyClient) -> None:
    """A model and fields that are not listed are served, for media and for text."""
    assert client.run(ON_PURPOSE, timeout=30).model == "imga-9"
    assert "textg-9" in client.generate_content(Unlisted("textg-9"), "x").text


def test_a_strict_service_refuses_what_is_not_listed(make_client: MakeClient) -> None:
    """A strict service refuses a model that is not listed, for media and for text."""
    with LocalService(speed=500, strict=True) as service:
        client = make_client(service.base_url, api_key=service.api_key, clock=SystemClock())
        with pytest.raises(Refused, match="imga-9"):
            client.run(ON_PURPOSE, timeout=30)
        with pytest.raises(Refused, match="textg-9"):
            client.generate_content(Unlisted("textg-9"), "x")


def test_picture(client: AnyClient, tmp_path: Path) -> None:
    """A picture that was asked for lies on disk as a PNG."""
    path = client.download(client.run(image(), timeout=30), tmp_path)
    assert path.suffix == ".png"
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert list(tmp_path.iterdir()) == [path]


def test_film(client: AnyClient, tmp_path: Path) -> None:
    """A film that was asked for lies on disk as an MP4."""
    path = client.download(client.run(small()["videos"], timeout=30), tmp_path)
    assert path.suffix == ".mp4"
    assert path.read_bytes()[4:8] == b"ftyp"


def test_ends_without_a_result(client: AnyClient) -> None:
    """Failures and cancellations come over the wire as they are."""
    with pytest.raises(TaskFailed, match="unreachable reference image"):
        client.run(small("[fail:unreachable-reference]")["vidg"], timeout=30)
    with pytest.raises(TaskFailed, match="was cancelled"):
        client.run(small(CANCEL)["vidsa"], timeout=30)


def test_assets(client: AnyClient, service: LocalService) -> None:
    """A seeded asset can be deleted."""
    asset = max(service.emulator.assets)
    client.delete_asset(asset)
    assert asset not in service.emulator.assets


def test_wrong_key(make_client: MakeClient, service: LocalService) -> None:
    """A wrong key is reported as such, with what to check."""
    told: list[Task] = []
    client = make_client(service.base_url, api_key="wrong", on_submitted=told.append)
    with pytest.raises(Unauthorized, match="MUYBRIDGE_API_KEY"):
        client.run(image())
    assert not told


class Pauses(SkippingClock):
    """A clock that skips what is to be slept, and notes it."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        super().sleep(seconds)


def test_the_pace_of_a_local_service(make_client: MakeClient, service: LocalService) -> None:
    """A client polls a service on this machine soon, unasked, and the interval then grows."""
    clock = Pauses()
    slow = ImgaRequest(model="imga", prompt="a horse [slow:100]")
    client = make_client(service.base_url, api_key=service.api_key, clock=clock)
    assert client.run(slow, timeout=None).status is Status.COMPLETED
    assert 0 < clock.slept[0] <= 0.1
    assert max(clock.slept) <= 5 + 1e-6
