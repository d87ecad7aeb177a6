"""Reading a price file: TOML with a currency and a list of prices.

    currency = "USD"

    prices = [
        {model = "imgb-2", tier = "low", per_picture = 0.011},
        {model = "vidg_video3", per_second = 0.05},
        {family = "vidm", per_call = 0.40},
        {family = "vidsb", unlisted_model = "vidsb_3_0", per_second = 0.12},
        {model = "textg-2.5-pro", per_1000_tokens = 0.004},
        {model = "textg-3.1-pro-preview", per_1000_input_tokens = 1, per_1000_output_tokens = 3},
    ]

Each line names what it is a price for and then the price, whose key is its unit, so that no amount
is without one. A price without a tier holds for every tier of the model, one without a model for
every model of the family. Amounts are read as decimal numbers, never as floats.

As with requests, every problem is reported at once, each with its place: a mistake in a price is
a mistake in every estimate.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Final, cast

from muybridge_protocol.estimates.price_entry import EXAMPLE, did_you_mean, read_price
from muybridge_protocol.estimates.price_list import PriceList
from muybridge_protocol.estimates.prices import Key, Price
from muybridge_protocol.local_errors import InvalidInput
from muybridge_protocol.problems import InputProblem
from muybridge_protocol.rules.values import shown

LARGEST_FILE: Final = 256 * 1024
"""Most characters of a price file."""
LONGEST_LINE: Final = 1_000
"""Most characters of a line: a key of many parts takes the reader the square of its length."""
_LONGEST_CURRENCY: Final = 16
PRICE_FILE: Final = "the price file"
"""What messages call it."""

_CURRENCY: Final = "currency"
_PRICES: Final = "prices"
_KEYS: Final = (_CURRENCY, _PRICES)


def parse_prices(text: str) -> PriceList:
    """Return the prices of a price file.

    Args:
        text: The content of the file, which is TOML.

    Raises:
        InvalidInput: The file is not valid; all problems are listed.
    """
    document = _read(text)
    problems = [
        InputProblem("", f"{shown(name)} is not known here; {did_you_mean(name, _KEYS)}")
        for name in document
        if name not in _KEYS
    ]
    currency = document.get(_CURRENCY)
    problems += [InputProblem("", problem) for problem in _wrong_currency(currency)]
    prices: list[Price] = []
    places: dict[Key, str] = {}
    listed = document.get(_PRICES)
    if not isinstance(listed, list):
        missing = "there are no prices" if listed is None else "prices is not a list"
        problems.append(InputProblem("", f"{missing}; write prices = [{EXAMPLE}, ...]"))
        listed = []
    for number, entry in enumerate(cast("list[object]", listed), start=1):
        where = _place(number, entry)
        price = read_price(entry)
        if not isinstance(price, Price):
            problems += [InputProblem(where, problem) for problem in price]
            continue
        if price.key in places:
            problem = f"{places[price.key]} is for the same; give only one"
            problems.append(InputProblem(where, problem))
            continue
        places[price.key] = where
        prices.append(price)
    if problems:
        raise InvalidInput(PRICE_FILE, problems)
    return PriceList(str(currency), tuple(prices))


def _read(text: str) -> Mapping[str, object]:
    if len(text) > LARGEST_FILE:
        reason = f"it has more than {LARGEST_FILE:,} characters"
        raise InvalidInput(PRICE_FILE, [InputProblem("", reason)])
    reason = f"it has more than {LONGEST_LINE:,} characters"
    long = [
        InputProblem(f"line {number}", reason)
        for number, line in enumerate(text.split("\n"), start=1)
        if len(line) > LONGEST_LINE
    ]
    if long:
        raise InvalidInput(PRICE_FILE, long)
    try:
        # Editors on Windows begin a file with a byte order mark.
        return tomllib.loads(text.removeprefix("\ufeff"), parse_float=_decimal)
    except RecursionError:
        reason = "it is nested too deeply"
    except ValueError as error:  # what tomllib raises is one
        reason = f"it is not TOML: {error}"
    raise InvalidInput(PRICE_FILE, [InputProblem("", reason)])


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # of an exponent beyond all bounds
        return Decimal("Infinity")


def _wrong_currency(currency: object) -> Iterator[str]:
    if currency is None:
        yield 'there is no currency; write currency = "USD", or another'
    elif not isinstance(currency, str) or not currency.strip():
        yield f'currency: {shown(currency)} is not a name; write currency = "USD", or another'
    elif len(currency) > _LONGEST_CURRENCY or not currency.isprintable():
        yield f"currency: use at most {_LONGEST_CURRENCY} characters that can be printed"


def _place(number: int, entry: object) -> str:
    names = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
    model = names.get("model", names.get("unlisted_model", names.get("family")))
    called = [name for name in (model, names.get("tier")) if isinstance(name, str)]
    return f"price {number} ({', '.join(called)})" if called else f"price {number}"
