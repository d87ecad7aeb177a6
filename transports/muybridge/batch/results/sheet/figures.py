"""The figures of a contact sheet: what it shows of each item.

A picture is shown by its thumbnail, and itself if it has none, or if that was not copied with the
page.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from html import escape
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote

import attrs

from muybridge.batch.items.entry import Entry
from muybridge.batch.items.folder import FOLDER
from muybridge.batch.results.sheet.thumbnails import FOLDER as THUMBNAILS
from muybridge.batch.results.sheet.thumbnails import thumbnail_name
from muybridge_protocol.families import FAMILIES, Media
from muybridge_protocol.http import without_query
from muybridge_protocol.purchases import Stage
from muybridge_protocol.records.json import InvalidJson, read_object
from muybridge_protocol.records.tasks import Result, read_result

_LONGEST_SETTING = 300
_UNREADABLE = "cannot be shown"
PROBLEMS: Final = (Stage.AMBIGUOUS, Stage.FAILED, Stage.REFUSED)
"""The states of items that a person should look at, the most urgent one first."""


@attrs.frozen
class Page:
    """Where figures are shown.

    Args:
        folder: The batch's folder.
        up: What leads from the page to that folder: "" or "../".
    """

    folder: Path
    up: str


def figure(entry: Entry, page: Page) -> str:
    """Return the figure of *entry*, or a short one if a value cannot be shown."""
    try:
        return "\n".join(_figure(entry, page))
    except Exception as error:  # noqa: BLE001  it concerns this item only
        task = "" if entry.task_id is None else f" (task {entry.task_id})"
        message = (
            f"{entry.label}{task} is {entry.state}, and cannot be shown: {type(error).__name__}"
        )
        reason = f'<p class="reason">{escape(message)}</p>'
        return f"{_opening(entry)}<figcaption>{reason}</figcaption></figure>"


def _opening(entry: Entry) -> str:
    state = entry.state.value
    kind = f"{state} problem" if entry.state in PROBLEMS else state
    return f'<figure id="item-{entry.number}" class="{kind}" data-state="{state}">'


def _figure(entry: Entry, page: Page) -> Iterator[str]:
    yield _opening(entry)
    if entry.path is not None:
        yield _media(entry, entry.path, page)
    heading = f"{entry.number}. {entry.name}" if entry.name else f"{entry.number}."
    yield f'<figcaption><span class="state">{escape(entry.state)}</span>'
    yield f"<strong>{escape(heading)}</strong>"
    try:
        settings = read_object(entry.body)
    except InvalidJson:
        settings = {}
        yield f'<p class="reason">its request {_UNREADABLE}</p>'
    prompt = settings.pop("prompt", None)
    if isinstance(prompt, str):
        yield f'<p class="prompt">{escape(prompt)}</p>'
    if entry.reason is not None:
        yield f'<p class="reason">{escape(entry.reason)}</p>'
    if entry.state is Stage.AMBIGUOUS:
        yield f"<p>Decide with <code>muybridge decide --batch DIR {entry.number}</code>.</p>"
    yield "<dl>"
    yield from _rows(Item(entry, settings))
    yield "</dl></figcaption></figure>"


def _media(entry: Entry, path: str, page: Page) -> str:
    link = escape(page.up + quote(path))
    family = FAMILIES.get(entry.family)
    if family is not None and family.media is Media.VIDEO:
        return f'<video controls preload="none" src="{link}"></video>'
    alt = escape(entry.name or f"item {entry.number}")
    thumbnail = f"{FOLDER}/{THUMBNAILS}/{thumbnail_name(entry.number)}"
    has_thumbnail = os.path.isfile(f"{page.folder}/{thumbnail}")  # noqa: PTH113  there may be a million
    shown = page.up + thumbnail if has_thumbnail else link
    return f'<a href="{link}"><img loading="lazy" decoding="async" src="{shown}" alt="{alt}"></a>'


def _setting(value: object) -> str:
    """Return a setting's value for people, without the query of a link, which may be signed."""
    if isinstance(value, str):
        return without_query(value) if "://" in value else value
    return json.dumps(value)


def _rows(item: Item) -> Iterator[str]:
    """Yield the rows of an item: its family, its settings, and what is known of `FACTS`."""
    yield _row("family", lambda: item.entry.family)
    for name, value in item.settings.items():
        yield _row(name, partial(_settings, value))
    for fact in FACTS:
        yield _row(fact.name, partial(fact.text, item), measure=fact.is_measure)


def _row(name: str, text: Callable[[], str | None], *, measure: bool = False) -> str:
    """Return the row of a fact, or "" if there is none."""
    try:
        shown = text()
    except Exception:  # noqa: BLE001  an odd value of the store concerns this fact only
        shown = _UNREADABLE
    if shown is None:
        return ""
    kind = ' class="measure"' if measure else ""
    return f"<dt>{escape(name)}</dt><dd{kind}>{escape(shown)}</dd>"


def _settings(value: object) -> str:
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    text = ", ".join(map(_setting, values))
    return text if len(text) <= _LONGEST_SETTING else f"{text[:_LONGEST_SETTING]}..."


@attrs.frozen
class Item:
    """What the facts about an item are read from.

    Args:
        entry: The item.
        settings: Its request, without the prompt.
    """

    entry: Entry
    settings: dict[str, Any]

    @cached_property
    def result(self) -> Result | None:
        """What the store keeps of its result, or None. Odd values in it are read as missing.

        Raises:
            InvalidJson: The store has no JSON there.
        """
        if self.entry.result is None:
            return None
        record = {**read_object(self.entry.result), "id": "", "status": ""}
        return read_result(record, family=self.entry.family)


@attrs.frozen
class Fact:
    """A fact about an item.

    Args:
        name: What the page calls it.
        text: Returns it in words, or None if it is not known of an item. If it raises, the page
            says that this fact cannot be shown.
        is_measure: Whether a search leaves it out, because its digits are in everything.
    """

    name: str
    text: Callable[[Item], str | None]
    is_measure: bool = False


def _took(item: Item) -> str | None:
    began, ended = item.entry.began, item.entry.ended
    return None if began is None or ended is None else f"{ended - began:.1f} s"


def _length(item: Item) -> str | None:
    seconds = None if item.result is None else item.result.actual_duration
    return None if seconds is None else f"{seconds} s"


def _made_by(item: Item) -> str | None:
    model = None if item.result is None else item.result.model
    return None if model == item.settings.get("model") else model


def _bytes(item: Item) -> str | None:
    return None if item.entry.size is None else f"{item.entry.size:,}"


FACTS = (
    Fact("took", _took, is_measure=True),
    Fact("length", _length, is_measure=True),
    Fact("made by", _made_by),
    Fact("task", lambda item: item.entry.task_id),
    Fact("possible id", lambda item: item.entry.possible_id),
    Fact("bytes", _bytes, is_measure=True),
)
"""The facts about an item besides its request, in the order of the page."""
