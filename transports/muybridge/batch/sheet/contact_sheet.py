"""The contact sheet of a batch: one page with every picture, video, prompt and failure.

It is written item by item, so a batch may be larger than memory. The file works from the disk and
loads nothing but the results next to it and their thumbnails. Its script shows one page of the
items at a time, and a picture is loaded only when it comes into view. A picture without a thumbnail
is shown itself, and so is one whose thumbnail was not copied with the page.
"""

from __future__ import annotations

import json
import secrets
import stat
from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import attrs

from muybridge.batch.events import Report
from muybridge.batch.file_names import link
from muybridge.batch.items.entry import Entry
from muybridge.batch.items.folder import FOLDER
from muybridge.batch.sheet.thumbnails import FOLDER as THUMBNAILS
from muybridge.batch.sheet.thumbnails import thumbnail_name
from muybridge.batch.storable_values import encodable
from muybridge.signals import genuine
from muybridge_protocol.families import FAMILIES, Media
from muybridge_protocol.http import without_query
from muybridge_protocol.purchases import Stage
from muybridge_protocol.records.json import InvalidJson, read_object
from muybridge_protocol.records.tasks import Result, read_result

NAME = "index.html"
_LONGEST_SETTING = 300
_HEAD = (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
)
_MARK = '<meta name="generator" content="muybridge batch">'
_MARKED_WITHIN = 4096

_UNREADABLE = "cannot be shown"
_PROBLEMS = frozenset({Stage.FAILED, Stage.REFUSED, Stage.AMBIGUOUS})


def write_sheet(report: Report) -> Path:
    """Write the contact sheet of a batch, and return where it is.

    It only replaces an earlier sheet. If another file has its name, it gets a numbered one.

    Raises:
        OSError: It cannot be written.
    """
    new = report.folder / f".{NAME}.{secrets.token_hex(8)}.new"
    try:
        with new.open("x", encoding="utf-8") as file:
            file.writelines(f"{encodable(line)}\n" for line in _page(report))
        path, is_new = link(new, report.folder / NAME, _is_sheet)
        # A file that takes an earlier sheet's place at this very moment is replaced.
        return path if is_new else new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _is_sheet(path: Path) -> bool:
    """Whether a contact sheet is at *path*. Links and pipes are not opened."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open(encoding="utf-8", errors="replace") as file:
            beginning = file.read(_MARKED_WITHIN)
    except genuine(OSError):
        return False
    return beginning.startswith(_HEAD) and _MARK in beginning


def _page(report: Report) -> Iterator[str]:
    title = escape(report.folder.resolve().name)
    counts = ", ".join(f"{count} {state}" for state, count in report.counts.items())
    template = Path(__file__).with_suffix(".html").read_text("utf-8")
    before, _, after = template.partition("{{items}}\n")
    for mark, text in (
        ("{{script}}", _script_hash(template)),
        ("{{counts}}", f"{len(report.entries)} items: {counts}"),
        ("{{title}}", title),  # the last, because it is the user's
    ):
        before = before.replace(mark, text)
    yield before.rstrip("\n")
    for entry in report.entries:
        yield from _figure_or_failure(entry, report.folder)
    yield after.rstrip("\n")


def _script_hash(template: str) -> str:
    """Return what permits the page's own script, and no other."""
    script = template.partition("<script>")[2].partition("</script>")[0]
    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"


def _figure_or_failure(entry: Entry, folder: Path) -> list[str]:
    """Return the figure of *entry*, or a short one if a value cannot be shown."""
    try:
        return list(_figure(entry, folder))
    except Exception as error:  # noqa: BLE001  it concerns this item only
        task = "" if entry.task_id is None else f" (task {entry.task_id})"
        said = f"{entry.label}{task} is {entry.state}, and cannot be shown: {type(error).__name__}"
        failed = f'<p class="reason">{escape(said)}</p>'
        return [f"{_opening(entry)}<figcaption>{failed}</figcaption></figure>"]


def _opening(entry: Entry) -> str:
    state = entry.state.value
    kind = f"{state} problem" if entry.state in _PROBLEMS else state
    return f'<figure id="item-{entry.number}" class="{kind}" data-state="{state}">'


def _figure(entry: Entry, folder: Path) -> Iterator[str]:
    yield _opening(entry)
    if entry.path is not None:
        yield _media(entry, entry.path, folder)
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


def _media(entry: Entry, path: str, folder: Path) -> str:
    link = escape(quote(path))
    family = FAMILIES.get(entry.family)
    if family is not None and family.media is Media.VIDEO:
        return f'<video controls preload="none" src="{link}"></video>'
    alt = escape(entry.name or f"item {entry.number}")
    thumbnail = f"{FOLDER}/{THUMBNAILS}/{thumbnail_name(entry.number)}"
    shown = thumbnail if (folder / thumbnail).is_file() else link
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
    except Exception:  # noqa: BLE001  an odd value of the journal concerns this fact only
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

    @property
    def result(self) -> Result | None:
        """What the journal keeps of its result, or None. Odd values in it are read as missing.

        Raises:
            InvalidJson: The journal has no JSON there.
        """
        if self.entry.result is None:
            return None
        kept = {**read_object(self.entry.result), "id": "", "status": ""}
        return read_result(kept, family=self.entry.family)


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
