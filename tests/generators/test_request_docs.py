"""The docstrings in the source are those that the families' tables make."""

from __future__ import annotations

import pytest

from muybridge_protocol.families import FAMILIES

from .request_docs import FOLDER, RECORDS, with_arguments, written

RUN = "run python -m tests.generators.request_docs"


@pytest.mark.parametrize("name", FAMILIES)
def test_docstrings_are_those_of_the_table(name: str) -> None:
    """`python -m tests.generators.request_docs` would change nothing."""
    source = (FOLDER / f"{name}.py").read_text("utf-8")
    assert written(FAMILIES[name], source) == source, RUN


def test_fields_of_records_say_what_their_class_says() -> None:
    """The same holds for tasks and results, whose classes explain their arguments."""
    source = RECORDS.read_text("utf-8")
    assert with_arguments(source) == source, RUN
    assert source.count("The task's identifier.") == 4


def test_a_field_that_its_class_does_not_explain() -> None:
    """A new field of a record needs a line in its class's docstring, and the generator says so."""
    source = RECORDS.read_text("utf-8").replace("        error: Why it failed, or None.\n", "")
    with pytest.raises(LookupError, match="docstring of Task says nothing about error"):
        with_arguments(source)
