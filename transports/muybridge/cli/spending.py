"""What a command may spend, and what requests cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs
import click

from muybridge.cli.connection import option_of
from muybridge_protocol.records.convert import attributes

if TYPE_CHECKING:
    from muybridge.purchases import Budget, Store
    from muybridge_protocol.estimates import PriceList
    from muybridge_protocol.purchases import Tags

LIMIT_NAMES: Final = (
    "max_creates", "max_pictures", "max_seconds", "max_calls", "max_cost", "per",
)  # fmt: skip
"""The options of the budget."""


@attrs.frozen(kw_only=True)
class Spending:
    """What a command may spend, and what requests cost.

    Args:
        prices: Where the user's prices are, or None if none are given.
        store: Where paid requests are recorded, or None for the library's choice.
        max_creates: Most creates, or None.
        max_pictures: Most pictures, or None.
        max_seconds: Most seconds of video, or None.
        max_calls: Most text requests, or None.
        max_cost: Most money, or None.
        per: The period that these limits are for, or None for everything.
        tags: The tags of requests, as they were given.
    """

    prices: str | None = None
    store: str | None = None
    max_creates: str | None = None
    max_pictures: str | None = None
    max_seconds: str | None = None
    max_calls: str | None = None
    max_cost: str | None = None
    per: str | None = None
    tags: tuple[str, ...] = ()

    def read_prices(self) -> PriceList | None:
        """Return the prices of the price file, or None if none was given.

        Raises:
            InvalidInput: The file is not valid.
            click.UsageError: The file cannot be read.
        """
        if self.prices is None:
            return None
        from muybridge.files.prices import load_prices

        try:
            return load_prices(self.prices)
        except OSError as error:
            raise click.UsageError(f"--prices {self.prices}: {error.strerror}") from None

    def read_budget(self) -> Budget | None:
        """Return the budget of the options, or None if none was given.

        Raises:
            click.UsageError: A limit is not a number of at least 0.
        """
        given: dict[str, Any] = attributes(self, *LIMIT_NAMES)
        if not any(given.values()):
            return None
        from muybridge.purchases import Budget

        limits = {name.removeprefix("max_"): limit for name, limit in given.items()}
        for name in given:
            limit = name.removeprefix("max_")
            try:
                Budget(**{limit: limits[limit]})
            except ValueError as error:
                raise click.UsageError(f"{option_of(name)}: {error}. Nothing was sent.") from None
        return Budget(**limits)

    def read_tags(self) -> Tags | None:
        """Return the tags of the options, or None if none was given.

        Raises:
            LocalError: Some cannot be used.
        """
        if not self.tags:
            return None
        from muybridge_protocol.purchases import read_tags

        return read_tags(self.tags, "--tag")

    def open_store(self) -> Store:
        """Return the store of the options and the environment."""
        from muybridge.purchases import open_store

        return open_store(self.store)
