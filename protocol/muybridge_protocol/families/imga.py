"""Family `imga`: images (spec, `POST /v1/imga/images`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from muybridge_protocol.families.family import Family, Media, Model, Pacing, Retention, Unlisted
from muybridge_protocol.families.request import MediaRequest, media_request, setting
from muybridge_protocol.rules.media_urls import MediaUrl
from muybridge_protocol.rules.values import Text, at_most, one_of

_ONLY_1K = {"resolution": (one_of("1k"),)}

IMGA = Family(
    name="imga",
    media=Media.IMAGE,
    create_path="/v1/imga/images",
    create_object="imga",
    result_object=None,
    models=(
        Model("imga", limits=_ONLY_1K, note="1K only"),
        Model("imga-2", limits=_ONLY_1K, note="1K only"),
        Model("imga-pro", note="up to 4K"),
        Model("imga-2-stable", limits=_ONLY_1K, note="1K only"),
        Model("imga-pro-stable", note="up to 4K"),
    ),
    pacing=Pacing(2, 5),
    retention=Retention(None, note="not shown"),
    resolution="4K",
    omits_error=True,
    starts_processing=True,
)


@media_request(IMGA)
class ImgaRequest(MediaRequest):
    model: Literal["imga", "imga-2", "imga-pro", "imga-2-stable", "imga-pro-stable"] | Unlisted = (
        setting(doc="The model")
    )
    prompt: str = setting(Text(), doc="What the image shows")
    resolution: Literal["1k", "2k", "4k"] | None = setting(
        doc="Resolution; 2k and 4k for imga-pro and imga-pro-stable alone",
        service_default="1k",
        default=None,
    )
    size: (
        Literal["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5", "21:9"] | None
    ) = setting(doc="Aspect ratio; without it the model's own applies", default=None)
    image_urls: Sequence[str] | None = setting(
        at_most(6), MediaUrl(), doc="Reference images", default=None
    )
