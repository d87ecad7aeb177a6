"""The files of vectors: what is in each, and how it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .budgets import budget_cases
from .intervals import interval_cases
from .operations import operation_cases, response_cases
from .requests_made import invalid_cases, request_cases
from .streams import stream_cases
from .tables import delivery_cases, family_cases, rule_cases
from .telling import NOW, SERVICE, WALL

VECTORS = Path(__file__).parent / "data"
VERSION = 1


def make() -> dict[str, str]:
    """Return the text of each file by its name."""
    service = {"base_url": SERVICE.base_url, "text_base_url": SERVICE.text_base_url}
    start = {"now": NOW, "wall": WALL, "seed": 0}
    return {
        "families.json": _file("families", family_cases()),
        "rules.json": _file("rules", rule_cases()),
        "delivery.json": _file("delivery", delivery_cases()),
        "requests.json": _file("requests", request_cases(), service=service),
        "invalid-requests.json": _file("invalid-requests", invalid_cases()),
        "responses.json": _file("responses", response_cases(), service=service, start=start),
        "operations.json": _file("operations", operation_cases(), service=service),
        "intervals.json": _file("intervals", interval_cases(), start=start),
        "streams.json": _file("streams", stream_cases()),
        "budgets.json": _file("budgets", budget_cases()),
    }


def _file(name: str, cases: list[dict[str, Any]], **more: object) -> str:
    names = [case["name"] for case in cases]
    assert len(set(names)) == len(names), f"{name}: a name stands twice"
    head = {"vectors": name, "version": VERSION, **more}
    return json.dumps({**head, "cases": cases}, indent=1) + "\n"
