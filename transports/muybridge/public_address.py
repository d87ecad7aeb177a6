"""Which addresses are out on the public internet, so that a URL from a reply may lead there."""

from __future__ import annotations

import ipaddress

_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Return whether the IP *address* is globally routable and names one host.

    An IPv4 address wrapped in IPv6 (mapped, 6to4, NAT64) is judged by what it wraps: the packet
    ends there.
    """
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        wrapped = ip.ipv4_mapped or ip.sixtofour
        if wrapped is None and ip in _NAT64:
            wrapped = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if wrapped is not None:
            return is_public(str(wrapped))
        # `is_global` of the older Pythons leaves out the deprecated ranges.
        if ip not in _GLOBAL_UNICAST:
            return False
    return ip.is_global and not ip.is_multicast
