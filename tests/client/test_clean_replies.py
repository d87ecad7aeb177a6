"""Each part of a response is searched for the key separately."""

from __future__ import annotations

import pytest

from muybridge.credentials import Credentials, HiddenKey
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.service import Service

KEY = "sk-canary-5e1fa0b7c2d94"
ESCAPED = f"%{ord(KEY[0]):02x}{KEY[1:]}"
SERVICE = Service(base_url="https://api.example.com")


@pytest.mark.parametrize("key", [KEY, HiddenKey(KEY)], ids=["plain", "hidden"])
@pytest.mark.parametrize("said", [KEY, ESCAPED], ids=["plain", "escaped"])
@pytest.mark.parametrize("place", ["name", "value", "body"])
def test_one_place(key: str, said: str, place: str) -> None:
    """The key goes from a header's name, its value or the body, where no other part has it."""
    name, value = (said if place == part else part for part in ("name", "value"))
    body = f'{{"said": "{said if place == "body" else ""}"}}'.encode()
    shown = Credentials(key, SERVICE).redact_response(HttpResponse(200, ((name, value),), body))
    assert said not in f"{shown.headers}{shown.body!r}"
    assert "[api key]" in f"{shown.headers}{shown.body!r}"


def test_nothing_of_it() -> None:
    """A response without the key stays unchanged."""
    reply = HttpResponse(200, (("Content-Type", "application/json"),), b'{"id": "task-1"}')
    assert Credentials(KEY, SERVICE).redact_response(reply) is reply
