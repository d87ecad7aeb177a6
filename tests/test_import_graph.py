"""What a program loads by the time of its first result, in a fresh interpreter each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import muybridge
import muybridge_protocol

pytestmark = pytest.mark.skipif(find_spec("requests") is None, reason="requests not installed")

HOMES = [
    str(Path(found).parent.parent) for found in (muybridge.__file__, muybridge_protocol.__file__)
]

SETTING = f"""
import json, sys
sys.path[:0] = {HOMES!r}
import muybridge
muybridge.RequestsTransport
from muybridge_protocol.http import HttpHead

LINK = "https://cdn.example.com/picture.png"
REPLIES = [
    b'{{"id": "t1", "status": "queued"}}',
    b'{{"id": "t1", "status": "completed", "image_url": "https://cdn.example.com/picture.png"}}',
    b"a picture",
]

class Reply:
    head = HttpHead(200)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        pass
    def pieces(self):
        yield REPLIES.pop(0)

class Canned:
    def stream(self, request, *, timeout, authorization=None):
        return Reply()
    def close(self):
        pass

client = muybridge.Client("key", "http://127.0.0.1:1", transport=Canned(), poll_interval=0)
result = client.run(muybridge.ImgbRequest(model="imgb-2", prompt="a horse"))
assert result.url == LINK, result
"""
LISTING = "print(json.dumps(sorted(sys.modules)))"

FOREIGN = {
    "trio", "h11", "httptools", "httpx2", "anyio", "asyncio", "sqlite3", "click", "rich", "PIL",
    "av", "hypercorn", "pytest", "opentelemetry",
}  # fmt: skip
OTHERS = {
    "batch", "cli", "local", "testing", "emulator", "openapi", "trio_client", "fleet",
    "notebook", "observability",
}  # fmt: skip
DRIVERS = {"driver", "runtime", "blocking", "calls", "interrupts", "listeners", "notes"}
FOR_DOWNLOADS = {
    "muybridge.files.saving",
    "muybridge.files.locks",
    "muybridge_protocol.operations.download",
}


def loaded_by(code: str) -> set[str]:
    """Return the modules that are loaded after *code*."""
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-W", "error", "-I", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def check(found: set[str]) -> None:
    """Check that no other part of the packages, and no library of one, is among *found*."""
    assert "muybridge.wire.requests_transport" in found
    assert found & FOREIGN == set()
    ours = {name for name in found if re.match(r"muybridge(_protocol)?\.", name)}
    assert {name for name in ours if name.split(".")[1] in OTHERS} == set()
    assert {name for name in ours if name.startswith("muybridge.drivers.")} == {
        f"muybridge.drivers.{name}" for name in DRIVERS
    }
    assert {name for name in ours if "families." in name} == {
        "muybridge_protocol.families.family",
        "muybridge_protocol.families.imgb",
        "muybridge_protocol.families.request",
    }
    assert {name for name in ours if ".text." in name} == {"muybridge_protocol.text.defaults"}
    assert {name for name in ours if name.startswith("muybridge.wire.")} & {
        "muybridge.wire.trio_transport",
        "muybridge.wire.httpx2_transport",
        "muybridge.wire._proxy",
    } == set()
    rare = {f"muybridge_protocol.operations.{name}" for name in ("call", "delete_asset", "text")}
    rare.add("muybridge.files.text_parts")
    assert ours & rare == set()


def test_a_first_result() -> None:
    """To create a task and wait for it loads one family, and no other way to use the service."""
    found = loaded_by(SETTING + LISTING)
    check(found)
    assert found & FOR_DOWNLOADS == set()


def test_a_first_download(tmp_path: Path) -> None:
    """To save the result loads what saves, and nothing besides."""
    code = f"{SETTING}\nclient.download(result, {str(tmp_path / 'picture.png')!r})\n{LISTING}"
    found = loaded_by(code)
    check(found)
    assert found >= FOR_DOWNLOADS
    assert (tmp_path / "picture.png").read_bytes() == b"a picture"


@pytest.mark.parametrize(
    ("use", "loaded"),
    [
        ("client.delete_asset('a')", "muybridge_protocol.operations.delete_asset"),
        ("client.call('GET', '/v1/x')", "muybridge_protocol.operations.call"),
        ("client.run_all([])", "muybridge.drivers.outcomes"),
        ("muybridge.VidmRequest", "muybridge_protocol.families.vidm"),
    ],
)
def test_the_rest_is_loaded_when_it_is_used(use: str, loaded: str) -> None:
    """What most programs do without is loaded by the call that needs it."""
    prepared = f'{SETTING}\nREPLIES.append(b\'{{"code": "0"}}\'); REPLIES.reverse()\n'
    assert loaded in loaded_by(f"{prepared}\n{use}\n{LISTING}")
