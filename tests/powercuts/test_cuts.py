"""The power is cut after every operation: in every state, the library continues safely."""

from __future__ import annotations

from itertools import islice, product

import pytest

from .disk import Model
from .recording import load
from .replay import cuts, judge
from .scenes import SCENES

STRIDES = {
    ("batch", Model.STRICT): (5, 31),
    ("batch", Model.ORDERED): (3, 13),
    ("batch-again", Model.STRICT): (5, 23),
    ("batch-again", Model.ORDERED): (3, 13),
    ("crowd", Model.STRICT): (5, 31),
    ("crowd", Model.ORDERED): (3, 13),
    ("names", Model.STRICT): (1, 37),
    ("names", Model.ORDERED): (1, 11),
    ("names-again", Model.STRICT): (1, 37),
    ("names-again", Model.ORDERED): (1, 11),
    ("pictures", Model.STRICT): (1, 7),
    ("pictures", Model.ORDERED): (1, 3),
}
"""The power is cut after one operation in how many, and one in how many of these states is tried.

`python -m tests.powercuts` tries all of them, nightly.
"""


@pytest.mark.parametrize(("name", "model"), STRIDES)
def test_some_states(name: str, model: Model) -> None:
    """Nothing is paid for twice or lost in a sample of the states."""
    operations, states = STRIDES[name, model]
    sample = islice(cuts(load(name), model, 1, operations), 0, None, states)
    tried = [judge(SCENES[name], cut) for cut in sample]
    assert [str(fault) for fault in tried if fault is not None] == []
    assert len(tried) >= 50


def test_no_scene_is_left_out() -> None:
    """Every scene is tried under both models."""
    assert set(STRIDES) == set(product(SCENES, Model))
