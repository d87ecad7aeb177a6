"""Which hosts and addresses are public and which are this machine, judged by their form."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from functools import lru_cache

_LOCAL_DOMAINS = ("localhost", "local", "internal")
"""Domains of this machine, its link and the inside of a cloud. No public name is below them."""

_INNER_DOMAINS = (
    *("lan", "home", "corp", "intranet", "localdomain", "home.arpa"),
    "box",  # used by many home routers, although it is a public domain
    *("test", "example", "invalid"),
)
"""Further domains that are used on internal networks and in tests."""

_NUMBER = r"[0-9]+|0x[0-9a-f]*"
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")

_SPECIAL: Mapping[str, str] = {
    # IANA IPv4 Special-Purpose Address Registry
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private use",
    "100.64.0.0/10": "shared by a provider's customers; metadata of Alibaba Cloud",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local; metadata of most clouds",
    "172.16.0.0/12": "private use",
    "192.0.0.0/24": "protocol assignments; metadata of Oracle Cloud",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112 name servers",
    "192.52.193.0/24": "multicast tunnels",
    "192.88.99.0/24": "6to4 relays, deprecated",
    "192.168.0.0/16": "private use",
    "192.175.48.0/24": "AS112 name servers",
    "198.18.0.0/15": "benchmarks",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "240.0.0.0/4": "reserved, and broadcast",
    # Other registries, and one cloud
    "224.0.0.0/4": "multicast",
    "168.63.129.16/32": "metadata of Azure",
    # IANA IPv6 Special-Purpose Address Registry, inside 2000::/3
    "2001::/23": "protocol assignments, Teredo among them",
    "2001:db8::/32": "documentation",
    "2620:4f:8000::/48": "AS112 name servers",
    "3fff::/20": "documentation",
}
"""Networks that look public but are not hosts of the internet, and why.

Python's own `is_global` depends on the version, and accepts some of them.
"""
_SPECIAL_NETWORKS = tuple(map(ipaddress.ip_network, _SPECIAL))

_METADATA_NAMES = frozenset({"metadata", "metadata.google.internal", "instance-data"})
_METADATA_ADDRESSES = frozenset(
    map(
        ipaddress.ip_address,
        (
            *("169.254.169.254", "169.254.170.2", "169.254.170.23", "fd00:ec2::254"),
            *("168.63.129.16", "192.0.0.192", "100.100.100.200", "fd00:ec2::23", "fd20:ce::254"),
        ),
    )
)
"""Where clouds give a machine its metadata, credentials among them."""


def is_public_host(host: str) -> bool:
    """Whether *host*, a name or an address, may be reachable from the whole internet.

    A name is judged by its form alone. The driver checks what it resolves to.
    """
    name = host.partition("%")[0].rstrip(".").lower()
    if not name or name == "localhost" or _is_below(name, _LOCAL_DOMAINS):
        return False
    if ":" not in name and not ends_in_number(name):
        return True
    return is_public_address(name)


def has_public_name(host: str) -> bool:
    """Whether *host* is a public address, or a name that looks like one in the public DNS.

    It is stricter than `is_public_host`, for callers that cannot see what a name resolves to: a
    search domain or a router may resolve it. Even a public name may resolve to an internal address.
    """
    if not is_public_host(host):
        return False
    name = host.strip(".").lower()
    return ":" in name or ("." in name and not _is_below(f".{name}", _INNER_DOMAINS))


def ends_in_number(name: str) -> bool:
    """Whether the last label of *name* is a number: resolvers take the whole for an IPv4 address.

    They know it in old notations too, such as 127.1 or 0x7f.1.
    """
    return bool(re.fullmatch(_NUMBER, name.rpartition(".")[2]))


def spelled_ipv6(host: str) -> str:
    """Return an IPv6 address, perhaps with a zone, in the one spelling of RFC 5952 and RFC 6874.

    Raises:
        ValueError: It is not an address.
    """
    address, mark, zone = host.partition("%")
    ip = ipaddress.IPv6Address(address)
    # Python's own spelling of a mapped address depends on the version.
    spelled = str(ip) if ip.ipv4_mapped is None else f"::ffff:{ip.ipv4_mapped}"
    return f"{spelled}%25{zone.removeprefix('25')}" if mark else spelled


def _is_below(name: str, domains: tuple[str, ...]) -> bool:
    return name.endswith(tuple(f".{domain}" for domain in domains))


@lru_cache(maxsize=64)
def is_public_address(address: str) -> bool:
    """Whether the IP *address* is that of a single host, reachable from the whole internet.

    Special-purpose addresses are not, nor are those of the metadata services of clouds. An IPv4
    address wrapped in IPv6 (mapped, 6to4, NAT64) is unwrapped first, because the packet ends there.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # for example an old notation: decimal, octal, hexadecimal or short
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        wrapped = _wrapped(ip)
        if wrapped is not None:
            return is_public_address(str(wrapped))
        # All others are local, multicast or unassigned.
        if ip not in _GLOBAL_UNICAST:
            return False
    return not any(ip in network for network in _SPECIAL_NETWORKS)


def _wrapped(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """Return the IPv4 address that *ip* wraps, or None."""
    wrapped = ip.ipv4_mapped or ip.sixtofour
    if wrapped is None and ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return wrapped


def is_metadata_host(host: str) -> bool:
    """Whether *host* looks like a cloud's metadata service, which gives out credentials.

    Every link-local address counts, and so does a number that resolvers may take for an address.
    """
    name = host.partition("%")[0].strip("[]").rstrip(".").lower()
    if name in _METADATA_NAMES:
        return True
    try:
        ip = ipaddress.ip_address(name)
    except ValueError:  # a name, or an old notation of an address
        return ends_in_number(name)
    if isinstance(ip, ipaddress.IPv6Address):
        wrapped = _wrapped(ip)
        if wrapped is not None:
            return is_metadata_host(str(wrapped))
    return ip.is_link_local or ip in _METADATA_ADDRESSES


@lru_cache(maxsize=64)
def is_metadata_address(address: str) -> bool:
    """Whether the IP *address* is that of a cloud's metadata service.

    Unlike `is_metadata_host`, it does not count other link-local addresses.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    wrapped = _wrapped(ip) if isinstance(ip, ipaddress.IPv6Address) else None
    return (wrapped or ip) in _METADATA_ADDRESSES


def is_clear_text(scheme: str, host: str) -> bool:
    """Whether the API key could be read on its way to *host*: by plain http to another machine."""
    return scheme == "http" and not is_loopback(host)


def is_loopback(host: str) -> bool:
    """Whether *host*, a name or an address, is this machine."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
