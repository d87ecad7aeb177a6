"""The document as a whole: it is OpenAPI, has every endpoint, and is what the service answers."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from emulator.caller import LATER, MIDNIGHT, Caller, new_emulator, read
from families.contracts import CONTRACTS
from muybridge_protocol.families import FAMILIES, VIDC, Family
from muybridge_protocol.openapi import openapi_document
from muybridge_protocol.openapi.bodies import body_schema
from muybridge_protocol.openapi.values import value_schema
from muybridge_protocol.rules.values import Kind

from .schemas import DOCUMENT, SCHEMAS, accepts, matches

# From the specification, by hand: the create calls in the contract of each family.
ENDPOINTS = {
    *(("post", contract.create_path) for contract in CONTRACTS.values()),
    ("get", "/v1/result/{id}"),
    ("delete", "/vidsb/asset/{assetId}"),
    ("post", "/v1/models/{model}:generateContent"),
    ("post", "/v1/models/{model}:streamGenerateContent"),
    ("post", "/v1/chat/completions"),
    ("post", "/v1/messages"),
}
OPERATIONS: dict[tuple[str, str], Any] = {
    (method, path): operation
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
    if method != "servers"
}


@pytest.mark.parametrize("base_url", [None, "https://api.example.com/base/"])
def test_it_is_openapi(base_url: str | None) -> None:
    """An independent validator finds nothing wrong with it, nor one of its schemas."""
    document = openapi_document(base_url=base_url, text_base_url=base_url)
    assert document["openapi"].startswith("3.1.")
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(document)) == document


def test_it_has_every_endpoint() -> None:
    """Each endpoint of the specification is there, and no other."""
    assert set(OPERATIONS) == ENDPOINTS


def test_every_endpoint_wants_the_key() -> None:
    """The key is wanted everywhere, as a bearer token, and 401 and 403 say that it is not good."""
    assert DOCUMENT["security"] == [{"bearer": []}]
    scheme = DOCUMENT["components"]["securitySchemes"]["bearer"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "bearer")
    for operation in OPERATIONS.values():
        assert "security" not in operation
        assert {"200", "401", "403", "default"} == set(operation["responses"])


def test_errors_have_no_shape() -> None:
    """The specification shows no body of an HTTP-level error, and none is made up."""
    for response in DOCUMENT["components"]["responses"].values():
        assert set(response) == {"description"}


def test_text_is_elsewhere() -> None:
    """The text endpoints, and they alone, have a base URL of their own."""
    document = openapi_document(base_url="https://a.test/", text_base_url="http://t.test")
    assert document["servers"] == [{"url": "https://a.test"}]
    for path, item in document["paths"].items():
        text = path.startswith(("/v1/models/", "/v1/chat/", "/v1/messages"))
        assert item.get("servers") == ([{"url": "http://t.test"}] if text else None)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_examples(family: Family) -> None:
    """There is an example for each model, which the service accepts without a word."""
    body = OPERATIONS["post", family.create_path]["requestBody"]["content"]["application/json"]
    assert set(body["examples"]) == ({model.name for model in family.models} or {family.name})
    for name, example in body["examples"].items():
        assert example["value"].get("model", family.name) == name
        report = family.check(example["value"])
        assert (report.problems, report.notices) == ((), ())
        assert accepts(body["schema"]["$ref"].rpartition("/")[2], example["value"])


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_what_only_the_media_can_tell(family: Family) -> None:
    """What cannot be checked before sending stands in the endpoint's description."""
    for note in family.notes:
        assert note in OPERATIONS["post", family.create_path]["description"]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.parametrize("marker", ["", "[fail:content-policy]"])
def test_the_emulator_answers_as_described(family: Family, marker: str) -> None:
    """What a service answers from a task's creation to its end has the described shape."""
    operation = OPERATIONS["post", family.create_path]
    examples = operation["requestBody"]["content"]["application/json"]["examples"]
    caller = Caller(new_emulator())
    for example in examples.values():
        body = {**example["value"], "prompt": f"a horse {marker}"}
        task = caller.create(family.create_path, body)
        assert accepts(f"{family.name.capitalize()}Task", task)
        for moment in (MIDNIGHT, MIDNIGHT + 5, LATER):
            assert accepts("Result", caller.result(task["id"], moment))
        caller.now = MIDNIGHT


def test_a_rejection_at_creation_is_described() -> None:
    """A task of `imgb` that failed at its creation has the described shape."""
    body = {"model": "imgb-2", "prompt": "a horse", "resolution": "2k"}
    task = Caller(new_emulator()).create("/v1/image2/images", body)
    assert task["status"] == "failed"
    assert accepts("ImgbTask", task)
    assert not accepts("ImgbTask", {**task, "error": None})


