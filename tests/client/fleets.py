"""`run_all` of every driver behind one face."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import muybridge
from muybridge.drivers.fleet_run import Outcome, Work

from .drivers import AnyClient
from .event_loops import BlockingAsyncClient


def run_all(
    client: AnyClient, work: Iterable[Work], *, most: int | None = None, **options: Any
) -> list[Outcome]:
    """Run *work*, and return its outcomes, at most so many: then the run is left.

    Args:
        client: A client of any driver.
        work: What to do.
        most: How many outcomes to take, or None for all.
        options: Those of `run_all`.
    """
    if isinstance(client, BlockingAsyncClient):
        return client.run_all(work, most=most, **options)
    assert isinstance(client, muybridge.Client)
    with client.run_all(work, **options) as outcomes:
        return list(islice(outcomes, most))
