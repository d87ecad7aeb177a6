"""The check of a request against a family, by a family made for this."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import FAMILIES, VideosRequest, VidmRequest
from muybridge_protocol.families.examples import examples
from muybridge_protocol.families.family import (
    DAY,
    HOUR,
    Family,
    Media,
    Model,
    Pacing,
    Retention,
    Unlisted,
)
from muybridge_protocol.families.field import Field
from muybridge_protocol.families.request import parse
from muybridge_protocol.rules.relations import Alias, Excludes, Ineffective, Relation, Requires
from muybridge_protocol.rules.values import Between, Kind, Text, one_of

NAMES = ("plain", "fine")


def field(name: str, kind: Kind, *rules: Any, required: bool = False) -> Field:
    return Field(
        name=name.lower(),
        wire=name,
        kind=kind,
        required=required,
        rules=rules,
        service_default=None,
        doc="",
    )


def family(*more: Field, body_shown: bool = True) -> Family:
    """Return a family with one field of each sort, and *more*."""
    made = Family(
        name="vidx",
        media=Media.VIDEO,
        create_path="/v1/x",
        create_object="x",
        result_object=None,
        models=(
            Model("plain", limits={"Length": (Between(1, 5),), "Sound": (one_of("off"),)}),
            Model("fine", pacing=Pacing(1, 2)),
        ),
        relations=(Requires("Sound", "Length"), Requires("Seed", "Length")),
        aliases=(Alias("old_length", "Length"), Alias("words", "prompt")),
        ineffective=(Ineffective("Sound", other="Seed", why="it is silent"),),
        pacing=Pacing(30, 60),
        retention=Retention(DAY),
        body_shown=body_shown,
    )
    fields = (
        field("model", Kind.STRING, one_of(*NAMES), required=True),
        field("prompt", Kind.STRING, Text(), Text(limit=5), required=True),
        field("Length", Kind.INTEGER, Between(1, 9)),
        field("Sound", Kind.STRING),
        field("Seed", Kind.INTEGER),
    )
    made.tie_to(VidmRequest, (*fields, *more))
    return made


NO_JSON = "cannot be written as JSON; use plain JSON values, and strings as names"
LEAST = {"model": "plain", "prompt": "horse"}


def told(made: Family, body: dict[str, Any], **options: Any) -> list[str]:
    return [f"{problem.rule} {problem}" for problem in made.check(body, **options).problems]


def test_nothing_wrong() -> None:
    """A request that keeps all rules has no problem and no notice."""
    report = family().check({**LEAST, "Length": 5, "Sound": "off"})
    assert (report.ok, report.problems, report.notices) == (True, (), ())


def test_everything_is_told_in_the_order_of_the_fields() -> None:
    """Missing fields come with what the first rule accepts, others with what is wrong with them."""
    made = family()
    assert told(made, {"Seed": 1.5, "Length": None, "prompt": "a whole horse", "Sound": 1}) == [
        "required model: is required; use plain or fine",
        "text prompt: the text has 13 characters; use 1 to 5 characters",
        "type Length: None is not an integer; leave the field out to get the service's default",
        "type Sound: 1 is not a string; use a string",
        "type Seed: 1.5 is not an integer; use an integer",
    ]
    assert told(made, {"Seed": 1}) == [
        "required model: is required; use plain or fine",
        "required prompt: is required; use a text that is not blank",
        "requires Seed: needs Length; send Length as well, or leave Seed out",
    ]
    assert told(made, {"model": "plain", "prompt": None}) == [
        "type prompt: None is not a string; use a string"
    ]
    assert not made.check({}).ok


def test_a_field_without_rules_may_be_required() -> None:
    """A required field that has no rules is told with its type."""
    made = family(field("Must", Kind.BOOLEAN, required=True))
    assert told(made, LEAST) == ["required Must: is required; use a boolean"]
    assert told(made, {**LEAST, "Must": False}) == []


def test_the_limits_of_a_model_hold_for_it_alone() -> None:
    """A model's own limits come on top of the family's, and hold for no other model."""
    made = family()
    assert told(made, {**LEAST, "Length": 6}) == ["between Length: 6 is out of range; use 1 to 5 s"]
    assert told(made, {**LEAST, "Length": 10}) == [
        "between Length: 10 is out of range; use 1 to 9 s"
    ]
    for model in ("fine", Unlisted("finer")):
        assert told(made, {**LEAST, "model": model, "Length": 6}) == []
        assert told(made, {**LEAST, "model": model, "Length": 10}) != []


def test_what_has_no_effect_is_checked_for_its_own_sake_alone() -> None:
    """A setting without effect is a notice; limits and relations do not hold for it."""
    made = family()
    assert told(made, {**LEAST, "Length": 5, "Sound": "on"}) == [
        "one_of Sound: 'on' is not accepted; use off"
    ]
    report = made.check({**LEAST, "Length": 5, "Sound": "on", "Seed": 1})
    assert report.ok
    assert [str(notice) for notice in report.notices] == [
        "Sound: is ignored with Seed: it is silent"
    ]
    assert told(made, {**LEAST, "Length": 5, "Sound": 7, "Seed": 1}) == [
        "type Sound: 7 is not a string; use a string"
    ]
    assert made.check({**LEAST, "Length": 5, "Seed": 1}).notices == ()


def test_a_model_that_is_not_listed_must_be_meant() -> None:
    """A model that the tables do not know is let through on purpose, or where all unknown is."""
    made = family()
    unknown = {**LEAST, "model": "finer"}
    assert told(made, unknown) == [
        "one_of model: 'finer' is not accepted; did you mean fine? use plain or fine"
    ]
    assert told(made, {**LEAST, "model": "coarse"}) == [
        "one_of model: 'coarse' is not accepted; use plain or fine"
    ]
    assert told(made, unknown, keep_unknown=True) == []
    assert told(made, {**LEAST, "model": Unlisted("finer")}) == []
    assert told(made, {**LEAST, "model": ""}, keep_unknown=True) == [
        "model_name model: '' is no model name; use the name that the service uses"
    ]
    assert told(made, {**LEAST, "prompt": ""}, keep_unknown=True) != []
    with pytest.raises(ValueError, match="'' is no model name; use the name"):
        Unlisted("")
    assert str(Unlisted("finer")) == "finer"


def test_unknown_fields_are_mistakes_where_the_body_is_shown() -> None:
    """A field that the family does not have is told, unless unknown ones are let through."""
    made, open_one = family(), family(body_shown=False)
    body = {**LEAST, "lenght": 5, "Length": 5, "colour": "bay"}
    fields = "model, prompt, Length, Sound, Seed"
    assert told(made, body) == [
        "unknown_field lenght: family vidx has no such field; did you mean Length?",
        f"unknown_field colour: family vidx has no such field; use {fields}",
    ]
    assert told(made, body, keep_unknown=True) == told(open_one, body) == []
    odd = {"colour": {1}, **LEAST, "mane": {2}}
    assert told(made, odd, keep_unknown=True) == told(open_one, odd)
    assert told(open_one, odd) == [
        f"json colour: {{1}} {NO_JSON}",
        f"json mane: {{2}} {NO_JSON}",
    ]


@pytest.mark.parametrize(
    ("wire", "meant"),
    [("LENGTH", "Length"), ("len_gth", "Length"), ("promt", "prompt"), ("colour", None)],
)
def test_misspellings(wire: str, meant: str | None) -> None:
    """What a field was probably meant to be is found, whatever its case and underscores."""
    assert family().suggestion(wire) == meant


@pytest.mark.parametrize(
    ("wire", "meant"),
    [("image_url", "referenceImages"), ("video", "referenceVideos"), ("colour", None)],
)
def test_fields_for_media_with_names_of_other_services(wire: str, meant: str | None) -> None:
    """A name that speaks of pictures or videos suggests the field that takes most of them."""
    assert FAMILIES["vidsb"].suggestion(wire) == meant


def test_extra_holds_what_is_not_known() -> None:
    """A known field does not belong in extra, and what is there must be JSON."""
    made = family()
    extra: dict[str, Any] = {"colour": {1}, "Length": 5, "mane": "long", "tail": object}
    problems = told(made, LEAST, extra=extra)
    assert problems[0] == f"json colour: {{1}} {NO_JSON}"
    assert problems[1] == (
        "extra Length: is a known field and does not belong in extra; set length instead"
    )
    assert problems[2].startswith("json tail: ")
    assert len(problems) == 3
    assert told(made, LEAST, extra={}) == told(made, LEAST, extra={"mane": "long"}) == []


def test_old_names() -> None:
    """An old name may stand alone, or beside the new one with the same value."""
    made = family()
    assert told(made, {"model": "plain", "words": "horse", "old_length": 5}) == []
    assert told(made, {"model": "plain", "words": "horse", "old_length": 6}) == [
        "between old_length: 6 is out of range; use 1 to 5 s"
    ]
    assert told(made, {**LEAST, "words": " horse".strip()}) == []
    assert told(made, {**LEAST, "words": "mule"}) == [
        "alias words: conflicts with prompt, whose old name it is; send prompt alone"
    ]
    # That True equals 1 does not make them the same.
    assert told(made, {**LEAST, "Length": 1, "old_length": True}) == [
        "alias old_length: conflicts with Length, whose old name it is; send Length alone"
    ]
    assert told(made, {**LEAST, "words": "horse", "Length": 5, "old_length": 5}) == []


def test_a_problem_has_the_name_that_was_given() -> None:
    """A problem under an old name is reported under it; under both names, under the new one."""
    made = family(field("Tail", Kind.STRING))
    object.__setattr__(made, "aliases", (*made.aliases, Alias("old_tail", "Tail")))
    object.__setattr__(made, "relations", (Requires("Tail", "Length"), Requires("Seed", "Tail")))
    assert told(made, {**LEAST, "Length": 5, "old_tail": 5}) == [
        "type old_tail: 5 is not a string; use a string"
    ]
    assert told(made, {**LEAST, "old_tail": "x"}) == [
        "requires old_tail: needs Length; send Length as well, or leave old_tail out"
    ]
    assert told(made, {**LEAST, "Tail": "x", "old_tail": "x"}) == [
        "requires Tail: needs Length; send Length as well, or leave Tail out"
    ]
    assert told(made, {**LEAST, "Length": 10, "old_length": 10}) == [
        "between Length: 10 is out of range; use 1 to 9 s"
    ]


JSON: list[tuple[object, bool]] = [
    (None, True),
    (True, True),
    ("a", True),
    ("ä", True),
    ("\ud800", False),
    (1, True),
    (9e299, True),
    (1e300, False),
    (-1e300, False),
    (10**299, True),
    (10**301, False),
    (float("nan"), False),
    (float("inf"), False),
    ([1, "a"], True),
    ((1, "a"), True),
    ([], True),
    ([1, {2}], False),
    ([{2}, 1], False),
    ({"a": 1, "b": [2]}, True),
    ({}, True),
    ({"a": 1, "b": {2}}, False),
    ({"a": {2}, "b": 1}, False),
    ({1: "a"}, False),
    ({"\ud800": 1}, False),
    ({2}, False),
    (b"a", False),
    (object(), False),
]


@pytest.mark.parametrize(("value", "travels"), JSON, ids=lambda value: ascii(value)[:20])
def test_what_can_be_written_as_json(value: object, *, travels: bool) -> None:
    """What travels unchecked must be JSON that every reader reads alike."""
    assert (told(family(), LEAST, extra={"x": value}) == []) is travels
    assert (told(family(), LEAST, extra={"x": [value]}) == []) is travels


@pytest.mark.parametrize("wire", [1, None, "\ud800", ("a",)])
def test_names_are_json_strings(wire: Any) -> None:
    """The name of a field is a string that can be written."""
    assert len(told(family(body_shown=False), {**LEAST, wire: 1})) == 1


def test_requests_are_parsed() -> None:
    """A body becomes its typed request, with what is unknown in `extra`."""
    body = {"model": "videos", "prompt": "a horse", "duration": 5, "ratio": "1:1"}
    request = parse(VideosRequest.family, body, extra={"mane": "long"})
    assert isinstance(request, VideosRequest)
    assert request.to_body() == {**body, "mane": "long"}
    assert request.extra == {"mane": "long"}
    assert request.model == "videos"
    for wrong in ({**body, "colour": "bay"}, {**body, "model": "film"}):
        with pytest.raises(InvalidRequest) as caught:
            parse(VideosRequest.family, wrong)
        assert caught.value.family == "videos"
        assert len(caught.value.problems) == 1
    kept = parse(
        VideosRequest.family,
        {**body, "colour": "bay", "model": "film"},
        extra={"mane": "long"},
        keep_unknown=True,
    )
    assert kept.extra == {"colour": "bay", "mane": "long"}
    assert isinstance(kept, VideosRequest)
    assert kept.model == Unlisted("film")


def test_a_family_without_models_takes_any() -> None:
    """Where the models are not shown, a name is a plain string."""
    request = parse(VidmRequest.family, {"model": "anything", "prompt": "a horse"})
    assert isinstance(request, VidmRequest)
    assert request.model == "anything"


def test_models_and_their_pace() -> None:
    """A model is known by its name, and has the family's pace unless it has its own."""
    made = family()
    plain, fine = made.models
    assert [made.model(name) for name in (*NAMES, "finer", None)] == [plain, fine, None, None]
    assert made.pacing_of("fine") == Pacing(1, 2)
    assert made.pacing_of("plain") == made.pacing_of("finer") == made.pacing_of(None)
    assert made.pacing_of("plain") == Pacing(30, 60)
    assert made.field("Length") is made.fields[2]
    assert made.field("length") is None
    assert made.request is VidmRequest


