"""The machinery that makes typed requests from a statement of rules, apart from any one rule."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

import attrs
import pytest

import muybridge
from muybridge_protocol.errors import IgnoredSetting, InvalidRequest, LocalError
from muybridge_protocol.families import (
    FAMILIES,
    IMGB,
    VIDG,
    VIDM,
    VIDSA,
    Family,
    ImgbRequest,
    Media,
    MediaRequest,
    Model,
    Pacing,
    Retention,
    Unlisted,
    VidcRequest,
    ViddRequest,
    VideosRequest,
    VidgRequest,
    VidmRequest,
    VidrRequest,
    VidsaRequest,
    VidsbRequest,
    find_family,
)
from muybridge_protocol.families.request import media_request, parse, setting, unchecked
from muybridge_protocol.operations.create import encode
from muybridge_protocol.rules.relations import Alias, Ineffective
from muybridge_protocol.rules.values import Kind, Problem, at_most, one_of
from muybridge_protocol.service import Service

URL = "https://media.example.com/a.png"


def a_family(**parts: Any) -> Family:
    """Return a family that nothing has been said about but *parts*."""
    said: dict[str, Any] = {"models": (Model("one"), Model("two")), **parts}
    return Family(
        name="toy",
        media=Media.IMAGE,
        create_path="/v1/toy/images",
        create_object="toy",
        result_object=None,
        pacing=Pacing(1, 2),
        retention=Retention(None),
        **said,
    )


def declare(family: Family) -> type[MediaRequest]:
    """Return a small request class of *family*."""

    @media_request(family)
    class ToyRequest(MediaRequest):
        model: Literal["one", "two"] | Unlisted = setting(doc="The model")
        prompt: str = setting(doc="What it shows")
        size: Literal["1k", "2k"] | None = setting(
            doc="Its size", service_default="1k", default=None
        )
        count: int | None = setting(doc="How many", default=None)
        weight: float | None = setting(doc="How much", default=None)
        steps: Literal[4, 8] | None = setting(doc="How often", default=None)
        quick: bool | None = setting(doc="Whether to hurry", default=None)
        image_urls: Sequence[str] | None = setting(
            at_most(2), wire="imageUrls", doc="Reference images", default=None
        )
        extra: Mapping[str, object] = unchecked(default={})

    return ToyRequest


def toy(**arguments: Any) -> MediaRequest:
    """Return a small request with *arguments*."""
    every: dict[str, Any] = {"model": "one", "prompt": "x", **arguments}
    return declare(a_family())(**every)


REQUESTS: list[MediaRequest] = [
    ImgbRequest(model="imgb-2", prompt="a horse", image_urls=[URL, URL]),
    ImgbRequest(model=Unlisted("imgb-3"), prompt="a horse", extra={"seed": 4, "deep": [{"a": 1}]}),
    VideosRequest(model="videos", prompt="a horse", duration=4, image=URL, last_frame_image=URL),
    VidsbRequest(
        model="vidsb_2_0",
        prompt="a horse",
        generate_audio=False,
        reference_videos=("asset://horse",),
    ),
    ViddRequest(model="viddq3-pro", prompt="a horse", duration=2.5),
    VidrRequest(model="vidrPlus", prompt="a horse", seconds=12),
    VidsaRequest(model="vidsa_1_5_pro_480p", duration=-1, extra={"prompt_extend": True}),
    VidmRequest(),
]


def wires_of(problems: Iterable[Problem]) -> list[str]:
    return [problem.field for problem in problems]


@pytest.mark.parametrize(
    "models", [(Model("one"),), (Model("one"), Model("two"), Model("three")), ()]
)
def test_model_table_must_equal_annotation(models: tuple[Model, ...]):
    """A class whose model annotation differs from the table of models cannot be made."""
    with pytest.raises(TypeError, match="toy: the model annotation and the table of models differ"):
        declare(a_family(models=models))


@pytest.mark.parametrize(
    "parts",
    [
        {"models": (Model("one", limits={"sice": (one_of("1k"),)}), Model("two"))},
        {"models": (Model("one"), Model("two", defaults={"sice": "1k"}))},
        {"aliases": (Alias("sice", "size"),)},
        {"aliases": (Alias("size", "sice"),)},
        {"ineffective": (Ineffective("sice", models=("one",)),)},
    ],
    ids=["limits", "defaults", "alias", "aliased", "ineffective"],
)
def test_unknown_field_in_declaration_is_refused(parts: dict[str, Any]):
    """A misspelt field in a limit, default, alias or notice is found when the class is made."""
    with pytest.raises(TypeError, match="toy: there is no field sice"):
        declare(a_family(**parts))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_relations_name_what_exists(family: Family):
    """Each rule between fields names fields and models of its own family, or it never fires."""
    for rule in (*family.relations, *family.ineffective):
        parts: dict[str, Any] = attrs.asdict(rule)
        named = [parts[key] for key in ("field", "other", "one") if parts.get(key) is not None]
        named += [*parts.get("these", ()), *parts.get("those", ())]
        assert named
        assert [wire for wire in named if family.field(wire) is None] == []
        assert [name for name in parts.get("models", ()) if family.model(name) is None] == []


def test_kinds_come_from_annotations():
    """The annotation of a field tells its JSON type and, for a Literal, its values."""
    family = a_family()
    declare(family)
    assert {field.wire: field.kind for field in family.fields} == {
        "model": Kind.STRING,
        "prompt": Kind.STRING,
        "size": Kind.STRING,
        "count": Kind.INTEGER,
        "weight": Kind.NUMBER,
        "steps": Kind.INTEGER,
        "quick": Kind.BOOLEAN,
        "imageUrls": Kind.STRINGS,
    }
    assert [field.wire for field in family.fields if field.required] == ["model", "prompt"]
    size, steps = family.field("size"), family.field("steps")
    assert size is not None
    assert steps is not None
    assert size.rules == (one_of("1k", "2k"),)
    assert steps.rules == (one_of(4, 8),)


@pytest.mark.parametrize(
    ("wire", "good", "bad"),
    [
        ("prompt", ["x"], [None, 1, b"x", ["x"]]),
        ("count", [1, -1], [1.0, True, "1", None, [1]]),
        ("weight", [1, 1.5], [True, "1", None, float("nan"), float("inf"), 10**400]),
        ("steps", [4, 8], [4.0, "4", True, 5]),
        ("quick", [True, False], [0, 1, "true", None]),
        ("imageUrls", [[], ["a"], ("a", "b")], ["a", None, [1], ["a", None], {"a"}, ["a"] * 3]),
    ],
)
def test_kinds_accept_no_conversion(wire: str, good: list[object], bad: list[object]):
    """A value of another JSON type is refused, however easily it could be converted."""
    family = a_family()
    declare(family)
    body = {"model": "one", "prompt": "a horse"}
    for value in good:
        assert family.check({**body, wire: value}).ok, value
    for value in bad:
        assert wires_of(family.check({**body, wire: value}).problems) == [wire], value


def test_json_and_python_names():
    """A request is made under Python names and sent under wire names, with what was set alone."""
    request = toy(image_urls=["a"])
    assert request.to_body() == {"model": "one", "prompt": "x", "imageUrls": ["a"]}
    assert request.from_body(request.to_body()) == request


@pytest.mark.parametrize("name", ["colour", "imageUrls", "Prompt", "family"])
def test_wrong_name_is_a_problem(name: str):
    """A name that a typed request does not have is a problem of the request."""
    with pytest.raises(InvalidRequest, match=f"{name}: family .* has no such field"):
        toy(**{name: "y"})


def test_missing_argument_is_a_problem():
    """A required argument that is missing is a problem of the request."""
    with pytest.raises(InvalidRequest, match=r"1 problem.*\n  prompt: is required"):
        ImgbRequest(model="imgb-2")  # pyright: ignore[reportCallIssue]  # that is the mistake


def test_wrong_names_are_told_with_all_other_problems():
    """Wrong and missing names, and wrong values, are told together, by their names in Python."""
    wrong: dict[str, Any] = {"promt": "x", "image_url": [], "reference_image": [], "duration": "4"}
    with pytest.raises(InvalidRequest) as caught:
        VidcRequest(model="vidc_o3", **wrong)
    assert str(caught.value).splitlines()[1:] == [
        "  promt: family vidc has no such field; did you mean prompt?",
        "  image_url: family vidc has no such field; did you mean reference_images?",
        "  reference_image: family vidc has no such field; did you mean reference_images?",
        "  prompt: is required; use a text that is not blank",
        "  duration: '4' is not an integer; use an integer",
    ]


def test_problems_have_the_names_of_arguments():
    """The message has the name that the caller wrote, and `field` the one on the wire."""
    with pytest.raises(InvalidRequest, match="  reference_images: 'a' is not") as caught:
        VidcRequest(model="vidc_o3", prompt="x", reference_images=["a"])
    assert [problem.field for problem in caught.value.problems] == ["referenceImages"]
    with pytest.raises(InvalidRequest, match="  referenceImages: 'a' is not"):
        VidcRequest.from_body({"model": "vidc_o3", "prompt": "x", "referenceImages": ["a"]})


def test_signatures_are_those_of_the_fields():
    """The signature of a request class names its fields, with their defaults."""
    signature = inspect.signature(ImgbRequest)
    assert [*signature.parameters] == [*(field.name for field in IMGB.fields), "extra"]


def test_arguments_are_keywords():
    """A request takes keywords alone, so that fields can be added in any place."""
    with pytest.raises(TypeError, match="positional"):
        ImgbRequest("imgb-2", "x")  # pyright: ignore[reportCallIssue]  # that is the mistake


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_docstring_is_made_from_the_rules(family: Family):
    """A request's docstring names its path, and each field with what it is for."""
    text = " ".join((inspect.getdoc(family.request) or "").split())
    assert f"`POST {family.create_path}`" in text
    for field in family.fields:
        assert f" {field.name}: {field.text(family.python_name)}" in text
    assert " extra: " in text


