"""The main paths of every family, on a virtual clock."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import attrs
import pytest

import muybridge
from muybridge import (
    InvalidAddress,
    MediaRequest,
    ResultExpired,
    ResultIncomplete,
    ServiceUnreachable,
    TaskFailed,
    TaskNotFound,
    Unauthorized,
    WaitTimeout,
)
from muybridge_protocol.emulator import CANCEL, FAILURES, Timing
from muybridge_protocol.events import DownloadProgress, Event, Polled, Submitted, WillRetry
from muybridge_protocol.http import HttpResponse, Phase, Reason, TransportFailure
from muybridge_protocol.records.tasks import Result, Status, Task

from .drivers import MakeClient
from .heard import tasks_alone
from .in_process import MP4, PNG, VirtualClock, World
from .requests_made import FAMILIES, PACE, VIDEO, image, small

LOST = TransportFailure(phase=Phase.HEAD, sent=True, reason=Reason.RESET)

# Spec, "Polling guidance", where a model has an interval of its own.
MODELS: list[tuple[MediaRequest, float, float]] = [
    (muybridge.VidsbRequest(model="vidsb_2_0_fast_pro", prompt="-"), 10, 20),
    (
        muybridge.VidsbRequest(model="vidsb_2_0_fast", prompt="-", reference_videos=[VIDEO]),
        10,
        20,
    ),
    (muybridge.VidsbRequest(model="vidsb_2_0", prompt="-", reference_videos=[VIDEO]), 20, 40),
    (muybridge.VidsaRequest(model="vidsa_1_5_pro_480p"), 10, 20),
    (muybridge.VidsaRequest(model="vidsa_1_5_pro_1080p"), 30, 60),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_run_and_download(
    make_client: MakeClient, world: World, tmp_path: Path, family: str
) -> None:
    """A request of any family ends as a completed result, and its file is saved whole."""
    result = make_client(world).run(small()[family])
    assert result.status is Status.COMPLETED
    assert result.family == family
    path = make_client(world).download(result, tmp_path)
    picture = family in ("imga", "imgb")
    assert path == tmp_path / f"{result.id}{'.png' if picture else '.mp4'}"
    assert path.read_bytes() == (PNG if picture else MP4)
    assert list(tmp_path.iterdir()) == [path]
    assert len(world.posts) == 1


@pytest.mark.parametrize("family", FAMILIES)
def test_create_tells_the_task(make_client: MakeClient, world: World, family: str) -> None:
    """A create returns the record's id, family, model and status after one POST."""
    request = small()[family]
    task = make_client(world).create(request)
    assert task.id == "task-1"
    assert task.family == family
    assert task.status in (Status.QUEUED, Status.PROCESSING)
    assert task.submitted_at == world.clock.wall()
    assert [(seen.method, seen.path) for seen in world.seen] == [
        ("POST", {"imgb": "/v1/image2/images", "imga": "/v1/imga/images"}.get(
            family, f"/v1/{family}/videos"
        )),
    ]  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_poll_times(make_client: MakeClient, family: str) -> None:
    """The first query comes one interval after the creation, and the next ones at the spec's."""
    low, high = PACE[family]
    check_pace(make_client, small("[slow:900]")[family], low, high)


@pytest.mark.parametrize(("request_made", "low", "high"), MODELS, ids=lambda value: str(value)[:40])
def test_poll_times_of_models(
    make_client: MakeClient, request_made: MediaRequest, low: float, high: float
) -> None:
    """A model with an interval of its own in the specification is polled at that one."""
    check_pace(make_client, request_made, low, high)


def check_pace(make_client: MakeClient, request: MediaRequest, low: float, high: float) -> None:
    world = World(timing=Timing(image_processing=900, video_processing=900))
    make_client(world).run(request)
    times = [seen.at for seen in world.seen]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[0] == low
    assert all(low <= gap <= high for gap in gaps)
    assert gaps == sorted(gaps)
    assert 900 / high <= len(world.queries) <= 900 / low


def test_number_of_queries(make_client: MakeClient, world: World) -> None:
    """A picture that takes 4 s is asked for at 2 s and 4 s, and a video of 30 s at 30 s."""
    make_client(world).run(image())
    assert [seen.at for seen in world.queries] == [2, 4]
    clip = World()
    make_client(clip).run(small()["videos"])
    assert [seen.at for seen in clip.queries] == [30]


