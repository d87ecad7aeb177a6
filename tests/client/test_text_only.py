"""A client without a base URL: it is there for text, and says so where that is not enough."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muybridge
from muybridge import InvalidAddress, batch

from .drivers import AnyClient, MakeClient

TEXT = "http://127.0.0.1:9"
REQUEST = muybridge.ImgaRequest(model="imga", prompt="a horse")

CALLS: dict[str, Callable[[AnyClient, Path], object]] = {
    "create": lambda client, _: client.create(REQUEST),
    "run": lambda client, _: client.run(REQUEST),
    "get": lambda client, _: client.get("task-1"),
    "wait": lambda client, _: client.wait("task-1"),
    "watch": lambda client, _: list(client.watch("task-1")),
    "download": lambda client, path: client.download("task-1", path),
    "delete_asset": lambda client, _: client.delete_asset("asset-1"),
    "call": lambda client, _: client.call("GET", "/v1/other"),
}


@pytest.mark.parametrize("name", CALLS)
def test_other_calls_say_what_is_missing(
    make_client: MakeClient, tmp_path: Path, name: str
) -> None:
    """Whatever needs the base URL is refused before anything is sent, and names its variable."""
    client = make_client("", text_base_url=TEXT)
    with pytest.raises(InvalidAddress, match=r"Set MUYBRIDGE_BASE_URL, .* Nothing was sent\."):
        CALLS[name](client, tmp_path / "horse.png")
    assert list(tmp_path.iterdir()) == []


def test_the_text_base_url_of_the_environment_is_enough(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client is made where MUYBRIDGE_TEXT_BASE_URL alone is set, and shows that address."""
    monkeypatch.setenv("MUYBRIDGE_TEXT_BASE_URL", f"{TEXT}/")
    assert TEXT in repr(make_client(""))


def test_without_an_address_both_are_named(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If there is no address at all, the variables and arguments of both are named."""
    for name in ("MUYBRIDGE_BASE_URL", "MUYBRIDGE_TEXT_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InvalidAddress) as caught:
        make_client("")
    said = str(caught.value)
    assert "Set MUYBRIDGE_BASE_URL, or give base_url." in said
    assert "set MUYBRIDGE_TEXT_BASE_URL, or give text_base_url." in said


@pytest.mark.parametrize("elsewhere", ["nonsense", "http://elsewhere.test"])
def test_an_empty_address_is_none(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, elsewhere: str
) -> None:
    """An address given as "" means none, even if the environment has one."""
    monkeypatch.setenv("MUYBRIDGE_BASE_URL", elsewhere)
    with pytest.raises(InvalidAddress, match="no base URL"):
        make_client("", base_url="", text_base_url=TEXT).get("task-1")
    monkeypatch.setenv("MUYBRIDGE_BASE_URL", TEXT)
    monkeypatch.setenv("MUYBRIDGE_TEXT_BASE_URL", "nonsense")
    with pytest.raises(InvalidAddress, match="no text base URL"):
        make_client(TEXT, text_base_url="").generate_content("textg-2.5-pro", "x")


def test_many_at_once_need_the_base_url() -> None:
    """`run_all` of many requests is refused at once, before the first is taken."""
    requests: Any = iter([REQUEST])
    with muybridge.Client("a-key", None, TEXT) as client:
        with pytest.raises(InvalidAddress), client.run_all(requests) as outcomes:
            next(outcomes)
        assert next(requests) is REQUEST


def test_a_batch_needs_the_base_url(tmp_path: Path) -> None:
    """A batch is refused before its folder is made."""
    with (
        muybridge.Client("a-key", None, TEXT) as client,
        pytest.raises(InvalidAddress, match="no base URL"),
    ):
        batch.run(client, [{"family": "imga", "model": "imga", "prompt": "x"}], tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
