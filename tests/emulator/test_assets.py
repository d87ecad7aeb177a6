"""The asset library (specification, "Asset endpoints")."""

from __future__ import annotations

import pytest

from emulator.caller import LATER, MIDNIGHT, Caller, new_emulator, read

PATH = "/v1/vidsb/videos"
BODY = {"model": "vidsb_2_0_pro", "prompt": "x"}


@pytest.fixture
def caller() -> Caller:
    return Caller(new_emulator(assets=("asset-1", "asset-2")))


def test_an_asset_is_deleted_once(caller: Caller) -> None:
    """Deleting an asset answers code "0" once, and another code ever after."""
    first = read(caller.send("DELETE", "/vidsb/asset/asset-1"))
    assert first == {"code": "0", "msg": "the asset was deleted", "data": None}
    assert caller.emulator.assets == {"asset-2"}
    second = read(caller.send("DELETE", "/vidsb/asset/asset-1"))
    assert second == {"code": "1", "msg": "the asset does not exist", "data": None}


def test_an_unknown_asset_is_not_deleted(caller: Caller) -> None:
    """An asset that never existed answers another code than "0"."""
    assert read(caller.send("DELETE", "/vidsb/asset/nothing"))["code"] != "0"


@pytest.mark.parametrize(
    "use",
    [
        {"first_image": "asset://asset-1"},
        {"first_image": "https://example.com/a.png", "last_image": "asset://asset-1"},
        {"referenceImages": ["https://example.com/a.png", "asset://asset-1"]},
    ],
)
def test_a_task_uses_an_asset_wherever_it_stands(caller: Caller, use: dict[str, object]) -> None:
    """A task with a known asset is completed, and fails if the asset goes before it ends."""
    caller.create(PATH, {**BODY, **use})
    caller.create(PATH, {**BODY, **use})
    assert caller.result("task-1", LATER)["status"] == "completed"
    caller.now = MIDNIGHT + 29
    caller.send("DELETE", "/vidsb/asset/asset-1")
    unfinished = caller.result("task-2")
    assert (unfinished["status"], unfinished["error"]) == ("processing", None)
    failed = caller.result("task-2", LATER)
    assert (failed["status"], failed["video_url"]) == ("failed", None)
    assert failed["error"] == "asset asset-1 was deleted"


def test_a_finished_task_keeps_its_result_when_its_asset_goes(caller: Caller) -> None:
    """Deleting an asset does not change a terminal task."""
    caller.create(PATH, {**BODY, "first_image": "asset://asset-1"})
    before = caller.result("task-1", LATER)
    caller.send("DELETE", "/vidsb/asset/asset-1")
    assert caller.result("task-1") == before


@pytest.mark.parametrize(
    ("asset", "error"),
    [("asset-1", "asset asset-1 was deleted"), ("other", "asset other does not exist")],
)
def test_a_missing_asset_makes_a_task_fail(caller: Caller, asset: str, error: str) -> None:
    """A task with an unknown or deleted asset is accepted, and ends failed."""
    caller.send("DELETE", "/vidsb/asset/asset-1")
    record = caller.create(PATH, {**BODY, "referenceImages": [f"asset://{asset}"]})
    assert (record["status"], record["error"]) == ("queued", None)
    result = caller.result(record["id"], LATER)
    assert (result["status"], result["error"]) == ("failed", error)
