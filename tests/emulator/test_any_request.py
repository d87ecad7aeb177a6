"""Whatever comes, the emulator answers."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from emulator.caller import BEARER, JSON, MIDNIGHT, new_emulator
from muybridge_protocol.emulator import ServiceRequest
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.http import Headers, HttpResponse

PATHS = [family.create_path for family in FAMILIES.values()]

any_text = st.text(st.characters(), max_size=30)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=10,
)
field_names = st.sampled_from(
    sorted({field.wire for family in FAMILIES.values() for field in family.fields})
)
models = st.sampled_from([model.name for family in FAMILIES.values() for model in family.models])
media = st.sampled_from(["https://example.com/a.png", "asset://asset-1", "asset://other"])
near_values = json_values | media | st.lists(media, max_size=5) | st.integers(-1, 31)


@st.composite
def near_bodies(draw: st.DrawFn) -> dict[str, Any]:
    fields = draw(st.dictionaries(field_names, near_values, max_size=5))
    return {"model": draw(models), "prompt": draw(any_text), **fields}


def answer(request: ServiceRequest) -> HttpResponse:
    emulator = new_emulator(assets=("asset-1",))
    reply = emulator.handle(request, now=MIDNIGHT, new_id="task-1")
    assert isinstance(reply, HttpResponse)
    assert 200 <= reply.status < 500
    assert isinstance(json.loads(reply.body), dict)
    for now in (MIDNIGHT, MIDNIGHT + 5, MIDNIGHT + 1e5, MIDNIGHT + 1e6):
        result = ServiceRequest("GET", "/v1/result/task-1", (BEARER,))
        later = emulator.handle(result, now=now, new_id="")
        assert later.status in (200, 404)
        emulator.media("task-1", now)
    task = emulator.task("task-1")
    if task is not None:
        assert repr(task)
        assert isinstance(task.settings, tuple)
    return reply


@given(
    st.text(max_size=10),
    st.text(max_size=40),
    st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40)), max_size=4),
    st.binary(max_size=100),
    st.sampled_from([(), (BEARER, JSON)]),
)
def test_any_bytes_get_an_answer(
    method: str, target: str, headers: list[tuple[str, str]], body: bytes, good: Headers
) -> None:
    """Any method, path, headers and body get a reply with a status below 500."""
    answer(ServiceRequest(method, target, (*good, *headers), body))


@given(st.sampled_from(PATHS), st.binary(max_size=200))
def test_any_body_gets_an_answer(path: str, body: bytes) -> None:
    """Any bytes as the body of a create call get a reply."""
    answer(ServiceRequest("POST", path, (BEARER, JSON), body))


@given(st.sampled_from(PATHS), json_values | near_bodies())
def test_any_json_gets_an_answer(path: str, value: object) -> None:
    """Any JSON as the body of a create call gets a reply, however near to a good one it is."""
    answer(ServiceRequest("POST", path, (BEARER, JSON), json.dumps(value).encode()))
