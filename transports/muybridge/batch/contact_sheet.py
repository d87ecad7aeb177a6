"""The contact sheet of a batch: one page with every picture, video, prompt and failure."""

from __future__ import annotations

import json
import secrets
import stat
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from muybridge.batch.events import Report
from muybridge.batch.file_names import link
from muybridge.batch.journal_entries import Entry, State
from muybridge.batch.sqlite_values import encodable
from muybridge.drivers.interrupts import raised_by_handler
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

_STYLE = """
:root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
body { margin: 2rem auto; max-width: 90rem; padding: 0 1rem; }
h1 { font-size: 1.3rem; }
main { display: grid; gap: 1.5rem; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr)); }
figure { margin: 0; border: 1px solid #8885; border-radius: .5rem; overflow: hidden; }
img, video { display: block; width: 100%; background: #8882; }
figcaption { padding: .7rem .9rem; overflow-wrap: anywhere; }
.prompt { white-space: pre-wrap; max-height: 12rem; overflow: auto; margin: .3rem 0; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0 .7rem; margin: .3rem 0 0;
  font-size: .85rem; }
dt { opacity: .7; }
dd { margin: 0; }
.reason { border-left: .25rem solid #c40; padding-left: .6rem; }
.state { float: right; font-size: .8rem; opacity: .7; }
"""


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
    except OSError as error:
        if raised_by_handler(error):
            raise
        return False
    return beginning.startswith(_HEAD) and _MARK in beginning


def _page(report: Report) -> Iterator[str]:
    title = escape(report.folder.resolve().name)
    counts = ", ".join(f"{count} {state}" for state, count in report.counts.items())
    yield f"{_HEAD}{_MARK}"
    yield f"<title>{title}</title>\n<style>{_STYLE}</style>"
    yield f"<h1>{title}</h1>\n<p>{len(report.entries)} items: {counts}</p>\n<main>"
    for entry in report.entries:
        yield from _figure_or_failure(entry)
    yield "</main>\n</html>"


def _figure_or_failure(entry: Entry) -> list[str]:
    """Return the figure of *entry*, or a short one if a value cannot be shown."""
    try:
        return list(_figure(entry))
    except Exception as error:  # noqa: BLE001  it concerns this item only
        task = "" if entry.task_id is None else f" (task {entry.task_id})"
        said = f"{entry.label}{task} is {entry.state}, and cannot be shown: {type(error).__name__}"
        failed = f'<p class="reason">{escape(said)}</p>'
        return [f'<figure id="item-{entry.number}"><figcaption>{failed}</figcaption></figure>']


def _figure(entry: Entry) -> Iterator[str]:
    yield f'<figure id="item-{entry.number}">'
    if entry.path is not None:
        yield _media(entry, entry.path)
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
        yield f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>"
    yield "</dl></figcaption></figure>"


def _media(entry: Entry, path: str) -> str:
    link = escape(quote(path))
    if FAMILIES[entry.family].media is Media.VIDEO:
        return f'<video controls preload="metadata" src="{link}"></video>'
    alt = escape(entry.name or f"item {entry.number}")
    return f'<a href="{link}"><img loading="lazy" src="{link}" alt="{alt}"></a>'


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
    if entry.candidate is not None:
        yield "possible id", entry.candidate
    if entry.size is not None:
        yield "bytes", f"{entry.size:,}"
