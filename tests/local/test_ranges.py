"""Byte ranges (RFC 9110, section 14)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muybridge.local.ranges import Span, requested_span
from muybridge_protocol.emulator.refused import Refused


@pytest.mark.parametrize(
    ("header", "span"),
    [
        ("bytes=0-0", Span(0, 0)),
        ("bytes=0-99", Span(0, 99)),
        ("bytes=10-", Span(10, 99)),
        ("bytes=10-1000", Span(10, 99)),
        ("bytes=-10", Span(90, 99)),
        ("bytes=-1000", Span(0, 99)),
    ],
)
def test_a_range_is_a_stretch_of_the_file(header: str, span: Span) -> None:
    """One range of a file of 100 bytes gives its first and last byte, both included."""
    assert requested_span(header, 100) == span


@pytest.mark.parametrize(
    "header",
    [None, "", "bytes=-", "bytes=5-4", "bytes=a-b", "bytes=0-1,3-4", "items=0-1", "bytes=٣-٤"],
)
def test_what_is_no_single_range_means_the_whole_file(header: str | None) -> None:
    """A range that cannot be read, and one of several parts, is answered with the whole file."""
    assert requested_span(header, 100) is None


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0"])
def test_a_range_outside_the_file_cannot_be_satisfied(header: str) -> None:
    """A range that holds no byte of the file is refused."""
    with pytest.raises(Refused, match="100 bytes") as refused:
        requested_span(header, 100)
    assert refused.value.status == 416


@given(st.text(max_size=20) | st.from_regex(r"bytes=[0-9]*-[0-9]*"), st.integers(1, 1000))
def test_a_span_lies_inside_the_file(header: str, size: int) -> None:
    """Whatever is asked for, what is sent are bytes that the file has."""
    try:
        span = requested_span(header, size)
    except Refused:
        return
    assert span is None or 0 <= span.first <= span.last < size
