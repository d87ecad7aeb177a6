"""Docstrings as they are passed to Sphinx."""

from __future__ import annotations

from typing import Any

from muybridge_docs.docstrings import end_sentences, shorten_signature, show_examples, with_examples

APP: Any = None


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
