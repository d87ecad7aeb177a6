"""Family `vidv` (spec, `POST /v1/vidv/videos`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from muybridge_protocol.media.inline import InlineMedia
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.relations import Alternatives, Excludes, Requires
from muybridge_protocol.rules.values import NotSet, Text, at_most, one_of

_NO_4K = one_of("720p", "1080p", ignore_case=True)
_FRAMES_ONLY = NotSet("the model takes first and last frames, and no reference images")

VIDV = Family(
    name="vidv",
    media=Media.VIDEO,
    create_path="/v1/vidv/videos",
    create_object="video",
    result_object="video",
    models=(
        Model("vidv_3_1_fast", note="up to 4K"),
        Model("vidv_3_1_pro", note="up to 4K"),
        Model("vidv_3_1_pro_stable", limits={"resolution": (_NO_4K,)}, note="up to 1080p"),
        Model(
            "vidv_3_1_fast_stable",
            limits={
                "resolution": (_NO_4K,),
                "input_reference": (_FRAMES_ONLY,),
                "image_urls": (_FRAMES_ONLY,),
            },
            note="up to 1080p; first and last frames, no reference images",
        ),
    ),
    relations=(
        Alternatives("input_reference", "image_urls"),
        Requires("last_image", "first_image"),
        Excludes(("first_image", "last_image"), ("input_reference", "image_urls")),
    ),
    pacing=Pacing(30, 60, minimum=30),
    retention=Retention(DAY, note="24 hours"),
    resolution="4K",
    duration="8 s",
    fixed_seconds=8,
    omits_error=True,
)


@media_request(VIDV)
class VidvRequest(MediaRequest):
    """A video with family `vidv` (spec, `POST /v1/vidv/videos`).

    Give only one of input_reference and image_urls. last_image needs first_image. first_image and
    last_image cannot be combined with input_reference or image_urls.

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: (
        Literal["vidv_3_1_fast", "vidv_3_1_pro", "vidv_3_1_pro_stable", "vidv_3_1_fast_stable"]
        | Unlisted
    ) = setting(doc="The model")
    """The model (use vidv_3_1_fast, vidv_3_1_pro, vidv_3_1_pro_stable or vidv_3_1_fast_stable).

    vidv_3_1_fast: up to 4K. vidv_3_1_pro: up to 4K. vidv_3_1_pro_stable: up to 1080p.
    vidv_3_1_fast_stable: up to 1080p; first and last frames, no reference images. Unlisted(name) is
    a model that is not listed.
    """
    prompt: str = setting(Text(), doc="What the video shows")
    """What the video shows."""
    resolution: str | None = setting(
        one_of("720p", "1080p", "4K", ignore_case=True),
        doc="Resolution; 4K for vidv_3_1_fast and vidv_3_1_pro alone",
        service_default="720p",
        default=None,
    )
    """Resolution; 4K for vidv_3_1_fast and vidv_3_1_pro alone (use 720p, 1080p or 4K (in any
    case)). Default 720p. For vidv_3_1_pro_stable and vidv_3_1_fast_stable: use 720p or 1080p (in
    any case).
    """
    aspect_ratio: Literal["16:9", "9:16"] | None = setting(
        doc="Aspect ratio, without a resolution after it", service_default="16:9", default=None
    )
    """Aspect ratio, without a resolution after it (use 16:9 or 9:16). Default 16:9."""
    input_reference: Sequence[str | InlineMedia] | None = setting(
        at_most(3), MediaUrl(), doc="Reference images, or else {image_urls}", default=None
    )
    """Reference images, or else image_urls (use at most 3; use an http(s) URL or a data:...;base64
    URI). For a local file, use load_media(path, allow_inline=True). For vidv_3_1_fast_stable: leave
    the field out.
    """
    image_urls: Sequence[str | InlineMedia] | None = setting(
        at_most(3), MediaUrl(), doc="Reference images, or else {input_reference}", default=None
    )
    """Reference images, or else input_reference (use at most 3; use an http(s) URL or a
    data:...;base64 URI). For a local file, use load_media(path, allow_inline=True). For
    vidv_3_1_fast_stable: leave the field out.
    """
    first_image: str | InlineMedia | None = setting(
        MediaUrl(), doc="First frame; not with reference images", default=None
    )
    """First frame; not with reference images (use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True).
    """
    last_image: str | InlineMedia | None = setting(
        MediaUrl(), doc="Last frame; needs {first_image}", default=None
    )
    """Last frame; needs first_image (use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True).
    """
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
