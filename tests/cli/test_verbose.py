"""`--verbose`: each request and response on stderr."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from muybridge.local import LocalService

from .conftest import Invoke

HORSE = ("imga", "--model", "imga", "--prompt", "a secret horse")


@pytest.mark.parametrize("word", ["-v", "--verbose"])
def test_requests_are_told(
    invoke: Invoke, service: LocalService, settings: dict[str, str], word: str
) -> None:
    """Each request and response is a line on stderr with its time; stdout has the data alone."""
    ended = invoke("create", *HORSE, "--json", word, env=settings)
    assert ended.exit_code == 0
    task = json.loads(ended.stdout)["task"]["id"]
    lines = ended.stderr.splitlines()
    (post,) = [line for line in lines if "POST" in line]
    assert f"POST {service.base_url}/v1/imga/images" in post
    assert any("status 200, " in line for line in lines)
    assert any(f"({task}): accepted" in line for line in lines)
    assert "secret" not in ended.stderr
    assert service.api_key not in ended.stderr


def test_a_text_and_a_batch(
    invoke: Invoke, service: LocalService, settings: dict[str, str], tmp_path: Path
) -> None:
    """Commands of every sort know it."""
    where = {**settings, "MUYBRIDGE_TEXT_BASE_URL": service.text_base_url}
    told = invoke("text", "textg-2.5-pro", "of a secret horse", "-v", env=where).stderr
    assert "/v1/models/textg-2.5-pro:streamGenerateContent" in told
    assert "secret" not in told
    item = {"family": "imga", "model": "imga", "prompt": "a secret horse"}
    (tmp_path / "a.jsonl").write_text(json.dumps(item))
    batch = ("batch", "run", "a.jsonl", "--out", "out", "--poll-interval", "0.2", "-v")
    told = invoke(*batch, env=settings).stderr
    assert "POST" in told
    assert "/v1/result/" in told


def test_nothing_is_left(invoke: Invoke, settings: dict[str, str]) -> None:
    """Without the option nothing is reported, and after the command logging is as it was."""
    logger = logging.getLogger("muybridge")
    before = logger.level, logger.propagate, list(logger.handlers)
    invoke("create", *HORSE, "-v", env=settings)
    assert {type(handler) for handler in logger.handlers} <= {logging.NullHandler}
    assert (logger.level, logger.propagate) == before[:2]
    assert "POST" not in invoke("create", *HORSE, env=settings).stderr
