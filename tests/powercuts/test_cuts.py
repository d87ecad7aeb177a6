"""The power is cut after every operation: in every state, the library continues safely."""

from __future__ import annotations

from itertools import islice, product

import pytest

from .disk import Model
from .recording import load
from .replay import cuts, judge
from .scenes import SCENES

STRIDES = {
    ("batch", Model.STRICT): 139,
    ("batch", Model.ORDERED): 31,
    ("batch-again", Model.STRICT): 89,
    ("batch-again", Model.ORDERED): 29,
    ("crowd", Model.STRICT): 139,
    ("crowd", Model.ORDERED): 31,
    ("names", Model.STRICT): 37,
    ("names", Model.ORDERED): 11,
    ("names-again", Model.STRICT): 37,
    ("names-again", Model.ORDERED): 11,
    ("pictures", Model.STRICT): 7,
    ("pictures", Model.ORDERED): 3,
}
"""One state in how many is tried here. `python -m tests.powercuts` tries all of them, nightly."""


@pytest.mark.parametrize(("name", "model"), STRIDES)
def test_some_states(name: str, model: Model) -> None:
    """Nothing is paid for twice or lost in a sample of the states."""
    stride = STRIDES[name, model]
    tried = [
        judge(SCENES[name], cut) for cut in islice(cuts(load(name), model, 1), 0, None, stride)
    ]
    assert [str(fault) for fault in tried if fault is not None] == []
    assert len(tried) >= 50


def test_no_scene_is_left_out() -> None:
    """Every scene is tried under both models."""
    assert set(STRIDES) == set(product(SCENES, Model))
