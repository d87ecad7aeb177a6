"""The books of the billing server against the store of a batch in a database."""

from __future__ import annotations

import json
from collections import Counter

import attrs

from muybridge import batch
from muybridge.batch import SharedBatch, Stage
from muybridge_protocol.purchases import UNKNOWN_END

from .billing import AMBIGUOUS, BillingServer


@attrs.define
class Audit:
    """The books of the service against the store."""

    doubles: list[str] = attrs.field(factory=list[str])
    wrong: list[str] = attrs.field(factory=list[str])
    interrupted: int = 0
    states: Counter[Stage] = attrs.field(factory=Counter[Stage])

    @classmethod
    def of(cls, server: BillingServer, shared: SharedBatch) -> Audit:
        found = cls(doubles=server.doubles)
        report = batch.shared_status(shared)
        strays = " ".join(stray.token or "" for stray in report.strays)
        for entry in report.entries:
            found.states[entry.state] += 1
            prompt: str = json.loads(entry.body)["prompt"]
            paid = server.accepted[prompt]
            known = entry.task_id
            if known is not None and known not in paid:
                found.wrong.append(f"{prompt}: {known} is another item's")
            if paid and entry.state not in (Stage.DOWNLOADED, Stage.AMBIGUOUS):
                found.wrong.append(f"{prompt}: paid for, and {entry.state}")
            if entry.state is Stage.AMBIGUOUS and entry.reason == UNKNOWN_END.reason:
                found.interrupted += 1
            elif entry.state is Stage.AMBIGUOUS and not AMBIGUOUS.intersection(
                server.asked[prompt]
            ):
                found.wrong.append(f"{prompt}: {entry.reason}")
            found.wrong += [f"{prompt}: {task} is a stray" for task in paid if task in strays]
        return found
