"""Reading batches: three file formats, all checked, every problem reported with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from muybridge import ImgbRequest
from muybridge.batch import read_items
from muybridge_protocol.errors import InvalidInput

HORSE = {"family": "imgb", "model": "imgb-2", "prompt": "A horse"}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def problems(source: Any) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        read_items(source)
    return [str(problem) for problem in caught.value.problems]


def test_three_forms_say_the_same(tmp_path: Path) -> None:
    """JSON lines, JSON and CSV of the same requests give the same items, each value in its type."""
    items = [
        {"family": "imgb", "model": "imgb-2", "prompt": 'A horse, "fast"\nand far', "name": "a"},
        {
            "family": "vidsb",
            "model": "vidsb_2_0_pro",
            "prompt": "A horse",
            "duration": 5,
            "generateAudio": True,
            "referenceImages": ["https://a.test/1.png", "https://a.test/2.png"],
            "extra": {"mood": "calm"},
        },
    ]
    cells = '"[""https://a.test/1.png"", ""https://a.test/2.png""]","{""mood"": ""calm""}"'
    forms = {
        "b.jsonl": "\n".join(map(json.dumps, items)),
        "b.json": json.dumps(items),
        "b.csv": "family,model,prompt,name,duration,generateAudio,referenceImages,extra\r\n"
        'imgb,imgb-2,"A horse, ""fast""\nand far",a,,,,\r\n'
        f"vidsb,vidsb_2_0_pro,A horse,,5,true,{cells}\r\n",
    }
    read = [read_items(written(tmp_path, name, text)) for name, text in forms.items()]
    assert read[0] == read[1] == read[2] == read_items(items)
    assert read[0][1].body == {
        "model": "vidsb_2_0_pro",
        "prompt": "A horse",
        "duration": 5,
        "generateAudio": True,
        "referenceImages": ["https://a.test/1.png", "https://a.test/2.png"],
        "mood": "calm",
    }


def test_fields_have_their_names_in_python_or_on_the_wire(tmp_path: Path) -> None:
    """An item takes the names that `client.run` takes, in every form, and each field once."""
    url = "https://a.test/1.png"
    shared = {"family": "vidsb", "model": "vidsb_2_0_pro", "prompt": "A horse"}
    python = {**shared, "generate_audio": True, "reference_images": [url]}
    wire = {**shared, "generateAudio": True, "referenceImages": [url]}
    nested = {"family": "vidsb", "body": {k: v for k, v in python.items() if k != "family"}}
    rows = f"{','.join(python)}\r\nvidsb,vidsb_2_0_pro,A horse,true,{url}\r\n"
    forms = {
        "a.jsonl": json.dumps(python),
        "b.json": json.dumps([nested]),
        "c.csv": rows,
    }
    for name, text in forms.items():
        assert read_items(written(tmp_path, name, text)) == read_items([wire]), name
    twice = "item 1: generateAudio: is given twice, as generate_audio and generateAudio; give it"
    assert problems([{**python, "generateAudio": True}]) == [f"{twice} once"]


def test_requests_are_items() -> None:
    """Requests that were made in Python are items as they are."""
    (item,) = read_items([ImgbRequest(model="imgb-2", prompt="A horse")])
    assert (item.family, item.name, item.stem) == ("imgb", "", "0001")


def test_the_form_of_validate_is_read() -> None:
    """The fields may stand in `body`, as the command `validate` has them."""
    body = {"model": "imgb-2", "prompt": "A horse"}
    assert read_items([{"family": "imgb", "body": body}]) == read_items([HORSE])
    assert problems([{"family": "imgb", "body": body, "size": "1x1"}]) == [
        "item 1: size: stands beside body; put it inside"
    ]


def test_a_model_that_is_not_listed_has_to_be_called_so() -> None:
    """A model that the tables do not know is sent only as `unlisted_model`."""
    (item,) = read_items([{"family": "imgb", "unlisted_model": "imgb-9", "prompt": "A horse"}])
    assert item.body["model"] == "imgb-9"
    assert problems([{**HORSE, "model": "imgb-9"}])
    assert problems([{**HORSE, "unlisted_model": "imgb-9"}]) == [
        "item 1: model: is given beside unlisted_model; give only one"
    ]


def test_a_misspelled_key_of_an_item() -> None:
    """The error names the key that was meant, which is not a field of the family."""
    assert problems([{**HORSE, "nmae": "a"}]) == [
        "item 1: nmae: an item has no such key; did you mean name?"
    ]
    assert problems([{"famly": "imgb"}]) == ["item 1: family: is required; rename famly to family"]


def test_every_problem_is_told_with_its_line(tmp_path: Path) -> None:
    """All problems of all lines are reported at once, each with its line and field."""
    lines = [
        json.dumps(HORSE),
        "",
        "{",
        '{"family": "imgx"}',
        '{"family": "imgb", "model": "imgb-2"}',
        "[1]",
        '{"family": "imgb", "name": 7, "extra": 8}',
        '{"prompt": "no family"}',
    ]
    told = problems(written(tmp_path, "b.jsonl", "\n".join(lines)))
    assert [one.partition(": ")[0] for one in told] == [
        "line 3",
        "line 4",
        "line 5",
        "line 6",
        "line 7",
        "line 7",
        "line 8",
    ]
    assert told[1].startswith("line 4: family: there is no family 'imgx'")
    assert told[2].startswith("line 5: prompt: is ")
    assert told[6] == "line 8: family: is required"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("family,prompt,prompt\n", "line 1: prompt: the column occurs twice"),
        ("family,prompt\nimgb,a,b\n", "line 2: it has 3 cells, and line 1 has 2"),
        ('family,prompt\nimgb,"a\nb"\n\nimgb,"c', "line 5: it is not CSV"),
        ("family,extra\nimgb,{\n", "line 2: extra: it is not JSON"),
        ("family,duration\nvidr,long\n", "line 2: duration: 'long' is not an integer"),
        ("", "the batch: it has no item"),
        (
            "family;model;prompt\nimgb;imgb-2;a\nimgb;imgb-2;b\n",
            "line 1: it is one column; separate the columns by commas in place of semicolons",
        ),
        ("name,prompt\na,b\n", "line 1: the header has no column family"),
    ],
)
def test_odd_csv(text: str, told: str, tmp_path: Path) -> None:
    """Problems in a CSV file are reported with the line on which the row begins."""
    found = problems(written(tmp_path, "b.csv", text))
    assert any(one.startswith(told) for one in found), found


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("b.txt", "x", "its name does not end with one of"),
        ("b.json", '{"a": 1}', "the file: it is not an array of objects"),
        ("b.json", "[", "the file: it is not JSON"),
        ("b.jsonl", "", "the batch: it has no item"),
    ],
)
def test_odd_files(name: str, text: str, told: str, tmp_path: Path) -> None:
    """A file in none of the three formats is rejected."""
    (found,) = problems(written(tmp_path, name, text))
    assert told in found


def test_a_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are reported with their line; a byte order mark is accepted."""
    path = tmp_path / "b.jsonl"
    path.write_bytes(json.dumps(HORSE).encode() + b"\n\xff")
    assert problems(path) == ["line 2: it is not UTF-8; save the file as UTF-8"]
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(HORSE).encode())
    assert read_items(path) == read_items([HORSE])