def test_records_that_are_none() -> None:
    """A record without what it must have, or with a URL too early, is not as described."""
    task = {"id": "t", "object": "video", "created": 1, "model": "m", "status": "queued"}
    assert not accepts("ViddTask", task)
    assert accepts("ViddTask", {**task, "error": None})
    assert accepts("VidvTask", task)
    assert not accepts("VidvTask", {**task, "status": "processing"})
    assert not accepts("VidrTask", task)
    result = {**task, "video_url": "https://cdn.example.net/a.mp4"}
    assert not accepts("Result", result)
    assert accepts("Result", {**result, "status": "completed", "totalTokens": 5.5})
    assert not accepts("Result", {**task, "status": "failed", "error": None})
    assert not accepts("Result", {**task, "status": "done"})


@pytest.mark.parametrize("asset", ["asset-1", "unknown"])
def test_the_reply_to_a_deletion(asset: str) -> None:
    """The emulator's reply to a deletion has the described shape, whether it succeeded or not."""
    reply = Caller(new_emulator(assets=("asset-1",))).send("DELETE", f"/vidsb/asset/{asset}")
    record = read(reply)
    assert accepts("AssetDeletion", record)
    assert not accepts("AssetDeletion", {**record, "code": 0})


TURN = {"parts": [{"text": "a horse?"}]}
TEXT_BODIES: list[tuple[dict[str, Any], bool]] = [
    ({"contents": [TURN]}, True),
    ({"contents": [{**TURN, "role": "user"}, {**TURN, "role": "model"}]}, True),
    ({"contents": [TURN], "systemInstruction": TURN, "safetySettings": []}, True),
    ({"contents": [TURN], "generationConfig": {"temperature": 0.5, "topK": 3}}, True),
    ({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png"}}]}]}, True),
    ({}, False),
    ({"contents": []}, False),
    ({"contents": [{"role": "user"}]}, False),
    ({"contents": [{"parts": []}]}, False),
    ({"contents": [{"parts": [{}]}]}, False),
    ({"contents": [{"parts": [{"text": 5}]}]}, False),
    ({"contents": [{**TURN, "role": "assistant"}]}, False),
    ({"contents": [TURN], "generationConfig": {"maxOutputTokens": 1.5}}, False),
    ({"contents": [TURN], "generationConfig": {"topP": "1"}}, False),
    ({"contents": [TURN], "systemInstruction": {"parts": []}}, False),
]


@pytest.mark.parametrize(("body", "sound"), TEXT_BODIES)
def test_text_requests(body: dict[str, Any], sound: bool) -> None:  # noqa: FBT001  a column of a table
    """The schema of a text request takes what the specification shows, and nothing contrary."""
    assert accepts("GenerateContentRequest", body) is sound


def test_text_replies() -> None:
    """The emulator's answer has the described shape."""
    reply = Caller(new_emulator()).post(
        "/v1/models/textg-2.5-pro:generateContent", {"contents": [TURN]}
    )
    assert accepts("GenerateContentResponse", read(reply))
    assert not accepts("GenerateContentResponse", {"candidates": [{"index": "0"}]})


def test_an_unknown_rule_is_no_silence() -> None:
    """A rule or relation that the document could not say is an error, and is not left out."""

    class Odd:
        name = "odd"
        accepted = "use something else"

        def complaint(self, value: object) -> str | None:
            return str(value)

        def problems(self, values: object, model: str | None) -> Any:
            return iter((values, model))

        def sentence(self) -> str:
            return "Something else is accepted."

    rule: Any = Odd()
    with pytest.raises(TypeError, match="odd"):
        value_schema(Kind.STRING, [rule])
    family = attrs.evolve(VIDC, relations=(rule,))
    family.tie_to(VIDC.request, VIDC.fields)
    with pytest.raises(AttributeError, match=r"rivals|schema"):
        body_schema(family)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_rules_between_fields_are_described(family: Family) -> None:
    """Each rule between fields is described in its own words, with the names on the wire."""
    described = [part.get("description") for part in body_schema(family).get("allOf", ())]
    said = [relation.sentence() for relation in family.relations]
    assert [sentence for sentence in described if sentence is not None] == said


def test_a_models_own_default() -> None:
    """A default that a single model has is given for that model."""
    model = attrs.evolve(VIDC.models[0], defaults={"duration": 7})
    family = attrs.evolve(VIDC, models=(model,))
    family.tie_to(VIDC.request, VIDC.fields)
    condition = {
        "if": {"properties": {"model": {"const": "vidc_o3"}}, "required": ["model"]},
        "then": {"properties": {"duration": {"default": 7}}},
    }
    assert condition in body_schema(family)["allOf"]
    assert matches(body_schema(family), {"model": "vidc_o3", "prompt": "a horse"})


def test_schemas_are_of_this_version() -> None:
    """There is a schema for each family's request and task."""
    names = {f"{name.capitalize()}{what}" for name in FAMILIES for what in ("Request", "Task")}
    assert names < set(SCHEMAS)