def test_poll_interval_of_ones_own(make_client: MakeClient, world: World) -> None:
    """An interval given by the caller replaces the specification's."""
    make_client(world, poll_interval=0.5).run(image())
    assert [seen.at for seen in world.queries] == [0.5 * count for count in range(1, 9)]


def test_bare_id(make_client: MakeClient) -> None:
    """A bare id is polled at once, and then at the pace of the model that its record names."""
    world = World(timing=Timing(video_processing=400))
    task = make_client(world).create(small()["vidsb"])
    make_client(world).wait(task.id)
    times = [seen.at for seen in world.queries]
    gaps = [after - before for before, after in pairwise(times)]
    assert times[0] == 0
    assert (gaps[0], gaps[-1]) == PACE["vidsb"]
    assert gaps == sorted(gaps)


def test_bare_id_of_an_unknown_model(make_client: MakeClient) -> None:
    """While no record names a known model, the intervals grow from 5 s to 30 s."""
    world = World(timing=Timing(image_processing=200))
    task = make_client(world).create(image())
    told = {"id": task.id, "status": "processing", "model": "a-backend"}
    world.instead.extend([HttpResponse(200, (), json.dumps(told).encode())] * 12)
    make_client(world).wait(task.id)
    times = [seen.at for seen in world.queries]
    gaps = [after - before for before, after in pairwise(times)]
    assert times[0] == 0
    assert gaps[0] == 5
    assert max(gaps) == 30
    assert gaps == sorted(gaps)


def test_submitted_comes_first(make_client: MakeClient, world: World) -> None:
    """The hook learns the id once, before any event and before the first query."""
    told: list[object] = []

    def submitted(task: Task) -> None:
        assert not world.queries
        told.append(task)

    client = make_client(world, on_submitted=submitted, on_event=tasks_alone(told.append))
    client.run(image())
    task, first, *rest = told
    assert isinstance(task, Task)
    assert first == Submitted(task)
    assert all(isinstance(event, Polled) for event in rest)
    assert len(rest) == len(world.queries)


def test_events_of_a_task(make_client: MakeClient) -> None:
    """Events come in the order in which things happen, each of them once."""
    world = World(timing=Timing(video_queued=40, video_processing=60))
    world.instead.extend([None, LOST])
    events: list[Event] = []
    updates: list[Result] = []
    make_client(world, on_event=tasks_alone(events.append)).run(
        small()["vidd"], on_update=updates.append
    )
    kinds = [type(event).__name__ for event in events]
    assert kinds[:3] == ["Submitted", "WillRetry", "Polled"]
    assert set(kinds[3:]) == {"Polled"}
    polled = [event for event in events if isinstance(event, Polled)]
    assert [event.result for event in polled] == updates
    statuses = [event.result.status for event in polled if event.changed]
    assert statuses == [Status.PROCESSING, Status.COMPLETED]


def test_update_hears_every_reply(make_client: MakeClient) -> None:
    """`on_update` is called with each valid response, the last one included."""
    world = World(timing=Timing(image_queued=3, image_processing=20))
    updates: list[Result] = []
    result = make_client(world).run(image(), on_update=updates.append)
    assert len(updates) == len(world.queries)
    assert updates[-1] == result


def test_get_on_every_status(make_client: MakeClient) -> None:
    """One query returns the status as it is, whatever it is, and raises nothing."""
    world = World(timing=Timing(video_queued=10, video_processing=10))
    client = make_client(world)
    done = client.create(small()["vidsa"])
    failed = client.create(small("[fail:content-policy]")["vidsa"])
    cancelled = client.create(small(CANCEL)["vidsa"])
    tasks = (done, failed, cancelled)
    assert [client.get(task).status for task in tasks] == ["queued"] * 3
    world.clock.sleep(12)
    assert [client.get(task).status for task in tasks] == ["processing"] * 3
    world.clock.sleep(12)
    assert [client.get(task).status for task in tasks] == ["completed", "failed", "cancelled"]
    assert client.get(failed).error == "content policy violation"
    assert [client.get(task).url is None for task in tasks] == [False, True, True]
    assert len(world.queries) == 13


