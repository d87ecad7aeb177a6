"""What is installed without an extra, and each extra by itself, in environments of their own."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from functools import cache
from pathlib import Path
from urllib.request import urlopen

import pytest

from .installing import (
    EVERYTHING,
    EXTRAS,
    FOR_USERS,
    FORMS,
    PROJECT,
    ROOT,
    Built,
    Environment,
    Environments,
    install,
    run,
    succeed,
)

PNG = b"\x89PNG"
JOBS = Path(__file__).parent / "jobs"
MODULES = [
    *re.findall(
        r"^\| `(muybridge[a-z_.]*)` \|", (ROOT / "docs/api.md").read_text("utf-8"), re.MULTILINE
    ),
    "muybridge.testing",
    "muybridge.testing.conformance",
    "muybridge.testing.store_conformance",
    "muybridge.purchases.postgres",
    "muybridge.batch.results.places.s3",
    "muybridge.workers.celery_app",
    "muybridge.wire.building",
]
ADVICE = re.compile(r'(\S+) needs ([a-z0-9]+): .+ install .*"\S+\[([a-z0-9]+)\]"')

BOTH = [(form, extra) for form in ("wheel", "sdist") for extra in EXTRAS]
FEW = [("wheel", ""), ("wheel", EVERYTHING)]
"""With nothing and with all: what is slow is tried there in every run."""


def in_every_run(sample: list[tuple[str, str]]) -> pytest.MarkDecorator:
    """Return the parameters of a test: all forms, of which those not in *sample* are nightly."""
    return pytest.mark.parametrize(
        ("form", "extra"),
        [pytest.param(*each, marks=() if each in sample else pytest.mark.nightly) for each in BOTH],
    )


def test_extras() -> None:
    """There is a test here for each extra that is for users."""
    assert {extra for extra in FOR_USERS if f"test_with_{extra}" not in globals()} == set()


@cache
def missing(environments: Environments, extra: str, form: str = "wheel") -> dict[str, str]:
    """Return what cannot be imported with *extra*, with the error's message."""
    found: dict[str, str] = json.loads(
        environments.get(extra, form).run(JOBS / "look.py", *MODULES)
    )
    return found


@in_every_run(FORMS)
def test_what_is_missing_is_told(form: str, extra: str, environments: Environments) -> None:
    """A module or name that is not there says which extra brings it, and that extra brings it."""
    for name, message in missing(environments, extra, form).items():
        advice = ADVICE.fullmatch(message)
        assert advice, (name, message)
        assert f".{advice[1]}." in f".{name}.", (name, message)
        assert advice[3] not in extra.split(","), (name, message)
        assert name not in missing(environments, advice[3]), (name, message)


def test_nothing_is_missing(environments: Environments) -> None:
    """With every extra, every public module and name is there."""
    assert missing(environments, EVERYTHING) == {}


@pytest.fixture(scope="session")
def tools(scratch: Path, environments: Environments) -> Path:
    """What the tests of the sdist need, apart from the environments."""
    folder = scratch / "tools"
    install(environments.get("").python, "--target", str(folder), "pytest", "hypothesis")
    return folder


@in_every_run(FEW)
def test_purity_and_imports(
    form: str,
    extra: str,
    built: Built,
    environments: Environments,
    tools: Path,
    tmp_path: Path,
) -> None:
    """The core is pure and imports are cheap: so say the sdist's tests of what is installed."""
    for name in ("conftest.py", "test_purity.py"):
        shutil.copy(built.unpacked / "tests" / name, tmp_path)
    shutil.copy(Path(__file__).with_name("pytest.ini"), tmp_path)
    python = environments.get(extra, form).python
    told = succeed([python, "-m", "pytest", tmp_path], cwd=tmp_path, PYTHONPATH=str(tools))
    passed = re.search(r"(\d+) passed(, \d+ skipped)?", told)
    assert passed
    assert int(passed[1]) > 80
    # One test needs httpx2, which mcp brings, too.
    look = "import importlib.util; print(importlib.util.find_spec('httpcore2') is not None)"
    assert succeed([python, "-I", "-c", look]) == f"{passed[2] is None}\n", told
    assert not any("site-packages" not in part for part in re.findall(r"\S+muybridge\S*", told))


