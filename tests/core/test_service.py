"""Which addresses, paths, identifiers and keys may be used, and which are refused unsent."""

from __future__ import annotations

import contextlib
import pickle
import re
import traceback
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.errors import InvalidAddress, LocalError
from muybridge_protocol.operations import Call, DeleteAsset, Poll, Send
from muybridge_protocol.records.tasks import Task, as_task
from muybridge_protocol.service import (
    Service,
    check_identifier,
    check_key,
    check_model_name,
    is_identifier,
    origin_of,
    resolve_location,
)
from tables import table

from .driving import SERVICE, call

# Base URLs.


@table(
    "base",
    [
        "https://api.example.com",
        "https://api.example.com/",
        "https://api.example.com:8443/prefix/",
        "https://10.0.0.7",
        "https://[2001:db8::1]:444",
        "http://localhost:8000",
        "http://api.localhost",
        "http://127.0.0.1:9",
        "http://127.8.9.1",
        "http://[::1]:9",
    ],
)
def test_base_urls(base: str) -> None:
    """A base URL is https, or plain http on this machine."""
    service = Service(base_url=base)
    assert service.base_url == base.rstrip("/")
    assert service.url("/v1/x") == base.rstrip("/") + "/v1/x"


@table(
    ("base", "spelled"),
    [
        ("HTTPS://API.Example.COM", "https://api.example.com"),
        ("https://api.example.com:443", "https://api.example.com"),
        ("https://api.example.com:0443/", "https://api.example.com"),
        ("https://api.example.com:", "https://api.example.com"),
        ("https://api.example.com./", "https://api.example.com"),
        ("https://api.example.com.:443/./", "https://api.example.com"),
        ("https://api.example.com/a/../b/./c/..", "https://api.example.com/b"),
        ("https://api.example.com/../a", "https://api.example.com/a"),
        ("https://api.example.com/%2e%2E/%7ea%2fb/%41", "https://api.example.com/~a%2Fb/A"),
        ("https://api.example.com/a%zz%", "https://api.example.com/a%25zz%25"),
        ("https://api.example.com/%%3725", "https://api.example.com/%25725"),
        ("https://api.example.com/A//b//", "https://api.example.com/A//b"),
        ("HTTP://LocalHost.:80", "http://localhost"),
        ("http://localhost:443", "http://localhost:443"),
        ("http://[::1]:80/", "http://[::1]"),
        ("https://[FE80::1%25en0]:443", "https://[fe80::1%25en0]"),
        ("https://[FE80:0::1%en0]", "https://[fe80::1%25en0]"),
        ("https://[2001:DB8::1]:80", "https://[2001:db8::1]:80"),
        ("http://[0:0:0:0:0:0:0:1]:9", "http://[::1]:9"),
        ("https://[2001:db8:0::0:1]", "https://[2001:db8::1]"),
        ("https://[::FFFF:a01:203]", "https://[::ffff:10.1.2.3]"),
        ("https://10.1.2.3.", "https://10.1.2.3"),
    ],
)
def test_the_spelling_of_a_base_url(base: str, spelled: str) -> None:
    """A base URL is kept as RFC 3986 normalises it, and without a dot at the end of its host."""
    service = Service(base_url=base, text_base_url=base)
    assert (service.base_url, service.text_base_url) == (spelled, spelled)
    assert service == Service(base_url=spelled, text_base_url=spelled)
    assert Service(base_url=spelled).base_url == spelled
    assert service.is_local is Service(base_url=spelled).is_local
    assert service.owns(service.url("/v1/x"))
    assert service.is_own_host(f"{base.partition('/%')[0]}/a")


