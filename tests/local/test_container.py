"""The image of the local service, without an engine: what its last step starts, works."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import requests

FILE = Path(__file__).parents[2] / "docs" / "container" / "Dockerfile"


def words(instruction: str) -> list[str]:
    """Return the list of words after *instruction*."""
    found = re.search(rf"^{instruction} (\[.*\])$", FILE.read_text("utf-8"), re.MULTILINE)
    assert found
    listed: list[str] = json.loads(found[1])
    return listed


def test_the_entry_point(tmp_path: Path) -> None:
    """The options that the image gives to `serve` start a service that takes the image's key."""
    program, *entry = words("ENTRYPOINT")
    assert program.endswith("/bin/muybridge")
    key = tmp_path / "key"
    key.write_text("local-service-key")
    assert entry[-2:] == ["--api-key-file", "/etc/muybridge-key"]
    command = [sys.executable, "-m", "muybridge", *entry[:-1], str(key), *words("CMD")]
    with subprocess.Popen(  # noqa: S603  # our own command
        [*command, "--port", "0", "--json"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        base_url = json.loads(process.stdout.readline())["base_url"]
        headers = {"Authorization": f"Bearer {key.read_text()}"}
        body = {"model": "imga", "prompt": "a horse"}
        made = requests.post(f"{base_url}/v1/imga/images", json=body, headers=headers, timeout=60)
        process.terminate()
    assert made.status_code == 200