def check(printed: str, folder: Path) -> None:
    """See that a job has *printed* the path of a picture in *folder*, and a text."""
    path, text = printed.split("\n", 1)
    assert Path(path).parent == folder
    assert Path(path).read_bytes().startswith(PNG)
    assert "local emulator" in text


@pytest.mark.parametrize("job", ["with_requests", "with_trio", "with_asyncio"])
def test_clients(
    job: str, environments: Environments, service: dict[str, str], tmp_path: Path
) -> None:
    """Without an extra, each client makes a picture and a text."""
    check(environments.get("").run(JOBS / f"{job}.py", str(tmp_path), **service), tmp_path)


def test_store(environments: Environments, tmp_path: Path) -> None:
    """Without an extra, a limit is kept in the user's own folder."""
    folders = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    told = environments.get("").run(JOBS / "with_store.py", **folders)
    assert told == "task-1\nrefused\n"
    assert list(tmp_path.rglob("*.sqlite3"))


def test_command(environments: Environments, service: dict[str, str], tmp_path: Path) -> None:
    """Without an extra, the command validates, generates and runs a batch.

    What needs a service of its own says what to install.
    """
    command = environments.get("").command("muybridge")
    assert succeed([command, "--version"]) == f"muybridge {PROJECT['version']}\n"
    (tmp_path / "requests.jsonl").write_text(
        '{"family": "imga", "body": {"model": "imga", "prompt": "a horse"}}\n', "utf-8"
    )
    succeed([command, "validate", "requests.jsonl"], cwd=tmp_path)
    arguments = ["run", "imga", "--model", "imga", "--prompt", "a horse", "-o", "a.png"]
    succeed([command, *arguments], cwd=tmp_path, **service)
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
    succeed([command, "batch", "run", "requests.jsonl", "--out", "horses"], cwd=tmp_path, **service)
    assert [path.read_bytes()[:4] for path in (tmp_path / "horses").glob("*.png")] == [PNG]
    for needing in (["demo"], ["serve"], [*arguments, "--local"]):
        alone = run([command, *needing], cwd=tmp_path)
        assert alone.returncode == 2
        assert "muybridge.local needs" in alone.stderr
        assert '[local]"' in alone.stderr


def test_with_httpx2(environments: Environments, service: dict[str, str], tmp_path: Path) -> None:
    """The client for ordinary code works on httpx2, and does not load requests."""
    program = JOBS / "with_httpx2.py"
    check(environments.get("httpx2").run(program, str(tmp_path), **service), tmp_path)


def test_with_otel(environments: Environments) -> None:
    """A client can be traced."""
    assert environments.get("otel").run(JOBS / "with_otel.py") == "task-1\n"


def test_with_postgres(environments: Environments) -> None:
    """A store speaks to its database."""
    told = environments.get("postgres").run(JOBS / "with_postgres.py")
    assert told == "postgresql://127.0.0.1/horses\n"


def test_with_celery(environments: Environments) -> None:
    """The application for Celery has its task, and refuses to start without its settings."""
    environment = environments.get("celery")
    assert environment.run(JOBS / "with_celery.py") == "muybridge.take_turn\n"
    celery = environment.command("celery")
    done = run([celery, "-A", "muybridge.workers.celery_app", "-b", "memory://", "worker"])
    assert done.returncode == 1
    assert "muybridge: MUYBRIDGE_STORE is not set" in done.stderr


def test_with_s3(environments: Environments) -> None:
    """A store in S3 speaks to its server."""
    told = environments.get("s3").run(JOBS / "with_s3.py")
    assert told == "s3://studio/horses at 127.0.0.1:1\n"


