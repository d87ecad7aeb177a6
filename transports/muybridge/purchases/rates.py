"""`RequestRate`: one rate for everybody who sends requests for an account.

Permits are reserved in time, one every `1 / rate` seconds, like seats on a conveyor belt. Who asks
gets the next seats that nobody has, which may be a moment ahead, and uses each at its time. So
requests are evenly spaced however many workers there are, nobody polls the store for permits, and
a rate that everybody wants more of is used in full.

A portion is what the rate yields in a second, shared by the workers: each of them writes to the
store about once a second, and no worker waits long for the portions of the others. If the service
asks one of them to slow down, nobody gets a seat before the end of the pause. Everybody learns of
it with the next portion.

The clock that all share may be put back, for as long as it likes. Nobody then waits for longer than
was left when the rate was last written.
"""

from __future__ import annotations

import math
from typing import Final

import attrs

from muybridge.purchases.port import Rows
from muybridge_protocol.fleet.allowance import PORTION
from muybridge_protocol.records.convert import attributes


@attrs.frozen(kw_only=True)
class Permits:
    """Permits to send requests.

    Args:
        count: How many there are.
        after: Seconds until the first may be used.
        interval: Seconds between two of them.
    """

    count: int
    after: float = 0.0
    interval: float = 0.0


@attrs.frozen(kw_only=True)
class RequestRate:
    """How many requests may be sent, and how many permits are given away.

    Args:
        rate: Requests a second, or None for any number.
        next_at: When the next permit may be used that nobody has, by a clock that all share.
        paused_until: Until when the service has asked to pause, by that clock.
        written_at: When this was true, by that clock.
    """

    rate: float | None = None
    next_at: float = 0.0
    paused_until: float = 0.0
    written_at: float = 0.0

    def acquire(self, wanted: int, *, sharers: int, now: float) -> tuple[RequestRate, Permits]:
        """Return the rate afterwards, and the permits for one of its users.

        Args:
            wanted: How many requests it wants to send.
            sharers: How many users there are.
            now: Seconds by the clock of `next_at`.
        """
        known = self._at(now)
        start = max(now, known.paused_until)
        if self.rate is None:
            return known, Permits(count=wanted, after=start - now)
        start = max(start, known.next_at)
        count = max(1, min(wanted, int(self.rate * PORTION / max(1, sharers))))
        interval = 1 / self.rate
        after = attrs.evolve(known, next_at=start + count * interval)
        return after, Permits(count=count, after=start - now, interval=interval)

    def throttled(self, seconds: float, *, now: float) -> RequestRate:
        """Return the rate after the service asked to pause for *seconds*."""
        known = self._at(now)
        return attrs.evolve(known, paused_until=max(known.paused_until, now + seconds))

    def limited(self, rate: float | None) -> RequestRate:
        """Return it with *rate*, which does not wait for the seats of another one."""
        return attrs.evolve(self, rate=rate, next_at=self.next_at if rate == self.rate else 0.0)

    def _at(self, now: float) -> RequestRate:
        """Return it for *now*, which is before `written_at` if the clock was put back."""
        back = max(0.0, self.written_at - now)
        return attrs.evolve(
            self,
            next_at=self.next_at - back,
            paused_until=self.paused_until - back,
            written_at=now,
        )


def check_rate(rate: float | None) -> None:
    """Check a number of requests a second.

    Raises:
        ValueError: It is not above 0.
    """
    if rate is not None and not rate > 0:
        raise ValueError(f"rate must be a number of requests a second above 0 (got {rate!r})")


def stored_rate(rate: float) -> float | None:
    """Return *rate* as a store keeps it: infinity is no limit."""
    return None if math.isinf(rate) else rate


_FACTS: Final = tuple(field.name for field in attrs.fields(RequestRate))
_SHARERS: Final = {
    True: "SELECT count(*) FROM muybridge_owners WHERE buried_at IS NULL AND lease_until > {now}",
    False: "SELECT count(DISTINCT owner) FROM muybridge_item WHERE owner IS NOT NULL",
}
"""How many workers there are, with leases or without."""


def read_rate(rows: Rows, service: str, lock: str = "") -> RequestRate:
    """Return the rate of a service. One that nobody has limited has none."""
    matches = rows.run(
        f"SELECT {', '.join(_FACTS)} FROM muybridge_rates WHERE service = :service {lock}",
        service=service,
    )
    return RequestRate(**dict(zip(_FACTS, matches[0], strict=True))) if matches else RequestRate()


def lock_rate(rows: Rows, service: str) -> RequestRate:
    """Return the rate of a service, which nobody else changes until the transaction ends."""
    # There has to be a row, or there is nothing to lock.
    first = attributes(RequestRate(), *_FACTS)
    rows.run(
        f"INSERT INTO muybridge_rates (service, {', '.join(first)}) "
        f"VALUES (:service, :{', :'.join(first)}) ON CONFLICT DO NOTHING", service=service, **first,
    )  # fmt: skip
    return read_rate(rows, service, "{for_update}")


def write_rate(rows: Rows, service: str, rate: RequestRate) -> None:
    """Write the rate of a service, which is locked."""
    facts = attributes(rate, *_FACTS)
    rows.run(
        f"UPDATE muybridge_rates SET {', '.join(f'{it} = :{it}' for it in facts)} "
        "WHERE service = :service", service=service, **facts,
    )  # fmt: skip


def sharers_of(rows: Rows, *, leases: bool) -> int:
    """Return how many workers share the rates of a store."""
    return int(rows.run(_SHARERS[leases])[0][0])
