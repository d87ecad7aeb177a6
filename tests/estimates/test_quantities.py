"""What requests consume, transcribed by hand from the specification."""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import Any

import pytest

from muybridge_protocol.estimates import Quantities, Unit, text_quantities
from muybridge_protocol.families import (
    FAMILIES,
    ImgaRequest,
    ImgbRequest,
    Media,
    MediaRequest,
    Unlisted,
    VidcRequest,
    ViddRequest,
    VideosRequest,
    VidgRequest,
    VidmRequest,
    VidrRequest,
    VidsaRequest,
    VidsbRequest,
    VidvRequest,
)
from muybridge_protocol.families.examples import smallest_example
from muybridge_protocol.text.request import GenerateContentRequest

URL = "https://media.example.com/a"
HORSE = "a horse"

# The request's class and fields, the tier, and the seconds of video; None is unknown.
CASES: list[tuple[Any, dict[str, Any], str | None, str | None]] = [
    (ImgaRequest, {"model": "imga"}, "1k", "0"),
    (ImgaRequest, {"model": "imga-pro", "resolution": "4k"}, "4k", "0"),
    (ImgbRequest, {"model": "imgb-2"}, "low", "0"),
    (ImgbRequest, {"model": "imgb-2", "quality": "high"}, "high", "0"),
    # Billed by quality, whatever the resolution and the size.
    (
        ImgbRequest,
        {"model": "imgb-2", "quality": "medium", "resolution": "4k", "ratio": "16:9"},
        "medium",
        "0",
    ),
    (ImgbRequest, {"model": "imgb-2", "size": "1024x1024"}, "low", "0"),
    (ImgbRequest, {"model": "imgb-2-r"}, "1k", "0"),
    # An exact size overrides the resolution, its default included.
    (ImgbRequest, {"model": "imgb-2-r", "size": "1024x1024"}, None, "0"),
    (VidrRequest, {"model": "vidrPlus"}, None, None),  # the default is not shown
    (VidrRequest, {"model": "vidrPlus", "duration": 12}, None, "12"),
    (VidrRequest, {"model": "vidrPro", "seconds": 4}, None, "4"),
    (VidvRequest, {"model": "vidv_3_1_fast"}, "720p", "8"),
    (VidvRequest, {"model": "vidv_3_1_fast", "resolution": "4k"}, "4K", "8"),
    (VidvRequest, {"model": "vidv_3_1_pro_stable", "resolution": "1080P"}, "1080p", "8"),
    (VidsaRequest, {"model": "vidsa_1_5_pro_720p"}, None, None),
    (VidsaRequest, {"model": "vidsa_1_5_pro_720p", "duration": -1}, None, None),  # automatic
    (VidsaRequest, {"model": "vidsa_1_5_pro_720p", "duration": 12}, None, "12"),
    (VidsbRequest, {"model": "vidsb_2_0_pro"}, None, "5"),
    (VidsbRequest, {"model": "vidsb_2_0_pro", "duration": 15}, None, "15"),
    (VidsbRequest, {"model": "vidsb_2_0", "reference_videos": [URL]}, None, "5"),
    (ViddRequest, {"model": "viddq3-pro"}, "720p", "5"),
    (ViddRequest, {"model": "viddq3-turbo", "duration": 1.1, "resolution": "540p"}, "540p", "1.1"),
    (ViddRequest, {"model": "viddq3-turbo", "duration": 1}, "720p", "1"),
    (VidgRequest, {"model": "vidg_video3"}, "720p", "10"),
    (VidgRequest, {"model": "vidg_video3", "duration": 30, "resolution": "480p"}, "480p", "30"),
    (VidgRequest, {"model": "vidg_video3_pro"}, "720p", "10"),
    (VidcRequest, {"model": "vidc_o3"}, None, "3"),
    (VidcRequest, {"model": "vidc_o3", "duration": 15}, None, "15"),
    # The output follows the reference video.
    (VidcRequest, {"model": "vidc_o3", "reference_videos": [URL]}, None, None),
    (VideosRequest, {"model": "videos", "duration": 4}, "720p", "4"),
    (VidmRequest, {}, None, None),
    (VidmRequest, {"model": "vidm-1", "extra": {"duration": 5, "resolution": "4K"}}, None, None),
]


def asked(kind: Any, fields: dict[str, Any]) -> MediaRequest:
    """Return a request with a prompt."""
    request: MediaRequest = kind(**{"prompt": HORSE, **fields})
    return request