def test_with_mcp(environments: Environments, service: dict[str, str], tmp_path: Path) -> None:
    """A host starts the server by its command, and has a picture made; the skill is there, too."""
    environment = environments.get("mcp")
    settings = {**service, "MUYBRIDGE_STORE": str(tmp_path / "store.sqlite3")}
    program = str(environment.command("muybridge"))
    told = environment.run(JOBS / "with_mcp.py", program, str(tmp_path), **settings)
    assert Path(told.strip()).read_bytes().startswith(PNG)
    assert succeed([program, "skill"]).startswith("---\nname: muybridge\n")
    without = run([environments.get("").command("muybridge"), "mcp"])
    assert without.returncode == 2
    assert re.search(r'pip install .*\[mcp\]"', without.stderr)


@pytest.mark.parametrize(("page", "begin"), [("docs", b"<!doctype html>"), ("openapi.json", b"{")])
def test_with_local(page: str, begin: bytes, service: dict[str, str]) -> None:
    """The service runs, and has its data files; the other tests here are its clients."""
    with urlopen(f"{service['MUYBRIDGE_BASE_URL']}/{page}", timeout=60) as reply:  # noqa: S310  # http
        assert reply.read().startswith(begin)


def test_demo(environments: Environments, tmp_path: Path) -> None:
    """The README's first command makes a picture and a video."""
    succeed([environments.get("local").command("muybridge"), "demo"], cwd=tmp_path)
    made = {path.suffix for path in (tmp_path / "muybridge-demo").iterdir()}
    assert made >= {".png", ".mp4"}


WITHOUT_SERVICE = """
import muybridge
from muybridge.testing import FakeTransport, json_response

REQUEST = muybridge.ImgaRequest(model="imga", prompt="a horse")

def test_on_a_fake_transport():
    transport = FakeTransport(json_response({"id": "task-1", "status": "queued"}))
    with muybridge.Client("key", "https://service.test", transport=transport) as client:
        assert client.create(REQUEST).id == "task-1"
"""
WITH_SERVICE = """
def test_on_the_service(muybridge_service):
    pass
"""


def test_with_testing(environments: Environments, tmp_path: Path) -> None:
    """pytest finds the plugin, whose fixtures say what they need; the fakes need nothing."""
    pytest_there = [environments.get("testing").python, "-m", "pytest", "-W", "error"]
    (tmp_path / "test_fakes.py").write_text(WITHOUT_SERVICE, "utf-8")
    assert "1 passed" in succeed([*pytest_there, "test_fakes.py"], cwd=tmp_path)
    (tmp_path / "test_service.py").write_text(WITH_SERVICE, "utf-8")
    done = run([*pytest_there, "test_service.py"], cwd=tmp_path)
    assert done.returncode == 1
    assert "muybridge.local needs" in done.stdout
    assert '[local]"' in done.stdout


def test_with_everything_for_tests(environments: Environments, tmp_path: Path) -> None:
    """With what docs/testing.md installs, the fixture brings up the service."""
    (tmp_path / "test_service.py").write_text(WITH_SERVICE, "utf-8")
    command = [environments.get(EVERYTHING).python, "-m", "pytest", "-W", "error"]
    assert "1 passed" in succeed(command, cwd=tmp_path)


@pytest.mark.nightly
def test_the_tests_in_the_sdist(built: Built, scratch: Path) -> None:
    """All tests pass in the sdist, where there is no repository."""
    there = Environment(scratch / "stranger", f"{built.unpacked}[dev]")
    told = succeed([there.python, "-m", "pytest"], cwd=built.unpacked)
    assert " passed" in told


@pytest.mark.nightly
@pytest.mark.parametrize("form", ["wheel", "checkout"])
def test_the_printed_command_works(form: str, built: Built, scratch: Path, tmp_path: Path) -> None:
    """Without `local`, the demo prints one line with a command; after that command it runs."""
    source = built.wheel if form == "wheel" else built.unpacked
    there = Environment(scratch / f"first-hour-{form}", "pip", str(source))
    demo = [there.command("muybridge"), "demo"]
    refused = run(demo, cwd=tmp_path)
    advice = re.fullmatch(r"error: muybridge\.local needs \w+: (.+ install .+)\n", refused.stderr)
    assert advice, refused.stderr
    succeed(shlex.split(advice[1]), cwd=tmp_path)
    succeed(demo, cwd=tmp_path)
    assert list((tmp_path / "muybridge-demo").glob("*.png"))
