"""Family `vidd` (spec, `POST /v1/vidd/videos`)."""

from __future__ import annotations

from collections.abc import Mapping
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
from muybridge_protocol.families.request import MediaRequest, media_request, setting, unchecked
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
        Each("an image", ("first_image", "last_image"), (Formats(("JPEG", "PNG", "WebP")),)),
    ),
)


@media_request(VIDD)
class ViddRequest(MediaRequest):
    """A video with family `vidd` (spec, `POST /v1/vidd/videos`).

    last_image needs first_image. An image is JPEG, PNG or WebP.

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: Literal["viddq3-pro", "viddq3-turbo"] | Unlisted = setting(doc="The model")
    """The model (use viddq3-pro or viddq3-turbo).

    viddq3-pro: higher quality. viddq3-turbo: faster. Unlisted(name) is a model that is not listed.
    """
    prompt: str = setting(Text(), doc="What the video shows")
    """What the video shows."""
    duration: float | None = setting(
        Between(1, 16), doc="Length in seconds", service_default=5, default=None
    )
    """Length in seconds (use 1 to 16 s). Default 5."""
    aspect_ratio: Literal["16:9", "9:16", "1:1", "4:3", "3:4"] | None = setting(
        doc="Aspect ratio", service_default="16:9", default=None
    )
    """Aspect ratio (use 16:9, 9:16, 1:1, 4:3 or 3:4). Default 16:9."""
    resolution: Literal["540p", "720p", "1080p"] | None = setting(
        doc="Resolution", service_default="720p", default=None
    )
    """Resolution (use 540p, 720p or 1080p). Default 720p."""
    first_image: str | None = setting(_FRAME, doc="First frame", default=None)
    """First frame (use a public http(s) URL)."""
    last_image: str | None = setting(_FRAME, doc="Last frame; needs {first_image}", default=None)
    """Last frame; needs first_image (use a public http(s) URL)."""
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
