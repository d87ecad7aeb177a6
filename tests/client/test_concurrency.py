"""`concurrency`: how many tasks are in progress at once, in `run_all` and in batches alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muybridge
from muybridge import Task, batch
from muybridge.batch import Stage
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.records.json import read_object
from muybridge_protocol.records.tasks import Status

from .drivers import AnyClient, MakeClient
from .event_loops import BlockingAsyncClient
from .fleets import run_all
from .in_process import Reply, World
from .requests_made import image, small

COUNT = 5
OVER = {Status.COMPLETED.value, Status.FAILED.value}


class CountingWorld(World):
    """Counts the tasks in progress: those that were created, and have not been seen to end."""

    def __init__(self) -> None:
        super().__init__(latency=0.1)
        self.in_progress: set[str] = set()
        self.most = 0

    def exchange(self, request: HttpRequest, authorization: str | None) -> Reply:
        reply = self.answer(request, authorization)
        if request.paid:
            self.in_progress.add(read_object(reply.body)["id"])
            self.most = max(self.most, len(self.in_progress))
        elif "/v1/result/" in request.url:
            record = read_object(reply.body)
            if record["status"] in OVER:
                self.in_progress.discard(record["id"])
        return reply


def in_batch(client: AnyClient, work: list[MediaRequest], out: Path, **options: Any) -> int:
    if isinstance(client, BlockingAsyncClient):
        return client.run_batch(work, out, **options).counts[Stage.DOWNLOADED]
    assert isinstance(client, muybridge.Client)
    return batch.run(client, work, out, **options).counts[Stage.DOWNLOADED]


def in_run_all(client: AnyClient, work: list[MediaRequest], _: Path, **options: Any) -> int:
    return sum(outcome.result is not None for outcome in run_all(client, work, **options))


WAYS = {"run_all": in_run_all, "batch": in_batch}


@pytest.mark.parametrize("concurrency", [2, COUNT + 1])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_so_many_tasks_are_in_progress_at_once(
    make_client: MakeClient, tmp_path: Path, way: Callable[..., int], concurrency: int
) -> None:
    """That many tasks are in progress at once, and never more, until all have ended."""
    world = CountingWorld()
    work = [image(f"horse {number}") for number in range(COUNT)]
    assert way(make_client(world), work, tmp_path, concurrency=concurrency) == COUNT
    assert len(world.posts) == COUNT
    assert world.most == min(concurrency, COUNT)
    assert not world.in_progress


def test_a_family_has_its_own_limit(make_client: MakeClient) -> None:
    """`per_family` limits the tasks in progress of one family, and leaves the others alone."""
    world = CountingWorld()
    run_all(make_client(world), [image()] * 6, concurrency=5, per_family={"imga": 2, "imgb": 2})
    assert world.most == 2


def test_tasks_to_wait_for_count(make_client: MakeClient) -> None:
    """Tasks of earlier runs are all awaited at once; a new one begins when fewer are left."""
    world = CountingWorld()
    client = make_client(world)
    old: list[Task] = [client.create(small()["imga"]) for _ in range(4)]
    outcomes = run_all(client, [image(), *old], concurrency=2)
    assert {outcome.key for outcome in outcomes if outcome.result} == set(range(5))
    assert world.most == 4
    posts = [seen.at for seen in world.posts]
    assert sum(seen.at < posts[-1] for seen in world.queries) >= 3
