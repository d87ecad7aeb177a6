"""The vocabulary of rules by itself, word for word, as messages and other readers use it."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

import pytest

from muybridge_protocol.rules.relations import (
    Alternatives,
    Excludes,
    FewerWith,
    Ineffective,
    OnlyWith,
    Relation,
    RequiredFor,
    Requires,
    together,
)
from muybridge_protocol.rules.values import (
    Between,
    Items,
    Kind,
    ModelName,
    Notice,
    NotSet,
    PixelSize,
    Problem,
    Text,
    ValueRule,
    at_most,
    either,
    one_of,
    parse_pixel_size,
    shown,
    with_article,
)

VALUES: dict[str, Any] = {
    "text": "a",
    "empty text": "",
    "number": 5,
    "zero": 0,
    "fraction": 0.5,
    "infinity": float("inf"),
    "NaN": float("nan"),
    "yes": True,
    "no": False,
    "nothing": None,
    "texts": ["a", "b"],
    "no texts": [],
    "texts in a tuple": ("a",),
    "a text and a number": ["a", 1],
    "numbers": [1],
    "object": {"a": 1},
    "set": {"a"},
}
TYPES: dict[Kind, set[str]] = {
    Kind.STRING: {"text", "empty text"},
    Kind.INTEGER: {"number", "zero"},
    Kind.NUMBER: {"number", "zero", "fraction"},
    Kind.BOOLEAN: {"yes", "no"},
    Kind.STRINGS: {"texts", "no texts", "texts in a tuple"},
}


@pytest.mark.parametrize("kind", Kind)
def test_types(kind: Kind) -> None:
    """A value is of a type as JSON has it, without any conversion: true is no number."""
    assert {name for name, value in VALUES.items() if kind.accepts(value)} == TYPES[kind]


def test_articles() -> None:
    """A type is named with its article."""
    assert [with_article(kind) for kind in Kind] == [
        "a string",
        "an integer",
        "a number",
        "a boolean",
        "an array of string",
    ]


# A rule, what it says it accepts, values that it accepts, and what it says of others.
RULES: list[tuple[ValueRule, str, list[Any], dict[Any, str]]] = [
    (
        one_of("a", "B", 3),
        "use a, B or 3",
        ["a", "B", 3],
        {"A": "'A' is not accepted", "b": "'b' is not accepted", 4: "4 is not accepted"},
    ),
    (
        one_of("1K", "2k", ignore_case=True),
        "use 1K or 2k (in any case)",
        ["1K", "1k", "2K", "2k"],
        # The Kelvin sign is a K in small letters, but no service reads it so.
        {
            "3k": "'3k' is not accepted",
            "1\u212a": "'1\u212a' is not accepted",
            1: "1 is not accepted",
        },
    ),
    (
        Between(4, 15),
        "use 4 to 15 s",
        [4, 5, 14, 15, 4.5],
        {3: "3 is out of range", 16: "16 is out of range", -1: "-1 is out of range"},
    ),
    (
        Between(4, 15, also=(-1,), unit="frames"),
        "use 4 to 15 frames, or -1",
        [4, 15, -1],
        {0: "0 is out of range", "5": "'5' is not a number"},
    ),
    (
        Between(1, 50, unit=""),
        "use 1 to 50",
        [1, 50],
        {0: "0 is out of range", 51: "51 is out of range"},
    ),
    (
        Between(1, 50, also=(0,), unit=""),
        "use 1 to 50, or 0",
        [0, 1, 50],
        {-1: "-1 is out of range"},
    ),
    (
        Text(),
        "use a text that is not blank",
        ["a", " a ", "x" * 100_000],
        {"": "the text is blank", " \n": "the text is blank", 5: "the text is blank"},
    ),
    (
        Text(limit=3),
        "use 1 to 3 characters",
        ["a", "abc"],
        {"abcd": "the text has 4 characters", " ": "the text is blank"},
    ),
    (
        ModelName(),
        "use the name that the service uses",
        ["imgb-2", "a model"],
        {"": "'' is no model name", " ": "' ' is no model name", "a\n": "'a\\n' is no model name"},
    ),
    (
        at_most(2),
        "use at most 2",
        [(), ("a",), ("a", "b")],
        {("a", "b", "c"): "there are 3 items", 1: "1 is not an array"},
    ),
    (
        Items(2, 3),
        "use 2 to 3",
        [("a", "b"), ("a", "b", "c")],
        {
            (): "there are 0 items",
            ("a",): "there is 1 item",
            ("a",) * 4: "there are 4 items",
            "ab": "'ab' is not an array",
        },
    ),
    (NotSet("it is not for this"), "leave the field out", [], {"a": "it is not for this"}),
    (
        PixelSize(
            longest_edge=400, multiple_of=10, longest_ratio=3, least_pixels=600, most_pixels=80_000
        ),
        (
            "use {width}x{height}: edges of at most 400 px, multiples of 10, at most 3:1, "
            "600 to 80000 pixels in all"
        ),
        ["400x200", "200x400", "30x20", "20x30", "150x50", "50x150"],
        {
            "410x200": "an edge of 410 px is too long",
            "200x410": "an edge of 410 px is too long",
            "205x200": "205x200: both edges must be multiples of 10",
            "200x205": "200x205: both edges must be multiples of 10",
            "160x50": "160x50 is more than 3:1",
            "50x160": "50x160 is more than 3:1",
            "20x20": "20x20 has 400 pixels",
            "400x210": "400x210 has 84000 pixels",
            "200X200": "'200X200' is not {width}x{height}",
            5: "5 is not {width}x{height}",
        },
    ),
]


@pytest.mark.parametrize(
    ("rule", "accepted", "good", "bad"), RULES, ids=[f"{rule}"[:40] for rule, *_ in RULES]
)
def test_value_rules(rule: ValueRule, accepted: str, good: list[Any], bad: dict[Any, str]) -> None:
    """Each rule accepts what it says, to the last value, and says what is wrong with all else."""
    assert rule.accepted == accepted
    assert {value: rule.complaint(value) for value in good} == dict.fromkeys(good)
    assert {value: rule.complaint(value) for value in bad} == bad


def test_lists_are_arrays_too() -> None:
    """A list counts as a tuple does."""
    assert at_most(1).complaint(["a", "b"]) == "there are 2 items"
    assert Items(1, 1).complaint(["a"]) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1x2", (1, 2)),
        ("1280x720", (1280, 720)),
        ("999999x1", (999_999, 1)),
        ("1000000x1", None),
        ("0x1", None),
        ("01x1", None),
        ("1x", None),
        ("1x1 ", None),
        ("1x1\n", None),
        ("\u0661x1", None),
    ],
)
def test_pixel_sizes_are_read(text: str, size: tuple[int, int] | None) -> None:
    """Width and height are plain numbers without signs, spaces or leading zeros."""
    assert parse_pixel_size(text) == size


def test_values_are_shown() -> None:
    """A value is shown short, on one line, and a URL without its query."""
    assert shown("a\nb") == "'a\\nb'"
    assert shown("https://a.example/b?secret=1?2") == "'https://a.example/b'"
    assert shown("a?b") == "'a?b'"
    assert shown(["https://a.example/?x", "a?b"]) == "['https://a.example/', 'a?b']"
    assert shown({"a": "https://a.example/b?x=1"}) == "{'a': 'https://a.example/b'}"
    assert "secret" not in shown(PurePosixPath("https://a.example/b?secret=1"))
    assert shown("https:/a.example/b?secret=1") == "'https:/a.example/b'"
    assert shown("x" * 78) == repr("x" * 78)
    assert shown("x" * 79) == "'" + "x" * 76 + "..."
    assert len(shown("x" * 79)) == 80
    assert shown("x" * 9, limit=10) == "'xxxxxx..."
    assert shown(10**5000) == "this int"


def test_deep_values_are_shown() -> None:
    """A value that cannot be written down is shown by its type."""
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "this list"


def test_options_are_listed() -> None:
    """Options are listed in words."""
    assert either(["a"]) == "a"
    assert either(["a", 2]) == "a or 2"
    assert either(["a", "b", "c"]) == "a, b or c"


def test_problems_and_notices_read_well() -> None:
    """A problem begins with its field, if it is about one."""
    assert str(Problem("a", 1, "rule", "is wrong", "use b")) == "a: is wrong; use b"
    assert str(Problem("", None, "rule", "all is wrong", "use b")) == "all is wrong; use b"
    assert str(Notice("a", "it has no effect")) == "a: it has no effect"


def told(rule: Relation, values: dict[str, Any], model: str | None = None) -> list[str]:
    return [f"{problem.rule} {problem}" for problem in rule.problems(values, model)]


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (Requires("a", "b"), "-A needs -B."),
        (Excludes(("a",), ("b",)), "-A cannot be combined with -B."),
        (
            Excludes(("a", "b"), ("c", "d", "e")),
            "-A and -B cannot be combined with -C, -D or -E.",
        ),
        (Alternatives("a", "b"), "Give only one of -A and -B."),
        (RequiredFor("a", ("m",)), "-A is required by m."),
        (RequiredFor("a", ("m", "n", "o")), "-A is required by m, n and o."),
        (OnlyWith("a", "x", "b", ("y", "z")), "-A x is accepted only with -B y, z."),
        (FewerWith("a", 2, "b"), "With -B give at most 2 -A."),
    ],
)
def test_relations_in_words(rule: Relation, sentence: str) -> None:
    """Each rule between fields is one sentence, in which the reader names the fields."""
    assert rule.sentence(lambda wire: f"-{wire.upper()}") == sentence
    assert rule.sentence() == re.sub("-([A-Z])", lambda found: found[1].lower(), sentence)


def test_requires() -> None:
    """A field that requires another one may be sent with it, and neither needs to be."""
    rule = Requires("a", "b")
    assert told(rule, {}) == told(rule, {"b": 1}) == told(rule, {"a": 1, "b": 1}) == []
    assert told(rule, {"a": 1}) == ["requires a: needs b; send b as well, or leave a out"]
    assert together("a", "b") == (Requires("a", "b"), Requires("b", "a"))


def test_excludes() -> None:
    """Every field of the one side is told that is sent beside any of the other side."""
    rule = Excludes(("a", "b"), ("c", "d"))
    for values in ({}, {"a": 1, "b": 1}, {"c": 1, "d": 1}):
        assert told(rule, values) == []
    assert told(rule, {"b": 1, "d": 1}) == [
        "excludes b: cannot be combined with d; leave b out, or leave d out"
    ]
    assert told(rule, dict.fromkeys("abcd", 1)) == [
        "excludes a: cannot be combined with c or d; leave a out, or leave c and d out",
        "excludes b: cannot be combined with c or d; leave b out, or leave c and d out",
    ]


def test_alternatives() -> None:
    """Of two fields that say the same, the second one is told where both are sent."""
    rule = Alternatives("a", "b")
    assert told(rule, {}) == told(rule, {"a": 1}) == told(rule, {"b": 1}) == []
    assert told(rule, {"a": 1, "b": 1}) == [
        "alternatives b: is an alternative to a, which is sent too; send only one of a and b"
    ]


def test_required_for() -> None:
    """A field that some models need must be sent for them, and not be empty."""
    rule = RequiredFor("a", ("m", "n"))
    assert told(rule, {}, "o") == told(rule, {}) == told(rule, {"a": [1]}, "m") == []
    empty: list[dict[str, Any]] = [{}, {"a": []}]
    for values in empty:
        assert told(rule, values, "n") == [
            "required_for_model a: is required by model n; send at least one item in a"
        ]


def test_only_with() -> None:
    """A value that goes only with some values of another field is told beside others alone."""
    rule = OnlyWith("a", "x", "b", ("y", "z"))
    fine: list[dict[str, Any]] = [
        {},
        {"a": "x"},
        {"a": "x", "b": "y"},
        {"a": "w", "b": "q"},
        {"b": "q"},
    ]
    for values in fine:
        assert told(rule, values) == []
    assert told(rule, {"a": "x", "b": "q"}) == [
        "only_with a: 'x' is not accepted with b 'q'; with x use b y or z"
    ]


def test_fewer_with() -> None:
    """Fewer items are accepted while another field is sent."""
    rule = FewerWith("a", 2, "b")
    for values in ({"a": [1, 2, 3]}, {"a": [1, 2], "b": 1}, {"b": 1}, {"a": "xyz", "b": 1}):
        assert told(rule, values) == []
    assert told(rule, {"a": [1, 2, 3], "b": 1}) == [
        "fewer_with a: there are 3 items beside b; with b use at most 2"
    ]


@pytest.mark.parametrize(
    ("rule", "values", "model", "applies"),
    [
        (Ineffective("a", other="b"), {"a": 1, "b": 1}, None, True),
        (Ineffective("a", other="b"), {"a": 1}, None, False),
        (Ineffective("a", other="b"), {"b": 1}, None, False),
        (Ineffective("a", models=("m",)), {"a": 1}, "m", True),
        (Ineffective("a", models=("m",)), {"a": 1}, "n", False),
        (Ineffective("a", models=("m",)), {"a": 1}, None, False),
        (Ineffective("a", models=("m",)), {}, "m", False),
        (Ineffective("a", other="b", models=("m",)), {"a": 1, "b": 1}, "n", True),
        (Ineffective("a", other="b", models=("m",)), {"a": 1}, "m", True),
        (Ineffective("a", models=("m",)), {"a": 1, None: 1}, "n", False),
    ],
)
def test_ineffective(
    rule: Ineffective, values: dict[str, Any], model: str | None, *, applies: bool
) -> None:
    """A setting is without effect beside another field, or for some models, where it is sent."""
    assert rule.applies(values, model) is applies


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Ineffective("a", other="b"), "is ignored with --b"),
        (Ineffective("a", models=("m", "n")), "is ignored for m or n"),
        (Ineffective("a", other="b", models=("m",)), "is ignored with --b or for m"),
        (Ineffective("a", other="b", why="b decides"), "is ignored with --b: b decides"),
    ],
    ids=["a field", "models", "both", "a reason"],
)
def test_ineffective_says_when(rule: Ineffective, message: str) -> None:
    """What is said of an ignored field says beside what, or for which models, it is ignored."""
    assert rule.message(lambda wire: f"--{wire}") == message
    assert rule.message() == message.replace("--b", "b")
