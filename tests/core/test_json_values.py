"""Tasks, results, requests and errors as JSON: nothing is lost."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.test_delivery import every_error

from muybridge_protocol.errors import (
    InvalidRequest,
    LocalError,
    NotSent,
    ProtocolViolation,
    WaitTimeout,
)
from muybridge_protocol.families import FAMILIES, MediaRequest, Unlisted
from muybridge_protocol.families.examples import examples
from muybridge_protocol.families.request import parse
from muybridge_protocol.http import Phase, Reason, TransportFailure
from muybridge_protocol.records.tasks import Result, Status, Task

NAMES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P")), min_size=1, max_size=30)
TIMES = st.none() | st.integers(0, 32_503_679_999)
STATUSES = st.sampled_from([*Status]) | NAMES
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=5,
)
EXAMPLES = [
    (name, title) for name, family in sorted(FAMILIES.items()) for title in examples(family)
]


def through_json(value: Any) -> Any:
    """Return what another program reads."""
    return json.loads(json.dumps(value.to_dict(), allow_nan=False))


SOME_TEXT = st.none() | NAMES
SOME_TIME = st.none() | st.floats(0, 32_503_679_999)
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "id": NAMES.filter(lambda name: name not in {".", ".."}),
    "family": st.none() | st.sampled_from(sorted(FAMILIES)),
    "model": SOME_TEXT,
    "status": STATUSES,
    "object": SOME_TEXT,
    "created": TIMES,
    "error": SOME_TEXT,
    "raw": st.just({}),
}
FIELDS: dict[type[Task | Result], dict[str, st.SearchStrategy[Any]]] = {
    Task: {
        **COMMON,
        "status": st.none() | STATUSES,
        "requested_model": SOME_TEXT,
        "submitted_at": SOME_TIME,
        "next_poll_at": SOME_TIME,
    },
    Result: {
        **COMMON,
        "image_url": SOME_TEXT,
        "video_url": SOME_TEXT,
        "actual_duration": st.none() | st.floats(0, 1000),
        "total_tokens": st.none() | st.integers(0, 10**9),
    },
}


@pytest.mark.parametrize("kind", FIELDS)
def test_every_field_is_tried(kind: type[Task | Result]) -> None:
    """The tasks and results of these tests have values in every field."""
    missing = attrs.fields_dict(kind).keys() - FIELDS[kind].keys()
    assert not missing, (
        f"add {missing} to FIELDS[{kind.__name__}] in tests/core/test_json_values.py"
    )


@given(st.builds(Task, **FIELDS[Task]))
def test_tasks(task: Task) -> None:
    """A task is the same after it was written as JSON and read again."""
    assert Task.from_dict(through_json(task)) == task


@given(st.builds(Result, **FIELDS[Result]))
def test_results(result: Result) -> None:
    """A result is the same after it was written as JSON and read again."""
    assert Result.from_dict(through_json(result)) == result


@pytest.mark.parametrize(("name", "title"), EXAMPLES)
def test_requests(name: str, title: str) -> None:
    """A request of each family is the same after it was written as JSON and read again."""
    family = FAMILIES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        request = parse(family, examples(family)[title])
        record = through_json(request)
        assert record["family"] == name
        assert type(request).from_dict(record) == request
        assert MediaRequest.from_dict(record) == request


@given(st.dictionaries(NAMES.filter(lambda name: FAMILIES["imga"].field(name) is None), JSON))
def test_fields_that_are_sent_unchecked(extra: dict[str, object]) -> None:
    """What was set as extra stays apart, and a model that is not listed is told from a typo."""
    kind = FAMILIES["imgb"].request
    make: Any = kind
    request = make(model=Unlisted("imgb-9"), prompt="A horse", extra=extra)
    record = through_json(request)
    assert record["unlisted_model"] == "imgb-9"
    assert kind.from_dict(record) == request


def test_mistakes_in_records() -> None:
    """A record is checked as any other request: every problem is told."""
    kind = FAMILIES["imga"].request
    with pytest.raises(InvalidRequest) as caught:
        kind.from_dict({"model": "imgx", "promt": "A horse"})
    assert {problem.field for problem in caught.value.problems} == {"model", "prompt", "promt"}
    told = through_json(caught.value)
    assert [sorted(one) for one in told["problems"]] == [
        ["accepted", "field", "message", "rule"]
    ] * 3
    assert told["charged"] == "no"
    for record in ({"prompt": "A horse"}, {"family": "nowhere"}, {"family": ["imga"]}):
        with pytest.raises(LocalError, match="is not the family of a"):
            MediaRequest.from_dict(record)
    with pytest.raises(LocalError, match="is not the family of a"):
        kind.from_dict({"family": "imgb", "model": "imgb-2", "prompt": "A horse"})


@pytest.mark.parametrize(
    "record", [{}, {"id": ""}, {"id": 5}, {"id": "a/\n"}, {"id": "a", "status": 5}]
)
def test_records_that_are_no_results(record: dict[str, object]) -> None:
    """What is no result raises a `ValueError`, which pydantic reports."""
    with pytest.raises(ValueError, match=r"status|valid task id"):
        Result.from_dict(record)


def test_errors() -> None:
    """Each error goes through json with its facts, and shows no response of the service."""
    for error in every_error():
        told = through_json(error)
        assert told["type"] == type(error).__name__
        assert told["message"] == str(error)
        assert told["charged"] == error.charged
        assert told["candidate_id"] == error.candidate_id
        assert told["remedies"] == [remedy.to_dict() for remedy in error.remedies]
        if error.task is None:
            assert told["task"] is None
        else:
            assert Task.from_dict(told["task"]) == error.task
        assert "raw" not in told
        assert "body" not in told


def test_odd_values_in_errors() -> None:
    """A number that JSON does not have is null, and what is no plain value is in words."""
    assert through_json(WaitTimeout(waited=math.inf))["waited"] is None
    failure = TransportFailure(phase=Phase.CONNECT, sent=False, reason=Reason.REFUSED)
    assert through_json(NotSent(failure=failure))["failure"] == "connection refused"
    assert through_json(ProtocolViolation(reason="\ud83d"))["reason"] == "\ud83d"
