"""What a program loads by the time of its first result, in a fresh interpreter each."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import muybridge
import muybridge_protocol

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
CORE = {
    "arguments", "delivery", "errors", "events", "families", "families.family", "families.field",
    "families.imgb", "families.request", "hosts", "http", "identifiers", "iri", "media",
    "media.inline", "media.kinds", "operations",
    "operations.create", "operations.defaults", "operations.next_polls", "operations.operation",
    "operations.paid", "operations.poll", "problems", "records", "records.candidates",
    "records.convert", "records.json", "records.lenient", "records.tasks", "rules",
    "rules.files", "rules.media_urls", "rules.relations", "rules.values", "service",
    "suggested_names", "text", "text.defaults",
}  # fmt: skip
CLIENT = {
    "async_text_client", "base_client", "client", "clock", "configuration", "credentials",
    "drivers", "drivers.blocking", "drivers.calls", "drivers.driver", "drivers.interrupts",
    "drivers.listeners", "drivers.notes", "drivers.runtime", "lazy_names", "misplaced",
    "payment_guard", "text_client", "wire", "wire._addressing", "wire._certificates",
    "wire._environment", "wire._network_errors", "wire._requests_connections",
    "wire._response_body", "wire.async_transport", "wire.building", "wire.exchange", "wire.network",
    "wire.requests_transport", "wire.transport",
}  # fmt: skip
FIRST_RESULT = {
    "muybridge",
    "muybridge_protocol",
    *(f"muybridge_protocol.{name}" for name in CORE),
    *(f"muybridge.{name}" for name in CLIENT),
}
"""Every module of ours that a program needs to create a task and wait for it."""
FIRST_DOWNLOAD = FIRST_RESULT | {
    "muybridge.files",
    "muybridge.files.downloads",
    "muybridge.files.durable",
    "muybridge.files.locks",
    "muybridge.files.saving",
    "muybridge.files.suffixes",
    "muybridge_protocol.operations.download",
    "muybridge_protocol.operations.ranges",
}
MOST_CLASSES = 78
"""Most attrs classes that a first result loads. Each of them takes up to a millisecond."""
IMGA = "from muybridge_protocol.families.imga import ImgaRequest"
COUNTING = """
import attrs
classes = {
    kind for name in list(sys.modules) if name.split(".")[0] in ("muybridge", "muybridge_protocol")
    for kind in vars(sys.modules[name]).values() if isinstance(kind, type) and attrs.has(kind)
}
print(json.dumps([kind.__name__ for kind in classes if "__attrs_attrs__" in vars(kind)]))
"""


def loaded_by(code: str) -> set[str]:
    """Return what *code* lists: the modules that are loaded at its end, say."""
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-W", "error", "-I", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def ours(found: set[str]) -> set[str]:
    """Return the modules of *found* that are ours. No library of another part is among them."""
    assert found & FOREIGN == set()
    return {name for name in found if re.match(r"muybridge(_protocol)?(\.|$)", name)}


def test_a_first_result() -> None:
    """To create a task and wait for it loads one family, and no other way to use the service."""
    assert ours(loaded_by(SETTING + LISTING)) == FIRST_RESULT


def test_the_classes_of_a_first_result() -> None:
    """No more attrs classes are made than it takes: making them is half of what we load."""
    assert len(loaded_by(SETTING + COUNTING)) <= MOST_CLASSES


def test_a_family_without_relations() -> None:
    """Rules between fields are loaded for the families that have some."""
    found = loaded_by(f"import json, sys\nsys.path[:0] = {HOMES!r}\n{IMGA}\n{LISTING}")
    assert "muybridge_protocol.rules.relations" not in found


def test_a_first_download(tmp_path: Path) -> None:
    """To save the result loads what saves, and nothing besides."""
    code = f"{SETTING}\nclient.download(result, {str(tmp_path / 'picture.png')!r})\n{LISTING}"
    assert ours(loaded_by(code)) == FIRST_DOWNLOAD
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
