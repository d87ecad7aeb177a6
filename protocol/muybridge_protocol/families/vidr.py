"""Family `vidr` (spec, `POST /v1/vidr/videos`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from muybridge_protocol.families.family import Family, Media, Model, Pacing, Retention, Unlisted
from muybridge_protocol.families.request import MediaRequest, media_request, setting, unchecked
from muybridge_protocol.media.inline import InlineMedia
from muybridge_protocol.rules.media import Each, Unseen
from muybridge_protocol.rules.media_conditions import Orientation
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.relations import Alternatives
from muybridge_protocol.rules.values import Text, at_most

_REFERENCES = ("input_reference", "image_urls")

VIDR = Family(
    name="vidr",
    media=Media.VIDEO,
    create_path="/v1/vidr/videos",
    create_object="video.generation",
    result_object=None,
    models=(Model("vidrPlus"), Model("vidrPro")),
    relations=(
        Alternatives("size", "aspect_ratio"),
        Alternatives("duration", "seconds"),
        Alternatives("input_reference", "image_urls"),
    ),
    pacing=Pacing(30, 60),
    retention=Retention(None, note="not specified"),
    resolution="1280x720",
    duration="4, 8 or 12 s",
    omits_error=True,
    media_rules=(
        Each(
            "a reference image",
            _REFERENCES,
            (
                Orientation(
                    sizes=(("16:9", (1280, 720)), ("9:16", (720, 1280))),
                    ratio="aspect_ratio",
                    size="size",
                    default=(720, 1280),
                ),
            ),
        ),
        Unseen(
            "a real portrait photograph as reference usually makes the generation fail",
            _REFERENCES,
        ),
    ),
)


@media_request(VIDR)
class VidrRequest(MediaRequest):
    """A video with family `vidr` (spec, `POST /v1/vidr/videos`).

    Give only one of size and aspect_ratio. Give only one of duration and seconds. Give only one of
    input_reference and image_urls. A reference image has 1280x720 px for 16:9, and 720x1280 px for
    9:16. A real portrait photograph as reference usually makes the generation fail.

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: Literal["vidrPlus", "vidrPro"] | Unlisted = setting(doc="The model")
    """The model (use vidrPlus or vidrPro). Unlisted(name) is a model that is not listed."""
    prompt: str = setting(Text(), doc="What the video shows")
    """What the video shows."""
    size: Literal["720x1280", "1280x720"] | None = setting(
        doc="Size in pixels, or else {aspect_ratio}", service_default="720x1280", default=None
    )
    """Size in pixels, or else aspect_ratio (use 720x1280 or 1280x720). Default 720x1280."""
    aspect_ratio: Literal["16:9", "9:16"] | None = setting(
        doc="Aspect ratio, or else {size}", default=None
    )
    """Aspect ratio, or else size (use 16:9 or 9:16)."""
    duration: Literal[4, 8, 12] | None = setting(
        doc="Length in seconds, or else {seconds}", default=None
    )
    """Length in seconds, or else seconds (use 4, 8 or 12)."""
    seconds: Literal[4, 8, 12] | None = setting(
        doc="Length in seconds, or else {duration}", default=None
    )
    """Length in seconds, or else duration (use 4, 8 or 12)."""
    input_reference: Sequence[str | InlineMedia] | None = setting(
        at_most(1), MediaUrl(), doc="Reference image, or else {image_urls}", default=None
    )
    """Reference image, or else image_urls (use at most 1; use an http(s) URL or a data:...;base64
    URI). For a local file, use load_media(path, allow_inline=True).
    """
    image_urls: Sequence[str | InlineMedia] | None = setting(
        at_most(1), MediaUrl(), doc="Reference image, or else {input_reference}", default=None
    )
    """Reference image, or else input_reference (use at most 1; use an http(s) URL or a
    data:...;base64 URI). For a local file, use load_media(path, allow_inline=True).
    """
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
