"""Family `vidd` (spec, `POST /v1/vidd/videos`)."""

from __future__ import annotations

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
from muybridge_protocol.rules.media import Each
from muybridge_protocol.rules.media_conditions import Formats
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.relations import Requires
from muybridge_protocol.rules.values import Between, Text

_FRAME = MediaUrl(base64=False, public=True)

VIDD = Family(
    name="vidd",
    media=Media.VIDEO,
    create_path="/v1/vidd/videos",
    create_object="video",
    result_object="Video",
    models=(
        Model("viddq3-pro", note="higher quality"),
        Model("viddq3-turbo", note="faster"),
    ),
    relations=(Requires("last_image", "first_image"),),
    pacing=Pacing(30, 60),
    retention=Retention(DAY, note="24 hours"),
    resolution="1080p",
    duration="1-16 s",
    media_rules=(
        Each("An image", ("first_image", "last_image"), (Formats(("JPEG", "PNG", "WebP")),)),
    ),
)


@media_request(VIDD)
class ViddRequest(MediaRequest):
    model: Literal["viddq3-pro", "viddq3-turbo"] | Unlisted = setting(doc="The model")
    prompt: str = setting(Text(), doc="What the video shows")
    duration: float | None = setting(
        Between(1, 16), doc="Length in seconds", service_default=5, default=None
    )
    aspect_ratio: Literal["16:9", "9:16", "1:1", "4:3", "3:4"] | None = setting(
        doc="Aspect ratio", service_default="16:9", default=None
    )
    resolution: Literal["540p", "720p", "1080p"] | None = setting(
        doc="Resolution", service_default="720p", default=None
    )
    first_image: str | None = setting(_FRAME, doc="First frame", default=None)
    last_image: str | None = setting(_FRAME, doc="Last frame; needs first_image", default=None)
