"""Family `vidr` (spec, `POST /v1/vidr/videos`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from muybridge_protocol.families.family import Family, Media, Model, Pacing, Retention, Unlisted
from muybridge_protocol.families.request import MediaRequest, media_request, setting
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
    retention=Retention(None, note="not shown"),
    resolution="1280x720",
    duration="4, 8 or 12 s",
    omits_error=True,
    media_rules=(
        Each(
            "A reference image",
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
            "A real portrait photograph as reference usually makes the generation fail.",
            _REFERENCES,
        ),
    ),
)


@media_request(VIDR)
class VidrRequest(MediaRequest):
    model: Literal["vidrPlus", "vidrPro"] | Unlisted = setting(doc="The model")
    prompt: str = setting(Text(), doc="What the video shows")
    size: Literal["720x1280", "1280x720"] | None = setting(
        doc="Size in pixels, or else aspect_ratio", service_default="720x1280", default=None
    )
    aspect_ratio: Literal["16:9", "9:16"] | None = setting(
        doc="Aspect ratio, or else size", default=None
    )
    duration: Literal[4, 8, 12] | None = setting(
        doc="Length in seconds, or else seconds", default=None
    )
    seconds: Literal[4, 8, 12] | None = setting(
        doc="Length in seconds, or else duration", default=None
    )
    input_reference: Sequence[str] | None = setting(
        at_most(1), MediaUrl(), doc="Reference image, or else image_urls", default=None
    )
    image_urls: Sequence[str] | None = setting(
        at_most(1), MediaUrl(), doc="Reference image, or else input_reference", default=None
    )
