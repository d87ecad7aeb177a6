"""Each field of a record is shown wherever the record is, or left out there for a reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import attrs
import pytest

from muybridge_protocol.records.tasks import Result, Status, Task

RAW = "the response as it was"
OBJECT = "says no more than the family"
COMMON: dict[str, Any] = {
    "id": "task-17",
    "status": Status.COMPLETED,
    "family": "vidr",
    "model": "the model",
    "object": "the object",
    "created": 1_760_000_000,
    "error": "the reason",
    "raw": {"x": 1},
}
TASK = Task(
    **COMMON, requested_model="the requested one", submitted_at=1_760_000_111.5, next_poll_at=1.5e9
)
RESULT = Result(
    **COMMON,
    image_url="https://cdn.example.com/17.png",
    video_url="https://cdn.example.com/17.mp4",
    actual_duration=17.25,
    total_tokens=171_717,
)


class Place(NamedTuple):
    """Where a record is shown, and which of its fields are not, and why."""

    show: Callable[[Any], str]
    left_out: Mapping[str, str]


def html(record: Any) -> str:
    return record._repr_html_()


PLACES = {
    "a task in a notebook": (
        TASK,
        Place(
            html,
            {
                "object": OBJECT,
                "raw": RAW,
                "next_poll_at": "for the client",
            },
        ),
    ),
    "a result in a notebook": (
        RESULT,
        Place(html, {"object": OBJECT, "raw": RAW}),
    ),
    "a token": (
        TASK,
        Place(
            Task.to_token,
            {
                "object": OBJECT,
                "raw": RAW,
                "error": "a failed task is over",
            },
        ),
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_every_field_is_shown(place: str) -> None:
    """A record without a field shows something else than with it, unless the field is left out."""
    record, (show, left_out) = PLACES[place]
    whole = show(record)
    for field in attrs.fields(type(record)):
        absent = "other" if field.default is attrs.NOTHING else None
        if field.name == "raw":
            absent = {}
        differs = show(attrs.evolve(record, **{field.name: absent})) != whole
        assert differs is (field.name not in left_out), f"{place}: {field.name}"
