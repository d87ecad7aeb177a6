"""Many operations at once: which one is due, whose turn it is, and slowing down together."""

from muybridge_protocol.fleet.actions import Busy, Dispatch, Done, FleetOutcome, Outstanding
from muybridge_protocol.fleet.fleet import CONCURRENCY, Fleet, seed_of

__all__ = [
    "CONCURRENCY",
    "Busy",
    "Dispatch",
    "Done",
    "Fleet",
    "FleetOutcome",
    "Outstanding",
    "seed_of",
]
