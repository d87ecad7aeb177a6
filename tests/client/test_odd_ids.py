"""Whatever id the service gives, its task is asked for, saved, and found again."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from muybridge_protocol.observations import AnyEvent, RequestSent
from muybridge_protocol.records.tasks import Result, Task, as_task, is_bare

from .drivers import MakeClient
from .in_process import PNG, World
from .requests_made import image

IDS = [
    *("a/b-{}", "../{}", "/{}", "{}/..", "a|b,{}", "a!({})", "a:b@{}", "a?b=c#{}", "%2e%2e{}"),
    *("a\\b{}", "task {}", "'; rm -rf {}", "$(id){}", "日本-{}", "\N{HORSE}{}", "\u202e{}"),
    *("-x{}", "https://cdn.example/{}", '{"a":{}}', "x" * 1000 + "{}"),
]


@pytest.mark.parametrize("ids", IDS, ids=ascii)
def test_a_whole_life(make_client: MakeClient, tmp_path: Path, ids: str) -> None:
    """A task with any id is created once, waited for and saved, and each id has its own file."""
    world, told = World(ids=ids), list[AnyEvent]()
    client = make_client(world, on_event=told.append)
    tasks = [client.create(image()), client.create(image())]
    assert len(world.posts) == 2
    paths: set[Path] = set()
    for number, task in enumerate(tasks, start=1):
        assert task.id == ids.replace("{}", str(number))
        result = client.wait(task)
        assert world.queries[-1].path == f"/v1/result/{quote(task.id, safe='')}"
        assert result.id == task.id
        assert client.get(task.to_token()) == result
        path = client.download(result, tmp_path)
        assert path.parent == tmp_path
        assert path.read_bytes() == PNG
        paths.add(path)
    assert len(paths) == 2
    assert set(tmp_path.iterdir()) == paths
    queries = [event for event in told if isinstance(event, RequestSent) and event.method == "GET"]
    assert {event.template for event in queries} <= {"/v1/result/{id}", None}
    assert sum(event.template is not None for event in queries) == len(world.queries)


@pytest.mark.parametrize("ids", IDS, ids=ascii)
def test_a_bare_id(make_client: MakeClient, ids: str) -> None:
    """A bare id stands for its task, unless it looks like a token or a link."""
    client = make_client(World(ids=ids))
    task = client.create(image())
    if is_bare(task.id):
        assert as_task(task.id) == Task(id=task.id)
        assert client.wait(task.id).id == task.id
    assert as_task(task.to_token()).id == task.id


@pytest.mark.parametrize("ids", ["a/b-{}", "日本-{}", '{"a":{}}'])
def test_what_an_interruption_says(make_client: MakeClient, ids: str) -> None:
    """Where a call is left after the creation, what it notes finds the task again."""

    class Left(Exception):
        pass

    def leave(_: Result) -> None:
        raise Left

    world = World(ids=ids)
    client = make_client(world)
    with pytest.raises(Left) as caught:
        client.run(image(), on_update=leave)
    (note,) = caught.value.__notes__
    name = note.partition("wait(")[2].rpartition(").")[0]
    assert as_task(eval(name)).id == ids.replace("{}", "1")  # noqa: S307  what the note quotes
