"""Family `vidsa` (spec, `POST /v1/vidsa/videos`), whose request body is shown in part."""

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
from muybridge_protocol.rules.values import Between, Text

VIDSA = Family(
    name="vidsa",
    media=Media.VIDEO,
    create_path="/v1/vidsa/videos",
    create_object="video",
    result_object="video",
    models=(
        Model("vidsa_1_5_pro_480p", pacing=Pacing(10, 20, minimum=10), note="480p; preview"),
        Model("vidsa_1_5_pro_720p", note="720p"),
        Model("vidsa_1_5_pro_1080p", note="1080p"),
    ),
    pacing=Pacing(30, 60, minimum=10),
    retention=Retention(
        DAY, record_too=True, note="1 day for the task record and the video; both are then deleted"
    ),
    body_shown=False,
    resolution="1080p",
    duration="2-12 s",
)


@media_request(VIDSA)
class VidsaRequest(MediaRequest):
    """A video with family `vidsa` (spec, `POST /v1/vidsa/videos`).

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: Literal["vidsa_1_5_pro_480p", "vidsa_1_5_pro_720p", "vidsa_1_5_pro_1080p"] | Unlisted = (
        setting(doc="The model")
    )
    """The model (use vidsa_1_5_pro_480p, vidsa_1_5_pro_720p or vidsa_1_5_pro_1080p).

    vidsa_1_5_pro_480p: 480p; preview. vidsa_1_5_pro_720p: 720p. vidsa_1_5_pro_1080p: 1080p.
    Unlisted(name) is a model that is not listed.
    """
    prompt: str | None = setting(Text(), doc="What the video shows", default=None)
    """What the video shows."""
    duration: int | None = setting(
        Between(2, 12, also=(-1,)), doc="Length in seconds; -1 is automatic", default=None
    )
    """Length in seconds; -1 is automatic (use 2 to 12 s, or -1)."""
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
