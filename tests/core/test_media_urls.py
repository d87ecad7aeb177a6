"""What is taken for the address of a picture, video or sound."""

from __future__ import annotations

import pytest

from muybridge_protocol.rules.media_urls import MediaUrl

DATA = "data:image/png;base64,iVBORw0KGgo="


@pytest.mark.parametrize(
    "url",
    [
        "http\N{LATIN SMALL LETTER LONG S}://example.com/a.png",
        DATA.replace("s", "\N{LATIN SMALL LETTER LONG S}"),
        DATA.replace("K", "\N{KELVIN SIGN}"),
    ],
    ids=["scheme", "coding", "digit"],
)
def test_lookalikes(url: str) -> None:
    """A letter that only looks like one of ASCII, and is the same without case, is not that."""
    assert MediaUrl().complaint(url) is not None


@pytest.mark.parametrize("url", ["HTTPS://example.com/a.png", "DATA:Image/PNG;Base64,iVBORw0KGgo="])
def test_case(url: str) -> None:
    """A scheme, a media type and a coding may be written in capitals."""
    assert MediaUrl().complaint(url) is None
