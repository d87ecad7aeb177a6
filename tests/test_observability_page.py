"""The page about observability is complete."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import pytest

from muybridge.observability.facts import ALLOWED
from muybridge.observability.semantics import generation
from muybridge_protocol.call_info import CallInfo, CallKind
from muybridge_protocol.families import FAMILIES

PAGE = (Path(__file__).parent.parent / "docs" / "observability.md").read_text("utf-8")

SECTION = PAGE.partition("\n## Metrics\n")[2]
# They moved within the conventions, and are marked as deprecated here.
_CONVENTIONS = "opentelemetry.semconv._incubating"
NAMES: Any = import_module(f"{_CONVENTIONS}.attributes.gen_ai_attributes")
METRICS: Any = import_module(f"{_CONVENTIONS}.metrics.gen_ai_metrics")
HOME = Path(__file__).parent.parent / "transports" / "muybridge" / "observability"
DASHBOARD = json.loads((HOME.parents[2] / "docs" / "grafana-dashboard.json").read_text("utf-8"))


def named_in(file: str) -> set[str]:
    """Return the names of attributes and metrics in a module."""
    names = r'"((?:muybridge|http|url|server|error|gen_ai)\.[a-z_.]+)"'
    return set(re.findall(names, (HOME / file).read_text("utf-8")))


def test_every_event_and_its_facts() -> None:
    """The table lists each kind of event with exactly its facts."""
    rows = re.findall(r"^\| `([A-Z]\w+)` \| [^|]+ \|([^|]*)\|$", PAGE, re.MULTILINE)
    found = {name: re.findall(r"`(\w+)`", told) for name, told in rows}
    listed = {
        kind.__name__: [path.rpartition(".")[2] for path in paths]
        for kind, paths in ALLOWED.items()
    }
    assert found == listed, "give each event a row in the table of docs/observability.md"


def test_every_attribute_of_a_span() -> None:
    """The table of spans lists each possible attribute."""
    made = named_in("opentelemetry.py") | named_in("semantics.py")
    table = "".join(re.findall(r"^\| (?:call|request) \|.*$", PAGE, re.MULTILINE))
    assert set(re.findall(r"`([a-z_.]+)`", table)) == made


def test_the_names_of_generative_ai() -> None:
    """Every name that begins with `gen_ai.` is one of the semantic conventions."""
    known = {
        value
        for module in (NAMES, METRICS)
        for name, value in cast("dict[str, Any]", vars(module)).items()
        if name.startswith("GEN_AI_")
    }
    ours = named_in("opentelemetry.py") | named_in("semantics.py") | named_in("metrics.py")
    ours = {name for name in ours if name.startswith("gen_ai.")}
    assert len(ours) >= 9
    assert ours <= known


def test_the_values_of_generative_ai() -> None:
    """Where the conventions list values, ours are among them, except for video, which they lack."""
    types = {one.value for one in NAMES.GenAiOutputTypeValues}
    kinds: tuple[CallKind, ...] = ("create", "text", "text stream")
    for kind in kinds:
        for family in FAMILIES:
            told = generation(CallInfo(number=1, kind=kind, family=family))
            assert told["gen_ai.operation.name"] in {
                one.value for one in NAMES.GenAiOperationNameValues
            }
            assert told["gen_ai.output.type"] in {*types, "video"}
    assert "video" not in types, "they have a word for it now"


def metrics() -> dict[str, set[str]]:
    """Return the names that Prometheus has for each metric, with the attributes in the page."""
    rows = re.findall(
        r"^\| `((?:gen_ai|muybridge)\.[a-z_.]+)` \| ([a-z -]+) \| ([^|]+) \|([^|]*)\|$",
        SECTION,
        re.MULTILINE,
    )
    everywhere = re.search(r"^All have (.*?), as far", SECTION, re.MULTILINE | re.DOTALL)
    assert everywhere
    common = re.findall(r"`([a-z_]+\.[a-z_.]+)`", everywhere[1])
    found: dict[str, set[str]] = {}
    for name, kind, _, own in rows:
        labels = {label.replace(".", "_") for label in (*common, *re.findall(r"`([a-z_.]+)`", own))}
        for one in in_prometheus(name, kind):
            found[one] = labels
    return found


def in_prometheus(name: str, kind: str) -> list[str]:
    """Return what its exporters call a metric."""
    name = name.replace(".", "_")
    match kind:
        case "counter":
            return [f"{name}_total"]
        case "histogram":
            unit = "_seconds" if name.endswith("duration") else ""
            return [f"{name}{unit}_{part}" for part in ("bucket", "sum", "count")]
        case _:
            return [name]


def test_every_metric_is_in_the_page() -> None:
    """The table of metrics and what is said below list each metric and attribute, and no other."""
    rows = re.findall(r"^\| `.*$|^All have [^.]*(?:\.[a-z][^.]*)*\.$", SECTION, re.MULTILINE)
    listed = "".join(rows)
    made = named_in("metrics.py") | named_in("semantics.py")
    assert set(re.findall(r"`((?:gen_ai|muybridge|error)\.[a-z_.]+)`", listed)) == made


EXPRESSIONS = [
    *(target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]),
    *re.findall(r"expr: (?:>\n)?(.*?)\n +(?:annotations|for):", SECTION, re.DOTALL),
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_metrics_of_the_dashboard_and_the_alerts(expression: str) -> None:
    """Each expression of the dashboard and of the alerts names metrics and attributes there are."""
    known = metrics()
    words = set(re.findall(r"\b(?:gen_ai|muybridge)_[a-z_]+", expression))
    named = words & known.keys()
    assert named
    labels = set[str].union(*(known[one] for one in named))
    assert words - named <= labels


def test_the_dashboard_shows_every_metric() -> None:
    """No metric is left out of the dashboard, except for the one that another one sums up."""
    text = json.dumps(DASHBOARD)
    for name, kind in re.findall(
        r"^\| `((?:gen_ai|muybridge)\.[a-z_.]+)` \| ([a-z -]+) \|", SECTION, re.MULTILINE
    ):
        shown = any(one in text for one in in_prometheus(name, kind))
        assert shown or name == "gen_ai.client.token.usage", name
