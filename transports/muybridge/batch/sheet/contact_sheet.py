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
from collections.abc import Iterator
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from muybridge.batch.events import Report
from muybridge.batch.file_names import link
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.sheet.thumbnails import FOLDER as THUMBNAILS
from muybridge.batch.sheet.thumbnails import thumbnail_name
from muybridge.batch.sqlite.journal import FOLDER
from muybridge.batch.storable_values import encodable
from muybridge.signals import genuine
from muybridge_protocol.families import FAMILIES, Media
from muybridge_protocol.http import without_query
from muybridge_protocol.records.json import read_object

NAME = "index.html"
_LONGEST_SETTING = 300
_HEAD = (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
)
_MARK = '<meta name="generator" content="muybridge batch">'
_MARKED_WITHIN = 4096

_MEASURES = frozenset({"took", "length", "bytes"})
"""Facts that a search leaves out, because their digits are in everything."""
_PROBLEMS = frozenset({State.FAILED, State.REFUSED, State.AMBIGUOUS})


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
    body = read_object(entry.body)
    prompt = body.pop("prompt", None)
    if isinstance(prompt, str):
        yield f'<p class="prompt">{escape(prompt)}</p>'
    if entry.reason is not None:
        yield f'<p class="reason">{escape(entry.reason)}</p>'
    if entry.state is State.AMBIGUOUS:
        yield f"<p>Decide with <code>muybridge batch resolve DIR {entry.number}</code>.</p>"
    yield "<dl>"
    for name, value in _facts(entry, body):
        measure = ' class="measure"' if name in _MEASURES else ""
        yield f"<dt>{escape(name)}</dt><dd{measure}>{escape(value)}</dd>"
    yield "</dl></figcaption></figure>"


def _media(entry: Entry, path: str, folder: Path) -> str:
    link = escape(quote(path))
    if FAMILIES[entry.family].media is Media.VIDEO:
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


def _facts(entry: Entry, settings: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the facts about an item, by name."""
    yield "family", entry.family
    for name, value in settings.items():
        values = cast("list[object]", value) if isinstance(value, list) else [value]
        text = ", ".join(_setting(one) for one in values)
        yield name, text if len(text) <= _LONGEST_SETTING else f"{text[:_LONGEST_SETTING]}..."
    if entry.began is not None and entry.ended is not None:
        yield "took", f"{entry.ended - entry.began:.1f} s"
    result = {} if entry.result is None else read_object(entry.result)
    if "actualDuration" in result:
        yield "length", f"{result['actualDuration']} s"
    if "model" in result and result["model"] != settings.get("model"):
        yield "made by", str(result["model"])
    if entry.task_id is not None:
        yield "task", entry.task_id
    if entry.possible_id is not None:
        yield "possible id", entry.possible_id
    if entry.size is not None:
        yield "bytes", f"{entry.size:,}"
