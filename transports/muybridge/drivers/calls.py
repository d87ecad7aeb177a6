"""Begin the operations of a client, the same way for every driver."""

from __future__ import annotations

import inspect
import math
import random
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypedDict

import attrs

from muybridge_protocol.errors import MuybridgeWarning
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.operations import Create, Poll
from muybridge_protocol.operations.next_polls import NextPolls
from muybridge_protocol.operations.poll import too_often
from muybridge_protocol.records.tasks import Result, Task, as_task
from muybridge_protocol.service import Service

if TYPE_CHECKING:
    from muybridge_protocol.fleet import Fleet
    from muybridge_protocol.operations import Call, DeleteAsset, Download, Inspection
    from muybridge_protocol.operations.download import Part


class Moment(TypedDict):
    """One moment on both clocks of a driver.

    Attributes:
        now: Seconds on a monotonic clock.
        wall: Unix seconds.
    """

    now: float
    wall: float


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Calls:
    """Begins operations on one service.

    Args:
        service: Where the service is.
        timeout: Seconds that one exchange with the service may take.
        poll_interval: Seconds between result queries, or None for the specification's pace.
        next_polls: When each task may next be polled.

    Raises:
        ValueError: A time is not a number of seconds.
    """

    service: Service
    timeout: float
    poll_interval: float | None
    next_polls: NextPolls = attrs.field(factory=NextPolls)

    def __attrs_post_init__(self) -> None:
        if not is_time(self.timeout):
            raise ValueError(f"timeout must be a positive number of seconds (got {self.timeout!r})")
        pause = self.poll_interval
        if pause is not None and not (isinstance(pause, int | float) and 0 <= pause < math.inf):  # pyright: ignore[reportUnnecessaryIsInstance]  callers are not all typed
            raise ValueError(
                f"poll_interval must be at least 0 seconds (got {self.poll_interval!r})"
            )

    def create(self, request: MediaRequest, *, now: float, wall: float) -> Create:
        """Return the operation that creates a task."""
        return Create.start(
            request, self.service, now=now, wall=wall, seed=_seed(), timeout=self.timeout
        )

    def query(self, task: Task | Result | str, *, now: float, wall: float) -> Poll:
        """Return the operation that queries a result once."""
        return Poll.query(
            self.next_polls.recall(as_task(task), now=now, wall=wall),
            self.service,
            now=now,
            wall=wall,
            seed=_seed(),
            timeout=self.timeout,
            poll_interval=self.poll_interval,
        )

    def wait(
        self,
        task: Task | Result | str,
        *,
        timeout: float | None,
        now: float,
        wall: float,
    ) -> Poll:
        """Return the operation that waits for a task to end.

        Args:
            task: A task, a result, a token or an id.
            timeout: Seconds to wait in all, or None for no limit.
            now: Seconds on the driver's clock.
            wall: Unix seconds at the same moment.

        Raises:
            ValueError: The timeout is not a number.
        """
        check_wait(timeout)
        awaited = self.next_polls.recall(as_task(task), now=now, wall=wall)
        reason = too_often(awaited, self.poll_interval, self.service)
        if reason is not None:
            warn_caller(reason, MuybridgeWarning)
        return Poll.start(
            awaited,
            self.service,
            now=now,
            wall=wall,
            seed=_seed(),
            timeout=self.timeout,
            wait=timeout,
            poll_interval=self.poll_interval,
        )

    def fleet(
        self,
        *,
        now: float,
        wall: float,
        concurrency: int,
        connections: int,
        wait: float | None,
        per_family: int | Mapping[str, int] | None = None,
        shares_rate: bool = False,
    ) -> Fleet[int]:
        """Return a fleet for many creates and waits.

        Args:
            now: Seconds on the driver's clock.
            wall: Unix seconds at the same moment.
            concurrency: Most tasks in progress at once.
            connections: Most exchanges at once.
            wait: Seconds to wait for each task, or None for no limit.
            per_family: Most tasks of one family in progress at once: one number, or by name.
            shares_rate: Whether requests need permits, because others send at the same rate.
        """
        from muybridge_protocol.fleet import Fleet

        return Fleet(
            self.service,
            wall_offset=wall - now,
            seed=_seed(),
            concurrency=concurrency,
            per_family=per_family,
            connections=connections,
            timeout=self.timeout,
            wait=wait,
            poll_interval=self.poll_interval,
            next_polls=self.next_polls,
            shares_rate=shares_rate,
        )

    def delete_asset(self, asset_id: str, *, now: float) -> DeleteAsset:
        """Return the operation that deletes an asset, whose id is checked here."""
        from muybridge_protocol.operations import DeleteAsset

        return DeleteAsset.start(
            asset_id, self.service, now=now, seed=_seed(), timeout=self.timeout
        )

    def call(self, method: str, path: str, json: object, *, now: float) -> Call:
        """Return the operation that calls any endpoint."""
        from muybridge_protocol.operations import Call

        return Call.start(
            method, path, self.service, json=json, now=now, seed=_seed(), timeout=self.timeout
        )

    def download(
        self,
        url: str | None,
        task: Task | None,
        part: Part | None,
        *,
        timeout: float,
        size_limit: int | None,
        now: float,
    ) -> Download:
        """Return the operation that downloads a result.

        Args:
            url: Where it is, or None to query the service first.
            task: Whose result it is, or None if only the link is known.
            part: What an earlier download has saved, or None if nothing is kept of a failed one.
            timeout: Seconds that the download may take.
            size_limit: Most bytes, or None for no limit.
            now: Seconds on the driver's clock.
        """
        from muybridge_protocol.operations import Download

        return Download.start(
            url,
            self.service,
            task=task,
            part=part,
            now=now,
            seed=_seed(),
            timeout=self.timeout,
            deadline=now + timeout,
            size_limit=size_limit,
            keeps_part=part is not None,
        )

    def inspect(self, url: str, *, now: float, deadline: float) -> Inspection:
        """Return the operation that finds out what a URL leads to.

        Args:
            url: A URL of a request.
            now: Seconds on the driver's clock.
            deadline: When to stop, on the same clock.
        """
        from muybridge_protocol.operations import Inspection

        return Inspection.start(url, self.service, now=now, seed=_seed(), deadline=deadline)


