"""`families` and `models`, for people and for programs."""

from __future__ import annotations

import json

import pytest

from muybridge_protocol.families import FAMILIES

from .conftest import Invoke


def test_families_are_listed(invoke: Invoke) -> None:
    """Every family has a line of its own when the table is piped, and nothing is cut off."""
    ended = invoke("families")
    assert ended.exit_code == 0
    lines = ended.stdout.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(FAMILIES)
    assert "1 day for the task record and the video; both are then deleted" in ended.stdout
    (vidm,) = (line for line in lines if line.split()[0] == "vidm")
    assert "30-60 s (assumed)" in vidm
    assert "…" not in ended.stdout


def test_models_show_what_sets_them_apart(invoke: Invoke) -> None:
    """A model's line, when piped, holds its limits, its billing and its pace."""
    lines = invoke("models", "vidg").stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("vidg_video3_max"))
    assert "--duration: use 6, 10, 12, 16, 20 or 30" in line
    assert line.split()[-5:] == ["per", "second", "30-60", "s"][-5:] or "per second" in line


def test_all_models_are_shown(invoke: Invoke) -> None:
    """Without a family the models of all are shown."""
    shown = invoke("models").stdout.split()
    for family in FAMILIES.values():
        assert f"{family.name}:" in shown
        assert {model.name for model in family.models} <= set(shown)


@pytest.mark.parametrize("words", [(), ("text",), ("imga",), ("vidm",)])
def test_no_blank_line_strays(invoke: Invoke, words: tuple[str, ...]) -> None:
    """Blank lines stand between the parts alone, and none is at the end."""
    shown = invoke("models", *words).stdout
    assert shown.endswith("\n")
    assert "" not in (shown.splitlines()[0], shown.splitlines()[-1])
    assert "\n\n\n" not in shown


def test_families_as_json(invoke: Invoke) -> None:
    """Programs get the whole tables: fields, rules, pacing and whether it is assumed."""
    told = json.loads(invoke("families", "--json").stdout)
    families = {family["name"]: family for family in told["families"]}
    assert list(families) == list(FAMILIES)
    assert families["vidm"]["pacing"]["assumed"] is True
    assert families["vidsa"]["retention"]["record_too"] is True
    assert families["videos"]["aliases"] == [
        {"legacy": "image", "field": "first_image"},
        {"legacy": "lastFrameImage", "field": "last_image"},
    ]
    (duration,) = (f for f in families["vidsb"]["fields"] if f["name"] == "duration")
    assert (duration["type"], duration["default"]) == ("integer", 5)
    assert duration["rules"][0] == {
        "rule": "between", "low": 4, "high": 15, "also": [], "unit": "s",
        "accepted": "use 4 to 15 s",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("family", "model", "pacing"),
    [
        ("vidsb", "vidsb_2_0_fast", (10, 20, 10)),
        ("vidsb", "vidsb_2_0", (20, 40, 10)),
        ("vidsa", "vidsa_1_5_pro_480p", (10, 20, 10)),
        ("vidv", "vidv_3_1_pro", (30, 60, 30)),
        ("imga", "imga", (2, 5, None)),
    ],
)
def test_models_as_json(
    invoke: Invoke, family: str, model: str, pacing: tuple[float | None, ...]
) -> None:
    """Programs get a model's limits, its family's included, its defaults, and its own pace."""
    told = json.loads(invoke("models", family, "--json").stdout)
    (found,) = (record for record in told["models"] if record["name"] == model)
    assert (
        found["pacing"]["shortest"], found["pacing"]["longest"], found["pacing"]["minimum"],
    ) == pacing  # fmt: skip
    assert "prompt" in found["limits"]
    assert found["retention"]["note"] == FAMILIES[family].retention.note


def test_the_json_of_a_model_of_imgb(invoke: Invoke) -> None:
    """The limits of imgb-2-r hold its own besides its family's, and how it is billed."""
    told = json.loads(invoke("models", "imgb", "--json").stdout)["models"][1]
    assert told["billing"] == "by resolution"
    assert told["own_limits"] == ["image_urls", "resolution"]
    assert [rule["accepted"] for rule in told["limits"]["resolution"]] == [
        "use 1k, 2k or 4k",
        "use 1k",
    ]
    assert told["defaults"] == {"quality": "low", "ratio": "1:1", "resolution": "1k"}


VIDEO_SETTINGS = ("duration", "ratio")
FOLLOWS = "the output follows the reference video"


@pytest.mark.parametrize(
    ("family", "told"),
    [
        (
            "vidc",
            [f"--{name} is ignored with --reference-videos: {FOLLOWS}." for name in VIDEO_SETTINGS],
        ),
        (
            "imgb",
            [
                "--quality is ignored for imgb-2-r.",
                "--resolution is ignored with --size: the exact size overrides it.",
                "--ratio is ignored with --size: the exact size overrides it.",
            ],
        ),
        ("vidd", []),
    ],
)
def test_an_ignored_option_is_told_with_its_condition(
    invoke: Invoke, family: str, told: list[str]
) -> None:
    """What is said to be ignored is said with what makes it so, in tables and help alike."""
    for words in (("models", family), ("run", family, "--help"), ("create", family, "--help")):
        shown = invoke(*words, terminal_width=500).stdout
        lines = [line.strip() for line in shown.splitlines()]
        assert [line for line in lines if line.startswith("--") and " is ignored" in line] == told


def test_an_ignored_field_is_told_to_programs_with_its_condition(invoke: Invoke) -> None:
    """Programs learn beside what, or for which models, a field is ignored."""
    families = json.loads(invoke("families", "--json").stdout)["families"]
    rules = {family["name"]: family["ineffective"] for family in families if family["ineffective"]}
    assert set(rules) == {"imgb", "vidc"}
    for rule in (rule for found in rules.values() for rule in found):
        assert bool(rule["other"]) is not bool(rule["models"])