def test_docstring_tells_values_and_defaults():
    """A request's docstring tells the accepted values and the service's default."""
    text = " ".join((inspect.getdoc(VidgRequest) or "").split())
    assert re.search(r"resolution: .*\(use 480p or 720p\)\. Default 720p\.", text)
    of_toy = inspect.getdoc(declare(a_family())) or ""
    assert "    size: Its size (use 1k or 2k). Default 1k.\n" in of_toy


def test_extra_is_last():
    """`extra` is the last argument, and a class without it, or with a field behind, is refused."""
    for family in FAMILIES.values():
        assert [*inspect.signature(family.request).parameters][-1] == "extra"
    with pytest.raises(TypeError, match="ToyRequest: the last field is not extra"):

        @media_request(a_family(models=()))
        class ToyRequest(MediaRequest):  # pyright: ignore[reportUnusedClass]  # it is refused
            prompt: str = setting(doc="What it shows")


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_copies_are_equal(request_: MediaRequest):
    """A request survives pickling, copying and its own JSON body, as the same value."""
    again = type(request_).from_body(request_.to_body(), keep_unknown=True)
    for copied in (
        *(pickle.loads(pickle.dumps(request_, n)) for n in range(2, 6)),  # noqa: S301  our own
        copy.copy(request_),
        copy.deepcopy(request_),
        again,
    ):
        assert copied == request_
        assert hash(copied) == hash(request_)
        assert copied.to_body() == request_.to_body()
        assert type(copied) is type(request_)


