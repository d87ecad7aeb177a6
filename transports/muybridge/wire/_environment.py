"""What the environment configures: proxies and CA certificates."""

from __future__ import annotations

import ipaddress
import os
import urllib.request
from urllib.parse import urlsplit

from muybridge_protocol.hosts import is_loopback

CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""Variables that may name a file or directory of CA certificates; the first one set wins."""


def ca_variable() -> str | None:
    """Return the variable that names the file or directory of CA certificates, or None."""
    return next((name for name in CA_VARIABLES if os.environ.get(name)), None)


def ca_advice() -> str:
    """Return what to do about a certificate whose issuer is not trusted."""
    name = ca_variable()
    now = "" if name is None else f"; now {name} names the CA certificates"
    return f"to trust its CA, set {CA_VARIABLES[0]} to the CA's certificate file{now}"


def proxy_for(scheme: str, host: str, port: int) -> str | None:
    """Return the URL of the proxy for *host*, or None to connect directly.

    `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` are read in upper or lower case. An
    entry of `NO_PROXY` is a host name, a domain, either of them with a port, an address, a network
    (`10.0.0.0/8`), or `*`. Loopback is never proxied.
    """
    if is_loopback(host):
        return None
    # The variables alone, and not what macOS or Windows have set. Under CGI, where `HTTP_PROXY` may
    # be a header of somebody's request, this function leaves it out.
    settings = urllib.request.getproxies_environment()
    proxy = settings.get(scheme) or settings.get("all")
    entries = [entry.strip().lower() for entry in settings.get("no", "").split(",")]
    if not proxy or _excluded(host.strip("[]").lower(), port, [e for e in entries if e]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def checked_proxy(url: str) -> str:
    """Return the proxy's *url* if its host and port are valid.

    Raises:
        ValueError: They are not. Nothing of the URL is shown, because it may hold a password.
    """
    try:
        is_readable = bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        is_readable = False
    if not is_readable:
        raise ValueError("the proxy's URL cannot be read (it may hold a password: not shown)")
    return url


def _excluded(host: str, port: int, entries: list[str]) -> bool:
    address = _address(host)
    for entry in entries:
        name = entry.lstrip(".")
        if entry == "*" or name in (host, f"{host}:{port}"):
            return True
        if f"{host}:{port}".endswith(f".{name}") or host.endswith(f".{name}"):
            return True
        if address is not None and _inside(address, entry):
            return True
    return False


def _inside(address: ipaddress.IPv4Address | ipaddress.IPv6Address, network: str) -> bool:
    try:
        return address in ipaddress.ip_network(network.strip("[]"), strict=False)
    except ValueError:
        return False


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
