"""Docstrings as they are passed to Sphinx."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

import attrs
import pytest

from muybridge_docs.docstrings import end_sentences, shorten_signature, show_examples, with_examples
from muybridge_docs.public_names import MODULES

APP: Any = None


@pytest.mark.parametrize("name", MODULES)
def test_the_arguments_of_classes(name: str) -> None:
    """A public class that lists its arguments lists every one, so that editors show it."""
    for kind in {one for one in vars(import_module(name)).values() if inspect.isclass(one)}:
        told = (kind.__dict__.get("__doc__") or "").partition("Args:\n")[2]
        if not told or not attrs.has(kind) or not kind.__module__.startswith("muybridge"):
            continue
        listed = set(re.findall(r"^ +(\w+):", told, re.MULTILINE))
        own = [field.name for field in attrs.fields(kind) if field.init and not field.inherited]
        lacking = {field for field in own if not field.startswith("_")} - listed
        assert not lacking, (
            f"explain {lacking} in the docstring of {kind.__module__}.{kind.__name__}"
        )


def test_an_example_becomes_code() -> None:
    """Indented blocks after an empty line are shown as code; arguments are not."""
    example = ["    one()", "", "    two('data:...')", ""]
    after = ["Go on.", "", "Args:", "    x: It."]
    assert with_examples(["Do it.", "", *example, *after]) == [
        *("Do it.", "", "::", "", *example),
        *after,
    ]


def test_a_word_is_no_link() -> None:
    """Text that reStructuredText would take for a link is shown as written."""
    assert with_examples(["Use a data:...;base64 URI."]) == [r"Use a data\:...;base64 URI."]


def test_a_sentence_is_no_type() -> None:
    """The colon in an attribute's first sentence is hidden while napoleon looks for a type."""
    lines = ["Whether: nothing is left."]
    show_examples(APP, "property", "a", None, None, lines)
    assert ":" not in lines[0]
    end_sentences(APP, "property", "a", None, None, lines)
    assert lines == ["Whether: nothing is left."]


def test_signatures() -> None:
    """Defaults without a literal are three dots; classes that nobody calls have no signature."""

    def shortened(what: str, signature: str) -> object:
        return shorten_signature(APP, what, "a", None, None, signature, None)

    assert shortened("class", "(*, raw=NOTHING)") == ("(*, raw=...)", None)
    assert shortened("function", "(a=<function <lambda>>, b=1)") == ("(a=..., b=1)", None)
    assert shortened("class", "(*args, **kwargs)") == ("", None)
    assert shortened("function", "(*args, **kwargs)") == ("(*args, **kwargs)", None)
