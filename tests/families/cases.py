"""The contract that every family's cases are run against.

The cases themselves stand in one file a family. They are transcribed by hand from the
specification's text and never derived from the library's tables: the client and the emulator
read the same tables, so only an independent transcription proves them right.
"""

# ruff: noqa: FBT003  a table's values stand in a row, and some are booleans

from __future__ import annotations

import inspect
import itertools
import json
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import pytest

from muybridge_protocol.errors import IgnoredSetting, InvalidRequest
from muybridge_protocol.families import FAMILIES, Unlisted

Body = dict[str, Any]

# Python names that differ from the wire's.
SNAKE = {
    "referenceImages": "reference_images",
    "referenceVideos": "reference_videos",
    "referenceAudios": "reference_audios",
    "generateAudio": "generate_audio",
    "lastFrameImage": "last_frame_image",
}

FULL_WIDTH = {ord("0") + digit: 0xFF10 + digit for digit in range(10)} | {
    ord("a") + letter: 0xFF41 + letter for letter in range(26)
}

DAY = 86400

IMAGE = "https://media.example.com/first.png"
LAST = "http://media.example.com/last.webp?width=640&sign=a%20b"
VIDEO = "https://media.example.com/clip.mp4"
BARE_BASE64 = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk" + "A" * 40
DATA = "data:image/png;base64,iVBORw0KGgo="
ASSET = "asset://asset-20250101-abc"


def images(count: int) -> list[str]:
    return [f"https://media.example.com/{number}.png" for number in range(count)]


def videos(count: int) -> list[str]:
    return [f"https://media.example.com/{number}.mp4" for number in range(count)]


def audios(count: int) -> list[str]:
    return [f"https://media.example.com/{number}.wav" for number in range(count)]


@dataclass(frozen=True)
class Accepted:
    """A body that the service accepts, what it ignores in it, and what is sent for it."""

    name: str
    body: Body
    notices: frozenset[str] = frozenset()
    sent: Body | None = None

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Rejected:
    """A body that the service rejects, and the wire names of the fields to blame."""

    name: str
    body: Body
    fields: frozenset[str]
    hint: str = ""

    def __str__(self) -> str:
        return self.name


def ok(
    name: str, body: Body, *, notices: tuple[str, ...] = (), sent: Body | None = None
) -> Accepted:
    return Accepted(name, body, frozenset(notices), sent)


def no(name: str, body: Body, *fields: str, hint: str = "") -> Rejected:
    return Rejected(name, body, frozenset(fields), hint)


