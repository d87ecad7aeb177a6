"""docs/assumptions.md agrees with the code that makes the choices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from muybridge.local.drawing.caption import drawable
from muybridge.local.drawing.dimensions import dimensions
from muybridge.local.drawing.image import Picture
from muybridge.local.drawing.soundtrack import SAMPLE_RATE
from muybridge.local.drawing.video import Film
from muybridge.local.service import SEEDED_ASSETS
from muybridge_docs.generated import GENERATED, without_parts
from muybridge_protocol.delivery import CREATE, LONGEST_BACKOFF, LONGEST_WAIT, Verdict
from muybridge_protocol.emulator import FAILURES, REQUEST_BODY_LIMIT, Timing
from muybridge_protocol.emulator import intake as emulator_intake
from muybridge_protocol.emulator.lengths import (
    ASSUMED_SECONDS,
    OTHER_SECONDS,
    REFERENCE_VIDEO_SECONDS,
    TOKENS_PER_SECOND,
    video_seconds,
)
from muybridge_protocol.emulator.tasks import ASSUMED_RETENTION
from muybridge_protocol.emulator.text import answer as text_answer
from muybridge_protocol.emulator.text.prompt import FILE_TOKENS
from muybridge_protocol.families import FAMILIES, VIDSA
from muybridge_protocol.families.family import DAY
from muybridge_protocol.fleet.throttle import OUTAGE
from muybridge_protocol.http import MEBIBYTE
from muybridge_protocol.operations.next_polls import LIMIT
from muybridge_protocol.operations.operation import api_headers
from muybridge_protocol.operations.poll import (
    GROWTH,
    NEWBORN,
    SILENCE,
    SPREAD,
    UNANSWERED_PACING,
    UNKNOWN_PACING,
)
from muybridge_protocol.records.lenient import ERROR_LIMIT, NAME_LIMIT
from muybridge_protocol.rules.media_urls import LEAST_BASE64
from muybridge_protocol.rules.values import Between
from muybridge_protocol.service import is_identifier
from muybridge_protocol.text.defaults import RESPONSE_LIMIT, SILENCE_LIMIT, TEXT_TIMEOUT

ROOT = Path(__file__).parents[2]
HOMES = (ROOT / "protocol" / "muybridge_protocol", ROOT / "transports" / "muybridge")
PAGE = (ROOT / "docs" / "assumptions.md").read_text(encoding="utf-8")

Row = tuple[str, str, str]


def rows() -> Iterator[Row]:
    """Yield the open question, the choice and its places from each row of the page."""
    for line in without_parts(PAGE).splitlines():
        if line.startswith("| ") and not line.startswith(
            ("| what the specification leaves open |", "| --- ")
        ):
            opened, choice, where = line.removeprefix("| ").removesuffix(" |").split(" | ")
            yield opened, choice, where


ROWS = list(rows())


def choice(beginning: str) -> str:
    """Return the choice in the only row whose first cell begins with *beginning*."""
    (found,) = [chosen for opened, chosen, _ in ROWS if opened.startswith(beginning)]
    return found


def families_of(beginning: str) -> set[str]:
    """Return the families named in the first cell of the only row with this beginning."""
    (found,) = [opened for opened, _, _ in ROWS if opened.startswith(beginning)]
    return set(re.findall(r"`(\w+)`", found)) & set(FAMILIES)


def test_every_place_exists() -> None:
    """Each row names existing files, and no table has two rows for the same question."""
    assert len(ROWS) > 150
    for opened, _, where in ROWS:
        places = re.findall(r"`([^`]+)`", where)
        assert places, opened
        assert re.sub(r"`[^`]+`|,| ", "", where) == "", opened
        for place in places:
            assert any((home / place).exists() for home in HOMES), (opened, place)
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE):
        questions = re.findall(r"^\| (.+?) \| ", section, re.MULTILINE)
        assert len(set(questions)) == len(questions)


UNDECIDED = {
    "emulator": {"__init__", "text/__init__", "text/wire", "text/prompt"},
    "local": {
        *("__init__", "server", "streaming", "result_files", "drawing/__init__"),
        *(f"drawing/{part}" for part in ("horse", "photograph")),
    },
}
"""Modules that make no choices that the specification leaves open, except how to draw a horse."""


@pytest.mark.parametrize(("folder", "home"), [("emulator", HOMES[0]), ("local", HOMES[1])])
def test_every_module_that_decides_is_named(folder: str, home: Path) -> None:
    """Each module of the local service is named as the place of a choice, unless it makes none."""
    made = {
        str(path.relative_to(home / folder).with_suffix(""))
        for path in home.glob(f"{folder}/**/*.py")
    }
    named = {
        place.removeprefix(f"{folder}/").removesuffix(".py")
        for _, _, where in ROWS
        for place in re.findall(r"`([^`]+)`", where)
        if place.startswith(f"{folder}/")
    }
    assert named | UNDECIDED[folder] == made


def test_what_families_leave_open() -> None:
    """The page names exactly the families that the tables leave incomplete."""
    assumed = {family.name for family in FAMILIES.values() if family.pacing.assumed}
    assert assumed == {"vidm"}
    assert choice("pace for `vidm`") == "30-60 s"
    objects = {family.name for family in FAMILIES.values() if family.result_object is None}
    assert families_of("`object` of a result of") == objects
    kept = {family.name for family in FAMILIES.values() if family.retention.seconds is None}
    assert families_of("how long results are kept if") == kept
    hidden = {family.name for family in FAMILIES.values() if not family.body_shown}
    for family in hidden:
        assert f"fields of `{family}`" in {opened for opened, _, _ in ROWS}
        said = set(re.findall(r"`(\w+)`", choice(f"fields of `{family}`"))) - {"extra"}
        assert said == {field.wire for field in FAMILIES[family].fields}


def test_lengths() -> None:
    """The stated lengths without a default are those that the local service makes."""
    told = choice("length if none is requested")
    for seconds, families in re.findall(r"(\d+) s for ([^,]+)", told):
        for family in re.findall(r"`(\w+)`", families):
            assert video_seconds(FAMILIES[family], {}) == int(seconds)
    assert set(re.findall(r"`(\w+)`", told)) == {
        family.name
        for family in FAMILIES.values()
        if family.media == "video"
        and family.name != "vidv"  # always 8 s
        and not any(
            field.wire == "duration" and (field.required or field.service_default)
            for field in family.fields
        )
    }
    assert {*ASSUMED_SECONDS.values(), OTHER_SECONDS} == set(map(int, re.findall(r"(\d+) s", told)))
    assert choice("length of a `vidc` video") == f"{REFERENCE_VIDEO_SECONDS} s"


def test_times() -> None:
    """The stated times of tasks are those of `Timing`."""
    timing = Timing()
    assert choice("how long a task waits").startswith(
        f"an image waits {timing.image_queued:g} s and takes {timing.image_processing:g} s, "
        f"a video {timing.video_queued:g} s and {timing.video_processing:g} s, divided by `speed`"
    )
    assert f"each {timing.text_interval:g} s" in choice("how fast a stream arrives")
    assert choice("how long results are kept if") == f"{ASSUMED_RETENTION // DAY} day"
    assert choice("`totalTokens`").startswith(f"{TOKENS_PER_SECOND} for each second")
    assert len(FAILURES) == 4
    assert "one of the four reasons" in choice("when a task fails")


def test_limits() -> None:
    """The stated limits of requests are those of the code."""
    told = f"{REQUEST_BODY_LIMIT // MEBIBYTE} MiB, of at most {emulator_intake.MOST_FIELDS} fields"
    assert choice("the largest body") == (
        f"{told}, nested at most {emulator_intake.DEEPEST_NESTING} deep"
    )
    assert f"at least {LEAST_BASE64} digits" in choice("what a base64 `data:` URI")
    assert f"a file counts as {FILE_TOKENS} tokens" in choice("tokens")
    words = {8: "eight"}
    assert f"one chunk of {words[text_answer.CHUNK]} word pieces" in choice("how fast a stream")
    assert choice("assets that exist").startswith(
        "`{}`, `{}` and `{}`, unless".format(*SEEDED_ASSETS)
    )
    headers = dict(api_headers(b"{}"))
    del headers["Content-Type"]
    told = choice("headers other than")
    assert told == ", ".join(f"`{name}: {value}`" for name, value in headers.items())


def test_media() -> None:
    """The stated sizes, rates and marks of pictures and videos are those that are made."""
    for resolution, edge in re.findall(r"(\d+) px for `(\dk)`", choice("size of an image")):
        body = {"model": "imga-pro", "resolution": edge}
        assert dimensions(FAMILIES["imga"], body).width == int(resolution)
    hint = drawable("\N{HORSE}")
    assert f"a hint such as `{hint}`" in choice("the caption")
    assert f"{SAMPLE_RATE // 1000} kHz" in choice("formats")
    told = choice("frames per second")
    assert told == "24; 12 above 2560x1440 pixels and 9 above 4096x2304"
    for width, height, rate in (
        (2560, 1440, 24),
        (2562, 1440, 12),
        (4096, 2304, 12),
        (4098, 2304, 9),
    ):
        picture = Picture(
            width=width, height=height, prompt="", family="", model="", settings=(), seed=0
        )
        assert Film(picture=picture, duration=1, sound=False).fps == rate


def test_what_is_made_when_nothing_is_asked_for() -> None:
    """The table of results shows each family with its specified or assumed values."""
    told = [
        [cell.strip(" `") for cell in line.strip("|").split("|")]
        for line in GENERATED["local results"]().splitlines()[2:]
    ]
    assert told == [
        ["imga", "1024x1024", "", "", "", "24 hours (assumed)"],
        ["imgb", "1024x1024", "", "", "", "24 hours"],
        ["vidc", "720x1280", "3", "24", "no", "24 hours (assumed)"],
        ["vidd", "1280x720", "5", "24", "no", "24 hours"],
        ["videos", "1280x720", "as asked", "24", "no", "24 hours (assumed)"],
        ["vidg", "1280x720", "10", "24", "no", "24 hours (assumed)"],
        ["vidm", "1280x720", "4", "24", "no", "24 hours (assumed)"],
        ["vidr", "720x1280", "4", "24", "no", "24 hours (assumed)"],
        ["vidsa", "854x480", "5", "24", "no", "24 hours"],
        ["vidsb", "1280x720", "5", "24", "yes", "24 hours"],
        ["vidv", "1280x720", "8", "24", "no", "24 hours"],
    ]


def test_codes_of_errors() -> None:
    """The stated error codes are exactly those that the local service sends."""
    sources = [*(HOMES[0] / "emulator").glob("*.py"), HOMES[1] / "local" / "application.py"]
    sources += [HOMES[1] / "local" / "pages.py", HOMES[1] / "local" / "ranges.py"]
    code = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    given = {
        *re.findall(r'Refused\(\s*(\d{3}),[^()]*?,\s*"(\w+)"[,)]', code),
        *(("400", name) for name in re.findall(r'^\s+code = "(\w+)"$', code, re.MULTILINE)),
    }
    told: set[tuple[str, str]] = set()
    for part in choice("codes of errors").split("; "):
        told |= {(part[:3], name) for name in re.findall(r"`(\w+)`", part)}
    assert told == given


def test_what_the_client_decides() -> None:
    """The stated times, limits and statuses of the client are those of the code."""
    assert choice("pace for a bare id, at first").endswith(
        f"{UNKNOWN_PACING.shortest:g} s growing to {UNKNOWN_PACING.longest:g} s"
    )
    assert choice("pace for a bare id, while polls fail").endswith(
        f"{UNANSWERED_PACING.shortest:g} s growing to {UNANSWERED_PACING.longest:g} s"
    )
    assert max(family.pacing.longest for family in FAMILIES.values()) == UNANSWERED_PACING.longest
    assert (GROWTH, SPREAD) == (1.25, 0.25)
    assert f"up to {LONGEST_BACKOFF:g} s if" in choice("a poll that fails")
    assert SILENCE == 10 * 60
    assert "after ten minutes" in choice("an outage")
    assert f"after an outage of {OUTAGE:g} s or more" in PAGE
    assert f"the {LIMIT:,} tasks" in choice("several waits for one task")
    assert f"the wait is at most {LONGEST_WAIT:g} s" in choice("`next_poll_at` in the far")
    assert f"within {NEWBORN:g} s" in choice("a 404 shortly after")
    assert f"up to {LONGEST_WAIT:g} s" in choice("`Retry-After` on a poll")
    refused = [status for status, is_ in CREATE.statuses.items() if is_ is Verdict.REFUSED]
    told = choice("statuses other than 401 and 403")
    assert told.startswith(", ".join(str(s) for s in refused if s not in (401, 403)))
    assert [s for s, is_ in CREATE.statuses.items() if is_ is Verdict.THROTTLED] == [429]
    assert is_identifier("a" * 1024)
    assert not is_identifier("a" * 1025)
    assert "1 to 1,024 characters" in choice("task ids and asset ids")
    told = choice("an `error`, `status`, `model` or `object`")
    assert f"{ERROR_LIMIT:,} characters of an error or {NAME_LIMIT} of another" in told
    assert choice("time of an answer").startswith(
        f"at most {TEXT_TIMEOUT:g} s with all attempts, {SILENCE_LIMIT:g} s without"
    )
    assert f"at most {RESPONSE_LIMIT // MEBIBYTE} MiB" in choice("size of an answer")
    limited = VIDSA.field("duration")
    assert limited is not None
    (between,) = limited.rules
    assert isinstance(between, Between)
    assert choice("range of `duration` for `vidsa`").startswith(f"{between.low}-{between.high} s")
