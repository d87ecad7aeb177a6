"""The contact sheet: one page that shows everything, and obeys nothing that stands in a prompt."""

from __future__ import annotations

import json
import re
import sqlite3
from html.parser import HTMLParser
from pathlib import Path

import attrs
import pytest

from muybridge import batch
from muybridge.batch.results.sheet.figures import FACTS
from muybridge.purchases.store import NewItem

from .begun import LOST, accepted, begun, bought

HOSTILE = '<script>alert("1")</script> & <img src=x onerror=alert(1)> \' " </figure>'
ALLOWED = {
    "html", "meta", "title", "style", "h1", "p", "main", "figure", "figcaption", "span",
    "strong", "dl", "dt", "dd", "img", "video", "a", "code",
    "header", "div", "input", "button", "script",
}  # fmt: skip


SHOWN = {
    "took": "7.2 s",
    "length": "5.2 s",
    "made by": "imgb-2-turbo",
    "task": "task-1",
    "possible id": HOSTILE,
    "bytes": "12,345",
}
"""The facts that the items of `folder` have, and how each is shown."""


class Page(HTMLParser):
    """What a browser would see."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.terms: list[str] = []
        """The names and the values in the lists of facts, in their order."""
        self._open: str = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if tag in ("dt", "dd"):
            self.terms.append("")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002  the parser passes it
        self._open = ""

    def handle_data(self, data: str) -> None:
        self.text += data
        if self._open in ("dt", "dd"):
            self.terms[-1] += data

    def facts(self) -> list[tuple[str, str]]:
        """Return the facts, by name."""
        return list(zip(self.terms[::2], self.terms[1::2], strict=True))

    def measures(self) -> set[str]:
        """Return the names of the facts that a search leaves out."""
        kinds = [attributes.get("class") for tag, attributes in self.tags if tag == "dd"]
        return {
            name for (name, _), kind in zip(self.facts(), kinds, strict=True) if kind == "measure"
        }

    def sources(self, tag: str) -> list[str | None]:
        return [attributes.get("src") for name, attributes in self.tags if name == tag]


def page(folder: Path) -> Page:
    sheet = batch.write_sheet(folder)
    assert sheet == folder / "index.html"
    return Page(sheet.read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a batch with an item of every kind, which all speak with a forked tongue."""
    out = tmp_path / "<b>out & about</b>"
    items = [
        NewItem(name=HOSTILE, stem=str(number), family=family, body=json.dumps(body))
        for number, (family, body) in enumerate(
            [
                ("imgb", {"model": "imgb-2", "prompt": HOSTILE, HOSTILE: HOSTILE}),
                ("vidr", {"model": "vidr", "image_urls": ["https://a.test/1.png?sig=secret"]}),
                ("imgb", {"model": "imgb-2", "prompt": HOSTILE}),
                ("imgb", {"model": "imgb-2", "prompt": HOSTILE}),
                ("vidm", {}),
            ]
        )
    ]
    with begun(out, items) as found:
        for number in (1, 2):
            accepted(found, number, f"task-{number}")
        lost = attrs.evolve(LOST, candidate=HOSTILE)
        bought(found, 4, lost)
    changes: list[tuple[str, tuple[object, ...]]] = [
        (
            "stage='downloaded', path=?, size=12345, began=10, ended=17.25, result=?",
            ("a #1?.png", '{"model":"imgb-2-turbo"}'),
        ),
        (
            "stage='downloaded', path=?, size=99, result=?",
            ("b.mp4", '{"actualDuration":5.2}'),
        ),
        ("stage='failed', reason=?", (HOSTILE,)),
        ("reason=?", (HOSTILE,)),
    ]
    db = sqlite3.connect(out / "state" / "store.sqlite3")
    for number, (change, values) in enumerate(changes, start=1):
        db.execute(f"UPDATE muybridge_item SET {change} WHERE number = ?", (*values, number))  # noqa: S608  ours
    db.commit()
    db.close()
    for name in ("a #1?.png", "b.mp4"):
        (out / name).touch()
    return out