def test_file_names_are_safe_and_unique() -> None:
    """Each item has a file name of its own, whatever the case, that leads to no other folder."""
    names = ["../../etc/passwd", "a", "A", "a", "", "con", "0005", "x" * 200]
    items = read_items([{**HORSE, "name": name} for name in names])
    stems = [item.stem for item in items]
    assert len({stem.casefold() for stem in stems}) == len(names)
    assert stems[:3] == ["etc-passwd", "a", "A-3"]
    assert stems[4:6] == ["0005", "_con"]
    assert all(stem.replace("-", "").replace("_", "").isalnum() for stem in stems)


def test_names_that_look_like_numbers() -> None:
    """An item without a name is called by its number, unless another item has that name."""
    names = ("0002", "", "", "0003", "3", "0004", "", "0007", "0007-8", "\u0663")
    request = {"family": "imgb", "model": "imgb-2", "prompt": "a horse"}
    items = read_items([{**request, "name": name} for name in names])
    found = [item.stem for item in items]
    assert found[:8] == ["0002", "0002-2", "0003", "0003-4", "3", "0004", "0007", "0007-8"]
    assert found[8] == "0007-8-9"
    assert len({*found}) == len(names)


def test_many_problems_are_cut_short() -> None:
    """The message shows the first fifty problems and counts the rest; all are in the error."""
    with pytest.raises(
        InvalidInput, match=r"60 problems in the batch \(nothing was sent\)"
    ) as caught:
        read_items([{} for _ in range(60)])
    assert len(caught.value.problems) == 60
    assert str(caught.value).endswith("... and 10 more")


@pytest.mark.parametrize(
    "one", [HORSE, ImgbRequest(model="imgb-2", prompt="A horse")], ids=["a mapping", "a request"]
)
def test_one_item_is_not_a_batch(one: Any) -> None:
    """A single item is not taken for a list of items, nor its fields for items."""
    assert problems(one) == ["the batch: it is a single item; put it into a list"]
