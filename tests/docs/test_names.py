"""Names in docstrings and annotations link to their documentation."""

from __future__ import annotations

from typing import Any

import pytest

from muybridge_docs.links import resolve
from muybridge_docs.public_names import explained
from muybridge_protocol.families import FAMILIES


class Domain:
    """Sphinx's Python domain, which knows where `Client` and `Task` are documented."""

    def resolve_xref(self, *arguments: Any) -> str | None:
        target = arguments[4]
        return f"link to {target}" if target.startswith("muybridge.") else None


class Environment:
    """Sphinx's environment."""

    def get_domain(self, name: str) -> Domain:
        assert name == "py"
        return Domain()


class App:
    """Sphinx."""

    builder = None


def resolved(target: str, kind: str = "class", domain: str = "py") -> object:
    """Return the result of a reference to *target*; "plain" is its text without a link."""
    node: Any = {"refdomain": domain, "reftarget": target, "reftype": kind, "refdoc": "page"}
    plain: Any = "plain"
    app: Any = App()
    environment: Any = Environment()
    return resolve(app, environment, node, plain)


def test_a_bare_name_is_found() -> None:
    """A bare name in an annotation links to its documentation, and so does a class member."""
    assert resolved("Task") == "link to muybridge.Task"
    assert resolved("Task.to_token", "obj") == "link to muybridge.Task.to_token"


@pytest.mark.parametrize(
    "target", ["Path", "pathlib.Path", "int", "'16:9'", "12", "httptools.HttpParser"]
)
def test_what_is_foreign_stays_plain(target: str) -> None:
    """The standard library, foreign types and literals are neither links nor mistakes."""
    expected = None if target == "Path" else "plain"
    assert resolved(target) == expected


def test_words_stay_plain_and_mistakes_are_told() -> None:
    """A word in backticks may be anything; our own explicit or annotated names must exist."""
    assert resolved("referenceImages", "obj") == "plain"
    assert resolved("muybridge_protocol.records.tasks.Tusk") is None
    assert resolved("Tusk") is None
    assert resolved("Task", domain="std") is None


def test_request_classes_come_first_and_values_last() -> None:
    """A reference page begins with what readers look for: on that of requests, their classes."""
    names = [public.name for public in explained()["muybridge_protocol.families"]]
    requests = [f"{name.capitalize()}Request" for name in FAMILIES]
    assert names[: len(requests)] == requests
    for public in explained().values():
        callables = [one.is_callable for one in public]
        assert callables == sorted(callables, reverse=True)
