"""Cases 72 to 84: the key. Beyond these rows, every cell of the table looks for it in each sink."""

from __future__ import annotations

from faults.acts import changed, inserted, status
from faults.clients import KEY
from faults.operations import UNDECIDED
from faults.rows import (
    KIT,
    LOST,
    NO_RECORD,
    RECORDS,
    TEXTS,
    Elsewhere,
    Entry,
    Point,
    Row,
    every,
)

from .replies import REDIRECTS

_SINKS = "faults/test_cells.py::test_cell"
_SAID = f'{{"error": "bad key {KEY}"}}'.encode()


def _told(code: int, **outcomes: str) -> Row:
    return Row(
        numbers=(83,),
        name=f"the key in an error {code}",
        point=Point.MEANING,
        does=f"answers {code} and repeats the key",
        on_request=status(code, _SAID, x_key=KEY, www_authenticate=KEY),
        closes=False,
        declines=code == 401,
        always=outcomes,
        once=outcomes if code == 401 else {},
        without={"call": "hands any reply over"},
    )


ROWS: tuple[Entry, ...] = (
    Elsewhere(
        numbers=(72,),
        tests=("client/test_key.py::test_netrc", f"{KIT}/sending.py::test_netrc", _SINKS),
    ),
    Elsewhere(
        numbers=(73,),
        tests=(
            "client/test_key.py::test_redirects",
            "client/test_key.py::test_other_hosts",
            _SINKS,
        ),
    ),
    *REDIRECTS,
    Elsewhere(
        numbers=(74,),
        tests=(
            "client/test_money.py::test_redirects_are_not_followed",
            "client/test_money.py::test_redirects_within_the_service",
        ),
    ),
    Elsewhere(
        numbers=(75,),
        tests=(
            "client/test_downloads.py::test_nothing_but_the_request",
            "client/test_key.py::test_other_hosts",
            _SINKS,
        ),
    ),
    Elsewhere(
        numbers=(76,),
        tests=(
            "transport/test_proxies.py::test_plain_http_with_key",
            "transport/test_proxies.py::test_tunnel",
            _SINKS,
        ),
    ),
    Elsewhere(
        numbers=(77,),
        tests=(
            "client/test_key.py::test_bad_keys",
            "transport/test_secrets.py::test_key_with_line_break",
        ),
    ),
    Elsewhere(
        numbers=(78, 79),
        tests=(
            "client/test_key.py::test_client_shows_no_key",
            "client/test_key.py::test_client_is_not_copied",
            "client/test_key.py::test_credentials_show_no_key",
            "transport/test_secrets.py::test_pickle",
            _SINKS,
        ),
    ),
    Elsewhere(
        numbers=(80,),
        tests=(f"{KIT}/secrets.py::test_exceptions", _SINKS),
    ),
    Elsewhere(
        numbers=(81, 82),
        tests=(f"{KIT}/secrets.py::test_logs", "client/test_key.py::test_logs", _SINKS),
    ),
    _told(
        401,
        create="Unauthorized",
        batch="NotSent|Refused",
        get="Unauthorized",
        wait="Unauthorized",
        delete="Unauthorized",
        download="DownloadFailed",
        check=UNDECIDED,
        **every("Unauthorized", TEXTS),
    ),
    _told(500, **{name: outcome for name, outcome in LOST.items() if name != "call"}),
    Row(
        numbers=(83,),
        name="the key in a record",
        point=Point.MEANING,
        does="answers well, and repeats the key",
        on_request=changed(inserted(f'"hint": "{KEY}"'.encode()), x_key=KEY),
        closes=False,
        always=every("ok", RECORDS),
        without=NO_RECORD,
    ),
    Elsewhere(
        numbers=(83,),
        tests=(
            "client/test_key.py::test_echoes",
            "client/test_key.py::test_echoes_that_break_off",
        ),
    ),
    Elsewhere(
        numbers=(84,),
        tests=(
            "client/test_key.py::test_tokens_and_files",
            "batch/test_runs.py::test_neither_key_nor_signature_is_kept",
            _SINKS,
        ),
    ),
)
