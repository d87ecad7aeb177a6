"""Cases 85 to 91: files."""

from __future__ import annotations

import re

from faults.acts import Change, flood, steps, told
from faults.hostile_server import SOUND, Act, good_reply, part_of
from faults.operations import OK, UNDECIDED
from faults.rows import ALL, LINKED, Elsewhere, Entry, Point, Row
from transport.scripted_server import Peer, response_bytes


def _ranged(
    number: int, name: str, does: str, act: Act, outcome: str, *, is_later: bool = False
) -> Row:
    return Row(
        numbers=(number,),
        name=name,
        point=Point.HEAD,
        does=does,
        on_request=act,
        closes=False,
        always={"check": outcome},
        once={} if is_later else {"check": outcome},
        without={
            **dict.fromkeys([known for known in ALL if known not in LINKED], "asks for no part"),
            "download": "asks for one only to resume: client/test_downloads.py",
        },
    )


def _placed(place: bytes) -> Change:
    """Return what says of a part that it stands in another place."""
    return lambda whole: re.sub(rb"(?i)(content-range:) [^\r]*", rb"\1 " + place, whole)


def _later(change: Change) -> Act:
    """Return what answers well to whoever asks for the beginning, and otherwise *change* it."""

    def act(peer: Peer) -> None:
        request = peer.read_request()
        whole = good_reply(request, "")
        peer.send(whole if b"bytes=0-" in request else change(whole))

    return act


def _endless_part(peer: Peer) -> None:
    """Send the part that is asked for, without a length, and then more without end."""
    whole = part_of(SOUND, peer.read_request())
    peer.send(re.sub(rb"(?i)\r\ncontent-length:[^\r]*", b"", whole))
    flood(b"x" * 65_536)(peer)


def _without_place(_: bytes) -> bytes:
    return response_bytes(206, SOUND)


def _several(_: bytes) -> bytes:
    return response_bytes(206, b"", content_type="multipart/byteranges")


def _short(whole: bytes) -> bytes:
    return re.sub(rb"(?i)(length:) \d+", rb"\1 9", whole)


def _unsatisfiable(_: bytes) -> bytes:
    return response_bytes(416, b"", content_range="bytes */9")


_ODD_PARTS: dict[str, Change] = {
    "another part": _placed(b"bytes 9-65544/116044"),
    "a part beyond the end": _placed(b"bytes 0-65535/100"),
    "a part of nothing": _placed(b"bytes 0-65535/0"),
    "a place of 5,000 digits": _placed(b"bytes 0-" + b"9" * 5_000 + b"/*"),
    "a part without a place": _without_place,
    "several parts": _several,
    "a part that is too short": _short,
    "416": _unsatisfiable,
}

ROWS: tuple[Entry, ...] = (
    Elsewhere(
        numbers=(85,),
        tests=(
            "client/test_downloads.py::test_hostile_names",
            "batch/test_items.py::test_file_names_are_safe_and_unique",
            "faults/test_files.py::test_paths_that_are_none",
            "faults/test_files.py::test_names_of_every_length",
            "faults/test_files.py::test_every_id_has_a_file_of_its_own",
        ),
    ),
    Elsewhere(
        numbers=(86,),
        tests=(
            "client/test_downloads.py::test_a_link_in_the_way",
            "faults/test_files.py::test_what_is_no_file",
            "faults/test_files.py::test_the_part_is_replaced_meanwhile",
        ),
    ),
    Elsewhere(
        numbers=(87,),
        tests=(
            "client/test_downloads.py::test_a_full_disk",
            "client/test_downloads.py::test_a_write_that_fails",
            "faults/test_files.py::test_a_disk_that_fills_up",
            "faults/test_files.py::test_a_call_of_the_system_that_fails",
        ),
    ),
    Elsewhere(
        numbers=(88, 89),
        tests=(
            "client/test_downloads.py::test_changed_in_between",
            "client/test_downloads.py::test_an_odd_answer_to_a_range",
            "core/test_download.py::test_a_200_restarts",
            "core/test_download.py::test_another_part_than_asked_for",
        ),
    ),
    _ranged(
        88,
        "changed between two parts",
        "says another size with the second part",
        _later(lambda whole: whole.replace(b"/%d" % len(SOUND), b"/%d" % (len(SOUND) + 1))),
        UNDECIDED,
        is_later=True,
    ),
    _ranged(
        88,
        "all instead of a later part",
        "sends all when it is asked for the second part",
        _later(lambda _: response_bytes(200, SOUND)),
        UNDECIDED,
        is_later=True,
    ),
    _ranged(
        89,
        "all instead of a part",
        "knows no ranges",
        steps(Peer.read_request, lambda peer: peer.send(response_bytes(200, SOUND))),
        OK,
    ),
    *(
        _ranged(89, name, f"answers a range with {name}", told(change), UNDECIDED)
        for name, change in _ODD_PARTS.items()
    ),
    _ranged(
        89,
        "an endless part",
        "sends the part that is asked for, and then bytes without end",
        _endless_part,
        OK,
    ),
    Elsewhere(
        numbers=(88, 89),
        tests=(
            "client/test_check.py::test_a_file_that_changes",
            "client/test_check.py::test_broken_servers",
            "client/test_check.py::test_an_endless_body",
            "client/test_check.py::test_a_redirect_to_a_private_host",
            "client/test_check.py::test_private_addresses",
        ),
    ),
    Elsewhere(
        numbers=(90,),
        tests=(
            "client/test_downloads.py::test_two_processes",
            "faults/test_files.py::test_many_at_one_target",
        ),
    ),
    Elsewhere(
        numbers=(91,),
        tests=(
            "client/test_downloads.py::test_killed",
            "client/test_downloads.py::test_killed_as_a_new_version_began",
            "faults/test_files.py::test_killed_at_every_line",
        ),
    ),
)