@given(
    number=st.integers(0, 2**128 - 1)
    | st.integers(0, 2**32 - 1)
    | st.integers(0, 2**32 - 1).map(lambda number: 0xFFFF << 32 | number)
    | st.lists(st.sampled_from([0, 0, 1, 0xFFFF]), min_size=8, max_size=8).map(
        lambda groups: int("".join(f"{group:04x}" for group in groups), 16)
    ),
    data=st.data(),
)
def test_an_ipv6_address_has_one_spelling(number: int, data: st.DataObject) -> None:
    """However an address is written, the base URL is the same, and another one's is another."""
    ip = IPv6Address(number)
    groups = [f"{number >> 16 * place & 0xFFFF:x}" for place in reversed(range(8))]
    written = [data.draw(st.sampled_from([one, one.upper(), one.zfill(4)])) for one in groups]
    if data.draw(st.booleans()):  # its end as an IPv4 address
        written[6:] = [str(IPv4Address(number & 0xFFFF_FFFF))]
    first = data.draw(st.integers(0, len(written) - 1))
    last = data.draw(st.integers(first, len(written)))
    if all(set(one) == {"0"} for one in written[first:last]) and last > first:
        text = f"{':'.join(written[:first])}::{':'.join(written[last:])}"
    else:
        text = ":".join(written)
    assert IPv6Address(text) == ip
    spelled = Service(base_url=f"https://[{text}]").base_url
    assert spelled == Service(base_url=f"https://[{ip.exploded}]").base_url
    assert Service(base_url=spelled).base_url == spelled
    other = IPv6Address(number ^ 1 << data.draw(st.integers(0, 127)))
    assert Service(base_url=f"https://[{other}]").base_url != spelled


@given(
    host=st.text("0123af.x-", min_size=1, max_size=9)
    | st.text("0:f1.", min_size=2, max_size=12).map("[{}]".format)
    | st.text("01%25e", min_size=1, max_size=5).map("[fe80::1%{}]".format)
    | st.lists(st.integers(0, 300).map(str) | st.sampled_from(["", "01", "0x7f"]), max_size=5).map(
        ".".join
    ),
    end=st.sampled_from(["", ".", "..", ":", ":443", ":0443", ".:443"]),
    path=st.text("/.%2eE7a5vx1", max_size=12).map("/{}".format) | st.just(""),
)
def test_a_base_url_is_spelled_once(host: str, end: str, path: str) -> None:
    """An accepted base URL is its own spelling, and an IPv4 address is written in one way."""
    try:
        spelled = Service(base_url=f"https://{host}{end}{path}").base_url
    except InvalidAddress:
        return
    assert Service(base_url=spelled).base_url == spelled
    name = urlsplit(str(spelled)).hostname or ""
    assert ".." not in name
    if name.rpartition(".")[2].isdecimal() and ":" not in name:
        assert str(IPv4Address(name)) == name


@table(
    "host",
    [
        "127.1",
        "0x7f.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "2130706433",
        "127.0.0.01",
        "1.2.3.4.5",
        "a.0x",
    ],
)
def test_an_old_notation_of_an_address(host: str) -> None:
    """Resolvers know more notations of an IPv4 address; a base URL has one that nobody mistakes."""
    with pytest.raises(InvalidAddress, match="four decimal numbers") as caught:
        Service(base_url=f"https://{host}")
    assert str(caught.value).endswith("Nothing was sent.")


@table(
    "base",
    [
        "http://api.example.com",
        "http://10.0.0.7",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://xlocalhost",
        "http://0.0.0.0",
    ],
)
def test_plain_http_is_opt_in(base: str) -> None:
    """Plain http on another host is refused unless the caller says that it may be."""
    with pytest.raises(InvalidAddress, match="clear text"):
        Service(base_url=base)
    assert Service(base_url=base, allow_plain_http=True).base_url == base


NO_ADDRESSES = [
    "",
    "api.example.com",
    "//api.example.com",
    "ftp://api.example.com",
    "file:///etc/passwd",
    "https://",
    "https:///v1",
    "https://:443",
    "https://[",
    "https://[::1",
    "https://api.example.com:99999",
    "https://api.example.com:port",
    "https://user:s3cret@api.example.com",
    "https://user@api.example.com",
    "https://s3cret:x@[",
    "https://api.example.com\\evil",
    "https://api.example.com\n",
    " https://api.example.com",
    "https://api.exa mple.com",
    "https://äpi.example.com",
    "https://api%2eexample.com",
    "https://l%6fcalhost",
    "https://api.example.com,evil",
    "https://.",
    "https://api.example.com..",
    "https://api..example.com",
    "https://.example.com",
    "https://[::1::]",
    "https://[1:2:3:4:5:6:7:8:9]",
    "https://*",
    "https://api.example.com\x00",
    "https://api.example.com\x7f",
]


