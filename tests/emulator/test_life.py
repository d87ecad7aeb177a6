"""A task's life over time (specification, "States and transitions")."""

from __future__ import annotations

import attrs
import pytest

from emulator.caller import DAY, LATER, MIDNIGHT, Caller, new_emulator
from muybridge_protocol.emulator import MediaState, Timing

IMAGE = ("/v1/imga/images", {"model": "imga", "prompt": "x"})
VIDEO = ("/v1/vidd/videos", {"model": "viddq3-pro", "prompt": "x"})
VIDSA = ("/v1/vidsa/videos", {"model": "vidsa_1_5_pro_480p", "prompt": "x"})


def test_a_video_is_queued_then_processed_then_completed(caller: Caller) -> None:
    """A video waits 4 s, is processed for 26 s, and is completed from then on."""
    caller.create(*VIDEO)
    seen = [
        caller.result("task-1", MIDNIGHT + second)["status"]
        for second in (0, 3.9, 4, 29.9, 30, 31, 1000)
    ]
    assert seen == [
        "queued", "queued", "processing", "processing", "completed", "completed", "completed",
    ]  # fmt: skip


def test_all_times_are_divided_by_the_speed() -> None:
    """At speed 10 a video is completed after 3 s."""
    caller = Caller(new_emulator(timing=Timing(speed=10)))
    caller.create(*VIDEO)
    assert caller.result("task-1", MIDNIGHT + 0.39)["status"] == "queued"
    assert caller.result("task-1", MIDNIGHT + 2.9)["status"] == "processing"
    assert caller.result("task-1", MIDNIGHT + 3.1)["status"] == "completed"


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf")])
def test_a_speed_is_a_positive_number(speed: float) -> None:
    """A speed that nothing can be divided by is refused."""
    with pytest.raises(ValueError, match="speed"):
        Timing(speed=speed)


def test_a_negative_time_is_refused() -> None:
    """A task cannot end before it began."""
    with pytest.raises(ValueError, match="0 s"):
        Timing(video_queued=-1)


@pytest.mark.parametrize(
    ("marker", "error"),
    [
        ("[fail:content-policy]", "content policy violation"),
        ("[fail:unreachable-reference]", "unreachable reference image"),
        ("[fail:low-resolution-reference]", "reference image resolution too low"),
        ("[fail:long-reference-videos]", "reference video total duration above 15 s"),
    ],
)
def test_a_marker_makes_a_task_fail(caller: Caller, marker: str, error: str) -> None:
    """Each failure that the specification has seen comes on request, at the task's end."""
    path, body = VIDEO
    caller.create(path, {**body, "prompt": f"a horse {marker} runs"})
    assert caller.result("task-1", MIDNIGHT + 29)["status"] == "processing"
    result = caller.result("task-1", LATER)
    assert (result["status"], result["error"]) == ("failed", error)


def test_the_first_marker_decides(caller: Caller) -> None:
    """Of two markers the one that stands first in the prompt counts."""
    path, body = VIDEO
    prompt = "[fail:long-reference-videos] [fail:content-policy]"
    caller.create(path, {**body, "prompt": prompt})
    assert "15 s" in caller.result("task-1", LATER)["error"]


def test_a_slow_task_takes_its_time(caller: Caller) -> None:
    """A task that is marked slow is processed for the seconds that it names."""
    path, body = VIDEO
    caller.create(path, {**body, "prompt": "x [slow:500.5]"})
    assert caller.result("task-1", MIDNIGHT + 504)["status"] == "processing"
    assert caller.result("task-1", MIDNIGHT + 505)["status"] == "completed"


def test_a_vidsa_task_is_cancelled_on_request(caller: Caller) -> None:
    """A `vidsa` prompt with the marker ends cancelled, without a URL."""
    path, body = VIDSA
    caller.create(path, {**body, "prompt": "x [cancel]"})
    assert caller.result("task-1", LATER) == {
        "id": "task-1",
        "object": "video",
        "created": 1_700_000_000,
        "model": "vidsa_1_5_pro_480p",
        "status": "cancelled",
        "video_url": None,
        "error": None,
    }


def test_no_other_family_is_cancelled_on_request(caller: Caller) -> None:
    """Only `vidsa` reports `cancelled`: elsewhere the marker is a part of the prompt."""
    path, body = VIDEO
    caller.create(path, {**body, "prompt": "x [cancel]"})
    assert caller.result("task-1", LATER)["status"] == "completed"


@pytest.mark.parametrize("second", [0, 10])
def test_a_vidsa_task_can_be_cancelled_until_it_ends(caller: Caller, second: float) -> None:
    """A queued or processed `vidsa` task is cancelled at once, and stays so."""
    caller.create(*VIDSA)
    assert caller.emulator.cancel("task-1", MIDNIGHT + second)
    for now in (MIDNIGHT + second, LATER):
        result = caller.result("task-1", now)
        assert (result["status"], result["video_url"]) == ("cancelled", None)
    assert not caller.emulator.cancel("task-1", LATER)
    assert caller.emulator.media("task-1", LATER) is MediaState.UNKNOWN


