"""Where the service is, and how the command reaches it."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import click

import muybridge.local  # it imports on use, and says how to install what is missing
from muybridge.configuration import BASE_URL_VARIABLE, STORE_VARIABLES, find_address
from muybridge_protocol.errors import InvalidAddress
from muybridge_protocol.operations.poll import WAIT_TIMEOUT
from muybridge_protocol.records.convert import attributes
from muybridge_protocol.service import Service

if TYPE_CHECKING:
    from muybridge import Client

PERMISSIONS: Final = ("allow_plain_http", "allow_plain_http_proxy", "allow_insecure_downloads")
"""The options that allow what is not safe."""

_LOCAL_SPEED = 20.0
"""How much faster than usual the embedded service is."""
_NOWHERE = "https://service.invalid"
"""Stands for a service that is not connected to."""
_KEY_FILE_LIMIT = 64 * 1024
"""Largest file that is read for a key: a wrong path may lead to a video."""


@attrs.frozen(kw_only=True)
class Connection:
    """Where the service is, and how it is reached.

    Args:
        api_key_file: Where the key is, or None for the environment.
        base_url: Where the service is, or None for the environment.
        text_base_url: Where its text endpoints are, or None for the environment.
        allow_plain_http: Whether base_url may be plain http on another machine.
        allow_plain_http_proxy: Whether a proxy may see the key in plain http requests.
        allow_insecure_downloads: Whether results may be downloaded by plain http and from private
            hosts.
        local: Whether an embedded service is used, which ends with the command.
        poll_interval: Seconds between result queries, or None for the specification's pace.
        timeout: Seconds for the whole, or None for the library's choice.
    """

    api_key_file: str | None = None
    base_url: str | None = None
    text_base_url: str | None = None
    allow_plain_http: bool = False
    allow_plain_http_proxy: bool = False
    allow_insecure_downloads: bool = False
    local: bool = False
    poll_interval: float | None = None
    timeout: float | None = None

    @property
    def wait_timeout(self) -> float:
        """Seconds to wait for a task."""
        return WAIT_TIMEOUT if self.timeout is None else self.timeout

    def settings(self, stack: ExitStack, *, text: bool) -> dict[str, Any]:
        """Return arguments of `open_client`, and start the embedded service if it is to be used.

        Args:
            stack: Stops that service.
            text: Whether the client is for text alone, or for everything else. The environment's
                address of the other one is ignored.
        """
        settings: dict[str, Any] = {
            "api_key": self.read_key(),
            "base_url": "" if text else self.base_url,
            "text_base_url": self.text_base_url if text else "",
            **attributes(self, *PERMISSIONS, "poll_interval"),
        }
        if self.local:
            stack.enter_context(_without_store())
            service = stack.enter_context(muybridge.local.LocalService(speed=_LOCAL_SPEED))
            settings |= attributes(service, "api_key", "base_url", "text_base_url")
        return settings

    def service(self) -> Service:
        """Return the service of the options and the environment.

        Raises:
            InvalidAddress: Its address cannot be used.
        """
        return Service(
            base_url=find_address(self.base_url, BASE_URL_VARIABLE),
            allow_plain_http=self.allow_plain_http,
        )

    def unopened_service(self) -> Service:
        """Return the service for a command that sends it nothing, and needs no address.

        It is that of the options and the environment if it is on this machine, because then its
        links are, too. Otherwise it makes no difference where it is.
        """
        address = None if self.local else find_address(self.base_url, BASE_URL_VARIABLE)
        if address is not None:
            with suppress(InvalidAddress):
                service = Service(base_url=address, allow_plain_http=True)
                if service.is_local:
                    return service
        return Service(base_url=_NOWHERE)

    def refuse_with_local(self, *names: str) -> None:
        """Refuse options that name another service, where the embedded one is to be used.

        Raises:
            click.UsageError: One of the attributes *names* is set.
        """
        if self.local and any(getattr(self, name) is not None for name in names):
            raise click.UsageError(
                f"--local cannot be combined with {' or '.join(map(option_of, names))}"
            )

    def read_key(self) -> str | None:
        """Return the key of the key file, or None where none was given.

        Raises:
            click.UsageError: The file cannot be read.
        """
        if self.api_key_file is None:
            return None
        try:
            with Path(self.api_key_file).open("rb") as file:
                # What is no text becomes characters that no key has, and is refused unseen.
                return file.read(_KEY_FILE_LIMIT).decode("utf-8", "replace")
        except OSError as error:
            raise click.UsageError(
                f"--api-key-file: {error.strerror}. Give the name of a file that has the API key "
                "in it, not the key itself. The value is not shown."
            ) from None


def open_client(stack: ExitStack, *, allow_plain_http_proxy: bool, **settings: Any) -> Client:
    """Return a client on a transport of its own.

    Args:
        stack: Closes both.
        allow_plain_http_proxy: As for the transport.
        settings: The client's other arguments.
    """
    from muybridge import Client, RequestsTransport

    transport = RequestsTransport(allow_plain_http_proxy=allow_plain_http_proxy)
    stack.callback(transport.close)
    return stack.enter_context(Client(transport=transport, **settings))


def option_of(attribute: str) -> str:
    """Return the option whose value is kept in an *attribute*."""
    return f"--{attribute.replace('_', '-')}"


def words_of(choices: object, *names: str) -> list[str]:
    """Return the options that were given, of those that are kept in the attributes *names*."""
    words: list[str] = []
    given: Mapping[str, object] = attributes(choices, *names)
    for name, value in given.items():
        if value is not None and value is not False:
            words.append(option_of(name))
        if isinstance(value, str):
            words.append(value)
        elif isinstance(value, float):
            words.append(f"{value:g}")
    return words


@contextmanager
def _without_store() -> Generator[None, None, None]:
    """Hide the environment's limits and store: an embedded service charges nothing."""
    hidden = {name: value for name, value in os.environ.items() if name.startswith(STORE_VARIABLES)}
    for name in hidden:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden)