@table("base", NO_ADDRESSES)
@table("plain", [False, True])
def test_no_base_urls(base: str, plain: bool) -> None:  # noqa: FBT001  a case
    """An address that is not http(s), or has a login, is rejected; the login is not shown."""
    cases: list[dict[str, Any]] = [
        {"base_url": base},
        {"base_url": SERVICE.base_url, "text_base_url": base},
    ]
    for urls in cases:
        if urls.get("text_base_url") == "":
            continue
        with pytest.raises(InvalidAddress) as caught:
            Service(**urls, allow_plain_http=plain)
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    assert not SERVICE.owns(base)


KEYS = [
    "sk-canary",
    "canary",
    "sk.canary",
    "sk:canary",
    "sk/canary",
    "https:canary",
    "http:/canary",
    "ftp://canary",
    "sk-live://canary",
    "//canary",
    "https://service.test:canary",
    "https://service.test:canary/v1",
    "https://canary:x@[",
    "https://canary@service.test",
    "https://x:canary@service.test/a@b",
    "Bearer canary",
    "https://[canary",
    "https://canary!",
]
"""What somebody may give as an address who has mixed up the key, or a login, with it."""


@table("name", ["base_url", "text_base_url"])
@table("address", KEYS)
def test_a_key_instead_of_an_address(address: str, name: str) -> None:
    """An address that may be the key is named and not shown, and the swap is suspected."""
    told = rf"^{name} cannot be used: .*Nothing was sent\.$"
    urls: dict[str, Any] = {"base_url": SERVICE.base_url, name: address}
    with pytest.raises(InvalidAddress, match=told) as caught:
        Service(**urls, allow_plain_http=False)
    error = caught.value
    shown = "".join(traceback.format_exception(error))
    assert "canary" not in shown + repr(error) + repr(error.args) + str(pickle.dumps(error))
    assert error.__context__ is None
    assert ("swapped" in str(error)) is not address.startswith("https://")
    with pytest.raises(InvalidAddress) as caught:
        SERVICE.check_download(address)
    assert "canary" not in "".join(traceback.format_exception(caught.value))


@table(
    "path", ["canary", "https://x:canary@service.test/", "//canary", "/a?key=canary x", "/a#canary"]
)
def test_a_wrong_path_is_not_shown_whole(path: str) -> None:
    """Of a path that is refused, nothing is shown that may be a key or a signature."""
    with pytest.raises(InvalidAddress, match="is not a path of the service") as caught:
        SERVICE.url(path)
    assert "canary" not in str(caught.value)


@table("base", ["https://a.example/?x=1", "https://a.example/#x", "https://a/?"])
def test_a_base_url_is_bare(base: str) -> None:
    """A base URL has no query and no fragment."""
    with pytest.raises(InvalidAddress):
        Service(base_url=base)
    with pytest.raises(InvalidAddress):
        Service(base_url="https://a.example", text_base_url=base)


@table("base", ["https://a.example/v1", "http://[::1]:9/prefix/v1//"])
def test_a_base_url_stands_before_the_version(base: str) -> None:
    """A base URL that has the paths' own beginning is refused, and what is to be left out named."""
    refused = r"leave out /v1, .* Nothing was sent\."
    with pytest.raises(InvalidAddress, match=refused):
        Service(base_url=base)
    with pytest.raises(InvalidAddress, match=refused):
        Service(base_url="https://a.example", text_base_url=base)
    assert Service(base_url="https://a.example/v1/x").url("/v1/y") == "https://a.example/v1/x/v1/y"
    assert Service(base_url="https://a.example/xv1").base_url == "https://a.example/xv1"


