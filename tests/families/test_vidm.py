"""Family `vidm`: the body of `POST /v1/vidm/videos` is not shown, so nearly all of it travels."""

# ruff: noqa: FBT003  a table's values stand in a row, and some are booleans

from __future__ import annotations

from muybridge_protocol.families import Unlisted, VidmRequest

from .cases import (
    Body,
    OpenContract,
    Records,
    each,
    images,
    long_prompts,
    not_prompts,
    ok,
    prompts,
    python_names,
)

SMALLEST: Body = {}
BASE = {"prompt": "a horse at a gallop"}

ACCEPTED = [
    ok("smallest", SMALLEST),
    ok("prompt", BASE),
    *each(BASE, "model", "vidm", "vidm_1", "vidm_pro", "anything at all"),
    *prompts(BASE),
    *long_prompts(BASE),
    *each(BASE, "seed", 7, -1, "7", None),
    *each(BASE, "promt", "a horse"),
    *each(BASE, "seconds", 4, 99, "5", 5.5),
    *each(BASE, "resolution", "4K", "16k", 4),
    *each(BASE, "aspect_ratio", "16:9", "16:9\n", 16.9),
    *each(BASE, "aspectRatio", "16:9"),
    *each(BASE, "image_urls", images(100), "garbage", [], [5]),
    *each(BASE, "first_image", "asset://a", "data:image/png;base64,AAAA", "garbage"),
    *each(BASE, "reference_images", images(2)),
    *each(BASE, "generateAudio", True, "true"),
    *each(BASE, "nested", {"a": [1, 2.5, None, True, {"b": "\U0001f40e"}]}),
    ok("several", {**BASE, "model": "vidm", "seed": 7, "camera": {"fixed": True}, "n": None}),
]

REJECTED = [
    # A create call takes a prompt.
    *not_prompts(BASE),
]


class TestVidm(OpenContract):
    request = VidmRequest
    create_path = "/v1/vidm/videos"
    records = Records("video", None)
    pace = (30, 60)  # assumed: its row is not shown
    names = python_names("model", "prompt")
    required = ()
    smallest = SMALLEST
    accepted = ACCEPTED
    rejected = REJECTED

    def test_models(self) -> None:
        """No model is listed, so that any can be named, plainly or as an unlisted one."""
        for model in ("vidm-1", Unlisted("vidm-1")):
            request = self.request(model=model, prompt="a horse")
            assert request.to_body() == {"model": "vidm-1", "prompt": "a horse"}
            assert request.model_name == "vidm-1"
        assert self.request().model_name is None
