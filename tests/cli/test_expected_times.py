"""`run` and `wait` say how long such tasks usually take, if the store knows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import Invoke

REQUEST = ("imga", "--model", "imga", "--poll-interval", "0.05", "--prompt")
SHOWN = re.compile(r"^usually \d+(\.\d+)? s; \d+(\.\d+)? s so far$", re.MULTILINE)


@pytest.fixture
def past(invoke: Invoke, settings: dict[str, str], tmp_path: Path) -> str:
    """A store with the history of three pictures."""
    store = str(tmp_path / "store.sqlite3")
    for number in range(3):
        done = invoke("run", *REQUEST, str(number), "--store", store, "--json", env=settings)
        assert done.exit_code == 0, done.stderr
        assert "times" not in json.loads(done.stdout)
        assert "usually" not in done.stderr
    return store


def times(document: str) -> Any:
    return json.loads(document)["times"]


def test_run(invoke: Invoke, settings: dict[str, str], past: str) -> None:
    """`run` says it once the task is accepted, and with --json as data, with the task's age."""
    done = invoke("run", *REQUEST, "a horse", "--store", past, "--json", env=settings)
    assert done.exit_code == 0
    assert len(SHOWN.findall(done.stderr)) == 1
    told = times(done.stdout)
    assert told["usual"] > 0
    assert told["so_far"] > 0


def test_wait(invoke: Invoke, settings: dict[str, str], past: str) -> None:
    """`wait` says it too, if the store has the task; a store that is not there says nothing."""
    made = invoke("create", *REQUEST, "a horse", "--store", past, "--json", env=settings)
    token = json.loads(made.stdout)["task"]["token"]
    words = ("wait", "--poll-interval", "0.05", "--json", token)
    assert "times" not in json.loads(invoke(*words, env=settings).stdout)
    done = invoke(*words, "--store", past, env=settings)
    assert times(done.stdout)["usual"] > 0
    in_environment = invoke(*words, env={**settings, "MUYBRIDGE_STORE": past})
    assert times(in_environment.stdout)["usual"] > 0


def test_the_default_store(invoke: Invoke, settings: dict[str, str]) -> None:
    """If the default store has recorded the request, `wait` needs no option."""
    limit = ("--max-creates", "10")
    for number in range(3):
        assert invoke("run", *REQUEST, str(number), *limit, env=settings).exit_code == 0
    made = invoke("create", *REQUEST, "a horse", *limit, env=settings)
    done = invoke("wait", "--poll-interval", "0.05", made.stdout.strip(), "--json", env=settings)
    assert times(done.stdout)["usual"] > 0


def test_a_timeout(invoke: Invoke, settings: dict[str, str], past: str) -> None:
    """After a timeout, the error's document says how far the task is."""
    made = invoke("create", *REQUEST, "a horse", "--store", past, "--json", env=settings)
    token = json.loads(made.stdout)["task"]["token"]
    words = ("--store", past, "--poll-interval", "30", "--timeout", "0.001", "--json")
    done = invoke("wait", *words, token, env=settings)
    assert done.exit_code == 5
    assert times(done.stdout)["usual"] > 0


def test_a_broken_store(invoke: Invoke, settings: dict[str, str], tmp_path: Path) -> None:
    """A store that cannot be read does not keep `wait` from waiting."""
    made = invoke("create", *REQUEST, "a horse", env=settings)
    (tmp_path / "broken.sqlite3").write_bytes(b"not a database" * 100)
    done = invoke(
        "wait", "--poll-interval", "0.05", made.stdout.strip(), "--store", "broken.sqlite3",
        env=settings,
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert "usually" not in done.stderr
