"""Which addresses a download may connect to, transcribed by hand.

The blocks are those of the IANA registries of special-purpose addresses and of multicast, as of
2026; the addresses of clouds are from their documentation.
"""

from __future__ import annotations

import ipaddress

import pytest

from muybridge_protocol.errors import InvalidAddress
from muybridge_protocol.hosts import is_public_address, is_public_host
from muybridge_protocol.service import Service

SERVICE = Service(base_url="https://api.example.com")

BLOCKS = {
    "this network": "0.0.0.0/8",
    "private-use 10": "10.0.0.0/8",
    "shared address space": "100.64.0.0/10",
    "loopback": "127.0.0.0/8",
    "link local": "169.254.0.0/16",
    "private-use 172": "172.16.0.0/12",
    "IETF protocol assignments": "192.0.0.0/24",
    "IPv4 service continuity prefix": "192.0.0.0/29",
    "TEST-NET-1": "192.0.2.0/24",
    "AS112-v4": "192.31.196.0/24",
    "AMT": "192.52.193.0/24",
    "deprecated 6to4 relay anycast": "192.88.99.0/24",
    "private-use 192": "192.168.0.0/16",
    "direct delegation AS112 service": "192.175.48.0/24",
    "benchmarking": "198.18.0.0/15",
    "TEST-NET-2": "198.51.100.0/24",
    "TEST-NET-3": "203.0.113.0/24",
    "multicast": "224.0.0.0/4",
    "reserved": "240.0.0.0/4",
    "limited broadcast": "255.255.255.255/32",
    "unspecified": "::/128",
    "loopback v6": "::1/128",
    "IPv4-compatible, deprecated": "::/96",
    "IPv4-translated": "::ffff:0:0:0/96",
    "local-use NAT64": "64:ff9b:1::/48",
    "discard-only": "100::/64",
    "dummy prefix": "100:0:0:1::/64",
    "IETF protocol assignments v6": "2001::/23",
    "Teredo": "2001::/32",
    "port control protocol anycast": "2001:1::1/128",
    "TURN anycast": "2001:1::2/128",
    "DNS-SD anycast": "2001:1::3/128",
    "benchmarking v6": "2001:2::/48",
    "AMT v6": "2001:3::/32",
    "AS112-v6": "2001:4:112::/48",
    "ORCHID, deprecated": "2001:10::/28",
    "ORCHIDv2": "2001:20::/28",
    "drone remote ID": "2001:30::/28",
    "documentation v6": "2001:db8::/32",
    "direct delegation AS112 service v6": "2620:4f:8000::/48",
    "documentation v6, larger": "3fff::/20",
    "segment routing": "5f00::/16",
    "unique-local": "fc00::/7",
    "link-local unicast": "fe80::/10",
    "site-local, deprecated": "fec0::/10",
    "multicast v6": "ff00::/8",
}

CLOUDS = {
    "AWS, Azure, Google and most others": "169.254.169.254",
    "AWS containers": "169.254.170.2",
    "AWS v6": "fd00:ec2::254",
    "Azure, wire server": "168.63.129.16",
    "Oracle": "192.0.0.192",
    "Oracle v6": "fd00:c1::a9fe:a9fe",
    "Google v6": "fd20:ce::254",
    "Alibaba": "100.100.100.200",
    "Tencent": "169.254.0.23",
    "Scaleway": "169.254.42.42",
    "Scaleway v6": "fd00:42::42",
    "OpenStack v6": "fe80::a9fe:a9fe",
}

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "93.184.215.14",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "168.63.129.15",
    "168.63.129.17",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "191.255.255.255",
    "192.0.1.0",
    "192.0.3.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "203.0.114.0",
    "223.255.255.255",
    "2001:200::1",
    "2001:db7:ffff::1",
    "2001:db9::1",
    "2606:4700::1111",
    "2620:4f:8001::1",
    "3ffe::1",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
]


def wrapped(address: str) -> list[str]:
    """Return the IPv4 *address* as IPv6 has it: mapped, behind NAT64, and as a 6to4 network."""
    number = int(ipaddress.IPv4Address(address))
    high, low = number >> 16, number & 0xFFFF
    return [f"::ffff:{address}", f"64:ff9b::{high:x}:{low:x}", f"2002:{high:x}:{low:x}::1"]


def in_every_form(address: str) -> list[str]:
    return [address] if ":" in address else [address, *wrapped(address)]


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_special_purposes(block: str) -> None:
    """No address of a block for special purposes is public, from its first one to its last."""
    network = ipaddress.ip_network(block)
    for end in (network[0], network[network.num_addresses // 2], network[-1]):
        for address in in_every_form(str(end)):
            assert not is_public_address(address), address
            assert not is_public_host(address), address


@pytest.mark.parametrize("address", CLOUDS.values(), ids=CLOUDS)
def test_metadata_of_clouds(address: str) -> None:
    """Nothing is downloaded from where a cloud tells a machine its credentials."""
    for form in in_every_form(address):
        assert not is_public_address(form), form
        host = f"[{form}]" if ":" in form else form
        with pytest.raises(InvalidAddress):
            SERVICE.check_download(f"https://{host}/a.mp4")


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    """What is next to such a block is public, also if it is wrapped in IPv6."""
    for form in in_every_form(address):
        assert is_public_address(form), form


@pytest.mark.parametrize(
    "address", ["", "not an address", "fe80::1%eth0", "127.1", "0x7f.1", "2130706433", "010.0.0.1"]
)
def test_no_addresses(address: str) -> None:
    """Text that is not an address in the usual notation is not public."""
    assert not is_public_address(address)
