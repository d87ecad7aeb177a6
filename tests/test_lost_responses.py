"""One lost response costs one POST, says `python -m benchmarks lost_responses` of this library."""

from __future__ import annotations

import pytest
from benchmarks.lost_responses import FAULTS, OURS, Library, count, posts_for

from muybridge import CreateAmbiguous


@pytest.mark.parametrize("library", OURS, ids=lambda library: library.name)
@pytest.mark.parametrize("fault", FAULTS)
def test_one_lost_reply_costs_one_post(library: Library, fault: str) -> None:
    """Whatever happens to the reply, a create is sent once."""
    assert posts_for(library.create, FAULTS[fault]) == 1


def test_a_library_that_sends_again_is_counted_as_such() -> None:
    """Every POST that comes is counted, and not only the first one."""

    def three_times(url: str) -> None:
        for _ in range(2):
            with pytest.raises(CreateAmbiguous):
                OURS[0].create(url)
        OURS[0].create(url)

    assert posts_for(three_times, FAULTS["closed"]) == 3


def test_what_does_not_send_is_no_result() -> None:
    """A library that sends nothing, or succeeds, is not counted as a good one."""
    with pytest.raises(RuntimeError, match="0 POSTs came"):
        posts_for(str, FAULTS["closed"])


def test_what_is_not_installed_is_left_out() -> None:
    """A library that is not installed is named, and not counted."""
    counted = count((Library("ours no more", "no-such-distribution", str),))
    assert not counted.posts
    assert "not installed: no-such-distribution" in counted.lines()[-1]
