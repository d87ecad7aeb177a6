"""How tasks and results are displayed in notebooks.

A notebook shows the picture or video, and what is known about it. All texts of the service are
escaped and kept on one line. The browser loads nothing except the result's own link: no style
sheet, script or font. It loads the link by itself only if that is https on a host with a public
name or address, or on this machine; otherwise a response could make it visit a host of an internal
network. (What a public name resolves to cannot be seen here.) Any other http(s) link is only
clickable, and nothing else is linked.

The link is shown with its signature, because the picture would not load without it. So anybody who
gets the saved notebook can open the link until it expires.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from html import escape

from muybridge_protocol.hosts import has_public_name, is_loopback
from muybridge_protocol.http import without_query
from muybridge_protocol.iri import ascii_url
from muybridge_protocol.local_errors import InvalidAddress
from muybridge_protocol.records.json import readable
from muybridge_protocol.service import origin_of

_LONGEST_TEXT = 2_000
"""Characters of a text of the service that are shown at most."""

_BOX = "max-width:40em;overflow-wrap:anywhere"
_MEDIA = "display:block;max-width:100%;max-height:30em"
_PRIVATE = 'referrerpolicy="no-referrer" rel="noopener noreferrer" target="_blank"'


def record_html(rows: Mapping[str, object], *parts: str) -> str:
    """Return a record as HTML: *parts* that are HTML already, and the *rows* that have a value."""
    return f'<div style="{_BOX}">{"".join(parts)}{_table(rows)}</div>'


def media_html(
    task_id: str, links: Mapping[str, str | None], *, expires_at: int | None, is_over: bool
) -> Iterator[str]:
    """Yield the media of a result as HTML.

    Args:
        task_id: The task's id.
        links: The link of its picture and of its video, by these words.
        expires_at: When the links expire, Unix seconds, or None if that is not specified.
        is_over: Whether a result without a link will never have one, for no known reason.
    """
    shown = False
    for what, url in links.items():
        if not url:
            continue
        try:
            sent = ascii_url(url)
            scheme, host, _ = origin_of(sent)
        except InvalidAddress:
            yield f"<p>The {what}'s link is not shown: it is not an http(s) address.</p>"
            continue
        shown = True
        link = escape(sent)
        if is_loopback(host) or (scheme == "https" and has_public_name(host)):
            yield _embedded(what, link, task_id)
        else:
            yield (
                f"<p>The {what} is not loaded automatically: its link is neither https on a "
                "public host nor on this machine.</p>"
            )
        yield f'<p><a href="{link}" {_PRIVATE}>{_text(without_query(url))}</a></p>'
    if shown:
        keep = "To keep the file, call client.download(result, &quot;folder&quot;)."
        yield f"<p>{_until(expires_at)} {keep}</p>"
    elif is_over and not any(links.values()):
        yield "<p>The service gave no link.</p>"


def _embedded(what: str, link: str, task_id: str) -> str:
    described = f"The {what} of task {_text(task_id)}"
    if what == "picture":
        missing = "where it does not show, its link has expired or cannot be reached"
        return (
            f'<img src="{link}" alt="{described}; {missing}." referrerpolicy="no-referrer" '
            f'style="{_MEDIA}">'
        )
    return (
        f'<video src="{link}" controls preload="metadata" aria-label="{described}" '
        f'style="{_MEDIA}"></video>'
    )


def _until(expires_at: int | None) -> str:
    ends = moment(expires_at)
    if ends is None:
        return "How long the link works is not specified; where nothing shows, it has expired."
    return f"The link works until {ends}; after that, nothing shows here."


def _table(rows: Mapping[str, object]) -> str:
    lines = (
        f'<tr><th scope="row" style="text-align:left">{name}</th>'
        f'<td style="text-align:left"><bdi>{_text(str(value))}</bdi></td></tr>'
        for name, value in rows.items()
        if value is not None and value != ""
    )
    return f"<table>{''.join(lines)}</table>"


def _text(text: str) -> str:
    return escape(readable(text, _LONGEST_TEXT))


def moment(seconds: float | None) -> str | None:
    """Return Unix *seconds* as a date and time, or unchanged if there is no such date."""
    if seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return str(seconds)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
