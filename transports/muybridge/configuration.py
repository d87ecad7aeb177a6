"""Where the key and the addresses come from: arguments first, then the environment."""

from __future__ import annotations

import os
import warnings

from muybridge.credentials import Credentials, HiddenKey
from muybridge_protocol.errors import InvalidKey, PlainHttpWarning
from muybridge_protocol.service import Service

KEY_VARIABLE = "MUYBRIDGE_API_KEY"
BASE_URL_VARIABLE = "MUYBRIDGE_BASE_URL"
TEXT_BASE_URL_VARIABLE = "MUYBRIDGE_TEXT_BASE_URL"


def read_service(
    api_key: str | None,
    base_url: str | None,
    text_base_url: str | None,
    *,
    allow_plain_http: bool,
    allow_insecure_downloads: bool,
) -> tuple[Service, Credentials]:
    """Return where the service is and the key for it.

    Args:
        api_key: The API key, or None for `MUYBRIDGE_API_KEY`.
        base_url: Where images, videos and assets are, or None for `MUYBRIDGE_BASE_URL`, which
            need not be set where text is all that is wanted. "" is none, whatever is set.
        text_base_url: Where text is, or None for `MUYBRIDGE_TEXT_BASE_URL`, if set. "" is none.
        allow_plain_http: Whether base_url may be plain http on a host that is not this machine.
        allow_insecure_downloads: Whether results may be downloaded by plain http and from private
            hosts.

    Raises:
        InvalidKey: There is no key, or it cannot be sent as it is.
        InvalidAddress: There is no base URL, or it cannot be used.
    """
    service = Service(
        base_url=find_address(base_url, BASE_URL_VARIABLE),
        text_base_url=find_address(text_base_url, TEXT_BASE_URL_VARIABLE),
        allow_plain_http=allow_plain_http,
        allow_insecure_downloads=allow_insecure_downloads,
    )
    key = hidden(api_key if api_key is not None else os.environ.get(KEY_VARIABLE))
    if key is None:
        raise InvalidKey(f"There is no API key. Set {KEY_VARIABLE}, or give api_key.")
    base_url = service.base_url
    if base_url is not None and base_url.startswith("http:") and not service.is_local:
        warnings.warn(
            f"The API key travels in clear text to {base_url}.",
            PlainHttpWarning,
            stacklevel=3,
        )
    try:
        return service, Credentials(key, service)
    except InvalidKey as error:
        # The frames of those who looked at the key have it in their variables.
        raise error.with_traceback(None) from None


def find_address(given: str | None, variable: str) -> str | None:
    """Return the address *given*, or without one that of the *variable*. An empty one is none."""
    return (os.environ.get(variable) if given is None else given) or None


def hidden(api_key: str | None) -> HiddenKey | None:
    """Return *api_key* so that no traceback that shows variables shows it."""
    if api_key is None or isinstance(api_key, HiddenKey):
        return api_key
    return HiddenKey(api_key)
