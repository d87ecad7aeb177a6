"""Each kind of event is shown wherever events are, or left out there for a reason.

A new event fails here at every place that does not know it yet. The message names the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from every_event import KINDS, sample
from muybridge.batch.running.item_work import ItemWork
from muybridge.cli.course import Course
from muybridge.cli.progress import Progress
from muybridge.drivers.fleet_team import Stopped
from muybridge.drivers.listeners import Listeners
from muybridge.observability.facts import ALLOWED, facts
from muybridge.observability.logs import Log
from muybridge_protocol.observations import AnyEvent

HERE = "tests/client/test_shown_events.py"


def in_the_log(event: AnyEvent) -> bool:
    """Whether *event* is logged with words of its own."""
    lines: list[str] = []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("muybridge")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        Log().write(event)  # without the guard that keeps errors of logging from ending a call
    except AssertionError as error:
        pytest.fail(f"add {type(event).__name__} to _place_of in {LOGS}: {error}")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    # An event without a line of its own is logged as the name of its class.
    return any(not line.endswith(f": {type(event).__name__}") for line in lines)


def on_stderr(event: AnyEvent) -> bool:
    """Whether the command prints a line for *event*."""
    lines: list[str] = []
    progress = Progress()
    progress.say = lines.append  # type: ignore[method-assign]
    progress.event(event)
    return bool(lines)


def item(told: list[object], *, stopping: bool) -> ItemWork:
    """Return the work on an item of a run, which adds its events to *told*."""

    def tell(*facts: object, **more: object) -> None:
        told.append((facts, more))

    run = SimpleNamespace(stopping=stopping, event=tell)
    nobody = Listeners(on_submitted=None, on_event=None)
    nothing: Any = None  # no item is begun
    return ItemWork(cast("Any", run), nothing, nothing, nothing, nobody)


def in_a_batch(event: AnyEvent) -> bool:
    """Whether *event* is one of a batch, too."""
    told: list[object] = []
    item(told, stopping=False).noticed(event)
    return bool(told)


def stops(event: AnyEvent) -> bool:
    """Whether a batch that is stopping interrupts an operation at *event*."""
    try:
        item([], stopping=True).noticed(event)
    except Stopped:
        return True
    return False


def changes_the_course(event: AnyEvent) -> bool:
    """Whether *event* changes how a command ends."""
    return any(course.after(event) != course for course in (Course(), Course(unanswered=True)))


class Place(NamedTuple):
    """Where events are shown or matter.

    Args:
        file: Where the kinds are listed.
        shown: Whether an event is shown there.
        left_out: The kinds that are not, and why.
    """

    file: str
    shown: Callable[[AnyEvent], bool]
    left_out: Mapping[str, str]


LOGS = "transports/muybridge/observability/logs.py"
ITEM_WORK = "transports/muybridge/batch/running/item_work.py"
REQUESTS = ("RequestSent", "ResponseBegan", "ResponseReceived", "ExchangeFailed")
ENDS = "the command says what it does, and how it ends"
PLACES = {
    "the log": Place(f"_line in {LOGS}", in_the_log, {"DownloadProgress": "there are thousands"}),
    "progress on stderr": Place(
        "Progress.event in transports/muybridge/cli/progress.py",
        on_stderr,
        {
            **dict.fromkeys(REQUESTS, "only with --verbose"),
            **dict.fromkeys(("CallBegan", "CallEnded", "Submitted", "Ambiguous"), ENDS),
            "DownloadProgress": "only once a download takes long",
        },
    ),
    "the events of a batch": Place(
        f"ItemWork.noticed in {ITEM_WORK}",
        in_a_batch,
        {
            **dict.fromkeys((*REQUESTS, "CallBegan", "CallEnded"), "not about the item"),
            "Expected": "a batch does not ask its store",
            **dict.fromkeys(("Submitted", "Ambiguous"), "once the store has it"),
            "DownloadProgress": "there are thousands",
        },
    ),
    "the moments at which a batch may stop": Place(
        f"_STOPS in {ITEM_WORK}",
        stops,
        {
            **dict.fromkeys(("Submitted", "Ambiguous"), "the store must have it first"),
            **dict.fromkeys(
                ("ResponseBegan", "ResponseReceived", "ExchangeFailed"), "of a create, too"
            ),
            **dict.fromkeys(("CallBegan", "CallEnded", "Expected"), "nothing is under way"),
        },
    ),
    "how a command ends": Place(
        "Course.after in transports/muybridge/cli/course.py",
        changes_the_course,
        {
            **dict.fromkeys(("Submitted", "Polled"), "the invocation learns of the task"),
            **dict.fromkeys(("WillRetry", "ServiceSilent", "Throttled"), "the work continues"),
            **dict.fromkeys(("CallBegan", "CallEnded", "Expected"), "nothing is sent"),
            **dict.fromkeys(("ResponseBegan", "DownloadProgress"), "not the end of an exchange"),
        },
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_may_be_shown_is_listed(kind: type[AnyEvent]) -> None:
    """Every kind of event says which of its attributes may be shown, and has them."""
    where = "ALLOWED in transports/muybridge/observability/facts.py"
    assert kind in ALLOWED, f"add {kind.__name__} to {where}"
    assert facts(sample(kind))["event"] == kind.__name__


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_every_event_is_shown(place: str, kind: type[AnyEvent]) -> None:
    """A place shows every kind of event that it does not leave out for a reason, and no other."""
    file, shown, left_out = PLACES[place]
    name = kind.__name__
    if shown(sample(kind)):
        assert name not in left_out, (
            f"{place}: {name} counts; remove it from {file}, or from left_out in {HERE}"
        )
    else:
        assert name in left_out, (
            f"{place}: {name} is missing; add it to {file}, or say in PLACES in {HERE} why not"
        )
