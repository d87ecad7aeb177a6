"""What the emulator does not accept, and the one shape in which it says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from emulator.caller import BEARER, JSON, Caller, new_emulator, read
from muybridge_protocol.emulator import REQUEST_BODY_LIMIT

IMAGE_PATH = "/v1/imga/images"
IMAGE = {"model": "imga", "prompt": "x"}

WRONG_BODIES: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "imga without a prompt": (IMAGE_PATH, {"model": "imga"}, "invalid_request", "prompt"),
    "imga without a model": (IMAGE_PATH, {"prompt": "x"}, "invalid_request", "model"),
    "imga with a number for a model": (
        IMAGE_PATH,
        {"model": 1, "prompt": "x"},
        "invalid_request",
        "model",
    ),
    "imga at 2k": (IMAGE_PATH, {**IMAGE, "resolution": "2k"}, "invalid_request", "resolution"),
    "imga with a blank model": (
        IMAGE_PATH,
        {"model": " ", "prompt": "x"},
        "invalid_request",
        "model",
    ),
    "an unlisted vidsa model of 13 s": (
        "/v1/vidsa/videos",
        {"model": "vidsa_9", "prompt": "x", "duration": 13},
        "invalid_request",
        "duration",
    ),
    "imga with half a character in an unknown field": (
        IMAGE_PATH,
        {**IMAGE, "anything": ["\ud800"]},
        "invalid_request",
        "anything",
    ),
    "imgb without a model": (
        "/v1/image2/images",
        {"prompt": "x"},
        "invalid_request",
        "model",
    ),
    "vidsb without its video": (
        "/v1/vidsb/videos",
        {"model": "vidsb_2_0", "prompt": "x"},
        "invalid_request",
        "referenceVideos",
    ),
    "videos with a conflict": (
        "/v1/videos/videos",
        {
            "model": "videos",
            "prompt": "x",
            "duration": 4,
            "image": "https://example.com/a.png",
            "first_image": "https://example.com/b.png",
            "last_image": "https://example.com/c.png",
        },
        "parameter_conflict",
        "image",
    ),
    "videos of 3 s": (
        "/v1/videos/videos",
        {"model": "videos", "prompt": "x", "duration": 3},
        "invalid_request",
        "duration",
    ),
    "vidg_video3_pro with a duration": (
        "/v1/vidg/videos",
        {"model": "vidg_video3_pro", "prompt": "x", "duration": 10},
        "invalid_request",
        "duration",
    ),
    "vidm with half a character": (
        "/v1/vidm/videos",
        {"anything": ["\ud800"]},
        "invalid_request",
        "anything",
    ),
    "vidsa of 13 s": (
        "/v1/vidsa/videos",
        {"model": "vidsa_1_5_pro_480p", "prompt": "x", "duration": 13},
        "invalid_request",
        "duration",
    ),
}

UNLISTED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "an imga model": (IMAGE_PATH, {"model": "imga-9", "prompt": "x"}, "unknown_model", "model"),
    "an imgb model": (
        "/v1/image2/images",
        {"model": "imgb-9", "prompt": "x"},
        "unknown_model",
        "model",
    ),
    "a vidg model": (
        "/v1/vidg/videos",
        {"model": "vidg_video9", "prompt": "x", "duration": 29, "aspect_ratio": "3:2"},
        "unknown_model",
        "model",
    ),
    "an imga field": (IMAGE_PATH, {**IMAGE, "imageUrls": []}, "invalid_request", "imageUrls"),
    "a vidv field": (
        "/v1/vidv/videos",
        {"model": "vidv_3_1_pro", "prompt": "x", "duration": 1e9},
        "invalid_request",
        "duration",
    ),
}
"""What the specification does not list, and what a strict service says of it."""


@pytest.mark.parametrize("case", UNLISTED.values(), ids=UNLISTED)
def test_what_is_not_listed_is_accepted(
    caller: Caller, case: tuple[str, dict[str, Any], str, str]
) -> None:
    """A model or field that the specification does not list is accepted: it does not say no."""
    path, body, _, _ = case
    task = caller.create(path, body)
    assert task["model"] == body["model"]
    assert task["status"] in ("queued", "processing")


@pytest.mark.parametrize("case", UNLISTED.values(), ids=UNLISTED)
def test_a_strict_service_refuses_what_is_not_listed(
    case: tuple[str, dict[str, Any], str, str],
) -> None:
    """A strict service refuses a model or field that the specification does not list."""
    path, body, code, field = case
    error = Caller(new_emulator(strict=True)).refused(path, body)
    assert error["code"] == code
    assert [problem["field"] for problem in error["problems"]] == [field]


def test_an_unknown_field_is_ignored(caller: Caller) -> None:
    """A field that the family does not have changes neither the length nor the assets."""
    for path, model in (
        ("/v1/vidd/videos", "viddq3-pro"),
        ("/v1/vidsa/videos", "vidsa_1_5_pro_480p"),
        ("/v1/vidsb/videos", "vidsb_2_0_pro"),
    ):
        unknown = {"seconds": 1e9, "asset": "asset://nobody", "resolution_": [None]}
        task = caller.create(path, {"model": model, "prompt": "x", **unknown})
        result = caller.result(task["id"], caller.now + 1000)
        assert (result["status"], result["actualDuration"]) == ("completed", 5)


@pytest.mark.parametrize("case", WRONG_BODIES.values(), ids=WRONG_BODIES)
def test_a_wrong_field_is_named(caller: Caller, case: tuple[str, dict[str, Any], str, str]) -> None:
    """A request that breaks a rule gets 400, a code, and the field that is wrong."""
    path, body, code, field = case
    reply = caller.post(path, body)
    assert reply.status == 400
    record = read(reply)
    assert list(record) == ["error"]
    error = record["error"]
    assert set(error) == {"code", "message", "problems"}
    assert error["code"] == code
    assert error["message"]
    assert [problem["field"] for problem in error["problems"]] == [field]
    assert all(set(problem) == {"field", "message"} for problem in error["problems"])


def test_every_problem_is_told_at_once(caller: Caller) -> None:
    """A request with three mistakes gets all three."""
    strict = Caller(new_emulator(strict=True))
    body = {"model": "imga", "prompt": 5, "size": "7:5", "sise": "x"}
    assert len(caller.refused(IMAGE_PATH, body)["problems"]) == 2
    error = strict.refused(IMAGE_PATH, body)
    assert [problem["field"] for problem in error["problems"]] == ["prompt", "size", "sise"]


def test_a_refused_request_makes_no_task(caller: Caller) -> None:
    """Nothing can be queried of a request that was refused."""
    caller.post(IMAGE_PATH, {"model": "imga"})
    assert caller.send("GET", "/v1/result/task-1").status == 404


def test_equal_values_under_both_names_are_no_conflict(caller: Caller) -> None:
    """A legacy field that says the same as its new counterpart is accepted."""
    body = {
        "model": "videos",
        "prompt": "x",
        "duration": 4,
        "image": "https://example.com/a.png",
        "first_image": "https://example.com/a.png",
        "lastFrameImage": "https://example.com/b.png",
    }
    assert caller.post("/v1/videos/videos", body).status == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"{} {}",
        b"\xff\xfe",
        b'{"prompt": "\xff"}',
        b'{"model": "imga", "model": "imga", "prompt": "x"}',
        b'{"model": "imga", "prompt": NaN}',
        b'{"model": "imga", "prompt": 1e999}',
        b'{"model": "imga", "prompt": ' + b"9" * 5000 + b"}",
        b'{"a":' * 40 + b"1" + b"}" * 40,
        b"[" * 100_000,
        b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        json.dumps({f"field{number}": 1 for number in range(300)}).encode(),
    ],
    ids=range(16),
)
def test_what_is_no_json_object_is_refused(caller: Caller, body: bytes) -> None:
    """A body that is not one JSON object of a sensible size gets 400."""
    reply = caller.send("POST", IMAGE_PATH, body)
    assert reply.status == 400
    assert read(reply)["error"]["code"] == "invalid_json"


def test_a_body_over_the_limit_is_refused(caller: Caller) -> None:
    """A body of one byte more than the limit gets 413."""
    assert caller.send("POST", IMAGE_PATH, b" " * (REQUEST_BODY_LIMIT + 1)).status == 413


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ],
)
def test_a_body_says_that_it_is_json(caller: Caller, content_type: str, status: int) -> None:
    """A create call has the content type of JSON, or gets 415."""
    body = json.dumps(IMAGE).encode()
    reply = caller.send("POST", IMAGE_PATH, body, (BEARER, ("Content-Type", content_type)))
    assert reply.status == status


def test_a_body_without_a_content_type_is_refused(caller: Caller) -> None:
    """A create call without a content type gets 415."""
    assert caller.send("POST", IMAGE_PATH, b"{}", (BEARER,)).status == 415


@pytest.mark.parametrize(
    "target",
    [
        "",
        "/",
        "/v1",
        "/v1/result",
        "/v1/result/",
        "/v1/result/a/b",
        "/v1/result/unknown",
        "/v2/imga/images",
        "/v1/imgb/images",
        "/v1/imga/images/",
        "/v1/vidsb/asset/asset-1",
        "/vidsb/asset/",
        "http://127.0.0.1/v1/result/a",
    ],
)
def test_what_does_not_exist_is_not_found(caller: Caller, target: str) -> None:
    """An unknown path and an unknown task get 404."""
    reply = caller.send("GET", target)
    assert reply.status == 404
    assert read(reply)["error"]["code"] == "not_found"


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("GET", IMAGE_PATH, "POST"),
        ("HEAD", IMAGE_PATH, "POST"),
        ("OPTIONS", IMAGE_PATH, "POST"),
        ("POST", "/v1/result/task-1", "GET"),
        ("HEAD", "/v1/result/task-1", "GET"),
        ("GET", "/vidsb/asset/asset-1", "DELETE"),
    ],
)
def test_a_wrong_method_is_told_the_right_one(
    caller: Caller, method: str, target: str, allowed: str
) -> None:
    """A known path with another method gets 405, and `Allow` names the method."""
    reply = caller.send(method, target, headers=(BEARER, JSON))
    assert (reply.status, reply.header("Allow")) == (405, allowed)


def test_a_query_does_not_hide_a_path(caller: Caller) -> None:
    """What follows a question mark is no part of the path."""
    caller.create(IMAGE_PATH, IMAGE)
    assert caller.send("GET", "/v1/result/task-1?x=/").status == 200