# Which origin may see the key.


@table(
    "url",
    [
        "https://api.example.com",
        "https://api.example.com/v1/result/x?y#z",
        "https://api.example.com:443/",
        "https://API.example.com/",
        "http://text.example.com:8080/v1/models",
    ],
)
def test_owned(url: str) -> None:
    """The service owns its base URLs' origins, whatever the path."""
    service = Service(
        base_url="https://api.example.com/p", text_base_url="http://text.example.com:8080"
    )
    assert service.owns(url)


@table(
    "url",
    [
        "http://api.example.com/",
        "https://api.example.com:8443/",
        "https://api.example.com.evil.example/",
        "https://evil.example/api.example.com",
        "https://example.com/",
        "https://xapi.example.com/",
        "https://api.example.com@evil.example/",
        "https://evil.example#@api.example.com",
        "https://evil.example\\@api.example.com",
        "https://key@api.example.com/",
        "https://text.example.com:8080/",
        "http://text.example.com/",
        "//api.example.com/",
        "/v1/result/x",
        "https://api.example.com./",
        "",
    ],
)
def test_not_owned(url: str) -> None:
    """Another scheme, host or port is not the service's, however alike it looks."""
    service = Service(
        base_url="https://api.example.com/p", text_base_url="http://text.example.com:8080"
    )
    assert not service.owns(url)


def test_where_the_service_is_local() -> None:
    """The service is local where its base URL is this machine's."""
    assert Service(base_url="http://localhost:1").is_local
    assert not SERVICE.is_local


# Where results may be downloaded from.


@table(
    "url",
    [
        "https://cdn.example.net/a.mp4",
        "https://cdn.example.net:8443/a.mp4?sig=a%2Fb&x=@y",
        "https://93.184.215.14/a",
        "https://[2606:2800:21f:cb07:6820:80da:af6b:8b2c]/a",
        "https://api.example.com/a",
        "https://xn--bcher-kva.example/a",
        "https://a_b.example.net/a",
    ],
)
def test_downloads(url: str) -> None:
    """A result is downloaded from https on a public host."""
    assert SERVICE.check_download(url) == url


ENCODED = {" https://api.example.com", "https://api.example.com\n", "https://äpi.example.com"}
"""What is no base URL, but a link that can be encoded."""

NOT_PUBLIC = [
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "printer.local",
    "metadata.google.internal",
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",  # noqa: S104  refused
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "017700000001",
    "127.1",
    "127.0.1",
    "10.1",
    "0",
    "0x",
    "127.0.0.1.",
    "3232235777",
    "1.2.3.4.5",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[ff02::1]",
    "[2002:7f00:1::]",
    "[2002:a00:1::]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::10.0.0.1]",
    "[2001:db8::1]",
]


@table("host", NOT_PUBLIC)
def test_private_hosts(host: str) -> None:
    """A private, local or reserved host is not downloaded from, however it is written."""
    for url in (f"https://{host}/a.mp4", f"https://{host}:8443/"):
        with pytest.raises(InvalidAddress):
            SERVICE.check_download(url)


@table(
    "url",
    [
        "http://cdn.example.net/a",
        "HTTP://cdn.example.net/a",
        "ftp://cdn.example.net/a",
        "file:///etc/passwd",
        "data:video/mp4;base64,AAAA",
        "//cdn.example.net/a",
        "/a.mp4",
        "a.mp4",
        "asset://a",
        "https://user:s3cret@cdn.example.net/a",
        "https://cdn.example.net@127.0.0.1/a",
        "https://s3cret@cdn.example.net:99999/",
        *(url for url in NO_ADDRESSES if url not in ENCODED),
    ],
)
def test_no_downloads(url: str) -> None:
    """What is not https, has a login or is relative is not downloaded from, nor is it shown."""
    with pytest.raises(InvalidAddress) as caught:
        SERVICE.check_download(url)
    assert "s3cret" not in str(caught.value)


