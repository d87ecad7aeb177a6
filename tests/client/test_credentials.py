"""What is redacted, to the character: the key, and the beginning of one at a cut."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest

from muybridge.credentials import Credentials, HiddenKey
from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
)
from muybridge_protocol.service import Service

KEY = "kq7Xw2Zv9Jb4"
"""Of 12 characters, no two alike: the shortest key that is redacted."""
AWKWARD = 'kq"7\\X%w/2Zv9'
SHOWN = b"[api key]"
SERVICE = Service(base_url="https://api.example.com")


def credentials(key: str = KEY) -> Credentials:
    return Credentials(key, SERVICE)


@pytest.mark.parametrize("size", range(8, len(KEY)))
def test_a_beginning_at_the_end(size: int) -> None:
    """Eight or more of the key's first characters at the end of what arrived are redacted."""
    beginning = KEY[:size].encode()
    assert credentials().redact_partial(b"said " + beginning) == b"said " + SHOWN
    assert credentials().redact_partial(beginning) == SHOWN
    response = HttpResponse(401, (), b"said " + beginning)
    assert credentials().redact_response(response).body == b"said " + SHOWN
    failure = TransportFailure(
        phase=Phase.BODY, sent=True, reason=Reason.TRUNCATED, partial=b"said " + beginning
    )
    assert credentials().redact_failure(failure).partial == b"said " + SHOWN


@pytest.mark.parametrize("size", range(1, 8))
def test_a_shorter_beginning(size: int) -> None:
    """Fewer characters do not count as the key, and stay as they came."""
    partial = b"said " + KEY[:size].encode()
    assert credentials().redact_partial(partial) == partial
    response = HttpResponse(401, (), partial)
    assert credentials().redact_response(response) == response


@pytest.mark.parametrize("size", range(1, len(KEY)))
def test_an_end_is_no_beginning(size: int) -> None:
    """The end of a key, or its beginning in the middle of a body, is not redacted."""
    for partial in (KEY[-size:].encode(), KEY[:size].encode() + b"!"):
        assert credentials().redact_partial(partial) == partial


@pytest.mark.parametrize("key", [KEY, AWKWARD])
def test_the_key_however_it_is_written(key: str) -> None:
    """The whole key is redacted in bodies, headers and details, also if it is escaped."""
    escaped = "".join(f"\\u{ord(mark):04X}" for mark in key)
    percent = "".join(f"%{ord(mark):02x}" for mark in key)
    first = f"\\u{ord(key[0]):04x}{key[1:]}"
    last = f"{key[:-1]}%{ord(key[-1]):02X}"
    for written in (key, escaped, percent, first, last):
        body = f"<{written}>".encode()
        assert credentials(key).redact_partial(body) == b"<" + SHOWN + b">"
        fields = ((f"x-{written}", "1"), ("x", written), ("y", "as it was"))
        redacted = (("x-[api key]", "1"), ("x", "[api key]"), ("y", "as it was"))
        response = HttpResponse(401, fields, body)
        expected = HttpResponse(401, redacted, b"<" + SHOWN + b">")
        assert credentials(key).redact_response(response) == expected
        only_body = HttpResponse(401, (("x", "1"),), body)
        assert credentials(key).redact_response(only_body).body == b"<" + SHOWN + b">"
        for field in fields[:2]:
            only_head = HttpResponse(401, (field,), b"!")
            assert credentials(key).redact_response(only_head).headers[0] in redacted
        assert credentials(key).redact_head(HttpHead(302, fields)) == HttpHead(302, redacted)
        failure = TransportFailure(
            phase=Phase.HEAD, sent=True, reason=Reason.MALFORMED, detail=f"<{written}>"
        )
        assert credentials(key).redact_failure(failure).detail == "<[api key]>"


@pytest.mark.parametrize("marks", ['"', "\\", "/", '"\\/'])
def test_quoted_marks(marks: str) -> None:
    """JSON may write quotes, backslashes and slashes with a backslash before them."""
    written = "".join(f"\\{mark}" if mark in marks else mark for mark in AWKWARD)
    assert credentials(AWKWARD).redact_partial(written.encode()) == SHOWN


@pytest.mark.parametrize(
    "body", [b"", b"100%", b"a\\nb", b"%6b", b"\\u006b", b"kq7", KEY[1:].encode(), b"caf\xe9"]
)
def test_the_rest_stays(body: bytes) -> None:
    """What is not the key stays, to the byte."""
    fields = (("x", "50%"), ("y", "\\u006b"))
    response = HttpResponse(200, fields, body)
    assert credentials().redact_response(response) == response
    assert credentials().redact_partial(body) == body


def test_a_short_key_stays() -> None:
    """A key of fewer than 12 characters is a placeholder, and may be part of an id."""
    short = KEY[:11]
    body = f'{{"id": "{short}"}} {short[:9]}'.encode()
    response = HttpResponse(200, (("x", short),), body)
    assert credentials(short).redact_response(response) == response
    assert credentials(short).redact_partial(body) == body
    assert credentials(short).redact_head(HttpHead(200, (("x", short),))).headers[0][1] == short


@pytest.mark.parametrize("key", [KEY, KEY[:11]])
def test_the_header(key: str) -> None:
    """The key goes out whole, on a request that wants it, to the service alone."""

    def asked(url: str, *, authorized: bool) -> bytes | None:
        request = HttpRequest(method="GET", url=url, authorized=authorized)
        header = credentials(key).authorization_for(request)
        assert key not in repr(header)
        assert key not in f"{header}{header!s}"
        return None if header is None else header.encode()

    own = "https://api.example.com/v1/result/a"
    assert asked(own, authorized=True) == f"Bearer {key}".encode()
    assert asked(own, authorized=False) is None
    assert asked("https://cdn.example.net/a", authorized=True) is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_no_copies(copied: Callable[[object], object]) -> None:
    """Neither the key nor what holds it can be copied or pickled."""
    request = HttpRequest(method="GET", url="https://api.example.com/a", authorized=True)
    for secret in (credentials(), credentials().authorization_for(request), HiddenKey(KEY)):
        with pytest.raises(TypeError, match="not pickled or copied"):
            copied(secret)


def test_fingerprints_tell_accounts_apart() -> None:
    """Each key, each base URL, each name of an account and each salt has its own fingerprint."""
    elsewhere = Service(base_url="https://api.example.org")
    each = [
        Credentials(KEY, SERVICE),
        Credentials(AWKWARD, SERVICE),
        Credentials(KEY, elsewhere),
        Credentials(KEY, SERVICE, account="studio"),
        Credentials(KEY, SERVICE, account=KEY),
        Credentials(KEY, elsewhere, account="studio"),
    ]
    found = [one.fingerprint(b"salt") for one in each]
    assert len({*found, *(one.fingerprint(b"other") for one in each)}) == 2 * len(each)
    assert all(len(one) == 32 for one in found)
    named = Credentials(AWKWARD, SERVICE, account="studio")
    assert named.fingerprint(b"salt") == found[3]


@pytest.mark.parametrize(
    ("name", "fits"), [("", False), ("x", True), ("x" * 200, True), ("x" * 201, False)]
)
def test_the_name_of_an_account(name: str, fits: bool) -> None:  # noqa: FBT001  a parameter of the test
    """A name of 1 to 200 characters fits."""
    if fits:
        Credentials(KEY, SERVICE, account=name)
        return
    with pytest.raises(ValueError, match="account must have 1 to 200 printable characters"):
        Credentials(KEY, SERVICE, account=name)