def is_time(seconds: object) -> bool:
    """Whether *seconds* is a positive, finite number of seconds."""
    return isinstance(seconds, int | float) and 0 < seconds < math.inf


def check_wait(timeout: object) -> None:
    """Check that *timeout* is seconds to wait for a task, or None for no limit.

    A negative number is the rest of a time that is up.

    Raises:
        ValueError: It is neither.
    """
    if timeout is not None and not (isinstance(timeout, int | float) and not math.isnan(timeout)):
        raise ValueError(
            f"timeout must be a number of seconds, or None for no limit (got {timeout!r})"
        )


def check_wait_of_create(timeout: object) -> None:
    """Check *timeout* before creating the task to wait for.

    A mistake must not surface once the task has been paid for.

    Raises:
        ValueError: It is neither None nor at least 0 seconds.
    """
    check_wait(timeout)
    if isinstance(timeout, int | float) and timeout < 0:
        raise ValueError(f"timeout must not be negative (got {timeout!r}). Nothing was sent.")


def check_entered(word: str, *, entered: bool) -> None:
    """Check that a run is iterated over inside its context, which always ends it.

    Raises:
        RuntimeError: It is not. Nothing was sent.
    """
    if not entered:
        raise RuntimeError(
            "run_all has not been entered, and nothing was sent. Write "
            f"`{word} client.run_all(...) as outcomes:` and iterate over `outcomes` inside."
        )


def link_of(source: Result | Task | str) -> tuple[str | None, Task | None]:
    """Return the link and the task that a download's source refers to.

    Raises:
        TypeError: It is something else.
    """
    if isinstance(source, str) and "://" in source and not source.lstrip().startswith("{"):
        return source, None
    try:
        task = as_task(source)
    except TypeError:
        kind, instead = type(source).__name__, _instead_of(source)
        raise TypeError(
            f"a download needs a result, a task, an id, a token or a URL, not {kind}. {instead} "
            "Nothing was sent."
        ) from None
    return (source.url if isinstance(source, Result) else None), task


def _instead_of(source: object) -> str:
    """Return what to write instead of a download of *source*, as a sentence."""
    if isinstance(source, bytes | bytearray | memoryview):
        return "The bytes are here already: write pathlib.Path(path).write_bytes(data)."
    if isinstance(source, Mapping):
        return 'Give the id in the record: write client.download(record["id"], path).'
    if isinstance(source, MediaRequest):
        return "Run the request first: write client.download(client.run(request), path)."
    if isinstance(getattr(source, "result", None), Result):
        return "Give its result: write client.download(outcome.result, path)."
    if inspect.isawaitable(source):
        return "Await it first: write await client.download(await client.run(request), path)."
    if type(source).__module__.startswith("PIL."):
        return "The picture is here already: write image.save(path)."
    return "Give the result first, and then the path: write client.download(result, path)."


def warn_caller(message: str, kind: type[Warning]) -> None:
    """Warn, and point at the first caller outside these packages."""
    ours = ("muybridge.", "muybridge_protocol.")
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith(ours):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)


def _seed() -> int:
    return random.getrandbits(32)