def test_a_signature_is_not_shown() -> None:
    """A refused link is shown without its query."""
    with pytest.raises(InvalidAddress) as caught:
        SERVICE.check_download("http://cdn.example.net/a?sig=s3cret#s3cret")
    assert "s3cret" not in str(caught.value)
    assert "cdn.example.net/a" in str(caught.value)


def test_links_of_a_local_service() -> None:
    """A service on this machine gave out the links at its own port, whatever the host is called."""
    local = Service(base_url="http://localhost:8000")
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert local.gave_out(f"http://{host}:8000/media/a.png")
        assert not local.gave_out(f"http://{host}:8001/media/a.png")
        assert not local.gave_out(f"https://{host}:8000/media/a.png")
    others = (
        "http://10.0.0.1:8000/a",
        "http://user:s@localhost:8000/a",
        "http://localhost:x/a",
        "",
    )
    assert not any(map(local.gave_out, others))
    elsewhere = (SERVICE, Service(text_base_url="http://localhost:8000"))
    assert not any(service.gave_out("http://localhost:8000/a") for service in elsewhere)


def test_the_services_own_host() -> None:
    """The service's own host may be private, and plain http where the service itself is."""
    local = Service(base_url="http://127.0.0.1:8000")
    for url in ("http://127.0.0.1:8000/a", "http://127.0.0.1:9/a", "https://127.0.0.1/a"):
        assert local.check_download(url) == url
    assert local.is_own_host("http://127.0.0.1:9/")
    assert not local.is_own_host("http://127.0.0.2:8000/")
    for url in ("http://127.0.0.2/", "http://localhost:8000/", "http://cdn.example.net/a"):
        with pytest.raises(InvalidAddress):
            local.check_download(url)
    safe = Service(base_url="https://10.0.0.7")
    assert safe.check_download("https://10.0.0.7:99/a")
    with pytest.raises(InvalidAddress):
        safe.check_download("http://10.0.0.7/a")
    with pytest.raises(InvalidAddress):
        SERVICE.check_download("http://api.example.com/a")


INSECURE = Service(base_url="https://api.example.com", allow_insecure_downloads=True)


@table(
    ("url", "why"),
    [
        ("http://cdn.example.net/a?sig=s3cret", "it is plain http"),
        ("http://api.example.com/a", "it is plain http"),
        ("https://10.0.0.7/a", "the host is private"),
        ("https://localhost/a", "the host is private"),
        ("https://[fd12:3456::1]/a", "the host is private"),
        ("http://192.168.1.9:8000/a", "it is plain http"),
    ],
)
def test_insecure_downloads_are_opt_in(url: str, why: str) -> None:
    """A refused link is said to be paid for, and the option that allows it is named."""
    with pytest.raises(InvalidAddress, match=why) as caught:
        SERVICE.check_download(url)
    assert "is paid for, and stays available under its id" in str(caught.value)
    assert "pass allow_insecure_downloads=True" in str(caught.value)
    assert "s3cret" not in str(caught.value)
    assert INSECURE.check_download(url) == url


def test_which_hosts_must_be_public() -> None:
    """A host's address must be public unless it is the service's own, or any may be used."""
    assert SERVICE.wants_public_host("https://cdn.example.net/a")
    assert not SERVICE.wants_public_host("https://api.example.com/a")
    assert not INSECURE.wants_public_host("https://cdn.example.net/a")


