"""A Celery application whose one task takes a turn at a batch in a database.

    celery -A muybridge.workers.celery_app worker
    take_turn.delay("horses")

A message that is lost costs time, and one that is repeated costs a look at the store: items are
leased there, and each create is armed there, whatever the queue does. A turn ends after ten
minutes, so that a worker can be stopped and other batches get their turn. As long as workers can do
something for the batch, the task queues the next turn: with a pause if something was away.

The key, the store's address and the place for results are read from the worker's environment
when a turn begins. They are in no message, no result and no setting of Celery's, which its remote
control shows to anybody.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Final

from muybridge.batch import SharedBatch, work
from muybridge.batch.results.places.port import PlaceUnusable
from muybridge.client import Client
from muybridge.extras import missing_extra
from muybridge.purchases.errors import StoreUnusable
from muybridge.workers.environment import WorkerSettings
from muybridge.workers.messages import TASK, check_batch, check_message
from muybridge.workers.turns import PAUSE, TurnLog, delay_after
from muybridge_protocol.errors import MuybridgeError

try:
    # It has no types.
    _celery: Any = import_module("celery")
    _exceptions: Any = import_module("celery.exceptions")
    _signals: Any = import_module("celery.signals")
except ImportError as _missing:
    raise missing_extra(__name__, "celery", "celery") from _missing

QUEUE: Final = "muybridge"
_LOG: Final = logging.getLogger("muybridge.batch")

app: Any = _celery.Celery("muybridge")
app.conf.update(
    accept_content=["json"],
    task_serializer="json",
    result_serializer="json",
    result_accept_content=["json"],
    task_ignore_result=True,
    task_default_queue=QUEUE,
    # A message is acknowledged when its turn has ended, and another worker gets it otherwise.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


def careful(task: Any, application: Any, consumer: Any) -> Any:
    """Return what takes a message to *task*: Celery's own way, behind a check."""
    take: Any = import_module("celery.worker.strategy").default(task, application, consumer)

    def receive(message: Any, *rest: Any, **more: Any) -> Any:
        try:
            message.headers = check_message(
                message.headers,
                message.body,
                str(message.content_type),
                str(message.content_encoding),
                datetime.now(UTC),
            )
        except ValueError as refused:
            raise _exceptions.InvalidTaskError(f"the message is refused: {refused}") from None
        return take(message, *rest, **more)

    return receive


# Before the first task is made: those that Celery brings along take other tasks' names.
app.Task.Strategy = f"{__name__}:careful"


def _take_turn(self: Any, batch: str) -> None:
    """Take a turn at a batch, and queue the next one if workers can still do something.

    Args:
        self: The task.
        batch: The name of the batch.
    """
    log = TurnLog(check_batch(batch))
    try:
        delay = _work(batch, log)
        if delay is not None:
            # A retry of this message would count towards Celery's limit.
            self.apply_async((batch,), countdown=delay)
    except Exception as error:
        log.stopped(error)
        raise


def _work(batch: str, log: TurnLog) -> int | None:
    """Work on a batch, and return the seconds until the next turn, or None if there is none."""
    settings = WorkerSettings.read(os.environ)
    ends_at = time.monotonic() + settings.seconds
    try:
        with Client() as client:
            report = work(
                client,
                SharedBatch(settings.store, batch),
                settings.out,
                creates=settings.creates,
                concurrency=settings.concurrency,
                on_event=log.event,
                spool=settings.spool,
                seconds=settings.seconds,
            )
    except (StoreUnusable, PlaceUnusable) as error:
        if isinstance(error, StoreUnusable) and not error.away:
            raise
        log.away(error, PAUSE)
        return PAUSE
    delay = delay_after(report, timed_out=time.monotonic() >= ends_at)
    log.end(report, delay)
    return delay


take_turn: Any = app.task(_take_turn, name=TASK, bind=True)
"""The task: `take_turn.delay(BATCH)`."""


@_signals.worker_init.connect  # type: ignore[untyped-decorator]
def check_environment(**_: object) -> None:
    """Refuse to start a worker that could not work, and say what it lacks."""
    try:
        WorkerSettings.read(os.environ).check()
        Client().close()
    except (MuybridgeError, ValueError) as error:
        raise SystemExit(f"muybridge: {error}") from None


@_signals.worker_init.connect  # type: ignore[untyped-decorator]
def refuse_compression(**_: object) -> None:
    """Refuse compressed messages: they would be decompressed, to any size, before they are checked.

    Kombu knows no other way. This process only receives messages, so nothing else decompresses.
    """
    compression: Any = import_module("kombu.compression")
    for name in compression.encoders():
        encoder, _name = compression.get_encoder(name)
        compression.register(encoder, _refuse, name)


@_signals.worker_init.connect  # type: ignore[untyped-decorator]
def refuse_unreadable(**_: object) -> None:
    """Drop what Kombu cannot read as a message of a queue in Redis or in files.

    It would end the worker, and the next one, long before a message is checked.
    """
    virtual: Any = import_module("kombu.transport.virtual.base")
    deliver: Any = virtual.Transport._deliver  # noqa: SLF001  it has no other place for this

    def careful_deliver(transport: Any, raw: Any, queue: Any) -> None:
        try:
            message: Any = virtual.Message(raw, channel=transport.channels[0])
            # What Kombu itself takes from a message, before the check of its task comes to it.
            needed = (
                hash(message.delivery_tag),
                message.delivery_info["exchange"],
                message.delivery_info["routing_key"],
                {**message.headers},
            )
        except Exception:  # noqa: BLE001  it may be anything that somebody has written there
            needed = None
        if needed is None:
            _LOG.error("A message is refused: it is not one of Celery's.")
        else:
            deliver(transport, raw, queue)

    virtual.Transport._deliver = careful_deliver  # noqa: SLF001  the same
    for name in ("redis", "filesystem"):
        with suppress(ImportError):
            module: Any = import_module(f"kombu.transport.{name}")
            module.loads = _read_or_none


def _read_or_none(text: Any) -> Any:
    """Return what *text* is in Kombu's JSON, or None, which is no message."""
    loads: Any = import_module("kombu.utils.json").loads
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None


def _refuse(_: object) -> bytes:
    raise ValueError("it is compressed")
