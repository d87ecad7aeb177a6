"""Files and prompts in UTF-16, as Windows' own programs write them, mean what they say."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from muybridge.batch import read_items

from .conftest import Invoke

ITEM = '{"family": "imga", "body": {"model": "imga", "prompt": "Ein Pferd im Galopp, für 5 €"}}'
TEXTS = {
    ".jsonl": f"{ITEM}\r\n\r\n{ITEM}\r\n",
    ".json": f"[{ITEM},\r\n{ITEM}]",
    ".csv": 'family,model,prompt\r\nimga,imga,"Ein Pferd im Galopp, für 5 €"\r\n'
    'imga,imga,"Ein Pferd im Galopp, für 5 €"\r\n',
}


@pytest.mark.parametrize("suffix", TEXTS)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_requests(encoding: str, suffix: str, invoke: Invoke, tmp_path: Path) -> None:
    """`validate` and batches read the same items as from UTF-8."""
    wide, narrow = tmp_path / f"wide{suffix}", tmp_path / f"narrow{suffix}"
    wide.write_bytes(f"\ufeff{TEXTS[suffix]}".encode(encoding))
    narrow.write_bytes(TEXTS[suffix].encode())
    answers = [invoke("validate", str(path)).stdout for path in (wide, narrow)]
    assert [json.loads(line)["ok"] for line in answers[0].splitlines()] == [True, True]
    assert answers[0] == answers[1]
    assert list(read_items(wide)) == list(read_items(narrow))


@pytest.mark.parametrize("suffix", TEXTS)
def test_half_a_character(suffix: str, invoke: Invoke, tmp_path: Path) -> None:
    """A file that was cut off within a character is reported, and nothing is sent."""
    path = tmp_path / f"cut{suffix}"
    path.write_bytes(f"\ufeff{TEXTS[suffix]}".encode("utf-16-le")[:-1])
    ended = invoke("validate", str(path))
    assert ended.exit_code == 1
    assert "it is not UTF-16; save the file as UTF-8" in ended.stdout


def test_a_port_in_use(invoke: Invoke) -> None:
    """`serve` on a port that is taken names the option that chooses another."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = invoke("serve", "--port", str(port))
    assert ended.exit_code == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in ended.stderr
    assert "another --port" in ended.stderr