def test_what_is_not_said_of_a_family() -> None:
    """What a family does not state is the ordinary case."""
    made = family()
    assert made.body_shown
    assert (made.omits_error, made.starts_processing, made.makes_audio) == (False, False, False)
    assert not Pacing(1, 2).assumed
    assert not Retention(DAY).record_too
    assert (HOUR, DAY) == (3600, 86400)


def test_families_are_shown_short() -> None:
    """A family can be a key of a mapping, and so can a model; what belongs to it is not shown."""
    made = family()
    assert {model: model.name for model in made.models} == dict(
        zip(made.models, NAMES, strict=True)
    )
    for hidden in ("request=", "fields=", "_by_wire=", "_by_name="):
        assert hidden not in repr(made)
    assert len(set(FAMILIES.values())) == len(FAMILIES)


def related(*relations: Relation) -> Family:
    """Return a family with the fields of `videos` and other relations."""
    videos = VideosRequest.family
    family = attrs.evolve(videos, relations=relations)
    family.tie_to(VideosRequest, videos.fields)
    return family


def test_an_example_has_what_its_relations_demand() -> None:
    """An example of a family has every field that another one needs, and is accepted."""
    family = related(Requires("prompt", "last_image"), Requires("last_image", "first_image"))
    for body in examples(family).values():
        assert {"first_image", "last_image"} <= body.keys()
        assert family.check(body).ok


def test_no_example_is_wrong() -> None:
    """A family of which no example is known says so, instead of showing one that is refused."""
    with pytest.raises(ValueError, match=r"no example of .* first_image"):
        examples(
            related(Requires("prompt", "first_image"), Excludes(("prompt",), ("first_image",)))
        )
