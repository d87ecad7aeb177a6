"""Task and result records, transcribed from the specification's tables family by family."""

from __future__ import annotations

from typing import Any

import pytest

from emulator.caller import LATER, MIDNIGHT, Caller

CREATED = 1_700_000_000
PNG = "http://127.0.0.1:8000/media/task-1.png"
MP4 = "http://127.0.0.1:8000/media/task-1.mp4"

Case = tuple[str, dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]

# Path, body, what the task record adds to id and created, what the result record adds to id,
# created and model while it is unfinished, and what it adds once it is completed.
CASES: dict[str, Case] = {
    "imga": (
        "/v1/imga/images",
        {"model": "imga", "prompt": "a horse"},
        {"object": "imga", "model": "imga", "status": "processing"},
        {"object": "imga", "status": "processing", "image_url": None},
        {"object": "imga", "status": "completed", "image_url": PNG},
    ),
    "imga with references": (
        "/v1/imga/images",
        {"model": "imga-pro", "prompt": "a horse", "image_urls": ["https://example.com/a.png"]},
        {"object": "imga", "model": "imga-pro", "status": "queued"},
        {"object": "imga", "status": "processing", "image_url": None},
        {"object": "imga", "status": "completed", "image_url": PNG},
    ),
    "imgb": (
        "/v1/image2/images",
        {"model": "imgb-2", "prompt": "a horse"},
        {"object": "image", "model": "imgb-2", "status": "processing", "error": None},
        {"object": "image.generation", "status": "processing", "image_url": None, "error": None},
        {"object": "image.generation", "status": "completed", "image_url": PNG, "error": None},
    ),
    "imgb with references": (
        "/v1/image2/images",
        {"model": "imgb-2-r", "prompt": "x", "image_urls": ["https://example.com/a.png"]},
        {"object": "image", "model": "imgb-2-r", "status": "queued", "error": None},
        {"object": "image.generation", "status": "processing", "image_url": None, "error": None},
        {"object": "image.generation", "status": "completed", "image_url": PNG, "error": None},
    ),
    "vidr": (
        "/v1/vidr/videos",
        {"model": "vidrPlus", "prompt": "a horse", "seconds": 12},
        {"object": "video.generation", "model": "vidrPlus", "status": "queued"},
        {"object": "video.generation", "status": "processing", "video_url": None},
        {
            "object": "video.generation",
            "status": "completed",
            "video_url": MP4,
            "actualDuration": 12,
        },
    ),
    "vidv": (
        "/v1/vidv/videos",
        {"model": "vidv_3_1_fast", "prompt": "a horse"},
        {"object": "video", "model": "vidv_3_1_fast", "status": "queued"},
        {"object": "video", "status": "processing", "video_url": None},
        {"object": "video", "status": "completed", "video_url": MP4, "actualDuration": 8},
    ),
    "vidsa": (
        "/v1/vidsa/videos",
        {"model": "vidsa_1_5_pro_720p", "prompt": "a horse", "duration": 7},
        {"object": "video", "model": "vidsa_1_5_pro_720p", "status": "queued", "error": None},
        {"object": "video", "status": "processing", "video_url": None, "error": None},
        {
            "object": "video",
            "status": "completed",
            "video_url": MP4,
            "actualDuration": 7,
            "error": None,
        },
    ),
    "vidsb": (
        "/v1/vidsb/videos",
        {"model": "vidsb_2_0_pro", "prompt": "a horse", "duration": 6},
        {"object": "video", "model": "vidsb_2_0_pro", "status": "queued", "error": None},
        {"object": "video", "status": "processing", "video_url": None, "error": None},
        {
            "object": "video",
            "status": "completed",
            "video_url": MP4,
            "actualDuration": 6,
            "totalTokens": 6000,
            "error": None,
        },
    ),
    "vidd": (
        "/v1/vidd/videos",
        {"model": "viddq3-turbo", "prompt": "a horse", "duration": 2.5},
        {"object": "video", "model": "viddq3-turbo", "status": "queued", "error": None},
        {
            "object": "Video",
            "status": "processing",
            "video_url": None,
            "totalTokens": None,
            "error": None,
        },
        {
            "object": "Video",
            "status": "completed",
            "video_url": MP4,
            "actualDuration": 2.5,
            "totalTokens": 2500,
            "error": None,
        },
    ),
    "vidg": (
        "/v1/vidg/videos",
        {"model": "vidg_video3_pro", "prompt": "a horse"},
        {"object": "video", "model": "vidg_video3_pro", "status": "queued", "error": None},
        {"object": "video", "status": "processing", "video_url": None, "error": None},
        {
            "object": "video",
            "status": "completed",
            "video_url": MP4,
            "actualDuration": 10,
            "error": None,
        },
    ),
    "vidc": (
        "/v1/vidc/videos",
        {"model": "vidc_o3", "prompt": "a horse"},
        {"object": "video", "model": "vidc_o3", "status": "queued", "error": None},
        {"object": "video", "status": "processing", "video_url": None, "error": None},
        {
            "object": "video",
            "status": "completed",
            "video_url": MP4,
            "actualDuration": 3,
            "error": None,
        },
    ),
    "videos": (
        "/v1/videos/videos",
        {"model": "videos_fast", "prompt": "a horse", "duration": 15},
        {"object": "video", "model": "videos_fast", "status": "queued", "error": None},
        {"object": "video", "status": "processing", "video_url": None, "error": None},
        {
            "object": "video",
            "status": "completed",
            "video_url": MP4,
            "actualDuration": 15,
            "error": None,
        },
    ),
    "vidm": (
        "/v1/vidm/videos",
        {"model": "whatever", "prompt": "a horse", "anything": {"goes": [1]}},
        {"object": "video", "model": "whatever", "status": "queued", "error": None},
        {"object": "video", "status": "processing", "video_url": None, "error": None},
        {
            "object": "video",
            "status": "completed",
            "video_url": MP4,
            "actualDuration": 4,
            "error": None,
        },
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_family_answers_with_exactly_its_records(caller: Caller, case: Case) -> None:
    """Each family's records have the fields and values of the specification's tables alone."""
    path, body, on_create, unfinished, completed = case
    common = {"id": "task-1", "created": CREATED}
    assert caller.create(path, body) == {**common, **on_create}
    common["model"] = on_create["model"]
    at_once = caller.result("task-1")
    assert at_once == {**common, **unfinished, "status": on_create["status"]}
    # Every task is processed at 4.5 s: images take 6 s, videos wait 4 s.
    assert caller.result("task-1", MIDNIGHT + 4.5) == {**common, **unfinished}
    assert caller.result("task-1", LATER) == {**common, **completed}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_family_says_why_a_task_failed(caller: Caller, case: Case) -> None:
    """A failed task has its reason in `error` and no URL, no duration and no tokens."""
    path, body, on_create, unfinished, _ = case
    caller.create(path, {**body, "prompt": "x [fail:content-policy]"})
    assert caller.result("task-1", LATER) == {
        "id": "task-1",
        "created": CREATED,
        "model": on_create["model"],
        **unfinished,
        "status": "failed",
        "error": "content policy violation",
    }


def test_a_rejected_imgb_request_is_a_failed_task(caller: Caller) -> None:
    """An `imgb` request with a wrong parameter gets 200 and a failed record, which stays."""
    body = {"model": "imgb-2", "prompt": "x", "resolution": "4k", "ratio": "1:1"}
    record = caller.create("/v1/image2/images", body)
    error = record.pop("error")
    assert record == {
        "id": "task-1",
        "object": "image",
        "created": CREATED,
        "model": "imgb-2",
        "status": "failed",
    }
    assert "resolution" in error
    assert "ratio" in error
    for now in (MIDNIGHT - 5, MIDNIGHT, LATER):
        assert caller.result("task-1", now) == {
            "id": "task-1",
            "object": "image.generation",
            "created": CREATED,
            "model": "imgb-2",
            "status": "failed",
            "image_url": None,
            "error": error,
        }


def test_a_vidm_request_may_be_empty(caller: Caller) -> None:
    """Nothing of the `vidm` body is shown, so nothing is required of it."""
    assert caller.create("/v1/vidm/videos", {}) == {
        "id": "task-1",
        "object": "video",
        "created": CREATED,
        "model": "vidm",
        "status": "queued",
        "error": None,
    }


@pytest.mark.parametrize(
    ("path", "body", "seconds"),
    [
        ("/v1/vidr/videos", {"model": "vidrPro", "prompt": "x", "duration": 8}, 8),
        ("/v1/vidsa/videos", {"model": "vidsa_1_5_pro_480p", "prompt": "x", "duration": -1}, 5),
        ("/v1/vidsa/videos", {"model": "vidsa_1_5_pro_480p", "prompt": "x"}, 5),
        ("/v1/vidsb/videos", {"model": "vidsb_2_0_pro", "prompt": "x"}, 5),
        ("/v1/vidd/videos", {"model": "viddq3-pro", "prompt": "x"}, 5),
        ("/v1/vidg/videos", {"model": "vidg_video3", "prompt": "x"}, 10),
        ("/v1/vidg/videos", {"model": "vidg_video3", "prompt": "x", "duration": 30}, 30),
        (
            "/v1/vidc/videos",
            {
                "model": "vidc_o3",
                "prompt": "x",
                "duration": 15,
                "referenceVideos": ["https://example.com/a.mp4"],
            },
            5,
        ),
        ("/v1/vidm/videos", {"duration": 15}, 15),
        ("/v1/vidm/videos", {"duration": 9999}, 4),
        ("/v1/vidm/videos", {"duration": "6"}, 4),
        ("/v1/vidm/videos", {"duration": True}, 4),
    ],
)
def test_a_video_lasts_as_long_as_was_asked_for(
    caller: Caller, path: str, body: dict[str, Any], seconds: float
) -> None:
    """`actualDuration` is what was asked for, else the family's default."""
    caller.create(path, body)
    assert caller.result("task-1", LATER)["actualDuration"] == seconds


def test_tokens_of_vidsb_are_an_integer(caller: Caller) -> None:
    """`totalTokens` of `vidsb` is an integer, and absent until completion."""
    caller.create("/v1/vidsb/videos", {"model": "vidsb_2_0_pro", "prompt": "x"})
    assert "totalTokens" not in caller.result("task-1", MIDNIGHT + 10)
    assert type(caller.result("task-1", LATER)["totalTokens"]) is int
