"""What a worker under a job queue reads from its environment, and never from a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

import attrs

from muybridge.batch.worker import CONCURRENCY, CREATES
from muybridge_protocol.errors import LocalError

TURN: Final = 600.0
"""Seconds after which a turn ends, far below the time after which Redis repeats a message."""


class WorkerMisconfigured(LocalError):
    """The environment of a worker lacks a setting, or one is not valid."""


@attrs.frozen(kw_only=True)
class WorkerSettings:
    """The settings of a worker.

    Args:
        journal: The database of the batches: `MUYBRIDGE_JOURNAL`.
        out: Where results go: `MUYBRIDGE_OUT`, or None for where the batch was submitted with.
        spool: The folder for unfinished downloads and responses: `MUYBRIDGE_SPOOL`, or None.
        creates: Most creates under way at once: `MUYBRIDGE_WORKER_CREATES`.
        concurrency: Most tasks in progress at once: `MUYBRIDGE_WORKER_CONCURRENCY`.
        seconds: Seconds that a turn takes at most: `MUYBRIDGE_WORKER_TURN`.
    """

    journal: str = attrs.field(repr=False)
    out: str | None
    spool: str | None
    creates: int
    concurrency: int
    seconds: float

    @classmethod
    def read(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from *environ*.

        Raises:
            WorkerMisconfigured: One is missing or not valid.
        """
        return cls(
            journal=_required(environ, "MUYBRIDGE_JOURNAL", "postgresql://USER@HOST/DATABASE"),
            out=environ.get("MUYBRIDGE_OUT") or None,
            spool=environ.get("MUYBRIDGE_SPOOL") or None,
            creates=int(_number(environ, "MUYBRIDGE_WORKER_CREATES", CREATES)),
            concurrency=int(_number(environ, "MUYBRIDGE_WORKER_CONCURRENCY", CONCURRENCY)),
            seconds=_number(environ, "MUYBRIDGE_WORKER_TURN", TURN),
        )


def _required(environ: Mapping[str, str], name: str, example: str) -> str:
    value = environ.get(name)
    if not value:
        raise WorkerMisconfigured(f"{name} is not set: it is {example}. Nothing was sent.")
    return value


def _number(environ: Mapping[str, str], name: str, default: float) -> float:
    text = environ.get(name)
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 10**6):
        raise WorkerMisconfigured(f"{name} is not a number from 1. Nothing was sent.")
    return float(text)
