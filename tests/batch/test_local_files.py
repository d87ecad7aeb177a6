"""Batch items that name local files."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from media.corpus import picture
from muybridge.batch import read_items
from muybridge_protocol.errors import InvalidInput

HORSE = picture("PNG", 1280, 720)
URI = f"data:image/png;base64,{base64.b64encode(HORSE).decode()}"
VIDG = {"family": "vidg", "model": "vidg_video3", "prompt": "A horse"}
IMGA = {"family": "imga", "model": "imga", "prompt": "A horse"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder beside the current one, with a picture."""
    found = tmp_path / "orders"
    found.mkdir()
    (found / "horse.png").write_bytes(HORSE)
    return found


def written(path: Path, items: list[dict[str, Any]]) -> Path:
    """Write *items* to *path* in the form that its suffix names."""
    if path.suffix == ".csv":
        text = io.StringIO()
        rows = csv.DictWriter(text, list(dict.fromkeys(name for item in items for name in item)))
        rows.writeheader()
        rows.writerows(items)
        path.write_text(text.getvalue())
    elif path.suffix == ".json":
        path.write_text(json.dumps(items))
    else:
        path.write_text("\n".join(map(json.dumps, items)))
    return path


@pytest.mark.parametrize("form", [".jsonl", ".json", ".csv"])
def test_files_are_relative_to_the_batch(folder: Path, form: str) -> None:
    """`@PATH` is read where the batch file is, in every form, and its content is an item's."""
    many = form != ".csv"
    items = [
        {**VIDG, "image_urls": ["@horse.png"] if many else "@horse.png"},
        {
            **IMGA,
            "image_urls": [f"@{folder}/horse.png"] if many else f"@{folder}/horse.png",
            "allow_inline": True if many else "true",
        },
    ]
    found = read_items(written(folder / f"batch{form}", items))
    assert [item.body["image_urls"] for item in found] == [[URI], [URI]]


def test_files_from_python(folder: Path) -> None:
    """An item in Python has a path, bytes or an open file; a string is never a path there."""
    for file in (folder / "horse.png", HORSE, io.BytesIO(HORSE)):
        (item,) = read_items([{**VIDG, "image_urls": [file]}])
        assert item.body["image_urls"] == [URI]
    with pytest.raises(InvalidInput, match="is not a URL"):
        read_items([{**VIDG, "image_urls": [f"@{folder}/horse.png"]}])


WRONG = [
    {**VIDG, "image_urls": ["@nothing.png"], "model": "vidg"},
    {**IMGA, "image_urls": ["@horse.png"]},
    {**IMGA, "image_urls": ["@batch.jsonl"], "allow_inline": True},
    {**IMGA, "allow_inline": "yes"},
    {"family": "vidr", "model": "vidrPro", "prompt": "-", "image_urls": ["@horse.png"]}
    | {"allow_inline": True},
]


def test_every_problem_is_listed(folder: Path) -> None:
    """Files that cannot be sent are problems of their items, beside the others."""
    path = written(folder / "batch.jsonl", WRONG)
    with pytest.raises(InvalidInput) as caught:
        read_items(path)
    told = [(problem.where, problem.field) for problem in caught.value.problems]
    assert told == [
        ("line 1", "image_urls"),
        ("line 1", "model"),
        ("line 2", "image_urls"),
        ("line 3", "image_urls"),
        ("line 4", "allow_inline"),
        ("line 5", "image_urls"),
    ]
    said = str(caught.value)
    assert "nothing.png cannot be read" in said
    assert 'or send the file all the same with "allow_inline": true\n' in said
    assert "batch.jsonl is a text" in said or "batch.jsonl is JSON" in said
    assert "horse.png has 1280x720 px, but must have 720x1280 px" in said


PROMPTS = {
    "@prompt.txt": "give it in place of the name",
    "@notes": "give it in place of the name",
    "@photo": 'put it into image_urls, as "@photo"',
    "horse.png": 'put it into image_urls, as "@horse.png"',
    URI: "put it into image_urls, as a data: URI",
}


@pytest.mark.parametrize("form", [".jsonl", ".json", ".csv"])
def test_a_prompt_that_is_only_a_file(folder: Path, form: str) -> None:
    """It is a problem of its item, with what to write in the file; without a file, it is a text."""
    (folder / "notes").write_text("A horse at night.")
    (folder / "photo").write_bytes(HORSE)
    items = [{**VIDG, "prompt": prompt} for prompt in PROMPTS]
    with pytest.raises(InvalidInput) as caught:
        read_items(written(folder / f"batch{form}", items))
    told = [(problem.field, problem.message) for problem in caught.value.problems]
    assert [field for field, _ in told] == ["prompt"] * len(PROMPTS)
    for (_, message), line in zip(told, PROMPTS.values(), strict=True):
        assert message.endswith(line)
    (item,) = read_items(written(folder / f"batch{form}", [{**VIDG, "prompt": "@nobody"}]))
    assert item.body["prompt"] == "@nobody"


def test_a_prompt_that_is_only_a_file_from_python() -> None:
    """In Python it is refused by its suffix, with what to write there."""
    line = r"put it into image_urls, as pathlib\.Path\('horse\.png'\)"
    with pytest.raises(InvalidInput, match=line):
        read_items([{**VIDG, "prompt": "@horse.png"}])


def test_the_name_of_a_file_without_the_at(folder: Path) -> None:
    """A path in place of a URL says how a batch file names a file, and Python how it does."""
    path = written(folder / "batch.jsonl", [{**VIDG, "image_urls": ["horse.png"]}])
    with pytest.raises(InvalidInput, match=r'is not a URL; .*; for a local file, "@horse\.png"'):
        read_items(path)
    with pytest.raises(InvalidInput, match=r"for a local file, pathlib\.Path\('horse\.png'\)"):
        read_items([{**VIDG, "image_urls": ["horse.png"]}])
    path = written(folder / "batch.jsonl", [{**VIDG, "image_urls": ["@https://a.example/b.png"]}])
    with pytest.raises(InvalidInput, match="is a URL, and not a file; use the URL itself"):
        read_items(path)
    path = written(folder / "batch.jsonl", [{**VIDG, "image_urls": ["@@horse.png"]}])
    with pytest.raises(InvalidInput, match="write the path without @"):
        read_items(path)