def test_get_takes_every_form_of_a_task(make_client: MakeClient, world: World) -> None:
    """A task, its id, its token and its result are all names for the same thing."""
    client = make_client(world)
    task = client.create(image())
    result = client.get(task)
    for form in (task, task.id, task.to_token(), result):
        assert client.get(form).id == task.id


def test_watch(make_client: MakeClient) -> None:
    """Watching yields a result for each change of status, and the completed one last."""
    world = World(timing=Timing(image_queued=11, image_processing=40))
    client = make_client(world)
    request = muybridge.ImgaRequest(model="imga", prompt="-", image_urls=[VIDEO])
    seen = list(client.watch(client.create(request)))
    assert [result.status for result in seen] == ["queued", "processing", "completed"]
    assert seen[-1].url is not None


def test_watch_left_early(make_client: MakeClient) -> None:
    """Leaving a watch early ends its queries, and the client can still be used."""
    world = World(timing=Timing(image_queued=11))
    client = make_client(world)
    task = client.create(small()["imgb"])
    for _ in client.watch(task):
        break
    assert len(world.queries) == 1
    assert client.wait(task).status is Status.COMPLETED


@pytest.mark.parametrize(("marker", "end"), [*((mark, "failed") for mark in FAILURES),
                                             (CANCEL, "cancelled")])  # fmt: skip
def test_watch_ends_with_what_failed(
    make_client: MakeClient, world: World, marker: str, end: str
) -> None:
    """A task that fails or is cancelled is watched to its end like any other."""
    client = make_client(world)
    seen = list(client.watch(client.create(small(marker)["vidsa"])))
    assert seen[-1].status == end
    assert seen[-1].error == FAILURES.get(marker)


def test_watch_a_task_that_failed_at_its_creation(make_client: MakeClient, world: World) -> None:
    """Watching a task that failed when it was created yields that, and asks for nothing."""
    world.instead.append(created(status="failed", error="no such ratio"))
    client = make_client(world)
    (only,) = client.watch(client.create(small()["imgb"]))
    assert (only.status, only.error) == (Status.FAILED, "no such ratio")
    assert not world.queries


def test_watch_shows_the_link(make_client: MakeClient, world: World) -> None:
    """A completed result whose link came later is yielded again with the link."""
    client = make_client(world)
    task = client.create(image())
    incomplete = record(task, "completed", image_url=None)
    world.instead.extend([incomplete, incomplete])
    assert [result.url is None for result in client.watch(task)] == [True, False]


def test_watch_says_that_the_link_is_missing(make_client: MakeClient, world: World) -> None:
    """Watching a completed task that never gets a link ends with that error."""
    client = make_client(world)
    task = client.create(image())
    world.always = record(task, "completed", image_url=None)
    with pytest.raises(ResultIncomplete) as caught:
        list(client.watch(task))
    assert caught.value.task == task
    assert len(world.queries) == 4


def test_failed(make_client: MakeClient, world: World) -> None:
    """Running what fails raises `TaskFailed` with the service's reason and the result."""
    with pytest.raises(TaskFailed, match="content policy violation") as caught:
        make_client(world).run(small("[fail:content-policy]")["vidr"])
    assert caught.value.result.status is Status.FAILED
    assert caught.value.task is not None
    assert caught.value.task.id == caught.value.result.id == "task-1"


def test_cancelled(make_client: MakeClient, world: World) -> None:
    """Running what is cancelled raises `TaskFailed` with the result."""
    with pytest.raises(TaskFailed, match="task-1 was cancelled") as caught:
        make_client(world).run(small(CANCEL)["vidsa"])
    assert caught.value.result.status is Status.CANCELLED
    assert caught.value.result.url is None


def test_failed_at_its_creation(make_client: MakeClient, world: World) -> None:
    """A record that is failed at its creation is a task, told to the hook and never polled."""
    told: list[Task] = []
    world.instead.append(created(status="failed", error="no such ratio"))
    client = make_client(world, on_submitted=told.append)
    with pytest.raises(TaskFailed, match="no such ratio") as caught:
        client.run(small()["imgb"])
    assert told == [caught.value.task]
    assert len(world.seen) == 1


