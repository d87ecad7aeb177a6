"""Blocking code and event loops are served by faces that say the same."""

from __future__ import annotations

import pytest

from .faces import CONSTRUCTORS, FACES, OWN, TRANSPORTS, copied, methods, with_constructor

RUN = "run python -m tests.generators.faces"


@pytest.mark.parametrize("faces", FACES.items(), ids=lambda faces: faces[1][1])
def test_signatures_and_docstrings_are_the_same(faces: tuple[tuple[str, str], ...]) -> None:
    """`python -m tests.generators.faces` has nothing to copy from the asynchronous face."""
    (source, source_name), (target, target_name) = faces
    text = (TRANSPORTS / target).read_text("utf-8")
    original = (TRANSPORTS / source).read_text("utf-8")
    assert copied(original, source_name, text, target_name) == text, RUN


@pytest.mark.parametrize("faces", FACES.items(), ids=lambda faces: faces[1][1])
def test_no_method_is_missing(faces: tuple[tuple[str, str], ...]) -> None:
    """What one face does, the other one does, too."""
    names = [
        {name for name, _, _ in methods((TRANSPORTS / path).read_text("utf-8"), owner)}
        for path, owner in faces
    ]
    assert names[0] == names[1]
    assert len(names[0] - OWN) > 0


def test_the_constructor_is_the_same() -> None:
    """It has nothing to copy from the asynchronous client's constructor, either."""
    (source, source_name), (target, target_name) = CONSTRUCTORS
    text = (TRANSPORTS / target).read_text("utf-8")
    original = (TRANSPORTS / source).read_text("utf-8")
    assert with_constructor(original, source_name, text, target_name) == text, RUN
