"""What a program loads by the time of its first result, in a fresh interpreter each."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import muybridge
import muybridge_protocol
from muybridge_protocol.families import FAMILIES

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
    "trio", "h11", "httpx2", "anyio", "asyncio", "sqlite3", "click", "rich", "PIL",
    "av", "hypercorn", "pytest", "opentelemetry",
}  # fmt: skip
PARTS = {
    *(
        f"muybridge.{part}"
        for part in (
            "batch",
            "cli",
            "files",
            "local",
            "media",
            "observability",
            "purchases",
            "testing",
            "verbs",
            "workers",
        )
    ),
    *(
        f"muybridge_protocol.{part}"
        for part in ("emulator", "estimates", "fleet", "openapi", "purchases")
    ),
}
"""Packages that a program does without if it creates a task and waits for it."""
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


def parts(found: set[str]) -> set[str]:
    """Return which parts of the library are among the modules in *found*. No others' are."""
    assert found & FOREIGN == set()
    return found & PARTS


def test_a_first_result() -> None:
    """To create a task and wait for it loads one family, and no other way to use the service."""
    found = loaded_by(SETTING + LISTING)
    assert parts(found) == set()
    families = {name for name in FAMILIES if f"muybridge_protocol.families.{name}" in found}
    assert families == {"imgb"}


def test_the_parts_exist() -> None:
    """Every part that a first result does without is a module, so that the tests prove it."""
    assert all(find_spec(part) is not None for part in PARTS)


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
    assert parts(loaded_by(code)) == {"muybridge.files"}
    assert (tmp_path / "picture.png").read_bytes() == b"a picture"


@pytest.mark.parametrize(
    "use",
    [
        "client.delete_asset('a')",
        "client.call('GET', '/v1/x')",
        "client.run_all([])",
        "muybridge.VidmRequest",
    ],
)
def test_the_rest_is_loaded_when_it_is_used(use: str) -> None:
    """What most programs do without is loaded by the call that needs it."""
    prepared = f'{SETTING}\nREPLIES.append(b\'{{"code": "0"}}\'); REPLIES.reverse()\n'
    more = loaded_by(f"{prepared}\n{use}\n{LISTING}") - loaded_by(f"{prepared}\n{LISTING}")
    assert any(name.startswith("muybridge") for name in more)