@table(
    "host",
    [
        *("169.254.169.254", "169.254.1.1", "[fe80::1]", "[fe80::1%25eth0]", "[fd00:ec2::254]"),
        *("168.63.129.16", "192.0.0.192", "100.100.100.200", "[::ffff:169.254.169.254]"),
        *("[64:ff9b::a9fe:a9fe]", "metadata.google.internal", "METADATA.google.internal."),
        *("2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "127.1", "1.2.3.4.5"),
    ],
)
def test_metadata_services_are_never_downloaded_from(host: str) -> None:
    """A cloud's metadata service stays refused whatever is allowed, and numbers are, too."""
    for url in (f"http://{host}/latest", f"https://{host}/"):
        for service in (SERVICE, INSECURE):
            with pytest.raises(InvalidAddress):
                service.check_download(url)


@table(
    "url",
    [
        "ftp://cdn.example/a",
        "file:///a",
        "a.mp4",
        "https://u:p@cdn.example/a",
        "http://",
        "http://[",
    ],
)
def test_what_no_option_allows(url: str) -> None:
    """Other schemes, logins and relative links are refused whatever is allowed."""
    with pytest.raises(InvalidAddress):
        INSECURE.check_download(url)


def test_redirects_in_utf8() -> None:
    """A location that is UTF-8, which headers are not read as, leads where it says."""
    location = "/絵/é.png".encode().decode("latin-1")
    url = SERVICE.check_download(resolve_location("https://cdn.example.net/a", location))
    assert url == "https://cdn.example.net/%E7%B5%B5/%C3%A9.png"
    latin = SERVICE.check_download(resolve_location("https://cdn.example.net/a", "/\xe9"))
    assert latin == "https://cdn.example.net/%C3%A9"


@given(st.text(max_size=30), st.sampled_from(["", "https://", "http://", "//", "/", "https://a@"]))
def test_any_address(text: str, start: str) -> None:
    """Any text is an address that may be used, or is refused with InvalidAddress."""
    uses: list[Callable[[str], object]] = [
        SERVICE.check_download,
        SERVICE.url,
        origin_of,
        lambda url: Service(base_url=url),
        lambda url: SERVICE.check_download(resolve_location("https://a.example/b", url)),
    ]
    for use in uses:
        with contextlib.suppress(InvalidAddress):
            use(start + text)
    SERVICE.owns(start + text)


# Identifiers.

NO_IDENTIFIERS: list[Any] = [
    "",
    ".",
    "..",
    "a\n",
    "a\r\nX: y",
    "\na",
    "a\x00",
    "a\x1b[2J",
    "a\x7f",
    "a\x85",
    "a\u2028b",
    "\ud800",
    "\udc0e\ud83d",
    "x" * 1025,
    "x" * 5000,
    None,
    5,
    b"a",
    ["a"],
]


@table("text", NO_IDENTIFIERS)
def test_no_identifiers(text: Any) -> None:
    """What cannot stand in a path or on a line is not an id: a ValueError, and nothing is sent."""
    assert not is_identifier(text)
    with pytest.raises(LocalError, match="Nothing was sent") as caught:
        check_identifier(text, "task id")
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, LocalError)
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()
    if isinstance(text, str):
        with pytest.raises(ValueError, match="asset id"):
            DeleteAsset.start(text, SERVICE, now=0, seed=0)
        with pytest.raises(ValueError, match="task id"):
            as_task(text)
        with pytest.raises(LocalError) as wrong:
            SERVICE.result_url(text)
        assert wrong.value.argument == "task_id"
        with pytest.raises(LocalError) as wrong:
            SERVICE.asset_url(text)
        assert wrong.value.argument == "asset_id"


@table("scheme", ["https://", "http://", "HTTPS://", "s3://", "//", "data:"])
def test_a_link_taken_for_an_id(scheme: str) -> None:
    """A link that is taken for an id is refused without its query, which may be a signature."""
    link = f"{scheme}cdn.example/a.png?signature=secret"
    with pytest.raises(LocalError, match="is a link, not a task id") as caught:
        as_task(link)
    assert "secret" not in str(caught.value)
    assert "cdn.example/a.png" in str(caught.value)
    token = Task(id=link).to_token()
    assert as_task(token).id == link


IDENTIFIERS = [
    *("a", "0", "task_01-AB", "a.b.c", "x" * 1024, "~", "-", "_", "...", "a..b", ".a", "a."),
    *("018f3c1e-7b1a-7c3e-9f2a-3b5d7e9f1a2b", "a:b", "a=b", "a+b", "a@b", "/", "a/b", "../x"),
    *("a?b", "a#b", "a%2fb", "%2e%2e", "%2E", "a\\b", "a;b", "a b", " ", "a&b", "a'b", 'a"b'),
    *("a<b", "a{b}", "a|b", "a,b", "a*b", "a!b", "(a)", "\xe9", "\uff41", "a\u200b"),
    *("\u65e5\u672c", "\U0001f40e", "//cdn.example/a.png", "asset:", "{a}"),
]


