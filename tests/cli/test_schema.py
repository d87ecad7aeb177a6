"""`schema`: the OpenAPI document, printed or written."""

from __future__ import annotations

import json
from pathlib import Path

from muybridge_protocol.openapi import openapi_document

from .conftest import Invoke


def test_the_schema_is_printed(invoke: Invoke) -> None:
    """What is printed is the OpenAPI document, and nothing else."""
    ended = invoke("schema")
    assert ended.exit_code == 0
    assert json.loads(ended.stdout) == openapi_document()
    assert ended.stderr == ""


def test_the_schema_is_written(invoke: Invoke, tmp_path: Path) -> None:
    """With --out the document is written, and the file's path is printed."""
    target = tmp_path / "service.json"
    ended = invoke("schema", "--out", str(target))
    assert ended.stdout == f"{target}\n"
    assert target.read_text(encoding="utf-8") == invoke("schema").stdout


def test_a_file_that_cannot_be_written(invoke: Invoke, tmp_path: Path) -> None:
    """A place where nothing can be written is a mistake in the command line."""
    ended = invoke("schema", "--out", str(tmp_path))
    assert ended.exit_code == 2
    assert str(tmp_path) in ended.stderr