@pytest.mark.parametrize("protocol", range(2, 6))
def test_errors_can_be_pickled(protocol: int):
    """The error of a refused request survives pickling, as for a process pool."""
    with pytest.raises(InvalidRequest) as caught:
        ViddRequest(model="viddq3-pro", prompt=" ", duration=17)
    copied = pickle.loads(pickle.dumps(caught.value, protocol))  # noqa: S301  our own
    assert str(copied) == str(caught.value)
    assert copied.problems == caught.value.problems


def test_equal_requests_are_one_key():
    """Requests hash by value: the same arguments find the same entry, others do not."""
    first = ImgbRequest(model="imgb-2", prompt="a horse", image_urls=[URL])
    second = ImgbRequest(model="imgb-2", prompt="a horse", image_urls=(URL,))
    other = ImgbRequest(model="imgb-2", prompt="a horse", image_urls=(URL, URL))
    assert {first: 1}[second] == 1
    assert len({first, second, other}) == 2


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_requests_are_frozen(request_: MediaRequest):
    """Nothing of a request can be set or deleted once it is made, nor a new thing added."""
    for field in request_.family.fields:
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(request_, field.name, None)
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            delattr(request_, field.name)
    new = "colour"
    with pytest.raises(AttributeError):
        setattr(request_, new, "red")


