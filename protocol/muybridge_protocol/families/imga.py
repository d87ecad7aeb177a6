"""Family `imga`: images (spec, `POST /v1/imga/images`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from muybridge_protocol.families.family import Family, Media, Model, Pacing, Retention, Unlisted
from muybridge_protocol.families.request import MediaRequest, media_request, setting, unchecked
from muybridge_protocol.media.inline import InlineMedia
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
    retention=Retention(None, note="not specified"),
    resolution="4K",
    omits_error=True,
    starts_processing=True,
)


@media_request(IMGA)
class ImgaRequest(MediaRequest):
    """An image with family `imga` (spec, `POST /v1/imga/images`).

    Raises:
        InvalidRequest: The service would reject the request. All problems are listed.
    """

    model: Literal["imga", "imga-2", "imga-pro", "imga-2-stable", "imga-pro-stable"] | Unlisted = (
        setting(doc="The model")
    )
    """The model (use imga, imga-2, imga-pro, imga-2-stable or imga-pro-stable).

    imga: 1K only. imga-2: 1K only. imga-pro: up to 4K. imga-2-stable: 1K only. imga-pro-stable: up
    to 4K. Unlisted(name) is a model that is not listed.
    """
    prompt: str = setting(Text(), doc="What the image shows")
    """What the image shows."""
    resolution: Literal["1k", "2k", "4k"] | None = setting(
        doc="Resolution; 2k and 4k for imga-pro and imga-pro-stable alone",
        service_default="1k",
        default=None,
    )
    """Resolution; 2k and 4k for imga-pro and imga-pro-stable alone (use 1k, 2k or 4k).

    Default 1k. For imga, imga-2 and imga-2-stable: use 1k.
    """
    size: (
        Literal["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5", "21:9"] | None
    ) = setting(doc="Aspect ratio; without it the model's own applies", default=None)
    """Aspect ratio; without it the model's own applies (use 1:1, 16:9, 9:16, 4:3, 3:4, 3:2, 2:3,
    5:4, 4:5 or 21:9).
    """
    image_urls: Sequence[str | InlineMedia] | None = setting(
        at_most(6), MediaUrl(), doc="Reference images", default=None
    )
    """Reference images (use at most 6; use an http(s) URL or a data:...;base64 URI).

    For a local file, use load_media(path, allow_inline=True).
    """
    extra: Mapping[str, object] = unchecked(default={})
    """Fields that are sent unchecked, by their names on the wire."""
