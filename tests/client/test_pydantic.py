"""Requests, tasks and results in pydantic's models, and as FastAPI's bodies and answers."""

from __future__ import annotations

import json
from typing import Annotated, Any, cast

import pytest
from fastapi import Body, FastAPI
from fastapi.testclient import TestClient
from pydantic import BaseModel, TypeAdapter, ValidationError

from muybridge import FAMILIES, ImgaRequest, MediaRequest, Result, Task
from muybridge_protocol.families.examples import examples
from muybridge_protocol.families.request import parse

TASK = Task(id="task-1", family="imga", status="queued", submitted_at=5.5)
RESULT = Result(id="task-1", status="completed", family="imga", image_url="https://cdn.test/a.png")
REQUEST = ImgaRequest(model="imga", prompt="A horse")


class Order(BaseModel):
    """What a program of a user stores."""

    wish: ImgaRequest
    any_wish: MediaRequest
    task: Task | None = None
    result: Result | None = None


ORDER = Order(wish=REQUEST, any_wish=REQUEST, task=TASK, result=RESULT)


def test_a_model_has_them_as_fields() -> None:
    """A model takes them as they are and as JSON, and writes the same JSON again."""
    assert ORDER.wish is REQUEST
    assert ORDER.task is TASK
    again = Order.model_validate_json(ORDER.model_dump_json())
    assert again == ORDER
    assert again.model_dump() == ORDER.model_dump() == json.loads(ORDER.model_dump_json())


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_each_family_has_a_schema(name: str) -> None:
    """The schema of each family names its fields, and the class reads what it writes."""
    family = FAMILIES[name]
    adapter = TypeAdapter[Any](family.request)
    schema = adapter.json_schema()
    assert set(schema["properties"]) == {field.wire for field in family.fields}
    for body in examples(family).values():
        request = parse(family, body)
        assert adapter.validate_json(adapter.dump_json(request)) == request


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ({"wish": {"model": "imga"}}, "prompt: is required"),
        ({"wish": {"model": "imga", "promt": "A horse"}}, "did you mean prompt"),
        ({"wish": "A horse"}, "a ImgaRequest is a JSON object"),
        ({"any_wish": {"family": "nowhere"}}, "is not the family"),
        ({"task": {"id": ""}}, "is not a valid task id"),
        ({"result": {"id": "task-1"}}, "it has no status"),
    ],
)
def test_mistakes_are_reported(order: dict[str, Any], said: str) -> None:
    """What the service would refuse, or is no task or result, is an error of pydantic."""
    with pytest.raises(ValidationError, match=said):
        Order.model_validate({**ORDER.model_dump(), **order})


def test_fastapi_takes_and_returns_them() -> None:
    """An endpoint takes a request, and returns a task or a result; a wrong request is a 422."""
    app = FastAPI()

    @app.post("/pictures")
    def create(request: Annotated[ImgaRequest, Body()]) -> Task:  # pyright: ignore[reportUnusedFunction]
        assert request == REQUEST
        return TASK

    @app.post("/results")
    def finish(task: Annotated[Task, Body()]) -> Result:  # pyright: ignore[reportUnusedFunction]
        assert task == TASK
        return RESULT

    client = cast("Any", TestClient(app))
    answer = client.post("/pictures", json={"model": "imga", "prompt": "A horse"})
    assert (answer.status_code, Task.from_dict(answer.json())) == (200, TASK)
    answer = client.post("/results", json=answer.json())
    assert (answer.status_code, Result.from_dict(answer.json())) == (200, RESULT)
    answer = client.post("/pictures", json={"model": "imga"})
    assert answer.status_code == 422
    assert "prompt: is required" in answer.text
    paths = client.get("/openapi.json").json()["paths"]
    posted = paths["/pictures"]["post"]
    body = posted["requestBody"]["content"]["application/json"]["schema"]
    assert "prompt" in body["properties"]
    answered = posted["responses"]["200"]["content"]["application/json"]["schema"]
    assert answered["required"] == ["id"]
