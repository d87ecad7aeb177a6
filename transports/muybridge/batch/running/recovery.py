"""Recover what dead processes leave behind: each item returns to a stage that is safe to resume.

What they have bought is in the store, and the store knows who is dead. What they have heard, and
the store has not, is in their side files, if they were on this machine.
"""

from __future__ import annotations

import time
from pathlib import Path

from muybridge.batch.disk_errors import older_than, unusable
from muybridge.batch.items.batch import Batch
from muybridge.batch.items.entry import Entry
from muybridge.batch.items.requests import request_of
from muybridge.batch.running.side_files import UNFINISHED, DeadRunner, KeptResponse, known_runners
from muybridge.files.durable import sync_folders
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.operations import Create
from muybridge_protocol.purchases import UNKNOWN_END, Outcome, Purchase, State, judged
from muybridge_protocol.records.candidates import find_id
from muybridge_protocol.service import Service

_ANY = Service(base_url="https://service.invalid")
"""A service, for a response whose meaning does not depend on it."""


def recover(batch: Batch, place: Path, *, but: str = "") -> list[Entry]:
    """Let the items of dead processes be free, and return those that are ambiguous because of it.

    What is in the side files of this machine is recorded first.

    Args:
        batch: The batch.
        place: The folder of the files of this machine's runners.
        but: The runner that recovers them.

    Raises:
        StoreUnusable: The store lacks what runners on this machine have recorded, or cannot be
            used, or what they have left cannot be read or put away.
    """
    read_side_files(batch, place, but=but)
    return batch.recover()


def read_side_files(batch: Batch, place: Path, *, but: str = "") -> None:
    """Record the responses in the side files of dead runners on this machine.

    Raises:
        StoreUnusable: The store lacks what these runners have recorded, it cannot be used, or a
            file cannot be read or put away.
    """
    for name in sorted({*known_runners(place)} - {but}):
        dead = DeadRunner.find(place, name)
        if dead is None:
            continue
        with dead:
            # Only to see that it is there: an older copy of the store lacks it.
            if dead.armed is not None:
                _find(batch, dead.armed, dead.path)
            for path, response in dead.responses():
                _record(batch, _find(batch, response.key, path), response)
            # Last: what it has armed and not concluded is ambiguous then, and its responses say
            # more.
            if dead.owner is not None:
                batch.store.bury(dead.owner)
        # Its file must not outlast what the store knows of it, not even in a power cut.
        with unusable(place, "Nothing was sent. Make room on the disk, then run again."):
            sync_folders(place)


def _find(batch: Batch, key: str, path: Path) -> Purchase:
    """Return the purchase *key*, which the file at *path* is about.

    Raises:
        StoreUnusable: There is none, so the store is an older copy, which would pay again.
    """
    try:
        return batch.store.find(key)
    except LookupError:
        raise older_than(path, batch.store.place) from None


def _record(batch: Batch, purchase: Purchase, response: KeptResponse) -> None:
    """Record the outcome of a response, which nobody may have read before."""
    batch.store.conclude(purchase.key, _outcome(batch, purchase, response))


def _outcome(batch: Batch, purchase: Purchase, response: KeptResponse) -> Outcome:
    if response.status == UNFINISHED or purchase.number is None:
        return Outcome(
            state=State.AMBIGUOUS,
            candidate=find_id(response.body),
            reason=UNKNOWN_END.reason,
            response=response.body,
        )
    try:
        request = request_of(batch.item(purchase.number))
        create = Create.start(request, _ANY, now=0.0, wall=time.time(), seed=0)  # never waits
        settled = create.receive(HttpResponse(response.status, (), response.body), 0.0).settled
        return judged(None if settled is None else settled.outcome)
    except Exception as error:  # noqa: BLE001  it concerns this item only
        return unreadable(response.status, response.body, error)


def unreadable(status: int | None, body: bytes, error: Exception) -> Outcome:
    """Return the outcome of a response that cannot be read because of *error*."""
    return Outcome(
        state=State.AMBIGUOUS,
        candidate=find_id(body),
        reason=f"its response was kept, but cannot be recorded ({type(error).__name__}: {error})",
        response_status=status,
        response=body,
    )