def test_wait_timeout(make_client: MakeClient) -> None:
    """Waiting ends at its limit with the task, which can still be waited for."""
    world = World(timing=Timing(video_processing=3000))
    client = make_client(world)
    task = client.create(small()["vidd"])
    with pytest.raises(WaitTimeout, match="processing") as caught:
        client.wait(task, timeout=100)
    assert world.clock.elapsed == 100
    assert caught.value.task == task
    assert client.wait(task).status is Status.COMPLETED


@pytest.mark.parametrize("timeout", [0.004, 0.2, 0.25, 1.5, 12])
def test_a_short_wait(make_client: MakeClient, world: World, timeout: float) -> None:
    """The message has the time, however short it was."""
    client = make_client(world)
    task = client.create(small()["vidd"])
    with pytest.raises(WaitTimeout, match=rf"did not end within {timeout} s\b"):
        client.wait(task, timeout=timeout)


def test_wait_without_limit(make_client: MakeClient) -> None:
    """Waiting without a limit lasts for as long as the task does."""
    world = World(timing=Timing(video_processing=20_000))
    assert make_client(world).run(small()["vidd"], timeout=None).status is Status.COMPLETED


def test_default_wait_is_an_hour(make_client: MakeClient) -> None:
    """Unless the caller sets a limit, waiting ends after an hour."""
    world = World(timing=Timing(video_processing=20_000))
    with pytest.raises(WaitTimeout):
        make_client(world).run(small()["vidd"])
    assert world.clock.elapsed == 3600


def test_unreachable(make_client: MakeClient, world: World) -> None:
    """A single query without a valid response in three attempts says so, and carries the task."""
    client = make_client(world)
    task = client.create(small()["vidd"])
    world.always = LOST
    with pytest.raises(ServiceUnreachable) as caught:
        client.get(task)
    assert caught.value.task == task
    assert len(world.queries) == 3


def test_short_breaks_are_sat_out(make_client: MakeClient, world: World) -> None:
    """Failures and odd statuses between valid responses do not end the waiting."""
    client = make_client(world)
    task = client.create(small()["vidd"])
    odd = [*map(HttpResponse, (404, 500, 502, 503, 504, 408, 409, 425, 429)), LOST]
    world.instead.extend(odd)
    assert client.wait(task).status is Status.COMPLETED
    assert len(world.posts) == 1


def test_resume_from_a_token(make_client: MakeClient) -> None:
    """Another client resumes a task from its token, at the family's own pace."""
    world = World(timing=Timing(video_processing=600))
    token = make_client(world).create(small()["vidsb"]).to_token()
    world.clock.sleep(50)
    result = make_client(world).wait(token)
    assert result.status is Status.COMPLETED
    assert result.family == "vidsb"
    times = [seen.at for seen in world.queries]
    assert times[0] == 50
    assert times[1] - times[0] == 20


def test_token_is_plain(make_client: MakeClient, world: World) -> None:
    """A token is one line of JSON that holds the id and no key."""
    token = make_client(world).create(image()).to_token()
    assert json.loads(token)["id"] == "task-1"
    assert "\n" not in token
    assert world.key not in token


def test_unknown_task(make_client: MakeClient, world: World) -> None:
    """An id that the service does not know raises `TaskNotFound` with the task."""
    for ask in (make_client(world).get, make_client(world).wait):
        with pytest.raises(TaskNotFound) as caught:
            ask("no-such-task")
        assert caught.value.task == Task(id="no-such-task")


def test_expired_record(make_client: MakeClient, world: World) -> None:
    """A task whose record the service has deleted by its retention raises `ResultExpired`."""
    client = make_client(world)
    task = client.create(small()["vidsa"])
    world.clock.sleep(25 * 3600)
    with pytest.raises(ResultExpired):
        client.get(task)


def test_download_of_a_task(make_client: MakeClient, world: World, tmp_path: Path) -> None:
    """A task or its id can be downloaded: the service is asked for the link first."""
    client = make_client(world)
    task = client.create(image())
    world.clock.sleep(10)
    for source in (task, task.id, task.to_token()):
        path = client.download(source, tmp_path / f"{len(world.seen)}.png")
        assert path.read_bytes() == PNG


