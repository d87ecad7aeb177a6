"""Family `videos` (spec, `POST /v1/videos/videos`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from muybridge_protocol.families.family import (
    Billing,
    Family,
    Media,
    Model,
    Pacing,
    Retention,
    Unlisted,
)
from muybridge_protocol.families.request import MediaRequest, media_request, setting
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.rules.media import Each, Together
from muybridge_protocol.rules.media_conditions import Megabytes, Resolution
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.relations import Alias, Excludes, together
from muybridge_protocol.rules.values import Between, Text, at_most

VIDEOS = Family(
    name="videos",
    media=Media.VIDEO,
    create_path="/v1/videos/videos",
    create_object="video",
    result_object="video",
    models=(
        Model("videos", billing=Billing.PER_CALL, note="standard"),
        Model("videos_fast", billing=Billing.PER_CALL, note="faster"),
    ),
    relations=(
        *together("first_image", "last_image"),
        Excludes(("first_image", "last_image"), ("referenceImages", "referenceVideos")),
    ),
    aliases=(Alias("image", "first_image"), Alias("lastFrameImage", "last_image")),
    pacing=Pacing(30, 60),
    retention=Retention(None, note="temporary; the duration is not given"),
    resolution="720p",
    duration="4-15 s",
    media_rules=(
        Each("Each reference image", ("referenceImages",), (Megabytes(20, fewer=True),)),
        Each("Each reference video", ("referenceVideos",), (Resolution(720, 2160),)),
        Together(subject="reference videos", field="referenceVideos", seconds=15, megabytes=200),
    ),
)


@media_request(VIDEOS)
class VideosRequest(MediaRequest):
    model: Literal["videos", "videos_fast"] | Unlisted = setting(doc="The model")
    prompt: str = setting(Text(1500), doc="What the video shows; at most 1500 characters")
    duration: int = setting(Between(4, 15), doc="Length in seconds")
    ratio: Literal["16:9", "9:16", "1:1"] | None = setting(
        doc="Aspect ratio", service_default="16:9", default=None
    )
    resolution: Literal["720p"] | None = setting(
        doc="Resolution", service_default="720p", default=None
    )
    first_image: str | None = setting(MediaUrl(), doc="First frame; with last_image", default=None)
    last_image: str | None = setting(MediaUrl(), doc="Last frame; with first_image", default=None)
    reference_images: Sequence[str] | None = setting(
        at_most(4), MediaUrl(), wire="referenceImages", doc="Reference images", default=None
    )
    reference_videos: Sequence[str] | None = setting(
        at_most(3),
        MediaUrl(kind=MediaKind.VIDEO),
        wire="referenceVideos",
        doc="Reference videos",
        default=None,
    )
    image: str | None = setting(MediaUrl(), doc="Legacy name of first_image", default=None)
    last_frame_image: str | None = setting(
        MediaUrl(), wire="lastFrameImage", doc="Legacy name of last_image", default=None
    )
