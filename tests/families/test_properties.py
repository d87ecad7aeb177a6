"""What holds for every request, looked for in bodies that nobody would think of.

The strategies are written by hand from the specification, like the cases beside them.
"""

from __future__ import annotations

import contextlib
import json
import random
import warnings
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from muybridge_protocol.errors import IgnoredSetting, InvalidRequest
from muybridge_protocol.families import (
    FAMILIES,
    ImgaRequest,
    ImgbRequest,
    Report,
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
from sampling import examples

from .cases import ASSET, DATA, GOOD_URLS, SNAKE, Body, same_json

WHOLE = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
QUICK = settings(WHOLE, max_examples=examples(40))

# Legal bodies, family by family.

slugs = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.~", min_size=1, max_size=12)
urls = st.sampled_from(GOOD_URLS) | st.builds("https://media.example.com/{}".format, slugs)
assets = st.sampled_from((ASSET, "asset://a", "asset://0123456789"))
prompts = st.text(min_size=1, max_size=60).filter(lambda text: text.strip() != "")


def arrays(items: st.SearchStrategy[str], most: int, least: int = 0) -> st.SearchStrategy[Any]:
    return st.lists(items, min_size=least, max_size=most)


def some(draw: st.DrawFn, **fields: st.SearchStrategy[Any]) -> Body:
    """Draw any of *fields*, and leave the others out."""
    return {field: draw(values) for field, values in fields.items() if draw(st.booleans())}


def frames(draw: st.DrawFn, items: st.SearchStrategy[str], *, last_alone: bool) -> Body:
    """Draw a first and a last image, or, where it is legal, a first image alone."""
    body = {"first_image": draw(items)}
    if last_alone or draw(st.booleans()):
        body["last_image"] = draw(items)
    return body


@st.composite
def imga(draw: st.DrawFn) -> Body:
    model = draw(
        st.sampled_from(("imga", "imga-2", "imga-pro", "imga-2-stable", "imga-pro-stable"))
    )
    resolutions = ("1k", "2k", "4k") if model.startswith("imga-pro") else ("1k",)
    sizes = ("1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5", "21:9")
    return {
        "model": model,
        "prompt": draw(prompts),
        **some(
            draw,
            resolution=st.sampled_from(resolutions),
            size=st.sampled_from(sizes),
            image_urls=arrays(urls, 6),
        ),
    }


@st.composite
def sizes_of_imgb(draw: st.DrawFn) -> str:
    """Draw a size: edges in sixteenths, at most 240, at most 3:1, 2560 to 32400 in all."""
    short = draw(st.integers(30, 180))
    least = max(short, -(-2560 // short))
    most = min(240, 3 * short, 32_400 // short)
    long = draw(st.integers(least, most))
    edges = (16 * short, 16 * long)
    width, height = edges if draw(st.booleans()) else edges[::-1]
    return f"{width}x{height}"


@st.composite
def imgb(draw: st.DrawFn) -> Body:
    model = draw(st.sampled_from(("imgb-2", "imgb-2-r")))
    wide = ("16:9", "9:16", "2:1", "1:2", "21:9", "9:21")
    ratios = ("1:1", "4:3", "3:4", "3:2", "2:3", "5:4", "4:5", *wide)
    body = {
        "model": model,
        "prompt": draw(prompts),
        **some(
            draw,
            quality=st.sampled_from(("low", "medium", "high")),
            ratio=st.sampled_from(ratios),
            size=sizes_of_imgb(),
            image_urls=arrays(urls, 6 if model == "imgb-2" else 16),
        ),
    }
    if "ratio" in body and draw(st.booleans()):
        resolutions = ["1k"]
        if model == "imgb-2":
            resolutions += ["2k", "4k"] if body["ratio"] in wide else ["2k"]
        body["resolution"] = draw(st.sampled_from(resolutions))
    return body


@st.composite
def vidr(draw: st.DrawFn) -> Body:
    body = {
        "model": draw(st.sampled_from(("vidrPlus", "vidrPro"))),
        "prompt": draw(prompts),
        **some(
            draw,
            size=st.sampled_from(("720x1280", "1280x720")),
            duration=st.sampled_from((4, 8, 12)),
            input_reference=arrays(urls, 1),
        ),
    }
    others = some(
        draw,
        aspect_ratio=st.sampled_from(("16:9", "9:16")),
        seconds=st.sampled_from((4, 8, 12)),
        image_urls=arrays(urls, 1),
    )
    pairs = {"aspect_ratio": "size", "seconds": "duration", "image_urls": "input_reference"}
    return {**body, **{wire: v for wire, v in others.items() if pairs[wire] not in body}}


@st.composite
def vidv(draw: st.DrawFn) -> Body:
    model = draw(
        st.sampled_from(
            ("vidv_3_1_fast", "vidv_3_1_pro", "vidv_3_1_pro_stable", "vidv_3_1_fast_stable")
        )
    )
    resolutions = ["720p", "720P", "1080p", "1080P"]
    if not model.endswith("_stable"):
        resolutions += ["4K", "4k"]
    body = {
        "model": model,
        "prompt": draw(prompts),
        **some(
            draw,
            resolution=st.sampled_from(resolutions),
            aspect_ratio=st.sampled_from(("16:9", "9:16")),
        ),
    }
    mode = draw(st.sampled_from(("text", "frames", "input_reference", "image_urls")))
    if mode == "frames":
        body |= frames(draw, urls, last_alone=False)
    elif mode != "text" and model != "vidv_3_1_fast_stable":
        body[mode] = draw(arrays(urls, 3))
    return body


@st.composite
def vidsa(draw: st.DrawFn) -> Body:
    models = ("vidsa_1_5_pro_480p", "vidsa_1_5_pro_720p", "vidsa_1_5_pro_1080p")
    return {
        "model": draw(st.sampled_from(models)),
        **some(draw, prompt=prompts, duration=st.just(-1) | st.integers(2, 12)),
    }


@st.composite
def vidsb(draw: st.DrawFn) -> Body:
    model = draw(
        st.sampled_from(("vidsb_2_0", "vidsb_2_0_fast", "vidsb_2_0_pro", "vidsb_2_0_fast_pro"))
    )
    ratios = ("16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive")
    body = {
        "model": model,
        "prompt": draw(prompts),
        **some(
            draw,
            duration=st.integers(4, 15),
            aspect_ratio=st.sampled_from(ratios),
            generateAudio=st.booleans(),
        ),
    }
    either = urls | assets
    needs_video = not model.endswith("_pro")
    if not needs_video and draw(st.booleans()):
        return {**body, **frames(draw, either, last_alone=False)}
    body |= some(
        draw,
        referenceImages=arrays(either, 9, 1),
        referenceVideos=arrays(either, 3, 1),
        referenceAudios=arrays(either, 3),
    )
    if needs_video:
        body.setdefault("referenceVideos", draw(arrays(either, 3, 1)))
    return body


@st.composite
def vidd(draw: st.DrawFn) -> Body:
    body = {
        "model": draw(st.sampled_from(("viddq3-pro", "viddq3-turbo"))),
        "prompt": draw(prompts),
        **some(
            draw,
            duration=st.integers(1, 16) | st.floats(1, 16),
            aspect_ratio=st.sampled_from(("16:9", "9:16", "1:1", "4:3", "3:4")),
            resolution=st.sampled_from(("540p", "720p", "1080p")),
        ),
    }
    if draw(st.booleans()):
        body |= frames(draw, urls, last_alone=False)
    return body


@st.composite
def vidg(draw: st.DrawFn) -> Body:
    kind = draw(st.sampled_from(("", "_pro", "_max", "_stable")))
    body = {"model": f"vidg_video3{kind}", "prompt": draw(prompts)}
    if kind == "":
        options = some(
            draw,
            duration=st.integers(6, 30),
            aspect_ratio=st.sampled_from(("16:9", "9:16", "1:1", "3:2", "2:3")),
            resolution=st.sampled_from(("480p", "720p")),
            image_urls=arrays(urls | st.just(DATA), 7),
        )
    elif kind == "_pro":
        options = some(
            draw,
            aspect_ratio=st.just("16:9"),
            resolution=st.just("720p"),
            image_urls=arrays(urls, 7),
        )
    elif kind == "_max":
        options = some(
            draw,
            duration=st.sampled_from((6, 10, 12, 16, 20, 30)),
            aspect_ratio=st.sampled_from(("16:9", "9:16", "1:1")),
            resolution=st.sampled_from(("480p", "720p")),
            image_urls=arrays(urls, 5),
        )
    else:
        options = some(
            draw,
            duration=st.sampled_from((6, 10)),
            aspect_ratio=st.sampled_from(("16:9", "9:16", "3:2", "2:3", "1:1")),
            resolution=st.sampled_from(("480p", "720p")),
            image_urls=arrays(urls, 7),
        )
    return {**body, **options}


@st.composite
def vidc(draw: st.DrawFn) -> Body:
    body = {
        "model": "vidc_o3",
        "prompt": draw(prompts),
        **some(
            draw,
            duration=st.integers(3, 15),
            ratio=st.sampled_from(("9:16", "1:1", "16:9")),
        ),
    }
    mode = draw(st.sampled_from(("text", "images", "frames", "video", "images and video")))
    if mode == "frames":
        body |= frames(draw, urls, last_alone=True)
    if mode == "images":
        body["referenceImages"] = draw(arrays(urls, 7, 1))
    if mode == "images and video":
        body["referenceImages"] = draw(arrays(urls, 4, 1))
    if mode.endswith("video"):
        body["referenceVideos"] = [draw(urls)]
    return body


@st.composite
def of_videos(draw: st.DrawFn) -> Body:
    body = {
        "model": draw(st.sampled_from(("videos", "videos_fast"))),
        "prompt": draw(prompts | prompts.map(lambda text: (text * 1500)[:1499] + ".")),
        "duration": draw(st.integers(4, 15)),
        **some(draw, ratio=st.sampled_from(("16:9", "9:16", "1:1")), resolution=st.just("720p")),
    }
    if draw(st.booleans()):
        return {**body, **frames(draw, urls, last_alone=True)}
    references = some(draw, referenceImages=arrays(urls, 4), referenceVideos=arrays(urls, 3))
    return {**body, **references}


@st.composite
def vidm(draw: st.DrawFn) -> Body:
    return some(draw, model=slugs, prompt=prompts)


LEGAL: dict[Any, st.SearchStrategy[Body]] = {
    ImgaRequest: imga(),
    ImgbRequest: imgb(),
    VidrRequest: vidr(),
    VidvRequest: vidv(),
    VidsaRequest: vidsa(),
    VidsbRequest: vidsb(),
    ViddRequest: vidd(),
    VidgRequest: vidg(),
    VidcRequest: vidc(),
    VideosRequest: of_videos(),
    VidmRequest: vidm(),
}

# Anything that JSON can say, and a little more.

any_text = st.text(st.characters(exclude_categories=()), max_size=12)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | any_text
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=12,
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(slugs, inner, max_size=3),
    max_leaves=8,
)
extras = st.dictionaries(slugs.map("x_{}".format), json_values, max_size=3)

WIRES = (
    "model", "prompt", "resolution", "size", "image_urls", "quality", "ratio", "duration",
    "first_image", "last_image", "referenceImages", "referenceVideos", "referenceAudios", "image",
    "lastFrameImage", "aspect_ratio", "generateAudio", "input_reference", "seconds",
)  # fmt: skip
TYPOS = ("promt", "aspectRatio", "reference_images", "imageUrls", "Model", "", " prompt")

# Values that are right for some field of some family, so that wrong bodies are nearly right.
PLAUSIBLE = (
    "imga", "imga-pro", "imgb-2", "imgb-2-r", "vidrPlus", "vidv_3_1_fast_stable", "vidv_3_1_pro",
    "vidsa_1_5_pro_480p", "vidsb_2_0", "vidsb_2_0_pro", "viddq3-pro", "vidg_video3",
    "vidg_video3_pro", "vidg_video3_max", "vidc_o3", "videos", "a horse at a gallop", "1k", "2k",
    "4k", "4K", "480p", "720p", "1080p", "low", "high", "1:1", "16:9", "9:16", "21:9", "adaptive",
    "720x1280", "1024x1024", "3840x3840", "720x", -1, 1, 3, 4, 5, 8, 10, 16, 5.5, True, False,
    GOOD_URLS[0], GOOD_URLS[1], ASSET, DATA, (), (GOOD_URLS[0],), (GOOD_URLS[1],) * 2,
    (GOOD_URLS[0],) * 5, (GOOD_URLS[0],) * 20, (ASSET,), (DATA,),
)  # fmt: skip
plausible = st.sampled_from(PLAUSIBLE).map(lambda v: list(v) if isinstance(v, tuple) else v)
bodies = st.dictionaries(
    st.sampled_from(WIRES) | st.sampled_from(TYPOS) | any_text, plausible | anything, max_size=10
)


def class_name(request_class: Any) -> str:
    return str(request_class.__name__)


# No model of vidm is listed, so that none is unlisted either.
listed_classes = [request_class for request_class in LEGAL if request_class is not VidmRequest]
every_listed_class = pytest.mark.parametrize("request_class", listed_classes, ids=class_name)
every_class = pytest.mark.parametrize("request_class", LEGAL, ids=class_name)


@st.composite
def made_of(draw: st.DrawFn, request_class: Any) -> tuple[Body, Body]:
    """Draw what a constructor can be called with, by wire names, and what travels beside it."""
    return draw(LEGAL[request_class]), draw(extras)


def make(request_class: Any, body: Body, extra: Body) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredSetting)
        arguments = {SNAKE.get(wire, wire): value for wire, value in body.items()}
        return request_class(**arguments, extra=extra)


def parse(request_class: Any, body: Any, *, keep_unknown: bool = False) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredSetting)
        return request_class.from_body(body, keep_unknown=keep_unknown)


@every_class
@QUICK
@given(data=st.data())
def test_legal_bodies_are_legal(request_class: Any, data: st.DataObject) -> None:
    """Whatever the specification accepts is accepted, and sent as it was given."""
    body = data.draw(LEGAL[request_class])
    assert request_class.family.check(body).problems == ()
    assert same_json(parse(request_class, body).to_body(), body)


@every_class
@QUICK
@given(data=st.data())
def test_parsing_undoes_encoding(request_class: Any, data: st.DataObject) -> None:
    """A request that is encoded and parsed again is the same request."""
    body, extra = data.draw(made_of(request_class))
    request = make(request_class, body, extra)
    sent = json.loads(json.dumps(request.to_body()))
    assert same_json(sent, {**body, **extra})
    again = parse(request_class, sent, keep_unknown=True)
    assert again == request
    assert same_json(again.to_body(), sent)


@every_listed_class
@QUICK
@given(data=st.data())
def test_parsing_undoes_encoding_of_an_unlisted_model(
    request_class: Any, data: st.DataObject
) -> None:
    """So is one with a model that is not listed, which is read as just that."""
    body, extra = data.draw(made_of(request_class))
    name = data.draw(slugs.map("new-{}".format))
    request = make(request_class, {**body, "model": Unlisted(name)}, extra)
    assert request.model_name == name
    sent = json.loads(json.dumps(request.to_body()))
    assert same_json(sent, {**body, "model": name, **extra})
    again = parse(request_class, sent, keep_unknown=True)
    assert again == request
    assert again.model == Unlisted(name)


@QUICK
@given(body=of_videos(), data=st.data())
def test_old_names_mean_the_new(body: Body, data: st.DataObject) -> None:
    """A frame of `videos` means the same under its old name, its new one and both."""
    other: Body = dict(body)
    for new, old in (("first_image", "image"), ("last_image", "lastFrameImage")):
        if new in body:
            which = data.draw(st.sampled_from(("new", "old", "both")))
            if which != "new":
                other[old] = body[new]
            if which == "old":
                del other[new]
    assert parse(VideosRequest, other) == parse(VideosRequest, body)
    assert same_json(parse(VideosRequest, other).to_body(), body)


@pytest.mark.parametrize("name", FAMILIES)
@QUICK
@given(body=bodies)
@example(body={"seconds": 0.0})
@example(body={"seconds": 8.0})
@example(body={"model": ""})
def test_any_mapping_ends_well(name: str, body: Body) -> None:
    """Any mapping at all ends in a report, and in a request or in `InvalidRequest`."""
    family = FAMILIES[name]
    for keep_unknown in (False, True):
        # A request takes 4.0 for a whole number, and is checked for what is sent then.
        report = family.check(family.plain(body), keep_unknown=keep_unknown)
        assert isinstance(report, Report)
        for problem in report.problems:
            assert str(problem)
        if report.ok:
            # What travels unchecked may still be no JSON; then there is no request either.
            with contextlib.suppress(InvalidRequest):
                request = parse(family.request, body, keep_unknown=keep_unknown)
                json.dumps(request.to_body(), allow_nan=False).encode()
        else:
            with pytest.raises(InvalidRequest) as caught:
                parse(family.request, body, keep_unknown=keep_unknown)
            assert repr(caught.value.problems) == repr(report.problems)
            assert str(caught.value)


@pytest.mark.parametrize("name", FAMILIES)
@QUICK
@given(body=bodies, seed=st.integers(0, 2**32))
def test_order_does_not_matter(name: str, body: Body, seed: int) -> None:
    """All problems are told together, whatever order the fields come in."""
    keys = list(body)
    random.Random(seed).shuffle(keys)  # noqa: S311  nothing here is a secret
    one = FAMILIES[name].check(body)
    other = FAMILIES[name].check({key: body[key] for key in keys})
    assert sorted(map(repr, one.problems)) == sorted(map(repr, other.problems))
    assert sorted(map(repr, one.notices)) == sorted(map(repr, other.notices))


@every_class
@QUICK
@given(data=st.data())
def test_one_fault_hides_no_other(request_class: Any, data: st.DataObject) -> None:
    """Fields made wrong one by one are all told when they are wrong together."""
    body = data.draw(LEGAL[request_class])
    spoilt: set[str] = data.draw(st.sets(st.sampled_from(sorted(body)))) if body else set()
    wrong = {wire: {"wrong": True} if wire in spoilt else value for wire, value in body.items()}
    told = {problem.field for problem in request_class.family.check(wrong).problems}
    assert told == spoilt