@pytest.mark.parametrize(("kind", "fields", "tier", "seconds"), CASES)
def test_a_request_states_what_it_consumes(
    kind: Any, fields: dict[str, Any], tier: str | None, seconds: str | None
) -> None:
    """A request states its tier and seconds as the specification has them, or as unknown."""
    quantities = asked(kind, fields).quantities()
    assert quantities.tier == tier
    assert quantities.seconds == (None if seconds is None else Decimal(seconds))
    assert (quantities.creates, quantities.calls) == (1, 0)
    assert quantities.pictures == int(kind.family.media is Media.IMAGE)
    assert (quantities.family, quantities.model) == (kind.family.name, fields.get("model"))
    assert quantities.tokens is None


def test_an_ignored_setting_is_no_tier() -> None:
    """The quality, which imgb-2-r ignores, does not decide its price."""
    with pytest.warns(match="quality: is ignored for imgb-2-r"):
        request = ImgbRequest(model="imgb-2-r", prompt=HORSE, quality="high")
    assert request.quantities().tier == "1k"


def test_an_ignored_duration_is_no_length() -> None:
    """A duration beside a reference video, which overrides it, is not taken for the length."""
    with pytest.warns(match="duration: is ignored"):
        request = VidcRequest(model="vidc_o3", prompt=HORSE, duration=5, reference_videos=[URL])
    assert request.quantities().seconds is None


@pytest.mark.parametrize(
    ("kind", "fields", "seconds"),
    [
        (VidsbRequest, {}, None),
        (VidsbRequest, {"duration": 7}, 7),
        (VidvRequest, {}, None),
        (VidgRequest, {}, None),
    ],
)
def test_nothing_is_known_of_an_unlisted_model(
    kind: Any, fields: dict[str, Any], seconds: int | None
) -> None:
    """Defaults are those of the listed models; of another one, only the request is known."""
    quantities = asked(kind, {"model": Unlisted("vid_9"), **fields}).quantities()
    assert (quantities.model, quantities.tier, quantities.seconds) == ("vid_9", None, seconds)


def test_references_are_counted() -> None:
    """References are counted by kind; how long they are is unknown, unless there are none."""
    request = VidsbRequest(
        model="vidsb_2_0_pro",
        prompt=HORSE,
        reference_images=[URL, "asset://a"],
        reference_videos=[URL],
        reference_audios=[URL, URL, URL],
    )
    found = request.quantities()
    assert (found.reference_images, found.reference_videos, found.reference_sounds) == (2, 1, 3)
    assert found.reference_seconds is None
    frames = VideosRequest(
        model="videos", prompt=HORSE, duration=5, image=URL, last_frame_image=URL
    ).quantities()
    assert (frames.reference_images, frames.reference_videos) == (2, 0)
    assert frames.reference_seconds == 0


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_every_family_states_its_quantities(family: Any) -> None:
    """The smallest request of a family creates one task of something."""
    quantities = family.request.from_body(smallest_example(family)).quantities()
    assert quantities.count(Unit.CALL) == 1
    assert (quantities.pictures == 1) == (family.media is Media.IMAGE)
    assert quantities.seconds is None or (quantities.seconds > 0) == (family.media is Media.VIDEO)


def test_a_text_call() -> None:
    """A text call counts as a call, and its tokens are unknown until the response reports them."""
    request = GenerateContentRequest.build("textg-2.5-pro", "hello")
    quantities = request.quantities()
    assert quantities == text_quantities("textg-2.5-pro")
    assert (quantities.creates, quantities.calls, quantities.tokens) == (0, 1, None)
    assert (quantities.pictures, quantities.seconds) == (0, 0)
    references = (quantities.reference_images, quantities.reference_videos)
    assert (*references, quantities.reference_sounds, quantities.reference_seconds) == (0, 0, 0, 0)
    assert request.estimate().cost is None


@pytest.mark.parametrize("field", ["reference_videos", "reference_audios"])
def test_the_length_of_a_reference_is_unknown(field: str) -> None:
    """How long a reference video or sound is stands in no request."""
    request = asked(VidsbRequest, {"model": "vidsb_2_0_pro", field: [URL]})
    assert request.quantities().reference_seconds is None


@pytest.mark.parametrize("count", [-1, -(10**30)])
def test_less_than_no_tokens(count: int) -> None:
    """A service that reports less than no tokens has not said how many there are."""
    quantities = text_quantities("textg-2.5-pro", count, input_tokens=count, output_tokens=count)
    tokens = (quantities.tokens, quantities.input_tokens, quantities.output_tokens)
    assert tokens == (None, None, None)


def test_units_are_counted() -> None:
    """What is unknown has no count, and nothing depends on the program's decimal context."""
    nothing = Quantities(family="imga", pictures=None, seconds=None)
    assert [nothing.count(unit) for unit in Unit] == [0, None, None, None]
    assert text_quantities("textg-2.5-pro").count(Unit.CALL) == 1
    with localcontext() as context:
        context.prec = 2
        told = text_quantities("textg-2.5-pro", tokens=123_456).count(Unit.THOUSAND_TOKENS)
    assert told == Decimal("123.456")
