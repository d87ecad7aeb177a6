"""`estimate`: what the requests of a file will consume and cost."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from muybridge.verbs.estimation import estimate

from .conftest import Invoke

PICTURE = {"family": "imgb", "model": "imgb-2", "prompt": "A horse"}
HIGH = {**PICTURE, "quality": "high"}
VIDEO = {"family": "vidr", "model": "vidrPlus", "prompt": "A horse", "duration": 4}
AUTOMATIC = {"family": "vidr", "model": "vidrPlus", "prompt": "A horse"}
REFERRING = {
    "family": "vidc",
    "model": "vidc_o3",
    "prompt": "A horse",
    "referenceVideos": ["https://media.example.com/a.mp4"],
    "referenceImages": ["https://media.example.com/a.png", "https://media.example.com/b.png"],
}
PRICES = """
currency = "EUR"
prices = [
    {model = "imgb-2", tier = "low", per_picture = 0.10},
    {model = "imgb-2", tier = "high", per_picture = 0.5},
    {family = "vidr", per_second = 0.2},
]
"""


@pytest.fixture
def prices(tmp_path: Path) -> str:
    """A price file."""
    (tmp_path / "prices.toml").write_text(PRICES, encoding="utf-8")
    return "prices.toml"


def lines(*items: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(item)}\n" for item in items)


def test_quantities_without_prices(invoke: Invoke) -> None:
    """Without prices, quantities are shown by family, model and tier, and no costs."""
    ended = invoke("estimate", input=lines(PICTURE, HIGH, VIDEO, PICTURE, AUTOMATIC))
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert [line.split() for line in ended.stdout.splitlines()] == [
        ["Family", "Model", "Tier", "Requests", "Pictures", "Seconds"],
        ["imgb", "imgb-2", "low", "2", "2", "0"],
        ["imgb", "imgb-2", "high", "1", "1", "0"],
        ["vidr", "vidrPlus", "2", "0", "4", "+", "1", "unknown"],
        ["total", "5", "3", "4", "+", "1", "unknown"],
    ]


def test_costs(invoke: Invoke, prices: str) -> None:
    """With prices, costs are exact; what is not known is unknown, and why is on stderr."""
    given = lines(PICTURE, HIGH, VIDEO, AUTOMATIC, REFERRING)
    ended = invoke("estimate", "-", "--prices", prices, input=given)
    assert ended.exit_code == 0
    rows = {tuple(line.split()[:3]): line.split() for line in ended.stdout.splitlines()}
    assert "Cost (EUR)" in ended.stdout
    assert rows["imgb", "imgb-2", "low"][-1] == "0.1"
    assert rows["vidr", "vidrPlus", "2"][-4:] == ["0.8", "+", "1", "unknown"]
    assert rows["vidc", "vidc_o3", "1"][-2:] == ["unknown", "unknown"]
    assert ended.stdout.splitlines()[-1].endswith("4 + 2 unknown  1.4 + 2 unknown")
    assert ended.stderr.splitlines() == [
        "references: 2 images, 1 video of unknown length",
        "cost unknown: vidr vidrPlus: its price is per_second, and its seconds are unknown",
        "cost unknown: vidc vidc_o3: it has no price",
    ]


def test_the_json(invoke: Invoke, prices: str) -> None:
    """Programs get sums of what is known beside counts of what is not, and money as text."""
    given = lines(PICTURE, VIDEO, AUTOMATIC, REFERRING)
    ended = invoke("estimate", "--json", input=given, env={"MUYBRIDGE_PRICES": prices})
    told = json.loads(ended.stdout)
    assert (ended.exit_code, ended.stderr) == (0, "")
    assert [told[name] for name in ("ok", "currency", "invalid", "errors")] == [True, "EUR", 0, []]
    assert told["total"] == {
        "requests": 4, "creates": 4, "calls": 0,
        "pictures": {"known": 1, "unknown": 0},
        "seconds": {"known": 4, "unknown": 2},
        "tokens": {"known": 0, "unknown": 4},
        "reference_images": 2, "reference_videos": 1, "reference_sounds": 0,
        "reference_seconds": {"known": 0, "unknown": 1},
        "cost": {"known": "0.9", "unknown": 2},
    }  # fmt: skip
    groups = {(group["family"], group["tier"]): group for group in told["groups"]}
    assert groups["imgb", "low"]["cost"] == {"known": "0.1", "unknown": 0}
    assert groups["vidr", None]["model"] == "vidrPlus"
    plain = json.loads(invoke("estimate", "--json", input=given).stdout)
    assert plain["currency"] is None
    assert "cost" not in plain["total"]


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv"])
def test_every_kind_of_file(invoke: Invoke, tmp_path: Path, suffix: str) -> None:
    """Each kind of file that a batch is read from is estimated."""
    items = [PICTURE, VIDEO]
    texts = {
        "jsonl": lines(*items),
        "json": json.dumps(items),
        "csv": "family,model,prompt,duration\nimgb,imgb-2,A horse,\nvidr,vidrPlus,A horse,4\n",
    }
    (tmp_path / f"b.{suffix}").write_text(texts[suffix], encoding="utf-8")
    ended = invoke("estimate", f"b.{suffix}", "--json")
    total = json.loads(ended.stdout)["total"]
    assert (total["requests"], total["pictures"]["known"], total["seconds"]["known"]) == (2, 1, 4)


def test_wrong_items_are_named_and_not_counted(invoke: Invoke) -> None:
    """An item that is not valid is named as by `validate`, is not counted, and exits with 1."""
    given = lines(PICTURE, {"family": "imgb", "model": "imgb-22"}) + "nonsense\n"
    ended = invoke("estimate", input=given)
    assert ended.exit_code == 1
    assert ended.stdout.splitlines()[-1].split() == ["total", "1", "1", "0"]
    assert ended.stderr.splitlines() == [
        "line 2: model: 'imgb-22' is not accepted; did you mean imgb-2? use imgb-2 or imgb-2-r",
        "line 2: prompt: is required; use a text that is not blank",
        "line 3: it is not JSON: Expecting value (column 1)",
        "2 items are not valid and not counted",
    ]
    told = json.loads(invoke("estimate", "--json", input=given).stdout)
    judged = [json.loads(line) for line in invoke("validate", input=given).stdout.splitlines()]
    assert (told["ok"], told["invalid"]) == (False, 2)
    assert told["errors"] == [
        {name: one[name] for name in ("line", "family", "errors")} for one in judged[1:]
    ]


def test_a_file_that_is_wrong_as_a_whole(invoke: Invoke, tmp_path: Path) -> None:
    """A file that is no list of requests is named as a whole."""
    (tmp_path / "b.json").write_text("{}", encoding="utf-8")
    ended = invoke("estimate", "b.json")
    assert (ended.exit_code, ended.stderr.splitlines()) == (
        1,
        ["the file: it is not an array of objects", "1 item is not valid and not counted"],
    )


def test_many_wrong_items(invoke: Invoke) -> None:
    """Of very many wrong items, the first fifty are named and all are counted."""
    ended = invoke("estimate", "--json", input="nonsense\n" * 70)
    told = json.loads(ended.stdout)
    assert (told["invalid"], len(told["errors"])) == (70, 50)
    assert ended.stderr.splitlines()[-1] == (
        "70 items are not valid and not counted; `muybridge validate` names all"
    )


def test_nothing_to_estimate(invoke: Invoke) -> None:
    """An empty file has a total of nothing."""
    ended = invoke("estimate", input="\n")
    assert ended.exit_code == 0
    assert ended.stdout.splitlines()[-1].split() == ["total", "0", "0", "0"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "--prices prices.toml: No such file or directory"),
        ("prices = [{}]", "3 problems in the price file (nothing was sent):"),
        ("\udcff", "line 1: it is not UTF-8"),
    ],
)
def test_a_wrong_price_file(invoke: Invoke, tmp_path: Path, content: str | None, said: str) -> None:
    """A price file that cannot be used exits with 2, and every problem is reported."""
    if content is not None:
        (tmp_path / "prices.toml").write_bytes(content.encode("utf-8", "surrogateescape"))
    ended = invoke("estimate", "--prices", "prices.toml", "--json", input=lines(PICTURE))
    assert ended.exit_code == json.loads(ended.stdout)["error"]["exit_code"] == 2
    assert said in ended.stderr


def test_an_empty_variable_is_none(invoke: Invoke) -> None:
    """An empty MUYBRIDGE_PRICES names no file."""
    ended = invoke("estimate", input=lines(PICTURE), env={"MUYBRIDGE_PRICES": ""})
    assert ended.exit_code == 0


class Lines(io.RawIOBase):
    """A file of very many long lines, each made when it is read."""

    def __init__(self, count: int, line: bytes) -> None:
        self._left = count
        self._line = line

    def readline(self, limit: int | None = -1, /) -> bytes:  # noqa: ARG002  no line is too long
        self._left -= 1
        return self._line if self._left >= 0 else b""


def test_memory_does_not_grow_with_the_file() -> None:
    """JSON lines are estimated in constant memory: 200 MiB of them take less than 8."""
    size = 256 * 1024
    line = lines({**PICTURE, "prompt": "h" * size}).encode()
    file: Any = Lines(800, line)
    tracemalloc.start()
    try:
        totals = estimate(file).totals
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert totals.total.requests == 800
    assert peak < 8 * 1024 * 1024