def label(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else f"{text[:30]}...{len(text)}"


# Tables of cases for one field.


def each(base: Body, field: str, *values: object) -> list[Accepted]:
    """Every one of *values* is accepted."""
    return [ok(f"{field}={label(value)}", {**base, field: value}) for value in values]


def none(base: Body, field: str, *values: object) -> list[Rejected]:
    """None of *values* is accepted."""
    return [no(f"{field}={label(value)}", {**base, field: value}, field) for value in values]


def near(base: Body, field: str, value: str, *, any_case: bool = False) -> list[Rejected]:
    """What is almost *value*, one of the field's enumerated values, is not accepted."""
    misses: list[object] = [
        f"{value}\n",
        f"{value}\r\n",
        f"{value} ",
        f" {value}",
        f"\t{value}",
        f"{value}\x00",
        f"{value}\u00a0",
        f"{value}\u200b",
        f'"{value}"',
        value[:-1],
        f"{value}{value}",
        f"{value},",
        value.translate(FULL_WIDTH),
        "",
        " ",
        None,
        True,
        0,
        16.9,
        [value],
        [],
        {},
        {"value": value},
    ]
    if ":" in value:
        misses += [
            value.replace(":", "\uff1a"),
            value.replace(":", "x"),
            value.replace(":", "/"),
            value.replace(":", "-"),
            value.replace(":", " : "),
        ]
    if not any_case and value.swapcase() != value:
        misses += [value.swapcase(), value.capitalize() if value.islower() else value.lower()]
    seen: list[object] = []
    for miss in misses:
        if miss != value and not any(miss == other and type(miss) is type(other) for other in seen):
            seen.append(miss)
    return none(base, field, *seen)


def not_integers(base: Body, field: str, value: int) -> list[Rejected]:
    """What is no JSON integer is not accepted; *value* is a legal one."""
    return none(
        base,
        field,
        str(value),
        f"{value}s",
        value + 0.5,
        True,
        False,
        None,
        [],
        [value],
        {},
        "",
        math.nan,
        math.inf,
        -math.inf,
        0,
        -value,
        10**400,
        -(10**400),
    )


def prompts(base: Body) -> list[Accepted]:
    """Any text is a prompt; it is sent as it is."""
    return [
        ok("one character", {**base, "prompt": "a"}),
        ok("emoji", {**base, "prompt": "a \U0001f40e at a gallop \U0001f3ac"}),
        ok("joined emoji", {**base, "prompt": "\U0001f468\u200d\U0001f469\u200d\U0001f467"}),
        ok("newlines", {**base, "prompt": "a horse\nat a gallop\r\n\tfrom the side"}),
        ok("space around", {**base, "prompt": "  a horse \n"}),
        ok("other scripts", {**base, "prompt": "\u99ac\u304c\u8d70\u308b, \u0430, \u0639"}),
        ok("quotes and backslashes", {**base, "prompt": '"a" \\ {b} </c> %s'}),
    ]


def long_prompts(base: Body) -> list[Accepted]:
    """Where the specification states no longest prompt, none is invented."""
    return [
        ok("prompt of 1501", {**base, "prompt": "a" * 1501}),
        ok("prompt of 20000", {**base, "prompt": "a" * 20_000}),
    ]


def not_prompts(base: Body) -> list[Rejected]:
    """A prompt is a string with something in it that can be written as JSON."""
    return none(
        base,
        "prompt",
        "",
        " ",
        "\n\t ",
        "\u3000\u00a0",
        None,
        5,
        1.5,
        True,
        False,
        [],
        ["a horse"],
        {},
        {"text": "a horse"},
        "\ud800",
        "a horse \udc00 at a gallop",
        "\ud83d \udc0e",
    )


GOOD_URLS = (
    "http://example.com/a.png",
    "https://example.com/a.png",
    "https://example.com",
    "https://media.example.com:8443/a/b.webp?sign=1&expires=2#part",
    "https://example.com/download?id=1",
    "https://example.com/a%20b.png",
    "https://xn--bcher-kva.example.com/a.png",
)

BAD_URLS = (
    "",
    " ",
    "garbage",
    "a.png",
    "./a.png",
    "../a.png",
    "/home/someone/a.png",
    "~/a.png",
    "C:\\pictures\\a.png",
    "\\\\server\\share\\a.png",
    "ftp://example.com/a.png",
    "sftp://example.com/a.png",
    "file:///tmp/a.png",
    "file://example.com/a.png",
    "s3://bucket/a.png",
    "javascript:alert(1)",
    "mailto:someone@example.com",
    "example.com/a.png",
    "www.example.com/a.png",
    "//example.com/a.png",
    "://example.com/a.png",
    "http",
    "http:",
    "https://",
    "https:///a.png",
    "https:/example.com/a.png",
    "https:example.com/a.png",
    "https//example.com/a.png",
    "httpss://example.com/a.png",
    "https://example.com/a b.png",
    "https://exam ple.com/a.png",
    " https://example.com/a.png",
    "https://example.com/a.png ",
    "https://example.com/a.png\n",
    "\nhttps://example.com/a.png",
    "https://example.com/\ta.png",
    "https://example.com/a.png\r\nX: y",
    "https://example.com/\u3000a.png",
    "https://example.com/\ud800.png",
    "asset:asset-1",
    "asset:/asset-1",
    "asset://",
    "asset:// ",
    "asset://a b",
    "asset://asset-1\n",
    "ASSET",
)


# Nobody else reaches these. Addresses of this machine are left to the client: see `test_links`.
PRIVATE_URLS = (
    "http://10.1.2.3/a.png",
    "http://192.168.1.1/a.png",
    "http://172.16.0.1/a.png",
    "http://169.254.169.254/a.png",
    "http://0.0.0.0/a.png",
    "http://[fe80::1]/a.png",
    "http://nas/a.png",
    "http://intranet/a.png",
    "https://files.lan/a.png",
    "https://media.corp/a.png",
    "https://router.home.arpa/a.png",
    "https://camera.local./a.png",
    "https://service.internal/a.png",
)

# No base64, no asset, no address of this network: what is not a public URL.
NOT_PUBLIC = (DATA, DATA.upper(), "data:,a", BARE_BASE64, *PRIVATE_URLS)


def media(base: Body, field: str, *, more: tuple[str, ...] = ()) -> list[Accepted]:
    """The field takes one http or https URL."""
    return each(base, field, *GOOD_URLS, *more)


def not_media(base: Body, field: str, *, more: tuple[str, ...] = (ASSET,)) -> list[Rejected]:
    """The field takes nothing but one URL."""
    others: tuple[object, ...] = (None, 5, True, [], [IMAGE], {}, {"url": IMAGE})
    return none(base, field, *BAD_URLS, *more, *others)


def media_arrays(base: Body, field: str, *, more: tuple[str, ...] = ()) -> list[Accepted]:
    """The field takes an array of http or https URLs."""
    return each(base, field, *([url] for url in (*GOOD_URLS, *more)))


def not_media_arrays(
    base: Body, field: str, *, more: tuple[str, ...] = (ASSET,), item: str = IMAGE
) -> list[Rejected]:
    """The field takes nothing but an array of URLs."""
    others: tuple[object, ...] = (
        None,
        "",
        item,
        f"{item},{item}",
        json.dumps([item]),
        5,
        True,
        {},
        {"url": item},
        {"0": item},
        [None],
        [5],
        [True],
        [[item]],
        [{"url": item}],
    )
    return none(base, field, *([url] for url in (*BAD_URLS, *more)), *others)


def not_second_items(base: Body, field: str, item: str = IMAGE) -> list[Rejected]:
    """Every item of the array is checked, not the first alone."""
    bad = (5, None, True, [item], "", "garbage", "ftp://example.com/a.png")
    return none(base, field, *([item, other] for other in bad))


def clashes(base: Body, these: Body, those: Body) -> list[Rejected]:
    """Each field of *these* clashes with each of *those*; the first of a pair is blamed."""
    return [
        no(f"{one} beside {other}", {**base, one: these[one], other: those[other]}, one)
        for one, other in itertools.product(these, those)
    ]


def unknown(base: Body, **meant: str) -> list[Rejected]:
    """Each misspelt name is a problem, whose text names the field that was meant."""
    return [
        no(f"unknown {wire}", {**base, wire: "x"}, wire, hint=right)
        for wire, right in meant.items()
    ]


def python_names(*wires: str) -> dict[str, str]:
    return {wire: SNAKE.get(wire, wire) for wire in wires}


# The contract.


@dataclass(frozen=True)
class Records:
    """What a family's records look like.

    `object` of its task and of its result records (None: not shown), whether they omit `error`
    unless the status is `failed`, whether a create may report `processing`, for how many seconds
    a result is kept (None: not given), and whether the record goes with it.
    """

    create_object: str
    result_object: str | None
    omits_error: bool = False
    starts_processing: bool = False
    retention: int | None = None
    record_too: bool = False


MOST_SHOWN = 10
"""Cases of a table that are shown where more fail."""


def for_each(test: Callable[[Any, Any], None]) -> Callable[[Any], None]:
    """Make one test, of each case of a table, from *test* of one case.

    A table has a thousand cases, each of which takes less time than pytest takes for a test.

    Args:
        test: Its second parameter is named after the table: `good` for `good_table`.
    """
    _, name = inspect.signature(test).parameters

    def over_the_table(self: Any) -> None:
        failed: list[Exception] = []
        for case in getattr(self, f"{name}_table")():
            try:
                test(self, case)
            except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  shown below
                failure = AssertionError(f"{name}: {case}")
                failure.__cause__ = error
                failed.append(failure)
                if len(failed) == MOST_SHOWN:
                    break
        if failed:
            raise ExceptionGroup("cases fail", failed)

    over_the_table.__name__ = test.__name__
    over_the_table.__doc__ = test.__doc__
    return over_the_table


class OpenContract:
    """What holds for every family, even for one of which the specification shows next to nothing.

    Subclass it as `Test...` with a family's tables, and each case is tested.
    """

    request: ClassVar[Any]
    create_path: ClassVar[str]
    records: ClassVar[Records]
    pace: ClassVar[tuple[float, float]]  # of the smallest request: shortest and longest, in seconds
    names: ClassVar[dict[str, str]]
    required: ClassVar[tuple[str, ...]]
    smallest: ClassVar[Body]
    defaults: ClassVar[Body] = {}  # what the service takes where nothing is sent, as far as shown
    accepted: ClassVar[list[Accepted]]
    rejected: ClassVar[list[Rejected]]

    # The tables that `for_each` goes through.

    @classmethod
    def good_table(cls) -> list[Accepted]:
        return cls.accepted

    @classmethod
    def bad_table(cls) -> list[Rejected]:
        return cls.rejected

    @classmethod
    def bad_typed_table(cls) -> list[Rejected]:
        return [case for case in cls.rejected if cls.expressible(case.body)]

    @classmethod
    def wire_table(cls) -> list[str]:
        return list(cls.names)

    @classmethod
    def expressible(cls, body: Body) -> bool:
        """Whether the constructor's arguments can say *body*: there, None says "not set"."""
        return (
            all(wire in body for wire in cls.required)
            and all(wire in cls.names for wire in body)
            and all(value is not None or wire in cls.required for wire, value in body.items())
        )

    @classmethod
    def typed(cls, body: Body, *, extra: Body | None = None) -> Any:
        known = {cls.names[wire]: value for wire, value in body.items() if wire in cls.names}
        others = {wire: value for wire, value in body.items() if wire not in cls.names}
        return cls.request(**known, extra={**others, **(extra or {})})

    # What the family is.

    def test_family(self) -> None:
        """The family is found by its name, has its path, and makes what its path says."""
        family = self.request.family
        assert family is FAMILIES[family.name]
        assert self.request.__name__ == f"{family.name.capitalize()}Request"
        assert family.create_path == self.create_path
        assert self.create_path.endswith(f"/{family.media}s")

    # Accepted.

    @for_each
    def test_check_accepts(self, good: Accepted) -> None:
        """A legal body has no problem, and a notice for each setting without effect."""
        report = self.request.family.check(good.body)
        assert report.problems == ()
        assert report.ok
        assert {notice.field for notice in report.notices} == good.notices
        assert len(report.notices) == len(good.notices)

    @for_each
    def test_mapping_accepts(self, good: Accepted) -> None:
        """A legal body makes a request, which is sent as it was given."""
        before = json.dumps(good.body)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            request = self.request.from_body(good.body)
        assert type(request) is self.request
        expected = good.body if good.sent is None else good.sent
        assert same_json(request.to_body(), expected)
        assert json.dumps(good.body) == before
        assert_warned(caught, good.notices)

    @for_each
    def test_constructor_accepts(self, good: Accepted) -> None:
        """The typed constructor accepts what a legal body says, and means the same by it."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            request = self.typed(good.body)
        assert_warned(caught, good.notices)
        expected = good.body if good.sent is None else good.sent
        assert same_json(request.to_body(), expected)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IgnoredSetting)
            assert request == self.request.from_body(good.body)
            tuples: Body = {
                wire: tuple(cast("list[Any]", value)) if isinstance(value, list) else value
                for wire, value in good.body.items()
            }
            if good.body.keys() <= self.names.keys():
                assert self.typed(tuples) == request

    # Rejected.

    @for_each
    def test_mapping_rejects(self, bad: Rejected) -> None:
        """An illegal body makes no request: exactly the wrong fields are blamed."""
        report = self.request.family.check(bad.body)
        assert not report.ok
        assert_problems(report.problems, bad)
        with pytest.raises(InvalidRequest) as caught:
            self.request.from_body(bad.body)
        assert repr(caught.value.problems) == repr(report.problems)
        assert str(caught.value)

    @for_each
    def test_constructor_rejects(self, bad_typed: Rejected) -> None:
        """The typed constructor rejects what an illegal body says, and names the same fields."""
        with pytest.raises(InvalidRequest) as caught:
            self.typed(bad_typed.body)
        assert_problems(caught.value.problems, bad_typed)

    # Required fields.

    def test_smallest_body(self) -> None:
        """The required fields alone make a request."""
        assert set(self.smallest) == set(self.required)
        assert self.request.from_body(self.smallest).to_body() == self.smallest
        assert self.typed(self.smallest).to_body() == self.smallest

    # Names.

    def test_constructor_names(self) -> None:
        """The constructor's arguments are the specification's fields in snake case, by keyword."""
        parameters = inspect.signature(self.request).parameters
        assert set(parameters) == {*self.names.values(), "extra"}
        assert {parameter.kind for parameter in parameters.values()} == {
            inspect.Parameter.KEYWORD_ONLY
        }
        required = {name for name, p in parameters.items() if p.default is inspect.Parameter.empty}
        assert required == {self.names[wire] for wire in self.required}

    # Extra fields and models.

    def test_extra_travels(self) -> None:
        """What is put into `extra` is sent unchanged beside the other fields."""
        extra = {"x_seed": 7, "xNested": {"a": [1, 2.5, None, True, "\U0001f40e"]}, "x_null": None}
        request = self.typed(self.smallest, extra=extra)
        assert same_json(request.to_body(), {**self.smallest, **extra})
        assert self.request.from_body(request.to_body(), keep_unknown=True) == request

    @for_each
    def test_known_field_in_extra(self, wire: str) -> None:
        """A field that the family knows does not belong in `extra`."""
        with pytest.raises(InvalidRequest) as caught:
            self.typed(self.smallest, extra={wire: "x"})
        assert {problem.field for problem in caught.value.problems} == {wire}

    def test_extra_is_json(self) -> None:
        """What cannot be written as JSON cannot travel in `extra`."""
        for value in (math.nan, math.inf, object(), {1, 2}, b"bytes", "\ud800", [math.nan]):
            with pytest.raises(InvalidRequest) as caught:
                self.typed(self.smallest, extra={"x_seed": value})
            assert {problem.field for problem in caught.value.problems} == {"x_seed"}


class FamilyContract(OpenContract):
    """What holds besides for a family with required fields and a list of models."""

    unlisted: ClassVar[list[Accepted]]
    not_unlisted: ClassVar[list[Rejected]]

    @classmethod
    def good_unlisted_table(cls) -> list[Accepted]:
        return cls.unlisted

    @classmethod
    def bad_unlisted_table(cls) -> list[Rejected]:
        return cls.not_unlisted

    @classmethod
    def missing_table(cls) -> list[str]:
        return list(cls.required)

    @for_each
    def test_missing_field(self, missing: str) -> None:
        """A missing required field is a problem with that field."""
        body = {wire: value for wire, value in self.smallest.items() if wire != missing}
        assert fields_of(self.request.family.check(body)) == {missing}
        with pytest.raises(InvalidRequest) as caught:
            self.request.from_body(body)
        assert [problem.field for problem in caught.value.problems] == [missing]

    @for_each
    def test_missing_typed(self, missing: str) -> None:
        """The typed constructor takes no request without a required field, nor None for it."""
        body = {wire: value for wire, value in self.smallest.items() if wire != missing}
        with pytest.raises((InvalidRequest, TypeError)):
            self.typed(body)
        with pytest.raises(InvalidRequest) as caught:
            self.typed({**body, missing: None})
        assert [problem.field for problem in caught.value.problems] == [missing]

    def test_everything_missing(self) -> None:
        """All missing fields are reported together, in one error."""
        with pytest.raises(InvalidRequest) as caught:
            self.request.from_body({})
        assert sorted(problem.field for problem in caught.value.problems) == sorted(self.required)

    @for_each
    def test_unlisted_accepted(self, good_unlisted: Accepted) -> None:
        """An unlisted model can be sent on purpose, free of the limits of single models."""
        name = good_unlisted.body["model"]
        request = self.typed({**good_unlisted.body, "model": Unlisted(name)})
        assert same_json(request.to_body(), good_unlisted.body)
        assert request.model_name == name
        kept = self.request.from_body(good_unlisted.body, keep_unknown=True)
        assert same_json(kept.to_body(), good_unlisted.body)
        assert kept == request

    @for_each
    def test_unlisted_by_accident(self, good_unlisted: Accepted) -> None:
        """A model that the specification does not list is a mistake unless it is marked."""
        with pytest.raises(InvalidRequest) as caught:
            self.request.from_body(good_unlisted.body)
        assert {problem.field for problem in caught.value.problems} == {"model"}
        with pytest.raises(InvalidRequest) as caught:
            self.typed(good_unlisted.body)
        assert {problem.field for problem in caught.value.problems} == {"model"}

    @for_each
    def test_unlisted_rejected(self, bad_unlisted: Rejected) -> None:
        """The rules that hold for every model hold for an unlisted one too."""
        with pytest.raises(InvalidRequest) as caught:
            self.typed({**bad_unlisted.body, "model": Unlisted(bad_unlisted.body["model"])})
        assert_problems(caught.value.problems, bad_unlisted)
        with pytest.raises(InvalidRequest) as caught:
            self.request.from_body(bad_unlisted.body, keep_unknown=True)
        assert_problems(caught.value.problems, bad_unlisted)


def fields_of(report: Any) -> set[str]:
    return {problem.field for problem in report.problems}


def assert_problems(problems: Any, bad: Rejected) -> None:
    assert {problem.field for problem in problems} == bad.fields
    for problem in problems:
        assert problem.rule
        assert problem.message
        assert problem.accepted
        assert str(problem)
        if bad.hint:
            assert bad.hint in problem.accepted


def assert_warned(caught: list[warnings.WarningMessage], fields: frozenset[str]) -> None:
    assert {warning.category for warning in caught} <= {IgnoredSetting}
    assert {str(warning.message).split(":")[0] for warning in caught} == fields
    assert len(caught) == len(fields)


def same_json(one: object, other: object) -> bool:
    """Whether both are the same JSON: unlike for ==, 1, 1.0 and true are three things."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
