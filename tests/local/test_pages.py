"""The description and the page to try it out, as the local service serves them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import requests

from muybridge.local import LocalService
from muybridge_protocol.openapi import openapi_document


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=1000, public_url="https://media.example.com/") as running:
        yield running


def get(service: LocalService, path: str) -> requests.Response:
    return requests.get(f"{service.base_url}{path}", timeout=20)


def test_the_description_is_served(service: LocalService) -> None:
    """The description is served without a key, with the address that clients use."""
    reply = get(service, "/openapi.json?x=1")
    assert reply.status_code == 200
    assert reply.headers["Content-Type"] == "application/json"
    url = "https://media.example.com"
    assert reply.json() == openapi_document(base_url=url, text_base_url=url)


def test_the_page_is_served(service: LocalService) -> None:
    """The page is served without a key, and holds none."""
    reply = get(service, "/docs")
    assert reply.status_code == 200
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert service.api_key not in reply.text
    assert "/openapi.json" in reply.text


def test_the_page_loads_nothing_from_elsewhere(service: LocalService) -> None:
    """The page names no other address, and its policy allows a browser none."""
    reply = get(service, "/docs")
    assert re.findall(r"(?:https?:)?//[a-z]", reply.text) == []
    policy = reply.headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "http" not in policy
    assert "connect-src 'self'" in policy
    assert "form-action 'none'" in policy


@pytest.mark.parametrize("path", ["/openapi.json", "/docs"])
def test_pages_are_only_read(service: LocalService, path: str) -> None:
    """Any other method on a page is answered with 405, which names the one that is right."""
    reply = requests.post(f"{service.base_url}{path}", timeout=20)
    assert (reply.status_code, reply.headers["Allow"]) == (405, "GET")


def test_all_else_wants_the_key(service: LocalService) -> None:
    """What only looks like a page is no page, and wants the key."""
    for path in ("/docs/", "/openapi", "/openapi.json/x", "/DOCS"):
        assert get(service, path).status_code == 401


def test_the_pages_share_a_style(service: LocalService) -> None:
    """The page of tasks and the page to try it out begin with the same colours and forms."""
    styles = [
        get(service, path).text.partition("<style>")[2].partition("</style>")[0]
        for path in ("/", "/docs")
    ]
    shared = styles[0].partition("body {")[0]
    assert "--paper:" in shared
    assert styles[1].startswith(shared)