def test_request_keeps_no_list_of_its_caller():
    """A list or mapping that a request was made from may change without changing the request."""
    urls, extra = [URL], {"deep": [1]}
    request = VidsaRequest(model="vidsa_1_5_pro_480p", extra=extra)
    with_urls = ImgbRequest(model="imgb-2", prompt="x", image_urls=urls)
    urls.append("https://media.example.com/b.png")
    extra["deep"].append(2)
    assert request.extra == {"deep": [1]}
    assert with_urls.image_urls == (URL,)


def test_all_problems_are_listed():
    """A request with several mistakes is refused once, with all of them."""
    with pytest.raises(InvalidRequest) as caught:
        VidrRequest(
            model="vidrMax",  # pyright: ignore[reportArgumentType]  # that is the mistake
            prompt="",
            size="720x1280",
            aspect_ratio="9:16",
            image_urls=[URL, URL],
        )
    assert wires_of(caught.value.problems) == ["model", "prompt", "image_urls", "aspect_ratio"]


def test_unlisted_model_skips_the_rules_of_single_models():
    """An unlisted model is sent under its name; rules of single models do not hold for it."""
    request = VidgRequest(
        model=Unlisted("vidg_video4"), prompt="x", duration=29, aspect_ratio="3:2"
    )
    assert request.to_body()["model"] == "vidg_video4"
    assert request.model_name == "vidg_video4"
    assert VIDG.check({"model": "vidg_video3_pro", "prompt": "x", "duration": 29}).problems


def test_unlisted_model_keeps_the_rules_of_the_family():
    """All rules that are not of a single model hold for an unlisted one."""
    with pytest.raises(InvalidRequest) as caught:
        VidgRequest(model=Unlisted("vidg_video4"), prompt="x", duration=31)
    assert wires_of(caught.value.problems) == ["duration"]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "a\x1b[1m", "\ud800", 5, None])
def test_unlisted_model_has_a_name(name: Any):
    """An unlisted model's name is a text that is not blank and is fit to print."""
    with pytest.raises(ValueError, match="is no model name; use the name that the service uses"):
        Unlisted(name)
    with pytest.raises(InvalidRequest):
        ImgbRequest.from_body({"model": name, "prompt": "x"}, keep_unknown=True)


def test_unlisted_model_is_deliberate():
    """A model that the tables do not know is refused as plain text, and kept where asked for."""
    body = {"model": "imgb-3", "prompt": "x", "seed": 4}
    assert wires_of(IMGB.check(body).problems) == ["model", "seed"]
    request = ImgbRequest.from_body(body, keep_unknown=True)
    assert request.model == Unlisted("imgb-3")
    assert request.extra == {"seed": 4}
    assert request.to_body() == body


@pytest.mark.parametrize("family", [VIDSA, VIDM], ids=["vidsa", "vidm"])
def test_body_not_shown_lets_fields_through(family: Family):
    """Where the specification does not show the body, unknown fields travel as they are."""
    body = {"model": "vidsa_1_5_pro_720p", "prompt": "x", "seed": 4, "nested": {"a": [None]}}
    request = parse(family, body)
    assert request.extra == {"seed": 4, "nested": {"a": [None]}}
    assert request.to_body() == body


