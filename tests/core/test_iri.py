"""Addresses with characters beyond ASCII are sent as URLs that mean the same."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.errors import InvalidAddress
from muybridge_protocol.iri import ascii_url
from muybridge_protocol.service import Service

SERVICE = Service(base_url="https://api.example.com", allow_insecure_downloads=True)


@pytest.mark.parametrize(
    ("url", "sent"),
    [
        (
            "https://cdn.example/a.mp4?sig=a%2Fb&x=@y#z",
            "https://cdn.example/a.mp4?sig=a%2Fb&x=@y#z",
        ),
        ("https://cdn.example/絵.png", "https://cdn.example/%E7%B5%B5.png"),
        ("https://cdn.example/絵%20b.png", "https://cdn.example/%E7%B5%B5%20b.png"),
        ("https://cdn.example/a b.png?q=é", "https://cdn.example/a%20b.png?q=%C3%A9"),
        ("https://cdn.example/%zz é", "https://cdn.example/%zz%20%C3%A9"),
        ("https://cdn.example/é?sig=%2B%c3%a9+/=", "https://cdn.example/%C3%A9?sig=%2B%c3%a9+/="),
        ("https://cdn.example/\u2028\u00a0", "https://cdn.example/%E2%80%A8%C2%A0"),
        ("https://cdn.example/a\\b.png?q=c\\d", "https://cdn.example/a%5Cb.png?q=c%5Cd"),
        ("https://cdn.example\\a/b\\c", "https://cdn.example\\a/b%5Cc"),
        ("https://bücher.example/a", "https://xn--bcher-kva.example/a"),
        ("https://BÜCHER.example:8443/a", "https://xn--bcher-kva.example:8443/a"),
        ("https://bu\u0308cher.example/a", "https://xn--bcher-kva.example/a"),
        ("https://straße.example/a", "https://xn--strae-oqa.example/a"),
        ("https://例え.テスト/絵", "https://xn--r8jz45g.xn--zckzah/%E7%B5%B5"),
        ("https://cdn.example/a\n", "https://cdn.example/a"),
        (" https://cdn.example/a ", "https://cdn.example/a"),
        ("a/é", "a/é"),
        ("", ""),
    ],
)
def test_addresses(url: str, sent: str) -> None:
    """Path and query are percent-encoded, the host by IDNA, and nothing is encoded twice."""
    assert ascii_url(url) == sent
    assert ascii_url(sent) == sent


@pytest.mark.parametrize("url", ["https://cdn.example/\ud800", f"https://{'é' * 64}.example/"])
def test_no_addresses(url: str) -> None:
    """What cannot be encoded is refused."""
    with pytest.raises(InvalidAddress):
        ascii_url(url)


@pytest.mark.parametrize(
    "host",
    [
        "\uff11\uff12\uff17.0.0.1",
        "127\u30020\u30020\u30021",
        "①②⑦.0.0.1",
        "ⓛocalhost",
        "169.254.169.\uff12\uff15\uff14",
        "cdn.example\uff0fa",
        "℀.example",
        "cdn.example\uff1a80",
        "cdn.example\uff20x",
    ],
)
def test_lookalikes_stay_what_they_are(host: str) -> None:
    """No lookalike of a digit, a dot or a slash becomes one: it cannot lead to another host."""
    sent = ascii_url(f"https://{host}/a")
    assert sent.isascii()
    assert "xn--" in sent
    assert (urlsplit(sent).hostname or "").count(".") == host.count(".")


@given(st.text(max_size=20), st.text(max_size=30))
def test_any_address(host: str, path: str) -> None:
    """Any address is encoded as one that means the same, or is refused; then it is ready."""
    url = f"https://a{host}/{path}"
    try:
        sent = SERVICE.check_download(url)
    except InvalidAddress:
        return
    assert sent.isascii()
    assert " " not in sent
    assert SERVICE.check_download(sent) == sent
    assert unquote(sent) == unquote(sent, errors="surrogateescape")
