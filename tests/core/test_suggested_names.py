"""An unknown argument of a budget or of settings: the error says what was probably meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from muybridge import Budget, GenerationConfig


@pytest.mark.parametrize(
    ("call", "name", "said"),
    [
        (Budget, "max_cost", "Budget has no argument 'max_cost'; did you mean cost?"),
        (Budget, "xyz", "Budget has no argument 'xyz'; use creates, pictures, seconds, calls,"),
        (GenerationConfig, "temprature", "'temprature'; did you mean temperature?"),
        (GenerationConfig, "max_tokens", "'max_tokens'; did you mean max_output_tokens?"),
    ],
)
def test_an_unknown_argument(call: Callable[..., object], name: str, said: str) -> None:
    """It names the closest argument, or else all of them."""
    values: dict[str, Any] = {name: 5}
    with pytest.raises(TypeError) as caught:
        call(**values)
    assert said in str(caught.value)


def test_the_signature_is_the_class_own() -> None:
    """Tools still see which arguments there are."""
    assert [*inspect.signature(Budget).parameters][-1] == "per"
