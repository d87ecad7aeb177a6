"""Family `vidg` (spec, `POST /v1/vidg/videos`)."""

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
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import Between, NotSet, Text, at_most, one_of

_PUBLIC_URLS = MediaUrl(base64=False, public=True)

VIDG = Family(
    name="vidg",
    media=Media.VIDEO,
    create_path="/v1/vidg/videos",
    create_object="video",
    result_object="video",
    models=(
        Model("vidg_video3", limits={"image_urls": (at_most(7),)}, billing=Billing.PER_SECOND),
        Model(
            "vidg_video3_pro",
            limits={
                "duration": (NotSet("the model always makes 10 s"),),
                "aspect_ratio": (one_of("16:9"),),
                "resolution": (one_of("720p"),),
            },
            billing=Billing.PER_CALL,
            note="always 10 s, 16:9, 720p; how many reference images it takes is not shown",
        ),
        Model(
            "vidg_video3_max",
            limits={
                "duration": (one_of(6, 10, 12, 16, 20, 30),),
                "aspect_ratio": (one_of("16:9", "9:16", "1:1"),),
                "image_urls": (at_most(5), _PUBLIC_URLS),
            },
            billing=Billing.PER_SECOND,
            note="no base64 images",
        ),
        Model(
            "vidg_video3_stable",
            limits={
                "duration": (one_of(6, 10),),
                "image_urls": (at_most(7), _PUBLIC_URLS),
            },
            billing=Billing.PER_CALL,
            note="no base64 images",
        ),
    ),
    pacing=Pacing(30, 60),
    retention=Retention(None, note="for a limited time (not specified)"),
    resolution="720p",
    duration="6-30 s",
)


@media_request(VIDG)
class VidgRequest(MediaRequest):
    """A video with family `vidg` (spec, `POST /v1/vidg/videos`).

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: (
        Literal["vidg_video3", "vidg_video3_pro", "vidg_video3_max", "vidg_video3_stable"]
        | Unlisted
    ) = setting(doc="The model")
    """The model (use vidg_video3, vidg_video3_pro, vidg_video3_max or vidg_video3_stable).

    vidg_video3: billed per second. vidg_video3_pro: always 10 s, 16:9, 720p; how many reference
    images it takes is not shown; billed per call. vidg_video3_max: no base64 images; billed per
    second. vidg_video3_stable: no base64 images; billed per call. Unlisted(name) is a model that is
    not listed.
    """
    prompt: str = setting(Text(), doc="What the video shows")
    """What the video shows."""
    duration: int | None = setting(
        Between(6, 30),
        doc=(
            "Length in seconds; 6, 10, 12, 16, 20 or 30 for vidg_video3_max, 6 or 10 for "
            "vidg_video3_stable, not to be set for vidg_video3_pro"
        ),
        service_default=10,
        default=None,
    )
    """Length in seconds; 6, 10, 12, 16, 20 or 30 for vidg_video3_max, 6 or 10 for
    vidg_video3_stable, not to be set for vidg_video3_pro (use 6 to 30 s). Default 10. For
    vidg_video3_pro: leave the field out. For vidg_video3_max: use 6, 10, 12, 16, 20 or 30. For
    vidg_video3_stable: use 6 or 10.
    """
    aspect_ratio: Literal["16:9", "9:16", "1:1", "3:2", "2:3"] | None = setting(
        doc="Aspect ratio; 3:2 and 2:3 not for vidg_video3_max, only 16:9 for vidg_video3_pro",
        service_default="16:9",
        default=None,
    )
    """Aspect ratio; 3:2 and 2:3 not for vidg_video3_max, only 16:9 for vidg_video3_pro (use 16:9,
    9:16, 1:1, 3:2 or 2:3). Default 16:9. For vidg_video3_pro: use 16:9. For vidg_video3_max: use
    16:9, 9:16 or 1:1.
    """
    resolution: Literal["480p", "720p"] | None = setting(
        doc="Resolution; only 720p for vidg_video3_pro", service_default="720p", default=None
    )
    """Resolution; only 720p for vidg_video3_pro (use 480p or 720p).

    Default 720p. For vidg_video3_pro: use 720p.
    """
    image_urls: Sequence[str | InlineMedia] | None = setting(
        MediaUrl(bare_base64=True, base64_stated=True),
        doc=(
            "Reference images; at most 7 for vidg_video3 and vidg_video3_stable, 5 for "
            "vidg_video3_max"
        ),
        default=None,
    )
    """Reference images; at most 7 for vidg_video3 and vidg_video3_stable, 5 for vidg_video3_max
    (use an http(s) URL, a data:...;base64 URI or plain base64). For a local file, use
    load_media(path). For vidg_video3 and vidg_video3_stable: use at most 7. For vidg_video3_max:
    use at most 5. For vidg_video3_max and vidg_video3_stable: use a public http(s) URL.
    """
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
