"""Reads a price file."""

from __future__ import annotations

import os
from pathlib import Path

from muybridge.files.encodings import encoding_of
from muybridge_protocol.arguments import check_type
from muybridge_protocol.errors import InputProblem, InvalidInput
from muybridge_protocol.estimates import PriceList, parse_prices
from muybridge_protocol.estimates.price_file import LARGEST_FILE, PRICE_FILE

_BYTES_OF_A_CHARACTER = 4
"""Most bytes that UTF-8 takes for a character."""


def load_prices(path: str | os.PathLike[str]) -> PriceList:
    """Return the prices of the price file at *path*.

    Args:
        path: A file in TOML.

    Raises:
        InvalidInput: The file is not valid; all problems are listed.
        OSError: The file cannot be read.
    """
    check_type("path", path, (str, os.PathLike), "the path of a price file")
    with Path(path).open("rb") as file:
        data = file.read(LARGEST_FILE * _BYTES_OF_A_CHARACTER + 1)
    try:
        text = data.decode(encoding_of(data))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = InputProblem(f"line {line}", "it is not UTF-8")
        raise InvalidInput(PRICE_FILE, [problem]) from None
    return parse_prices(text)
