"""Family `imgb`: images, billed by quality or by resolution (spec, `POST /v1/image2/images`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from muybridge_protocol.families.request import MediaRequest, media_request, setting, unchecked
from muybridge_protocol.media.inline import InlineMedia
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
    """An image with family `imgb` (spec, `POST /v1/image2/images`).

    resolution needs ratio. resolution 4k is accepted only with ratio 16:9, 9:16, 2:1, 1:2, 21:9,
    9:21. quality is ignored for imgb-2-r. resolution is ignored with size: the exact size overrides
    it. ratio is ignored with size: the exact size overrides it.

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: Literal["imgb-2", "imgb-2-r"] | Unlisted = setting(doc="The model")
    """The model (use imgb-2 or imgb-2-r).

    imgb-2: up to 4K; billed by quality tier. imgb-2-r: 1K only; billed by resolution.
    Unlisted(name) is a model that is not listed.
    """
    prompt: str = setting(Text(), doc="What the image shows")
    """What the image shows."""
    quality: Literal["low", "medium", "high"] | None = setting(
        doc="Quality tier; ignored for imgb-2-r", service_default="low", default=None
    )
    """Quality tier; ignored for imgb-2-r (use low, medium or high). Default low."""
    ratio: (
        Literal[
            "1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5", "2:1", "1:2",
            "21:9", "9:21",
        ]
        | None
    ) = setting(
        doc="Aspect ratio; needed with a resolution", service_default="1:1", default=None
    )  # fmt: skip
    """Aspect ratio; needed with a resolution (use 1:1, 16:9, 9:16, 4:3, 3:4, 3:2, 2:3, 5:4, 4:5,
    2:1, 1:2, 21:9 or 9:21). Default 1:1.
    """
    resolution: Literal["1k", "2k", "4k"] | None = setting(
        doc="Resolution; 2k and 4k for imgb-2 alone", service_default="1k", default=None
    )
    """Resolution; 2k and 4k for imgb-2 alone (use 1k, 2k or 4k).

    Default 1k. For imgb-2-r: use 1k.
    """
    size: str | None = setting(
        PixelSize(
            longest_edge=3840,
            multiple_of=16,
            longest_ratio=3,
            least_pixels=655_360,
            most_pixels=8_294_400,
        ),
        doc="Exact size in pixels; overrides {resolution} and {ratio}",
        default=None,
    )
    """Exact size in pixels; overrides resolution and ratio (use {width}x{height}: edges of at most
    3840 px, multiples of 16, at most 3:1, 655360 to 8294400 pixels in all).
    """
    image_urls: Sequence[str | InlineMedia] | None = setting(
        MediaUrl(), doc="Reference images", default=None
    )
    """Reference images (use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True). For imgb-2: use at most 6. For
    imgb-2-r: use at most 16.
    """
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
