"""Family `vidm` (spec, `POST /v1/vidm/videos`), whose models and request body are not shown."""

from __future__ import annotations

from collections.abc import Mapping

from muybridge_protocol.families.family import Family, Media, Pacing, Retention
from muybridge_protocol.families.request import MediaRequest, media_request, setting, unchecked
from muybridge_protocol.rules.values import ModelName, Text

VIDM = Family(
    name="vidm",
    media=Media.VIDEO,
    create_path="/v1/vidm/videos",
    create_object="video",
    result_object=None,
    pacing=Pacing(30, 60, assumed=True),
    retention=Retention(None, note="not specified"),
    body_shown=False,
    resolution="4K",
    duration="4-15 s",
)


@media_request(VIDM)
class VidmRequest(MediaRequest):
    """A video with family `vidm` (spec, `POST /v1/vidm/videos`).

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: str | None = setting(ModelName(), doc="The model", default=None)
    """The model (use the name that the service uses)."""
    prompt: str | None = setting(Text(), doc="What the video shows", default=None)
    """What the video shows."""
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