def test_what_cannot_be_cancelled_goes_on(caller: Caller) -> None:
    """A finished task, one of another family and an unknown one are not cancelled."""
    caller.create(*VIDSA)
    assert not caller.emulator.cancel("task-1", LATER)
    caller.create(*VIDEO)
    assert not caller.emulator.cancel("task-2", MIDNIGHT)
    assert not caller.emulator.cancel("unknown", MIDNIGHT)
    assert caller.result("task-1", LATER)["status"] == "completed"


@pytest.mark.parametrize("marker", ["", "[fail:content-policy]", "[cancel]"])
def test_a_terminal_reply_never_changes(caller: Caller, marker: str) -> None:
    """Whatever a task ended as, each later query gets the very same bytes."""
    path, body = VIDSA
    caller.create(path, {**body, "prompt": f"x {marker}"})
    caller.now = LATER
    first = caller.send("GET", "/v1/result/task-1")
    caller.emulator.cancel("task-1", LATER)
    caller.now += 10_000
    assert caller.send("GET", "/v1/result/task-1") == first


def test_a_file_is_there_from_completion_until_its_retention_is_over(caller: Caller) -> None:
    """An `imgb` image can be downloaded once it is completed, for 24 hours."""
    caller.create("/v1/image2/images", {"model": "imgb-2", "prompt": "x"})
    media = caller.emulator.media
    assert media("task-1", MIDNIGHT) is MediaState.NOT_YET
    assert media("task-1", MIDNIGHT + 6) is MediaState.AVAILABLE
    assert media("task-1", MIDNIGHT + DAY - 1) is MediaState.AVAILABLE
    assert media("task-1", MIDNIGHT + DAY) is MediaState.EXPIRED
    assert media("unknown", MIDNIGHT) is MediaState.UNKNOWN


def test_a_failed_task_has_no_file(caller: Caller) -> None:
    """There is nothing to download of a task that fails."""
    path, body = IMAGE
    caller.create(path, {**body, "prompt": "[fail:content-policy]"})
    assert caller.emulator.media("task-1", LATER) is MediaState.UNKNOWN


def test_only_vidsa_loses_the_record_as_well(caller: Caller) -> None:
    """After a day a `vidsa` task is unknown, while another's record is still there."""
    caller.create(*VIDSA)
    caller.create(*VIDEO)
    caller.now = MIDNIGHT + DAY - 1
    assert caller.send("GET", "/v1/result/task-1").status == 200
    caller.now = MIDNIGHT + DAY
    assert caller.send("GET", "/v1/result/task-1").status == 404
    assert caller.result("task-2")["status"] == "completed"


def test_a_task_tells_what_was_asked_for(caller: Caller) -> None:
    """The emulated task keeps the request: body, family, model, prompt and settings."""
    body = {
        "model": "vidsb_2_0_pro",
        "prompt": "a horse",
        "duration": 6,
        "generateAudio": False,
        "referenceImages": ["https://example.com/a.png?secret=1", "asset://a"],
    }
    caller.create("/v1/vidsb/videos", body)
    task = caller.emulator.task("task-1")
    assert task is not None
    assert dict(task.body) == body
    assert (task.family.name, task.model, task.prompt) == ("vidsb", "vidsb_2_0_pro", "a horse")
    assert task.settings == (
        ("duration", "6"),
        ("generateAudio", "false"),
        ("referenceImages", "2 items"),
    )
    assert caller.emulator.task("unknown") is None


def test_a_task_is_immutable(caller: Caller) -> None:
    """What the emulator hands out cannot be used to change it."""
    caller.create(*VIDEO)
    task = caller.emulator.task("task-1")
    assert task is not None
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        task.prompt = "another"  # type: ignore[misc]  that it cannot be set is the point
    dict(task.body)["prompt"] = "another"
    assert task.body["prompt"] == "x"


def test_polls_change_nothing(caller: Caller) -> None:
    """A task that was polled a thousand times is the task that it was."""
    caller.create(*VIDEO)
    before = caller.emulator.task("task-1")
    for _ in range(1000):
        caller.result("task-1")
    assert caller.emulator.task("task-1") is before


def test_an_id_is_used_once(caller: Caller) -> None:
    """A task never takes another's place."""
    caller.create(*VIDEO)
    caller.made = 0
    with pytest.raises(ValueError, match="task-1"):
        caller.create(*VIDEO)


def test_the_newest_tasks(caller: Caller) -> None:
    """The newest tasks can be had, the newest first; all are counted."""
    assert (caller.emulator.newest(3), caller.emulator.task_count) == ((), 0)
    for _ in range(5):
        caller.create(*IMAGE)
    assert [task.id for task in caller.emulator.newest(3)] == ["task-5", "task-4", "task-3"]
    assert [task.id for task in caller.emulator.newest(9)][-1] == "task-1"
    assert caller.emulator.task_count == 5
