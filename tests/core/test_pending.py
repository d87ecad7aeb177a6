from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.errors import ServiceError
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.operations import Poll, Settled
from muybridge_protocol.operations.pending import (
    Kind,
    Kinds,
    pack,
    unpack,
    unpack_born,
    unpack_task,
    without_records,
)
from muybridge_protocol.tasks import Status, Task

from .driving import DONE, SERVICE, WALL, lost, raw, reply, result, unsent

REACTIONS = (
    result("queued"),
    result("processing", model="another", created=5, actualDuration=1.5),
    result("processing", model="vidsb_2_0_fast", created=int(WALL)),
    result("on its way"),
    result("completed"),
    reply(200, {"id": "other", "status": "processing"}),
    raw(200, b"<html>"),
    reply(404),
    reply(401),
    reply(429),
    reply(429, Retry_After="7"),
    reply(503, Retry_After="9"),
    reply(302),
    lost(),
    unsent(),
    result("failed", error="no"),
    DONE,
)

moments = st.floats(0, 1e6)
tasks = st.builds(
    Task,
    id=st.just("t1"),
    family=st.sampled_from([None, "no such", *FAMILIES]),
    model=st.none() | st.sampled_from(["imga", "vidsb_fast"]),
    requested_model=st.none() | st.sampled_from(["imga", "vidsb_fast"]),
    status=st.sampled_from([None, *Status, "on its way"]),
    object=st.none() | st.just("image"),
    created=st.none() | st.integers(-(2**64) + 1, 2**64 - 1) | st.integers(int(WALL), 2**33),
    submitted_at=st.none() | st.floats(WALL - 1e5, WALL + 1e3),
    raw=st.just({"id": "t1", "prompt": "a horse"}),
)
polls = st.builds(
    Poll.start,
    tasks,
    st.just(SERVICE),
    now=st.just(100.0),
    wall=st.just(WALL),
    seed=st.integers(0, 2**64 - 1),
    timeout=st.sampled_from([60.0, 5]),
    wait=st.none() | st.floats(0.1, 1e5),
    poll_interval=st.none() | st.floats(0, 100),
)


def react(poll: Poll, reaction: Any, now: float) -> Poll:
    if hasattr(reaction, "sent"):
        return poll.fail(reaction, now)
    return poll.receive(reaction, now)


def told(poll: Poll) -> object:
    """Return all of *poll*, but of its errors only what can be compared."""
    fields: dict[str, object] = attrs.asdict(poll, recurse=False)
    if isinstance(poll.settled, Settled) and isinstance(poll.settled.outcome, ServiceError):
        error = poll.settled.outcome
        fields["settled"] = (type(error), error.task, str(error))
    return fields


@given(polls, st.lists(st.sampled_from(REACTIONS), max_size=12), st.data())
def test_a_poll_that_was_packed_after_every_step_goes_on_as_if_it_had_not_been(
    poll: Poll, reactions: list[Any], data: st.DataObject
) -> None:
    """Packing and unpacking a poll at any time changes nothing that it does or says."""
    kinds, now, packed = Kinds(), 100.0, poll
    kind: Kind | None = None
    for reaction in reactions:
        if poll.settled is not None:
            break
        kind = kinds.of(packed, before=kind)
        assert kind == Kind.of(packed)
        whole = without_records(packed)
        packed = unpack(kind, pack(packed))
        assert whole == packed
        assert whole.task.raw == {}
        assert told(packed) == told(attrs.evolve(poll, events=()))
        assert repr(packed.next_action(now)) == repr(poll.next_action(now))
        now += data.draw(moments)
        poll, packed = react(poll, reaction, now), react(packed, reaction, now)
        assert told(packed) == told(poll)


@given(polls)
def test_the_task_of_a_packed_poll_is_told_without_the_rest(poll: Poll) -> None:
    """The task and its birth are read from the packed form alone, and no raw record with them."""
    if poll.settled is None:
        kind, facts = Kind.of(poll), pack(poll)
        assert unpack_task(kind, facts) == poll.task
        assert unpack_task(kind, facts).raw == {}
        assert unpack_born(facts) == poll.born


@pytest.mark.parametrize("name", ["t1", "", "ä", "\ud800", "x" * 256])
def test_any_id_survives(name: str) -> None:
    """An id comes out as it went in, even one that no service should give."""
    poll = Poll.start(Task(id=name), SERVICE, now=0, wall=WALL, seed=0)
    assert unpack(Kind.of(poll), pack(poll)).task.id == name