def test_family_without_models():
    """A family whose models are not shown takes any name, or none, but no blank one."""
    assert VidmRequest().to_body() == {}
    assert VidmRequest().model_name is None
    assert VidmRequest(model="vidm-1").to_body() == {"model": "vidm-1"}
    assert parse(VIDM, {"model": "vidm-1"}) == VidmRequest(model="vidm-1")
    assert wires_of(VIDM.check({"model": " ", "prompt": 4}).problems) == ["model", "prompt"]


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object(), "\ud800", b"x"])
def test_extra_must_be_json(value: object):
    """A value that cannot be written as JSON is refused in extra, before anything is sent."""
    with pytest.raises(InvalidRequest) as caught:
        VidmRequest(extra={"seed": value})
    assert [problem.rule for problem in caught.value.problems] == ["json"]


def test_extra_holds_no_known_field():
    """A field that the family knows does not belong in extra, where it would not be checked."""
    with pytest.raises(InvalidRequest, match="set reference_images instead"):
        VidcRequest(model="vidc_o3", prompt="x", extra={"referenceImages": []})


def test_huge_values_are_refused_shortly():
    """A value too long to be shown is refused all the same, in a short message."""
    with pytest.raises(InvalidRequest) as caught:
        ViddRequest(model="viddq3-pro", prompt="x", duration=10**5000)
    assert "duration: this int is out of range; use 1 to 16 s" in str(caught.value)
    with pytest.raises(InvalidRequest) as caught:
        ImgbRequest(model="imgb-2", prompt="x", image_urls=["data:" + "A" * 9999])
    assert len(str(caught.value)) < 300


def test_ignored_setting_warns_at_the_callers_line():
    """A setting without effect warns, and the warning points at the line that made the request."""

    def make():
        VidcRequest(model="vidc_o3", prompt="x", duration=4, ratio="1:1", reference_videos=[URL])

    line = make.__code__.co_firstlineno + 1
    with pytest.warns(IgnoredSetting) as caught:
        make()
    assert [str(warning.message) for warning in caught] == [
        "duration: is ignored with referenceVideos: the output follows the reference video",
        "ratio: is ignored with referenceVideos: the output follows the reference video",
    ]
    assert {(warning.filename, warning.lineno) for warning in caught} == {(__file__, line)}


def test_effective_settings_do_not_warn():
    """A setting that has its effect does not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        VidcRequest(model="vidc_o3", prompt="x", duration=4, ratio="1:1", reference_images=[URL])


def test_families_stand_in_the_order_of_their_names():
    """The table holds every family of the specification, by name, each with its request."""
    specified = "imga imgb vidr vidv vidsa vidsb vidd vidg vidc videos vidm"
    assert set(specified.split()) <= set(FAMILIES)
    assert list(FAMILIES) == sorted(FAMILIES)
    for name, family in FAMILIES.items():
        assert family.name == name
        assert family.request.family is family
        assert find_family(name) is family


def test_unknown_family_names_the_known_ones():
    """An unknown family is refused with the closest name and all known ones."""
    with pytest.raises(LocalError, match=r"'video'; did you mean videos\? Known are imga, "):
        find_family("video")
    with pytest.raises(LocalError, match=f"'zzz'; known are {', '.join(FAMILIES)}$"):
        find_family("zzz")


def test_what_extra_becomes_is_checked_again() -> None:
    """A request whose `extra` was changed after its check is not sent against the rules."""
    request = ImgbRequest(model="imgb-2", prompt="a horse", extra={"seed": 1})
    changed = cast("dict[str, object]", request.extra)
    changed["model"] = "other"
    assert request.to_body()["model"] == "imgb-2"
    changed["resolution"] = "9k"
    with pytest.raises(InvalidRequest, match="9k"):
        encode(request, Service(base_url="https://api.example.com"))


def test_a_request_of_no_family_is_missed_where_it_was_looked_for() -> None:
    """The error for a name such as `ImageRequest` names the package that was asked."""
    with pytest.raises(AttributeError, match="module 'muybridge' has no attribute 'ImageRequest'"):
        getattr(muybridge, "ImageRequest")  # noqa: B009  type checkers would find it


def test_a_module_that_was_not_imported() -> None:
    """The error says how to import it."""
    with pytest.raises(AttributeError, match="'testing'; write `from muybridge import testing`"):
        vars(muybridge)["__getattr__"]("testing")