def test_everything_is_shown(folder: Path) -> None:
    """Pictures, playable videos, prompts, settings, durations, reasons and ids are on the page."""
    seen = page(folder)
    assert seen.sources("img") == ["a%20%231%3F.png"]
    assert seen.sources("video") == ["b.mp4"]
    assert sum(tag == "figure" for tag, _ in seen.tags) == 5
    assert seen.text.count(HOSTILE) >= 4 + 4 + 2
    assert "https://a.test/1.png?..." in seen.text
    for told in ("muybridge decide --batch", "1 queued"):
        assert told in seen.text


def test_every_fact_is_shown(folder: Path) -> None:
    """The page shows each fact that it lists, and a search leaves out those that are measures."""
    listed = {fact.name for fact in FACTS}
    where = "to SHOWN in tests/batch/test_sheet.py, and give an item of `folder` a value of it"
    assert listed == SHOWN.keys(), f"add {listed - SHOWN.keys()} {where}"
    seen = page(folder)
    for fact in SHOWN.items():
        assert fact in seen.facts()
    assert seen.measures() == {"took", "length", "bytes"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("result", f'{{"{name}": {value}, "model": {value}}}')
          for name in ("actualDuration", "totalTokens", "created", "status", "error")
          for value in ('"4000"', "null", "[4000]", "{}", "true", "1e999", "-1", '""')),
        *(("result", value) for value in ("{", "[]", "null", "")),
        *(("body", value) for value in ("{", "[]", '{"prompt": [1], "model": {}}')),
        *((name, "many") for name in ("family", "token", "candidate")),
    ],
)  # fmt: skip
def test_an_odd_value_hides_nothing_else(folder: Path, name: str, value: str) -> None:
    """Whatever a foreign hand has left in a store, the item keeps its picture and its name."""
    db = sqlite3.connect(folder / "state" / "store.sqlite3")
    table = "muybridge_purchases" if name in ("token", "candidate") else "muybridge_item"
    db.execute(f"UPDATE {table} SET {name} = ? WHERE number = 1", (value,))  # noqa: S608  ours
    db.commit()
    db.close()
    seen = page(folder)
    assert seen.sources("img") == ["a%20%231%3F.png"]
    assert f"1. {HOSTILE}" in seen.text
    shown = dict(seen.facts()[: seen.facts().index(("family", "vidr"))])
    assert shown["bytes"] == SHOWN["bytes"]
    assert shown.get("task") == (None if name == "token" else SHOWN["task"])


def test_nothing_in_it_is_obeyed(folder: Path) -> None:
    """What stands in prompts, names, settings and reasons becomes no element and no attribute."""
    seen = page(folder)
    assert {tag for tag, _ in seen.tags} <= ALLOWED
    assert not any(name.startswith("on") for _, attributes in seen.tags for name in attributes)
    assert [attributes for tag, attributes in seen.tags if tag == "script"] == [{}]
    policies = [attributes.get("content") or "" for tag, attributes in seen.tags if tag == "meta"]
    (policy,) = [policy for policy in policies if "default-src 'none'" in policy]
    assert re.search(r"script-src 'sha256-[^' ]{44}';", policy)


def test_problems_can_be_found_first(folder: Path) -> None:
    """Each figure has its state, and those that went wrong are marked to come first."""
    figures = [attributes for tag, attributes in page(folder).tags if tag == "figure"]
    assert [(figure["id"], figure["class"], figure["data-state"]) for figure in figures] == [
        ("item-1", "downloaded", "downloaded"),
        ("item-2", "downloaded", "downloaded"),
        ("item-3", "failed problem", "failed"),
        ("item-4", "ambiguous problem", "ambiguous"),
        ("item-5", "queued", "queued"),
    ]


def test_no_picture_is_loaded_before_it_is_seen(folder: Path) -> None:
    """Pictures load as they come into view, and videos when the page with them is shown."""
    seen = page(folder)
    assert [a.get("loading") for tag, a in seen.tags if tag == "img"] == ["lazy"]
    assert [a.get("preload") for tag, a in seen.tags if tag == "video"] == ["none"]


def test_nothing_is_fetched_from_elsewhere(folder: Path) -> None:
    """The page asks for nothing but the files next to it."""
    for _, attributes in page(folder).tags:
        for name in ("src", "href"):
            link = attributes.get(name)
            assert link is None or not (":" in link or link.startswith("/"))
