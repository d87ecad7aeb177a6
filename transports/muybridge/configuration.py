"""Reads the key and the addresses: from arguments first, then from the environment."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from muybridge.credentials import Credentials, HiddenKey
from muybridge_protocol.arguments import NO_TAGS, check_type
from muybridge_protocol.errors import InvalidAddress, LocalError, PlainHttpWarning
from muybridge_protocol.local_errors import NOTHING_SENT
from muybridge_protocol.remedies import Remedy, RemedyKind
from muybridge_protocol.service import TEXT_ALONE, Service

if TYPE_CHECKING:
    from muybridge.purchases import Store
    from muybridge.purchases.booking import Books
    from muybridge_protocol.estimates import PriceList
    from muybridge_protocol.purchases import Budget, Tags
    from muybridge_protocol.purchases.names import Dedupe

KEY_VARIABLE = "MUYBRIDGE_API_KEY"
BASE_URL_VARIABLE = "MUYBRIDGE_BASE_URL"
TEXT_BASE_URL_VARIABLE = "MUYBRIDGE_TEXT_BASE_URL"
PRICES_VARIABLE = "MUYBRIDGE_PRICES"
LIMIT_VARIABLE = "MUYBRIDGE_MAX_"
"""How the names of the variables begin that limit what may be spent."""
TAGS_VARIABLE = "MUYBRIDGE_TAGS"
STORE_VARIABLES = (LIMIT_VARIABLE, "MUYBRIDGE_STORE", TAGS_VARIABLE)
"""How the names of the variables begin that ask for a store."""


def read_service(
    api_key: str | None,
    base_url: str | None,
    text_base_url: str | None,
    *,
    allow_plain_http: bool,
    allow_insecure_downloads: bool,
    account: str | None = None,
) -> tuple[Service, Credentials]:
    """Return the service and its credentials.

    Args:
        api_key: The API key, or None for `MUYBRIDGE_API_KEY`.
        base_url: The base URL of images, videos and assets, or None for `MUYBRIDGE_BASE_URL`. Text
            alone does not need one. "" means none, even if the variable is set.
        text_base_url: The base URL of text, or None for `MUYBRIDGE_TEXT_BASE_URL`, if set. ""
            means none.
        allow_plain_http: Whether base_url may be plain http on a host other than this machine.
        allow_insecure_downloads: Whether results may be downloaded over plain http and from private
            hosts.
        account: A name for the account that the key belongs to, or None for the key itself.

    Raises:
        LocalError: There is no key, or it contains characters that cannot be sent.
        InvalidAddress: There is no base URL, or it cannot be used.
        ValueError: The account's name is empty, too long or not printable.
        TypeError: The key is not a string.
    """
    for name, address in (("base_url", base_url), ("text_base_url", text_base_url)):
        if address is not None:
            check_type(name, address, str, "a string, such as 'https://api.example.com'")
    check_type("allow_plain_http", allow_plain_http, bool, "True or False")
    check_type("allow_insecure_downloads", allow_insecure_downloads, bool, "True or False")
    if account is not None:
        check_type("account", account, str, "a string")
    key = hidden(api_key if api_key is not None else os.environ.get(KEY_VARIABLE))
    base = find_address(base_url, BASE_URL_VARIABLE)
    text_base = find_address(text_base_url, TEXT_BASE_URL_VARIABLE)
    # Where nothing is set up, one error names both. A base URL of "" says that text alone is meant.
    if key is None and base is None and text_base is None and base_url != "":
        raise InvalidAddress(
            "There is no base URL and no API key.",
            Remedy(
                kind=RemedyKind.GIVE,
                option="base_url and api_key",
                variable=f"{BASE_URL_VARIABLE} and {KEY_VARIABLE}",
            ),
            TEXT_ALONE,
            NOTHING_SENT,
        )
    service = Service(
        base_url=base,
        text_base_url=text_base,
        allow_plain_http=allow_plain_http,
        allow_insecure_downloads=allow_insecure_downloads,
    )
    if key is None:
        give = Remedy(kind=RemedyKind.GIVE, option="api_key", variable=KEY_VARIABLE)
        raise LocalError("There is no API key.", give, argument="api_key")
    base_url = service.base_url
    if base_url is not None and base_url.startswith("http:") and not service.is_local:
        warnings.warn(
            f"The API key travels in clear text to {base_url}.",
            PlainHttpWarning,
            stacklevel=3,
        )
    try:
        return service, Credentials(key, service, account=account)
    except LocalError as error:
        # The frames that handled the key have it in their variables.
        raise error.with_traceback(None) from None


def read_books(
    budget: Budget | None,
    store: Store | str | os.PathLike[str] | None,
    credentials: Credentials,
    *,
    prices: PriceList | None,
    dedupe: Dedupe,
    tags: Tags | None = None,
    always: bool = False,
) -> Books | None:
    """Return what paid requests are booked with, or None if nobody asks for it.

    Args:
        budget: What must not be exceeded, besides the environment's limits.
        store: The store or its place, or None for the default one.
        credentials: The client's.
        prices: What requests cost, or None for the prices in the file `MUYBRIDGE_PRICES`, if set.
        dedupe: Whether identical requests join, and whether also across tags.
        tags: The tags of all purchases, besides those of the variable `MUYBRIDGE_TAGS`.
        always: Whether something asks for it that is not among these.

    Raises:
        LocalError: Some tags cannot be used, or a limit of the environment cannot be read.
        InvalidInput: The price file is not valid.
        OSError: The price file cannot be read.
        TypeError: The budget is something else.
    """
    check_dedupe(dedupe)
    check_prices(prices)
    check_spending(budget, store)
    tags = all_tags(tags)
    wanted = any(name.startswith(STORE_VARIABLES) for name in os.environ)
    if budget is None and store is None and not (wanted or dedupe or tags or always):
        return None
    from muybridge.purchases.booking import Books
    from muybridge.purchases.environment import budget_of_environment

    prices_file = os.environ.get(PRICES_VARIABLE)
    if prices is None and prices_file:
        from muybridge.files.prices import load_prices

        prices = load_prices(prices_file)
    budgets = [one for one in (budget, budget_of_environment()) if one is not None]
    return Books(store, budgets, credentials, prices=prices, dedupe=dedupe, tags=tags)


def check_dedupe(dedupe: object) -> None:
    """Check whether identical requests are to join.

    Raises:
        TypeError: It says something else.
    """
    if isinstance(dedupe, bool):
        return
    from muybridge_protocol.purchases.names import ACROSS_TAGS

    if dedupe != ACROSS_TAGS:
        check_type("dedupe", dedupe, bool, f"True, False or {ACROSS_TAGS!r}")


def all_tags(tags: Tags | None) -> Tags:
    """Return *tags* and those of the environment, which they may replace.

    Raises:
        LocalError: Some cannot be used.
        TypeError: They are no mapping.
    """
    setting = os.environ.get(TAGS_VARIABLE)
    if tags is None and not setting:
        return NO_TAGS
    from muybridge_protocol.purchases import checked_tags, read_tags

    given = checked_tags(tags)
    if not setting:
        return given
    return {**read_tags((one.strip() for one in setting.split(",")), TAGS_VARIABLE), **given}


def check_spending(budget: object, store: object) -> None:
    """Check the types of a budget and of a store, or its place.

    Raises:
        TypeError: One of them is something else.
    """
    if budget is not None:
        from muybridge_protocol.purchases import Budget

        check_type("budget", budget, Budget, "a Budget", "Budget(creates=3)")
    if store is not None and not isinstance(store, str | os.PathLike):
        from muybridge.purchases import Store

        check_type("store", store, Store, "a path, 'postgresql://...' or a Store")


def check_prices(prices: object) -> None:
    """Check the type of prices.

    Raises:
        TypeError: They are something else.
    """
    if prices is not None:
        from muybridge_protocol.estimates import PriceList

        check_type("prices", prices, PriceList, "a PriceList", "muybridge.load_prices(path)")


def check_part(name: str, part: object, methods: Sequence[str], use: str) -> None:
    """Check that a part of a client has the *methods* that the client calls.

    Raises:
        TypeError: It does not, or is a class.
    """
    if isinstance(part, type) or not all(callable(getattr(part, one, None)) for one in methods):
        check_type(name, part, (), use)


def find_address(given: str | None, variable: str) -> str | None:
    """Return the address *given*, or else that of *variable*. An empty address counts as None."""
    return (os.environ.get(variable) if given is None else given) or None


def hidden(api_key: str | None) -> HiddenKey | None:
    """Return *api_key* as one that tracebacks with variables do not show."""
    if api_key is None or isinstance(api_key, HiddenKey):
        return api_key
    if not isinstance(api_key, str):  # pyright: ignore[reportUnnecessaryIsInstance]  it would be sent
        raise TypeError("api_key must be a string. The value is not shown.")
    return HiddenKey(api_key)