@table("text", IDENTIFIERS)
def test_identifiers(text: str) -> None:
    """Any other text is an id, and is percent-encoded where it stands in a path."""
    assert is_identifier(text)
    assert check_identifier(text, "task id") == text
    asset = DeleteAsset.start(f"asset://{text}", SERVICE, now=0, seed=0).next_action(0)
    query = Poll.query(Task(id=text), SERVICE, now=0, wall=0, seed=0).next_action(0)
    for action, path in ((asset, "/vidsb/asset/"), (query, "/v1/result/")):
        assert isinstance(action, Send)
        base, mark, last = action.request.url.rpartition("/")
        assert base + mark == f"https://api.example.com{path}"
        assert re.fullmatch(r"(?:[A-Za-z0-9_.~-]|%[0-9A-F]{2})+", last)
        assert unquote(last) == text
        assert SERVICE.owns(action.request.url)


@given(st.text(min_size=1, max_size=30))
def test_any_identifier(text: str) -> None:
    """An id stands in a path as one segment that means it alone, or is refused."""
    try:
        url = SERVICE.result_url(text)
    except LocalError:
        assert not is_identifier(text)
        return
    assert url.isascii()
    assert url.count("/") == 5
    assert urlsplit(url).path.rpartition("/")[2] not in {".", ".."}
    assert unquote(url.rpartition("/")[2], errors="strict") == text
    assert SERVICE.owns(url)


MODEL_NAMES = ["a", "textg-2.5-pro", "a:b", "a=b", "a+b", "a@b", "~", "x" * 256]


@table("text", [*MODEL_NAMES, *IDENTIFIERS, *NO_IDENTIFIERS[:15]])
def test_model_names(text: str) -> None:
    """A model's name is letters, digits and a few marks, with single dots between them."""
    if re.fullmatch(r"[A-Za-z0-9_~:=+@.-]{1,256}", text) and ".." not in f".{text}.":
        assert check_model_name(text) == text
        return
    with pytest.raises(LocalError, match="is not a valid model name"):
        check_model_name(text)


# Keys.


@table("key", ["k", "sk-ABC_123.~+/=", "!" * 300, "~"])
@table("end", ["", "\n", "\r\n"])
def test_keys(key: str, end: str) -> None:
    """A key is printable ASCII; the trailing line break of a key file is not part of it."""
    assert check_key(key + end) == key


SECRET = "s3cret-Key"  # noqa: S105  a canary


@table(
    "key",
    [
        "",
        "\n",
        f"{SECRET}\n\n",
        f"{SECRET}\r\n\n",
        f"{SECRET}\n\r\n",
        f"{SECRET}\r",
        f"\n{SECRET}",
        f" {SECRET}",
        f"{SECRET} ",
        f"{SECRET} x",
        f"{SECRET}\t",
        f"{SECRET}\x00",
        f"{SECRET}\x1b",
        f"{SECRET}\x7f",
        f"{SECRET}\x85",
        f"{SECRET}\xa0",
        f"{SECRET}…",
        f"{SECRET}é",
        f"{SECRET}\ud800",
        f"{SECRET}\u2028",
        f"{SECRET}\r\nX-Evil: 1",
        f'"{SECRET}"',
        f"'{SECRET}'",
        f"`{SECRET}`",
        f'"{SECRET}',
        f"{SECRET}'\n",
        f"\N{LEFT DOUBLE QUOTATION MARK}{SECRET}\N{RIGHT DOUBLE QUOTATION MARK}",
    ],
)
def test_no_keys(key: str) -> None:
    """A key with white space, control or non-ASCII marks is refused, and never shown."""
    with pytest.raises(LocalError, match="The API key") as caught:
        check_key(key)
    assert isinstance(caught.value, ValueError)
    shown = "".join(traceback.format_exception(caught.value))
    assert SECRET not in str(caught.value) + repr(caught.value) + repr(caught.value.args)
    assert SECRET not in shown.replace("SECRET", "")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


