"""Family `vidv` (spec, `POST /v1/vidv/videos`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from muybridge_protocol.families.family import (
    DAY,
    Family,
    Media,
    Model,
    Pacing,
    Retention,
    Unlisted,
)
from muybridge_protocol.families.request import MediaRequest, media_request, setting
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.relations import Alternatives, Excludes, Requires
from muybridge_protocol.rules.values import NotSet, Text, at_most, one_of

_NO_4K = one_of("720p", "1080p", ignore_case=True)
_FRAMES_ONLY = NotSet("the model takes first and last frames, and no reference images")

VIDV = Family(
    name="vidv",
    media=Media.VIDEO,
    create_path="/v1/vidv/videos",
    create_object="video",
    result_object="video",
    models=(
        Model("vidv_3_1_fast", note="up to 4K"),
        Model("vidv_3_1_pro", note="up to 4K"),
        Model("vidv_3_1_pro_stable", limits={"resolution": (_NO_4K,)}, note="up to 1080p"),
        Model(
            "vidv_3_1_fast_stable",
            limits={
                "resolution": (_NO_4K,),
                "input_reference": (_FRAMES_ONLY,),
                "image_urls": (_FRAMES_ONLY,),
            },
            note="up to 1080p; first and last frames, no reference images",
        ),
    ),
    relations=(
        Alternatives("input_reference", "image_urls"),
        Requires("last_image", "first_image"),
        Excludes(("first_image", "last_image"), ("input_reference", "image_urls")),
    ),
    pacing=Pacing(30, 60, minimum=30),
    retention=Retention(DAY, note="24 hours"),
    resolution="4K",
    duration="8 s",
    fixed_seconds=8,
    omits_error=True,
)


@media_request(VIDV)
class VidvRequest(MediaRequest):
    model: (
        Literal["vidv_3_1_fast", "vidv_3_1_pro", "vidv_3_1_pro_stable", "vidv_3_1_fast_stable"]
        | Unlisted
    ) = setting(doc="The model")
    prompt: str = setting(Text(), doc="What the video shows")
    resolution: str | None = setting(
        one_of("720p", "1080p", "4K", ignore_case=True),
        doc="Resolution; 4K for vidv_3_1_fast and vidv_3_1_pro alone",
        service_default="720p",
        default=None,
    )
    aspect_ratio: Literal["16:9", "9:16"] | None = setting(
        doc="Aspect ratio, without a resolution after it", service_default="16:9", default=None
    )
    input_reference: Sequence[str] | None = setting(
        at_most(3), MediaUrl(), doc="Reference images, or else image_urls", default=None
    )
    image_urls: Sequence[str] | None = setting(
        at_most(3), MediaUrl(), doc="Reference images, or else input_reference", default=None
    )
    first_image: str | None = setting(
        MediaUrl(), doc="First frame; not with reference images", default=None
    )
    last_image: str | None = setting(MediaUrl(), doc="Last frame; needs first_image", default=None)
