"""Family `vidsb` (spec, `POST /v1/vidsb/videos`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from attrs import evolve

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
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.rules.media import Each, Together, Unseen
from muybridge_protocol.rules.media_conditions import (
    Edges,
    Formats,
    Lasts,
    Lines,
    Megabytes,
    Proportion,
)
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.relations import Excludes, RequiredFor, Requires
from muybridge_protocol.rules.values import Between, Items, Text, at_most

_FAST = Pacing(10, 20, minimum=10)
_FRAME = MediaUrl(base64=False, assets=True, public=True)
_REFERENCE = MediaUrl(base64=False, assets=True)
_IMAGES = ("first_image", "last_image", "referenceImages")
# The service excludes frames beside reference videos, and these models require the videos.
_NEEDS_VIDEO = "needs a reference video, and so never takes first_image or last_image"

VIDSB = Family(
    name="vidsb",
    media=Media.VIDEO,
    create_path="/v1/vidsb/videos",
    create_object="video",
    result_object="video",
    models=(
        Model("vidsb_2_0", note=_NEEDS_VIDEO),
        Model("vidsb_2_0_fast", pacing=_FAST, note=f"faster; {_NEEDS_VIDEO}"),
        Model("vidsb_2_0_pro", note="high quality"),
        Model("vidsb_2_0_fast_pro", pacing=_FAST, note="faster; high quality"),
    ),
    relations=(
        RequiredFor("referenceVideos", ("vidsb_2_0", "vidsb_2_0_fast")),
        Requires("last_image", "first_image"),
        Excludes(
            ("first_image", "last_image"),
            ("referenceImages", "referenceVideos", "referenceAudios"),
        ),
    ),
    pacing=Pacing(20, 40, minimum=10),
    retention=Retention(DAY, note="1 day"),
    resolution="varies by model",
    duration="4-15 s",
    makes_audio=True,
    media_rules=(
        Each("an image", _IMAGES, (Formats(("JPEG", "PNG", "WebP", "BMP", "TIFF", "GIF")),)),
        Each("an image", _IMAGES, (Edges(300, 6000), Proportion(0.4, 2.5))),
        Unseen(
            "a reference image with human faces or virtual avatars must be an asset",
            ("referenceImages",),
        ),
        Each("each reference video", ("referenceVideos",), (Lines((480, 720)), Lasts(2, 15))),
        Together(subject="reference videos", field="referenceVideos", seconds=15),
        Each(
            "each reference sound",
            ("referenceAudios",),
            (Formats(("WAV", "MP3")), Lasts(2, 15), Megabytes(15)),
        ),
        Together(subject="reference sounds", field="referenceAudios", seconds=15),
        Unseen("the service chooses its backend model from the reference videos"),
    ),
)


@media_request(VIDSB)
class VidsbRequest(MediaRequest):
    """A video with family `vidsb` (spec, `POST /v1/vidsb/videos`).

    reference_videos is required by vidsb_2_0 and vidsb_2_0_fast. last_image needs first_image.
    first_image and last_image cannot be combined with reference_images, reference_videos or
    reference_audios. An image is JPEG, PNG, WebP, BMP, TIFF or GIF. An image has 300-6000 px per
    side and is 0.4 to 2.5 times as wide as high. A reference image with human faces or virtual
    avatars must be an asset. Each reference video is 480p or 720p and lasts 2-15 s. All reference
    videos together last at most 15 s. Each reference sound is WAV or MP3, lasts 2-15 s and has at
    most 15 MB. All reference sounds together last at most 15 s. The service chooses its backend
    model from the reference videos.

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: (
        Literal["vidsb_2_0", "vidsb_2_0_fast", "vidsb_2_0_pro", "vidsb_2_0_fast_pro"] | Unlisted
    ) = setting(doc="The model")
    """The model (use vidsb_2_0, vidsb_2_0_fast, vidsb_2_0_pro or vidsb_2_0_fast_pro).

    vidsb_2_0: needs a reference video, and so never takes first_image or last_image.
    vidsb_2_0_fast: faster; needs a reference video, and so never takes first_image or last_image.
    vidsb_2_0_pro: high quality. vidsb_2_0_fast_pro: faster; high quality. Unlisted(name) is a model
    that is not listed.
    """
    prompt: str = setting(Text(), doc="What the video shows")
    """What the video shows."""
    duration: int | None = setting(
        Between(4, 15), doc="Length in seconds", service_default=5, default=None
    )
    """Length in seconds (use 4 to 15 s). Default 5."""
    aspect_ratio: Literal["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"] | None = setting(
        doc="Aspect ratio", service_default="16:9", default=None
    )
    """Aspect ratio (use 16:9, 4:3, 1:1, 3:4, 9:16, 21:9 or adaptive). Default 16:9."""
    generate_audio: bool | None = setting(
        wire="generateAudio",
        doc="Whether the video has sound in step with it",
        service_default=True,
        default=None,
    )
    """Whether the video has sound in step with it. Default True."""
    first_image: str | None = setting(
        _FRAME, doc="First frame; not with reference media", default=None
    )
    """First frame; not with reference media (use a public http(s) URL or asset://<id>)."""
    last_image: str | None = setting(_FRAME, doc="Last frame; needs {first_image}", default=None)
    """Last frame; needs first_image (use a public http(s) URL or asset://<id>)."""
    reference_images: Sequence[str] | None = setting(
        Items(1, 9), _REFERENCE, wire="referenceImages", doc="Reference images", default=None
    )
    """Reference images (use 1 to 9; use an http(s) URL or asset://<id>)."""
    reference_videos: Sequence[str] | None = setting(
        at_most(3),
        evolve(_REFERENCE, kind=MediaKind.VIDEO),
        wire="referenceVideos",
        doc="Reference videos; needed by vidsb_2_0 and vidsb_2_0_fast",
        default=None,
    )
    """Reference videos; needed by vidsb_2_0 and vidsb_2_0_fast (use at most 3; use an http(s) URL
    or asset://<id>).
    """
    reference_audios: Sequence[str] | None = setting(
        at_most(3),
        evolve(_REFERENCE, kind=MediaKind.SOUND),
        wire="referenceAudios",
        doc="Reference sounds",
        default=None,
    )
    """Reference sounds (use at most 3; use an http(s) URL or asset://<id>)."""
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
