"""A default that is stated can be sent, whatever model and fields are beside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from click.testing import CliRunner

from muybridge.cli.commands import muybridge
from muybridge_protocol.families import FAMILIES, Family
from muybridge_protocol.openapi import openapi_document

from .contracts import CONTRACTS

SCHEMAS: dict[str, Any] = openapi_document()["components"]["schemas"]


def in_schema(family: Family, body: Mapping[str, object]) -> dict[str, object]:
    """Return the defaults that the schema states, with those that are for the body's model."""
    schema = SCHEMAS[f"{family.name.capitalize()}Request"]
    parts = [schema, *(part["then"] for part in schema.get("allOf", ()) if chosen(part, body))]
    return {
        wire: field["default"]
        for part in parts
        for wire, field in part.get("properties", {}).items()
        if "default" in field
    }


def chosen(part: Mapping[str, Any], body: Mapping[str, object]) -> bool:
    """Whether *part* is a condition on the model that *body* meets."""
    model = part.get("if", {}).get("properties", {}).get("model", {})
    return body.get("model") in model.get("enum", [model.get("const")])


@pytest.mark.parametrize("name", FAMILIES)
def test_the_schemas_defaults_can_be_sent(name: str) -> None:
    """Every accepted body stays accepted beside all defaults of the fields that it leaves out."""
    family = FAMILIES[name]
    for case in CONTRACTS[name].accepted:
        full = {**in_schema(family, case.body), **case.body}
        assert [str(problem) for problem in family.check(full).problems] == [], str(case)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_commands_defaults_can_be_sent(name: str) -> None:
    """The same holds for those that the command lists for a family and for each of its models."""
    family = FAMILIES[name]
    record = next(one for one in listed()["families"] if one["name"] == name)
    of_all = {
        field["name"]: field["default"]
        for field in record["fields"]
        if field["default"] is not None
    }
    of_models = {model["name"]: model["defaults"] for model in record["models"]}
    for case in CONTRACTS[name].accepted:
        of_model = of_models.get(str(case.body.get("model")), {})
        assert of_all.items() <= of_model.items() or not of_model
        for defaults in (of_all, of_model):
            assert family.check({**defaults, **case.body}).ok, str(case)


@cache
def listed() -> dict[str, Any]:
    done = CliRunner().invoke(muybridge, ["families", "--json"])
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_what_may_not_be_sent_has_no_default() -> None:
    """The control: the service's own defaults are not all of this kind."""
    pro = {"model": "vidg_video3_pro", "prompt": "A horse", "duration": 10}
    assert not FAMILIES["vidg"].check(pro).ok
    assert in_schema(FAMILIES["vidg"], pro) == {"aspect_ratio": "16:9", "resolution": "720p"}
    stable = {**pro, "model": "vidg_video3_stable"}
    assert in_schema(FAMILIES["vidg"], stable)["duration"] == 10
    assert in_schema(FAMILIES["vidr"], {"model": "vidrPro"}) == {}
    size = SCHEMAS["VidrRequest"]["properties"]["size"]["description"]
    assert size.endswith("If it and its alternative are left out, the service takes 720x1280.")