def test_polls_that_are_alike_share_one_kind() -> None:
    """What many polls have in common is kept once, and a new status makes one more."""
    kinds = Kinds()
    first, second = (
        Poll.start(Task(id=name, family="imga"), SERVICE, now=0, wall=WALL, seed=0) for name in "ab"
    )
    kind = kinds.of(first)
    assert kinds.of(second) is kind
    assert kinds.of(first.receive(result("processing", "a"), 1), before=kind) is not kind


@pytest.mark.parametrize("family", [None, "no such", *FAMILIES])
def test_a_kind_knows_how_long_results_live(family: str | None) -> None:
    """How long results live is the family's, and not known for a family that is not."""
    kind = Kind.of(Poll.start(Task(id="a", family=family), SERVICE, now=0, wall=WALL, seed=0))
    known = FAMILIES.get(family or "")
    assert kind.retention == (None if known is None else known.retention.seconds)


@pytest.mark.parametrize(
    ("status", "seen", "finished"),
    [
        ("queued", "processing", False),
        ("completed", None, True),
        (None, "completed", True),
        (None, None, False),
    ],
)
def test_a_kind_knows_what_is_finished(
    status: str | None, seen: str | None, *, finished: bool
) -> None:
    """A task is finished when its record or its last result says that it is completed."""
    about = Task(id="t1", status=None if status is None else Status(status))
    poll = Poll.start(about, SERVICE, now=0, wall=WALL, seed=0)
    if seen is not None:
        poll = poll.receive(result(seen), 0)
    assert Kind.of(poll).is_finished is finished


def test_kinds_are_kept_up_to_a_number() -> None:
    """The last kind that fits is kept with all others; the next one begins anew."""
    kinds = Kinds()
    for number in range(4097):
        assert len(kinds._shared) == number  # pyright: ignore[reportPrivateUsage]  nowhere else
        kinds.of(Poll.start(Task(id="a", model=f"{number}"), SERVICE, now=0, wall=WALL, seed=0))
    assert len(kinds._shared) == 1  # pyright: ignore[reportPrivateUsage]  it shows nowhere else


def test_a_service_with_ever_new_names_does_not_fill_the_memory() -> None:
    """The number of kinds that are kept is bounded, whatever the service calls its models."""
    kinds = Kinds()
    for number in range(5000):
        task = Task(id="a", model=f"model-{number}")
        kinds.of(Poll.start(task, SERVICE, now=0, wall=WALL, seed=0))
    assert len(kinds._shared) <= 4096  # pyright: ignore[reportPrivateUsage]  it shows nowhere else


def test_a_service_with_ever_new_statuses_does_not_fill_the_memory() -> None:
    """The number of ways from one kind to the next that are kept is bounded as well."""
    kinds = Kinds()
    poll = Poll.start(Task(id="a"), SERVICE, now=0, wall=WALL, seed=0)
    kind = kinds.of(poll)
    for number in range(5000):
        kind = kinds.of(poll.receive(result(f"status {number % 100}", "a"), 1), before=kind)
        assert kind.seen == f"status {number % 100}"
    ways = kinds._seen  # pyright: ignore[reportPrivateUsage]  it shows nowhere else
    assert len(ways) == 101
    for number in range(5000):
        kind = kinds.of(poll.receive(result(f"status-{number}", "a"), 1), before=kind)
    assert len(ways) <= 4096


def test_a_family_that_becomes_known_makes_another_kind() -> None:
    """What a record says of a bare id stays known while the poll is at rest."""
    kinds = Kinds()
    poll = Poll.start(Task(id="a"), SERVICE, now=0, wall=WALL, seed=0)
    poll = poll.receive(result("processing", "a"), 1)
    kind = kinds.of(
        poll, before=kinds.of(Poll.start(Task(id="a"), SERVICE, now=0, wall=WALL, seed=0))
    )
    learnt = poll.receive(result("processing", "a", model="vidv_3_1_pro"), 20)
    kind = kinds.of(learnt, before=kind)
    assert (kind.family, kind.model, kind.retention) == ("vidv", "vidv_3_1_pro", 86_400)
    assert unpack(kind, pack(learnt)).pacing.shortest == 30
