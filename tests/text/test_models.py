"""The catalogue of text models, against the specification's table, transcribed by hand."""

from __future__ import annotations

from typing import Any

import pytest

from muybridge_protocol.errors import InvalidRequest, LocalError
from muybridge_protocol.families import Unlisted
from muybridge_protocol.text.models import TEXT_MODELS, Variant, model_problem, path_name
from muybridge_protocol.text.request import GenerateContentRequest

EVERY_BASE = [
    "textg-2.5-flash-lite",
    "textg-2.5-pro",
    "textg-3-flash-preview",
    "textg-3.1-flash-lite-preview",
    "textg-3.1-pro-preview",
]
ACCEPTED = {
    "textg-2.5-flash-lite",
    "textg-2.5-pro",
    "textg-2.5-pro-official",
    "textg-2.5-pro-low",
    "textg-3-flash-preview",
    "textg-3-flash-preview-official",
    "textg-3-flash-preview-low",
    "textg-3.1-flash-lite-preview",
    "textg-3.1-pro-preview",
    "textg-3.1-pro-preview-official",
    "textg-3.1-pro-preview-low",
}


@pytest.mark.parametrize("suffix", ["", "-official", "-low"])
@pytest.mark.parametrize("base", EVERY_BASE)
def test_every_base_with_every_suffix(base: str, suffix: str) -> None:
    """A model is accepted if and only if the specification lists its base with its variant."""
    problem = model_problem(base + suffix)
    assert (problem is None) is (base + suffix in ACCEPTED)
    if problem is not None:
        assert problem.rule == "variant"
        assert str(problem) == f"model: {base} has no variant {suffix}; use {base}"


def test_the_catalogue() -> None:
    """The catalogue holds the eleven models and says what each one is."""
    assert set(TEXT_MODELS) == ACCEPTED
    for name, model in TEXT_MODELS.items():
        assert model.name == name
        assert model.base in EVERY_BASE
        assert name == model.base + model.variant
    assert TEXT_MODELS["textg-2.5-pro-low"].variant is Variant.LOW
    assert TEXT_MODELS["textg-2.5-pro-official"].variant is Variant.OFFICIAL
    assert TEXT_MODELS["textg-2.5-pro"].variant is Variant.STANDARD


@pytest.mark.parametrize(
    ("model", "close"),
    [
        ("textg-2.5-pr", "textg-2.5-pro"),
        ("textg-2.5-Pro", "textg-2.5-pro"),
        ("textg-3-flash", "textg-3-flash-preview"),
        ("textg-2.5-pro-lwo", "textg-2.5-pro-low"),
        (" textg-2.5-pro", "textg-2.5-pro"),
    ],
)
def test_a_close_name_is_suggested(model: str, close: str) -> None:
    """A misspelt model is refused with the name that was probably meant."""
    problem = model_problem(model)
    assert problem is not None
    assert str(problem) == (
        f"model: {model!r} is not a known text model; did you mean {close}? "
        "Unlisted(name) sends another on purpose"
    )


ODD: list[Any] = ["", "gpt", "-low", "textg-2.5-pro-low-low-low-low", None, 5, b"textg-2.5-pro",
                  ["textg-2.5-pro"], "\ud800", "x" * 10**6]  # fmt: skip


@pytest.mark.parametrize("model", ODD, ids=lambda model: ascii(model)[:20])
def test_what_is_no_model(model: Any) -> None:
    """Whatever is no model is refused in a short and printable sentence, and nothing is raised."""
    problem = model_problem(model)
    assert problem is not None
    assert str(problem).isprintable()
    assert len(str(problem)) < 500
    with pytest.raises(InvalidRequest, match="model"):
        GenerateContentRequest(model=model, contents="x")


def test_unlike_names_get_the_list() -> None:
    """A name that is like none gets all of them to choose from."""
    assert all(name in str(model_problem("gpt")) for name in ACCEPTED)


def test_another_model_on_purpose() -> None:
    """What the catalogue does not know is sent as `Unlisted`, also an impossible variant."""
    for name in ("textg-4-pro", "textg-2.5-flash-lite-low", "tuned:v1"):
        request = GenerateContentRequest(model=Unlisted(name), contents="x")
        assert path_name(request.model) == name


@pytest.mark.parametrize(
    "name", ["a/b", "..", "a?b", "a#b", "a b", "a\\b", "é", "a%2fb", "a" * 300]
)
def test_no_name_leaves_the_path(name: str) -> None:
    """A name that could change the path is refused, although it is sent on purpose."""
    with pytest.raises(LocalError, match="Nothing was sent"):
        path_name(Unlisted(name))
