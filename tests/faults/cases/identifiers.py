"""Cases 61 to 71: ids and links that lead elsewhere."""

from __future__ import annotations

import json

from faults.acts import changed, status
from faults.hostile_server import SIGNATURE, Act
from faults.operations import UNDECIDED
from faults.rows import ALL, KIT, LINKED, TEXTS, Elsewhere, Entry, Point, Row, every

_IDS = {
    61: ("..", "."),
    63: ("a\r\nX: y",),
    64: ("x" * 5000, ""),
}
_USABLE_IDS = {62: ("a/b", "a?b", "a#b", "a%2e", "a\\b", "a;b"), 64: ("\N{HORSE}",)}
_NOT_HTTP = 65
_PLACES = {
    _NOT_HTTP: (
        "file:///etc/passwd",
        "ftp://127.0.0.1/a",
        "data:image/png;base64,AA==",
        "//10.0.0.1/a",
    ),
    66: (
        "https://localhost/a",
        "https://169.254.169.254/a",
        "https://10.1.2.3/a",
        "https://2130706433/a",
        "https://[::1]/a",
        "https://[::ffff:10.0.0.1]/a",
    ),
    69: ("http://93.184.215.14/a",),
    70: ("https://u:p@93.184.215.14/a",),
}


def _named(text: str) -> Act:
    def named(body: bytes) -> bytes:
        return json.dumps({**json.loads(body), "id": text}).encode()

    return changed(named)


def _usable_id(number: int, text: str) -> Row:
    """Return the row of an id that must be encoded to stand in a path."""
    return Row(
        numbers=(number,),
        name=f"id {ascii(text)[:12]}",
        point=Point.MEANING,
        does="gives a task an id that must be encoded to stand in a path",
        on_request=_named(text),
        closes=False,
        always={"create": "ok", **every("ProtocolViolation", ("get", "wait"))},
        once={"create": "ok", **every("ProtocolViolation", ("get", "wait"))},
        without={
            **dict.fromkeys(("call", "delete", *LINKED, *TEXTS), "reads no id"),
            "batch": "asks for the task next, and this server knows one id",
        },
    )


def odd_id(number: int, text: str) -> Row:
    """Return the row of an id that cannot stand in a path."""
    return Row(
        numbers=(number,),
        name=f"id {ascii(text)[:12]}",
        point=Point.MEANING,
        does="gives a task an id that cannot stand in a path",
        on_request=_named(text),
        closes=False,
        always={
            **every("CreateAmbiguous", ("create", "batch")),
            **every("ProtocolViolation", ("get", "wait")),
        },
        once={
            **every("CreateAmbiguous", ("create", "batch")),
            **every("ProtocolViolation", ("get", "wait")),
        },
        without=dict.fromkeys(("call", "delete", *LINKED, *TEXTS), "reads no id"),
    )


def _place(number: int, place: str) -> Row:
    link = f"{place}?{SIGNATURE}"
    # What has no scheme and host is taken for a task's id.
    always = {"download": "InvalidAddress" if "://" in place else "LocalError"}
    without = dict.fromkeys([name for name in ALL if name not in LINKED], "takes no link")
    if number == _NOT_HTTP:
        without["check"] = "is of a request, which takes no such link"
    else:
        always["check"] = UNDECIDED
    return Row(
        numbers=(number,),
        name=f"a link to {place}",
        point=Point.LOCAL,
        does="gives a link that leads where nothing is downloaded from",
        link=lambda _: link,
        always=always,
        without=without,
    )


def _redirect(number: int, place: str) -> Row:
    location = f"{place}?{SIGNATURE}"
    # `//host` and what has a scheme of its own is another place; the rest is the same host.
    return Row(
        numbers=(number, 68),
        name=f"a redirect to {place}",
        point=Point.MEANING,
        does="redirects a download to where nothing is downloaded from",
        on_request=status(302, b"", location=location),
        closes=False,
        always={"download": "DownloadFailed", "check": UNDECIDED},
        once={"download": "DownloadFailed", "check": UNDECIDED},
        without=dict.fromkeys([name for name in ALL if name not in LINKED], "follows nothing"),
    )


ROWS: tuple[Entry, ...] = (
    *(odd_id(number, text) for number, texts in _IDS.items() for text in texts),
    *(_usable_id(number, text) for number, texts in _USABLE_IDS.items() for text in texts),
    Elsewhere(
        numbers=(61, 62, 63, 64),
        tests=(
            "client/test_robustness.py::test_identifiers",
            "core/test_service.py::test_no_identifiers",
            "core/test_service.py::test_identifiers",
        ),
    ),
    *(_place(number, place) for number, places in _PLACES.items() for place in places),
    *(_redirect(number, place) for number, places in _PLACES.items() for place in places),
    Elsewhere(
        numbers=(65, 66, 68, 69, 70),
        tests=(
            "core/test_service.py::test_no_downloads",
            "core/test_service.py::test_private_hosts",
            "client/test_downloads.py::test_places_that_are_not_downloaded_from",
        ),
    ),
    Elsewhere(
        numbers=(67,),
        tests=(
            f"{KIT}/connecting.py::test_rebound_name",
            "transport/test_connections.py::test_one_private_address_among_public_ones",
            f"{KIT}/connecting.py::test_private_address",
        ),
    ),
    *(
        Row(
            numbers=(71,),
            name=f"a dead link, {code}",
            point=Point.MEANING,
            does=f"answers {code} to a download",
            on_request=status(code),
            closes=False,
            always={"download": "LinkExpired", "check": UNDECIDED},
            once={"download": "LinkExpired", "check": UNDECIDED},
            without=dict.fromkeys([name for name in ALL if name not in LINKED], "has no link"),
        )
        for code in (403, 404, 410)
    ),
    Elsewhere(
        numbers=(71,),
        tests=(
            "client/test_downloads.py::test_a_fresh_link",
            "client/test_downloads.py::test_fresh_links_are_asked_for_once",
        ),
    ),
)
