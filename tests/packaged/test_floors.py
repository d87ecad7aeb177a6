"""What is installed runs with the lowest versions that it says will do."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from .conftest import serving
from .installing import (
    EVERYTHING,
    FOR_USERS,
    Built,
    Environment,
    Environments,
    install,
    succeed,
)
from .test_extras import JOBS, MODULES, check

pytestmark = pytest.mark.nightly

TOOLS = (
    "aiohttp", "fastapi", "httpx", "hypothesis", "jsonschema", "numpy", "opentelemetry-sdk",
    "pycurl", "pytest-xdist", "syrupy",
)  # fmt: skip
"""What the tests stand on, beside what the extras bring."""
FOLDERS = (
    "batch", "cli", "client", "core", "families", "local", "testing", "text", "transport",
    "trio_client",
)  # fmt: skip


def floors(wheel: Path, *extras: str) -> dict[str, Version]:
    """Return the lowest version of each library that *wheel* allows, with *extras* and without."""
    with ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        needed = message_from_bytes(archive.read(metadata)).get_all("Requires-Dist", [])
    found: dict[str, Version] = {}
    for requirement in map(Requirement, needed):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
            for each in requirement.specifier:
                assert each.operator == ">=", requirement
                version = Version(each.version)
                found[requirement.name] = max(version, found.get(requirement.name, version))
    return found


@pytest.fixture(scope="session")
def constraints(built: Built, scratch: Path) -> Path:
    """A file that tells pip to take the lowest versions."""
    path = scratch / "floors.txt"
    lowest = floors(built.wheel, *FOR_USERS, "dev")
    path.write_text("".join(f"{name}=={version}\n" for name, version in lowest.items()), "utf-8")
    return path


@pytest.fixture(scope="session")
def lowest(built: Built, constraints: Path, scratch: Path) -> Environment:
    """An environment with every extra, and the lowest versions of what they bring."""
    return Environment(
        scratch / "lowest", f"{built.wheel}[{EVERYTHING}]", "--constraint", str(constraints)
    )


@pytest.fixture(scope="session")
def service_there(lowest: Environment) -> Iterator[dict[str, str]]:
    """The settings of a service that runs on the lowest versions, too."""
    with serving(lowest) as settings:
        yield settings


def test_the_lowest_versions_are_installed(built: Built, lowest: Environment) -> None:
    """pip has taken the floors themselves, so that the other tests here prove something."""
    wanted = floors(built.wheel, *FOR_USERS)
    assert {"attrs", "cattrs", "requests", "trio", "httptools", "httpx2"} <= set(wanted)
    code = "import importlib.metadata as m, sys; print(*(m.version(n) for n in sys.argv[1:]))"
    told = succeed([lowest.python, "-I", "-c", code, *wanted])
    assert list(map(Version, told.split())) == list(wanted.values())


def test_the_newest_versions_are_installed(built: Built, environments: Environments) -> None:
    """Without constraints, pip takes the newest of each library, which all other suites run on."""
    python = environments.get(EVERYTHING).python
    pip = [sys.executable, "-m", "pip", "--python", str(python), "list", "--outdated"]
    listed = json.loads(succeed([*pip, "--format", "json"]))
    outdated = {one["name"].lower(): one for one in listed}
    wanted = floors(built.wheel, *FOR_USERS)
    assert [one for name, one in outdated.items() if name in wanted] == []


def test_imports(lowest: Environment) -> None:
    """Every public module and name is there."""
    assert lowest.run(JOBS / "look.py", *MODULES) == "{}\n"


@pytest.mark.parametrize("job", ["with_requests", "with_trio", "with_asyncio", "with_httpx2"])
def test_lifecycle(
    job: str, lowest: Environment, service_there: dict[str, str], tmp_path: Path
) -> None:
    """Each transport brings a picture and a text."""
    check(lowest.run(JOBS / f"{job}.py", str(tmp_path), **service_there), tmp_path)


def test_tracing(lowest: Environment) -> None:
    """A client can be traced."""
    assert lowest.run(JOBS / "with_otel.py") == "task-1\n"


def test_demo(lowest: Environment, tmp_path: Path) -> None:
    """The README's first command makes a picture and a video."""
    succeed([lowest.command("muybridge"), "demo"], cwd=tmp_path)
    made = {path.suffix for path in (tmp_path / "muybridge-demo").iterdir()}
    assert made >= {".png", ".mp4"}


def test_the_tests_of_the_sdist(built: Built, lowest: Environment, constraints: Path) -> None:
    """The tests of both clients, the transports, the command and the service pass."""
    install(lowest.python, *TOOLS, "--constraint", str(constraints))
    folders = [built.unpacked / "tests" / name for name in FOLDERS]
    settings = Path(__file__).with_name("pytest.ini")  # as there, it is not the sources that count
    command = [lowest.python, "-m", "pytest", "-c", settings, "--rootdir", built.unpacked, "-nauto"]
    # Without this option, pytest ignores every conftest.py above its settings file, and the tests
    # would use the user's own store and consent.
    command += ["--confcutdir", built.unpacked]
    told = succeed([*command, *folders], cwd=built.unpacked)
    passed = re.search(r"(\d+) passed", told)
    assert passed
    assert int(passed[1]) > 10_000
