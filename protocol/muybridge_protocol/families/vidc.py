"""Family `vidc` (spec, `POST /v1/vidc/videos`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from muybridge_protocol.families.family import Family, Media, Model, Pacing, Retention, Unlisted
from muybridge_protocol.families.request import MediaRequest, media_request, setting, unchecked
from muybridge_protocol.media.inline import InlineMedia
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.rules.media import Each, Unseen
from muybridge_protocol.rules.media_conditions import Lasts
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.relations import Excludes, FewerWith, Ineffective, together
from muybridge_protocol.rules.values import Between, Items, Text, at_most

_FOLLOWS_VIDEO = "the output follows the reference video"

VIDC = Family(
    name="vidc",
    media=Media.VIDEO,
    create_path="/v1/vidc/videos",
    create_object="video",
    result_object="video",
    models=(Model("vidc_o3"),),
    relations=(
        FewerWith("referenceImages", 4, "referenceVideos"),
        *together("first_image", "last_image"),
        Excludes(("first_image", "last_image"), ("referenceImages", "referenceVideos")),
    ),
    ineffective=(
        Ineffective("duration", other="referenceVideos", why=_FOLLOWS_VIDEO),
        Ineffective("ratio", other="referenceVideos", why=_FOLLOWS_VIDEO),
    ),
    pacing=Pacing(30, 60),
    retention=Retention(None, note="for a limited time (not specified)"),
    resolution="varies",
    duration="3-15 s",
    media_rules=(
        Each("the reference video", ("referenceVideos",), (Lasts(3, 10),)),
        Unseen("the output has the duration and ratio of the reference video"),
    ),
)


@media_request(VIDC)
class VidcRequest(MediaRequest):
    """A video with family `vidc` (spec, `POST /v1/vidc/videos`).

    With reference_videos give at most 4 reference_images. first_image needs last_image. last_image
    needs first_image. first_image and last_image cannot be combined with reference_images or
    reference_videos. duration is ignored with reference_videos: the output follows the reference
    video. ratio is ignored with reference_videos: the output follows the reference video. The
    reference video lasts 3-10 s. The output has the duration and ratio of the reference video.

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: Literal["vidc_o3"] | Unlisted = setting(doc="The model")
    """The model (use vidc_o3). Unlisted(name) is a model that is not listed."""
    prompt: str = setting(Text(), doc="What the video shows")
    """What the video shows."""
    duration: int | None = setting(
        Between(3, 15),
        doc="Length in seconds; ignored with {referenceVideos}",
        service_default=3,
        default=None,
    )
    """Length in seconds; ignored with reference_videos (use 3 to 15 s). Default 3."""
    ratio: Literal["9:16", "1:1", "16:9"] | None = setting(
        doc="Aspect ratio; ignored with {referenceVideos}", service_default="9:16", default=None
    )
    """Aspect ratio; ignored with reference_videos (use 9:16, 1:1 or 16:9). Default 9:16."""
    reference_images: Sequence[str | InlineMedia] | None = setting(
        Items(1, 7),
        MediaUrl(),
        wire="referenceImages",
        doc="Reference images; at most 4 with {referenceVideos}",
        default=None,
    )
    """Reference images; at most 4 with reference_videos (use 1 to 7; use an http(s) URL or a
    data:...;base64 URI). For a local file, use load_media(path, allow_inline=True).
    """
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
    reference_videos: Sequence[str | InlineMedia] | None = setting(
        at_most(1),
        MediaUrl(kind=MediaKind.VIDEO),
        wire="referenceVideos",
        doc="Reference video",
        default=None,
    )
    """Reference video (use at most 1; use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True).
    """
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
