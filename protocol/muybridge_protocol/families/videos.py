"""Family `videos` (spec, `POST /v1/videos/videos`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from muybridge_protocol.families.request import MediaRequest, media_request, setting, unchecked
from muybridge_protocol.media.inline import InlineMedia
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
    retention=Retention(None, note="for a limited time (not specified)"),
    resolution="720p",
    duration="4-15 s",
    media_rules=(
        Each("each reference image", ("referenceImages",), (Megabytes(20, fewer=True),)),
        Each("each reference video", ("referenceVideos",), (Resolution(720, 2160),)),
        Together(subject="reference videos", field="referenceVideos", seconds=15, megabytes=200),
    ),
)


@media_request(VIDEOS)
class VideosRequest(MediaRequest):
    """A video with family `videos` (spec, `POST /v1/videos/videos`).

    first_image needs last_image. last_image needs first_image. first_image and last_image cannot be
    combined with reference_images or reference_videos. Each reference image is under 20 MB. Each
    reference video has a resolution between 720 px and 2160 px. All reference videos together last
    at most 15 s and have at most 200 MB.

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: Literal["videos", "videos_fast"] | Unlisted = setting(doc="The model")
    """The model (use videos or videos_fast).

    videos: standard; billed per call. videos_fast: faster; billed per call. Unlisted(name) is a
    model that is not listed.
    """
    prompt: str = setting(Text(1500), doc="What the video shows; at most 1500 characters")
    """What the video shows; at most 1500 characters (use 1 to 1500 characters)."""
    duration: int = setting(Between(4, 15), doc="Length in seconds")
    """Length in seconds (use 4 to 15 s)."""
    ratio: Literal["16:9", "9:16", "1:1"] | None = setting(
        doc="Aspect ratio", service_default="16:9", default=None
    )
    """Aspect ratio (use 16:9, 9:16 or 1:1). Default 16:9."""
    resolution: Literal["720p"] | None = setting(
        doc="Resolution", service_default="720p", default=None
    )
    """Resolution (use 720p). Default 720p."""
    first_image: str | InlineMedia | None = setting(
        MediaUrl(), doc="First frame; with {last_image}", default=None
    )
    """First frame; with last_image (use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True).
    """
    last_image: str | InlineMedia | None = setting(
        MediaUrl(), doc="Last frame; with {first_image}", default=None
    )
    """Last frame; with first_image (use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True).
    """
    reference_images: Sequence[str | InlineMedia] | None = setting(
        at_most(4), MediaUrl(), wire="referenceImages", doc="Reference images", default=None
    )
    """Reference images (use at most 4; use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True).
    """
    reference_videos: Sequence[str | InlineMedia] | None = setting(
        at_most(3),
        MediaUrl(kind=MediaKind.VIDEO),
        wire="referenceVideos",
        doc="Reference videos",
        default=None,
    )
    """Reference videos (use at most 3; use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True).
    """
    image: str | InlineMedia | None = setting(
        MediaUrl(), doc="Legacy name of {first_image}", default=None
    )
    """Legacy name of first_image (use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True).
    """
    last_frame_image: str | InlineMedia | None = setting(
        MediaUrl(), wire="lastFrameImage", doc="Legacy name of {last_image}", default=None
    )
    """Legacy name of last_image (use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True).
    """
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