def test_download_tells_each_event_once(
    make_client: MakeClient, world: World, tmp_path: Path
) -> None:
    """A download that is retried says so once, and its progress never repeats."""
    events: list[Event] = []
    client = make_client(world, on_event=tasks_alone(events.append))
    result = client.run(image())
    events.clear()
    world.instead.append(HttpResponse(503))
    client.download(result, tmp_path)
    assert [type(event) for event in events].count(WillRetry) == 1
    received = [event.received for event in events if isinstance(event, DownloadProgress)]
    assert received == sorted(set(received))
    assert received[-1] == len(PNG)


def test_delete_asset(make_client: MakeClient, world: World) -> None:
    """Deleting an asset succeeds once; after that the service says that it does not exist."""
    client = make_client(world)
    client.delete_asset("asset://asset-1")
    assert not world.emulator.assets
    with pytest.raises(muybridge.AssetDeleteFailed, match="does not exist") as caught:
        client.delete_asset("asset-1")
    assert caught.value.code == "1"


def test_task_of_a_deleted_asset(make_client: MakeClient, world: World) -> None:
    """A task that uses a deleted asset fails, and says which one."""
    client = make_client(world)
    request = muybridge.VidsbRequest(
        model="vidsb_2_0_pro", prompt="-", first_image="asset://asset-1"
    )
    client.delete_asset("asset-1")
    with pytest.raises(TaskFailed, match="asset-1 was deleted"):
        client.run(request)


def test_call(make_client: MakeClient, world: World) -> None:
    """Any endpoint can be called, and its response is handed over whatever its status."""
    client = make_client(world)
    body = {"model": "imga", "prompt": "a horse"}
    reply = client.call("POST", "/v1/imga/images", body)
    assert json.loads(reply.body)["id"] == "task-1"
    assert client.call("GET", "/v1/result/task-1").status == 200
    assert client.call("GET", "/v1/no/such?endpoint=1").status == 404


@pytest.mark.parametrize("path", ["//evil.test/", "https://evil.test/", "/../x", "v1", "/a\r\nb"])
def test_call_stays_at_the_service(make_client: MakeClient, world: World, path: str) -> None:
    """A path that leads anywhere else is an error, and nothing is sent."""
    with pytest.raises(InvalidAddress):
        make_client(world).call("GET", path)
    assert not world.seen


def test_another_tasks_record_is_refused(make_client: MakeClient, world: World) -> None:
    """A response about another task is never taken for this one's."""
    client = make_client(world)
    task = client.create(image())
    world.instead.append(record(Task(id="task-9"), "completed", image_url="https://x.test/a.png"))
    with pytest.raises(muybridge.ProtocolViolation) as caught:
        client.wait(task)
    assert caught.value.task == task


def test_a_wrong_key_stops_waiting(make_client: MakeClient, world: World) -> None:
    """A key that is revoked while a task runs stops the waiting, and the task is kept."""
    client = make_client(world)
    task = client.create(image())
    world.instead.append(HttpResponse(401))
    with pytest.raises(Unauthorized) as caught:
        client.wait(task)
    assert caught.value.task == task


def test_a_clock_that_moves_between_looks(make_client: MakeClient) -> None:
    """Time that passes just before the client starts to wait is not an error."""
    world = World(clock=VirtualClock(tick=1.5))
    assert make_client(world).run(image()).status is Status.COMPLETED


def test_a_short_key_tears_no_holes(make_client: MakeClient) -> None:
    """A key that is a common word does not damage the responses that contain this word."""
    world = World(key="task")
    result = make_client(world).run(image())
    assert result.id == "task-1"
    assert result.url == f"{world.url}/media/task-1.png"


def created(**changes: object) -> HttpResponse:
    fields = {"id": "task-1", "object": "image", "created": 1, "model": "imgb-2", **changes}
    return HttpResponse(200, (), json.dumps(fields).encode())


def record(task: Task, status: str, **fields: object) -> HttpResponse:
    told = {"id": task.id, "status": status, "model": task.model, "created": 1, **fields}
    return HttpResponse(200, (), json.dumps(told).encode())


def test_requests_are_not_changed(make_client: MakeClient, world: World) -> None:
    """A request can be reused, and each use creates a task."""
    request = image()
    before = attrs.asdict(request)
    client = make_client(world)
    assert client.create(request).id != client.create(request).id
    assert attrs.asdict(request) == before
