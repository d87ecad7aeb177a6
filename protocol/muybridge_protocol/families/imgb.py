"""Family `imgb`: images, billed by quality or by resolution (spec, `POST /v1/image2/images`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from muybridge_protocol.families.family import (
    DAY,
    Billing,
    Family,
    Media,
    Model,
    Pacing,
    Retention,
    Unlisted,
)
from muybridge_protocol.families.request import MediaRequest, media_request, setting
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.relations import Ineffective, OnlyWith, Requires
from muybridge_protocol.rules.values import PixelSize, Text, at_most, one_of

_SIZE_DECIDES = "the exact size overrides it"

IMGB = Family(
    name="imgb",
    media=Media.IMAGE,
    create_path="/v1/image2/images",
    create_object="image",
    result_object="image.generation",
    models=(
        Model(
            "imgb-2",
            limits={"image_urls": (at_most(6),)},
            billing=Billing.BY_QUALITY,
            note="up to 4K",
        ),
        Model(
            "imgb-2-r",
            limits={"resolution": (one_of("1k"),), "image_urls": (at_most(16),)},
            billing=Billing.BY_RESOLUTION,
            note="1K only",
        ),
    ),
    relations=(
        Requires("resolution", "ratio"),
        OnlyWith("resolution", "4k", "ratio", ("16:9", "9:16", "2:1", "1:2", "21:9", "9:21")),
    ),
    ineffective=(
        Ineffective("quality", models=("imgb-2-r",)),
        Ineffective("resolution", other="size", why=_SIZE_DECIDES),
        Ineffective("ratio", other="size", why=_SIZE_DECIDES),
    ),
    pacing=Pacing(2, 5),
    retention=Retention(DAY, note="24 hours"),
    resolution="4K",
    starts_processing=True,
)


@media_request(IMGB)
class ImgbRequest(MediaRequest):
    model: Literal["imgb-2", "imgb-2-r"] | Unlisted = setting(doc="The model")
    prompt: str = setting(Text(), doc="What the image shows")
    quality: Literal["low", "medium", "high"] | None = setting(
        doc="Quality tier; ignored for imgb-2-r", service_default="low", default=None
    )
    ratio: (
        Literal[
            "1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5", "2:1", "1:2",
            "21:9", "9:21",
        ]
        | None
    ) = setting(
        doc="Aspect ratio; needed with a resolution", service_default="1:1", default=None
    )  # fmt: skip
    resolution: Literal["1k", "2k", "4k"] | None = setting(
        doc="Resolution; 2k and 4k for imgb-2 alone", service_default="1k", default=None
    )
    size: str | None = setting(
        PixelSize(
            longest_edge=3840,
            multiple_of=16,
            longest_ratio=3,
            least_pixels=655_360,
            most_pixels=8_294_400,
        ),
        doc="Exact size in pixels; overrides resolution and ratio",
        default=None,
    )
    image_urls: Sequence[str] | None = setting(MediaUrl(), doc="Reference images", default=None)
