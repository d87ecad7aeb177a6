"""Word pieces: the tokens of the text endpoints."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge_protocol.emulator.text import word_pieces


@given(st.text(st.characters()))
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    """Pieces are never empty, put together they are the text, and there are as many as counted."""
    pieces = word_pieces.split(text)
    assert "".join(pieces) == text
    assert all(pieces)
    assert word_pieces.count(text) == len(pieces)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("a horse runs", ["a", " horse", " runs"]),
        ("photographer", ["photog", "rapher"]),
        ("wait... no!", ["wait", ".", ".", ".", " no", "!"]),
        ("a  b\n\nc", ["a", "  ", "b", "\n\n", "c"]),
        ("\U0001f40e\U0001f40e", ["\U0001f40e", "\U0001f40e"]),
    ],
)
def test_texts_fall_into_pieces(text: str, pieces: list[str]) -> None:
    """Words keep the space before them and long ones are cut; other marks stand alone."""
    assert list(word_pieces.split(text)) == pieces
