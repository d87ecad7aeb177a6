"""Reads scripted answers from a file: JSON lines, or TOML."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from muybridge.files.encodings import encoding_of
from muybridge_protocol.emulator.text.script import NOT_USED, SCRIPT, read_answers
from muybridge_protocol.errors import InputProblem, InvalidInput
from muybridge_protocol.records.json import InvalidJson, read_json

_TABLES = "answers"


def load_answers(path: str | os.PathLike[str]) -> tuple[Any, ...]:
    """Return the scripted answers in the file at *path*, for `LocalService(answers=...)`.

    A file whose name ends with `.toml` has a table `[[answers]]` for each answer. Any other has one
    answer on each line, as JSON. The fields of an answer:

    - `text`: Its text.
    - `json`: JSON for the text.
    - `calls`: The functions that it calls: objects with `name` and `arguments`.
    - `finish`: Why it ends: `stop`, `max_tokens` or `safety`.
    - `candidates`: Several answers with these fields, for requests that ask for several.
    - `when`: What the user's last text must contain.
    - `repeat`: true to give the answer more than once.

    Args:
        path: The file.

    Raises:
        InvalidInput: The file is not valid. Every wrong answer is listed.
        OSError: It cannot be read.
    """
    data = Path(path).read_bytes()
    try:
        text = data.decode(encoding_of(data))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _invalid(InputProblem(f"line {line}", "it is not UTF-8.")) from None
    return _from_toml(text) if Path(path).suffix.lower() == ".toml" else _from_lines(text)


def _from_toml(text: str) -> tuple[Any, ...]:
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _invalid(InputProblem("", f"it is not TOML: {error}.")) from None
    values: Any = document.pop(_TABLES, None)
    if document or not isinstance(values, list):
        said = f"write each answer as a table [[{_TABLES}]], and nothing else."
        raise _invalid(InputProblem("", said))
    read_answers(values)  # pyright: ignore[reportUnknownArgumentType]  of anything
    return tuple(values)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]  as above


def _from_lines(text: str) -> tuple[Any, ...]:
    values: list[Any] = []
    places: list[str] = []
    problems: list[InputProblem] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                values.append(read_json(line))
                places.append(f"line {number}")
            except InvalidJson as error:
                problems.append(InputProblem(f"line {number}", f"{error}."))
    if problems:
        raise _invalid(*problems)
    read_answers(values, places)
    return tuple(values)


def _invalid(*problems: InputProblem) -> InvalidInput:
    return InvalidInput(SCRIPT, problems, NOT_USED)