# Paths.


@table(
    "path",
    [
        "/",
        "/v1/models/textg-2.5-pro:generateContent",
        "/v1/x?a=b&c=../d",
        "/a.b/..c/d..",
        "/a/",
        "/v1/x%20y",
        "/...",
    ],
)
def test_paths(path: str) -> None:
    """A path begins with one slash and stays below the base URL."""
    assert SERVICE.url(path) == f"https://api.example.com{path}"
    assert call("POST", path).next_action(0).request.url == f"https://api.example.com{path}"  # type: ignore[union-attr]  # any other action fails here


@table(
    "path",
    [
        "",
        "v1/x",
        "//evil.example/x",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "https://evil.example/x",
        "http:evil.example",
        "@evil.example",
        ".evil.example/x",
        ":8443/x",
        "/..",
        "/.",
        "/v1/../x",
        "/v1/..",
        "/v1/./x",
        "/v1/%2e%2e/x",
        "/v1/%2E./x",
        "/v1/.%2e",
        "/%2e",
        "/v1#x",
        "/v1/x y",
        "/v1/x\n",
        "/v1/x\r\nX-Evil: 1",
        "/v1/é",
        "/v1/\x00",
        "/v1/[x]",
        '/v1/"x"',
        "/v1/\ud800",
    ],
)
def test_no_paths(path: str) -> None:
    """A path that leaves the service's origin, or climbs in it, is a ValueError, and unsent."""
    with pytest.raises(ValueError, match="Nothing was sent") as caught:
        Call.start("POST", path, SERVICE, now=0, seed=0)
    assert isinstance(caught.value, InvalidAddress)


@given(st.text(max_size=20))
def test_any_path(path: str) -> None:
    """Whatever path is given, the request stays at the service's origin or is not made."""
    for candidate in (path, f"/{path}"):
        try:
            url = SERVICE.url(candidate)
        except InvalidAddress:
            continue
        assert SERVICE.owns(url)
        assert origin_of(url) == ("https", "api.example.com", 443)


@table("method", ["", "get", "GET ", "GET\r\n", "G", "G@T", "POST HTTP/1.1", "É" * 3])
def test_no_methods(method: str) -> None:
    """A method is a word in capital letters."""
    with pytest.raises(ValueError, match="is not an HTTP method"):
        call(method)


@table("value", [float("nan"), {"a": float("inf")}, {1, 2}, object(), "\ud800"])
def test_what_cannot_be_sent(value: object) -> None:
    """A value that is not JSON is a ValueError, and nothing is sent."""
    with pytest.raises(ValueError, match=r".+"):
        call("POST", "/v1/x", json=value)


# Text alone.


def test_text_alone() -> None:
    """A service may have a text base URL alone: its origin sees the key, and no other does."""
    service = Service(text_base_url="http://text.example.com/below/")
    assert service.text_url("/v1/x") == "http://text.example.com/below/v1/x"
    assert service.owns("http://text.example.com/")
    assert not service.owns("https://api.example.com/")
    assert str(service) == "http://text.example.com/below"
    for needed in (service.require_base_url, lambda: service.url("/v1/x")):
        with pytest.raises(InvalidAddress, match="MUYBRIDGE_BASE_URL"):
            needed()


def test_text_alone_still_downloads_from_public_hosts() -> None:
    """Without a base URL there is no own host: a link is followed to public https alone."""
    service = Service(text_base_url="http://127.0.0.1:8000")
    assert service.check_download("https://cdn.example.net/a")
    assert not service.is_own_host("http://127.0.0.1:8000/a")
    assert not service.is_local
    with pytest.raises(InvalidAddress):
        service.check_download("http://127.0.0.1:8000/a")


def test_no_address_at_all() -> None:
    """A service without any address is refused."""
    with pytest.raises(InvalidAddress, match="MUYBRIDGE_BASE_URL"):
        Service()
