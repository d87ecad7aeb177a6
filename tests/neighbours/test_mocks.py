"""Under a mock a paid request goes to the mock or nowhere, whatever it is made with."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import requests
import requests_mock
import responses
import urllib3
import vcr
import yaml

import muybridge

from .conftest import KEY, PICTURE, Studio, record

IMAGE = muybridge.ImgbRequest(model="imgb-2", prompt="a horse")
ANYTHING = re.compile(".*")
MOCKED = record("task-of-the-mock")

Mock = Callable[..., AbstractContextManager[None]]


@contextmanager
def by_requests_mock(_: Path, *, has_response: bool) -> Generator[None]:
    """Mock with requests-mock."""
    with requests_mock.Mocker() as mocker:
        if has_response:
            mocker.post(requests_mock.ANY, json=MOCKED)
        yield


@contextmanager
def by_responses(_: Path, *, has_response: bool) -> Generator[None]:
    """Mock with responses."""
    with responses.RequestsMock(assert_all_requests_are_fired=False) as mocker:
        if has_response:
            mocker.post(ANYTHING, json=MOCKED)
        yield


@contextmanager
def by_vcrpy(folder: Path, *, has_response: bool) -> Generator[None]:
    """Mock with a cassette of vcrpy, which records nothing."""
    cassette = folder / "cassette.yaml"
    request = {"method": "POST", "uri": "http://any/", "body": "", "headers": {}}
    response = {
        "status": {"code": 200, "message": "OK"},
        "headers": {"Content-Type": ["application/json"]},
        "body": {"string": json.dumps(MOCKED)},
    }
    recorded = [{"request": request, "response": response}] if has_response else []
    cassette.write_text(yaml.safe_dump({"interactions": recorded, "version": 1}))
    with vcr.use_cassette(str(cassette), record_mode="none", match_on=["method"]):
        yield


@pytest.fixture(params=[by_requests_mock, by_responses, by_vcrpy])
def mock(request: pytest.FixtureRequest) -> Mock:
    """A mock of each kind in turn."""
    made: Mock = request.param
    return made


@pytest.fixture(params=["new", "used"])
def used(request: pytest.FixtureRequest, studio: Studio) -> int:
    """How many creates the client has sent before it is mocked; it keeps a connection then."""
    if request.param == "used":
        studio.client.create(IMAGE)
    return studio.posts


def test_a_mocked_create(studio: Studio, mock: Mock, used: int, tmp_path: Path) -> None:
    """A create has the mock's response, and nothing goes to the network."""
    with mock(tmp_path, has_response=True):
        assert studio.client.create(IMAGE).id == "task-of-the-mock"
    assert studio.posts == used


def test_no_response(studio: Studio, mock: Mock, used: int, tmp_path: Path) -> None:
    """A create that the mock refuses was not sent, and is not sent again; the key is not shown."""
    with mock(tmp_path, has_response=False), pytest.raises(muybridge.NotSent) as caught:
        studio.client.create(IMAGE)
    assert studio.posts == used
    assert "a mock has no response for it" in str(caught.value)
    assert KEY not in str(caught.value)
    assert studio.url not in str(caught.value)


def test_an_unexpected_poll(studio: Studio, mock: Mock, tmp_path: Path) -> None:
    """A poll that the mock refuses ends the wait: it is not retried until the wait's end."""
    task = studio.client.create(IMAGE)
    with mock(tmp_path, has_response=False), pytest.raises(muybridge.ServiceUnreachable):
        studio.client.wait(task)


@pytest.mark.parametrize("error", [requests.ConnectionError, requests.ReadTimeout, OSError])
def test_a_mocked_failure(studio: Studio, error: type[Exception]) -> None:
    """A create that fails in a mock's hands may have been sent, whatever the mock raises."""
    with requests_mock.Mocker() as mocker:
        mocker.post(requests_mock.ANY, exc=error(f"for {studio.url}"))
        with pytest.raises(muybridge.CreateAmbiguous) as caught:
            studio.client.create(IMAGE)
    assert error.__name__ in str(caught.value)
    assert studio.url not in str(caught.value)
    assert mocker.call_count == 1


def test_a_replaced_part_of_urllib3(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    """A create that fails in what replaces urllib3's sending may have been sent."""
    calls: list[object] = []

    def urlopen(*arguments: object, **_: object) -> None:
        calls.append(arguments)
        raise ConnectionResetError(errno.ECONNRESET, "lost")

    monkeypatch.setattr(urllib3.HTTPConnectionPool, "urlopen", urlopen)
    with pytest.raises(muybridge.CreateAmbiguous):
        studio.client.create(IMAGE)
    assert (len(calls), studio.posts) == (1, 0)


@pytest.mark.parametrize("mock", [by_requests_mock, by_responses, by_vcrpy])
def test_afterwards(studio: Studio, mock: Mock, tmp_path: Path) -> None:
    """When the mock is gone, requests go to the service again."""
    with mock(tmp_path, has_response=True):
        studio.client.create(IMAGE)
    assert studio.client.create(IMAGE).id == "task-1"
    assert studio.posts == 1


def test_recording(studio: Studio, tmp_path: Path) -> None:
    """vcrpy records a whole lifecycle and plays it back; the key is not in the cassette."""
    cassette = tmp_path / "cassette.yaml"

    def run() -> bytes:
        with vcr.use_cassette(str(cassette), record_mode="once"):
            result = studio.client.run(IMAGE)
            return studio.client.download(result, tmp_path).read_bytes()

    assert run() == PICTURE
    assert b"GET /picture.png?signature=1 " in studio.server.received
    for saved in tmp_path.glob("*.png"):
        saved.unlink()
    arrived = len(studio.server.received)
    assert run() == PICTURE
    assert len(studio.server.received) == arrived
    assert studio.posts == 1
    assert KEY not in cassette.read_text()
