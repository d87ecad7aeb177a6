"""What is in the wheel and the sdist, and what they say of themselves."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from zipfile import ZipFile

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.metadata import Metadata
from packaging.requirements import Requirement

from .installing import FOR_OURSELVES, FOR_USERS, PROJECT, ROOT, Built

HOMES = {"muybridge_protocol": ROOT / "protocol", "muybridge": ROOT / "transports"}
PIP = re.compile(r"pip install (?:-\S+ )*[\"'](\S*?)\[([a-z0-9,]+)\]")
INFORMATION = f"muybridge-{PROJECT['version']}.dist-info"


@pytest.fixture(scope="session")
def content(built: Built) -> dict[str, bytes]:
    """The files of the wheel."""
    return _content(built.wheel)


def _content(wheel: Path) -> dict[str, bytes]:
    with ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _sources() -> Iterator[tuple[str, bytes]]:
    for package, home in HOMES.items():
        for path in (home / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(home).as_posix(), path.read_bytes()


def test_the_wheel_is_the_two_packages(content: dict[str, bytes]) -> None:
    """Every file of both packages is in the wheel, data included, and no other: no test."""
    packaged = {name: data for name, data in content.items() if not name.startswith(INFORMATION)}
    assert packaged == dict(_sources())


def test_typed(content: dict[str, bytes]) -> None:
    """Both packages tell type checkers that they are typed."""
    assert {"muybridge/py.typed", "muybridge_protocol/py.typed"} <= set(content)


def test_licence(content: dict[str, bytes]) -> None:
    """The licence comes along."""
    assert content[f"{INFORMATION}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_entry_points(content: dict[str, bytes]) -> None:
    """There is the command, and the plugin of pytest, and nothing else."""
    text = content[f"{INFORMATION}/entry_points.txt"].decode()
    found = {re.sub(r"\s", "", line) for line in text.splitlines() if "=" in line}
    assert found == {"muybridge=muybridge.cli:main", "muybridge=muybridge.testing.plugin"}
    assert re.findall(r"^\[(.*)\]$", text, re.MULTILINE) == ["console_scripts", "pytest11"]


def test_metadata(content: dict[str, bytes]) -> None:
    """The metadata is valid, and tells the README, the licence, and Python's version."""
    raw = content[f"{INFORMATION}/METADATA"]
    metadata = Metadata.from_email(raw, validate=True)
    assert (metadata.name, str(metadata.version)) == ("muybridge", PROJECT["version"])
    assert (
        f'__version__: Final = "{PROJECT["version"]}"' in content["muybridge/version.py"].decode()
    )
    assert metadata.license_expression == "MIT"
    assert str(metadata.requires_python) == PROJECT["requires-python"]
    assert metadata.description_content_type == "text/markdown"
    assert metadata.description == (ROOT / "README.md").read_text("utf-8")
    assert set(metadata.provides_extra or ()) == {*FOR_USERS, *FOR_OURSELVES}


def test_classifiers() -> None:
    """Only what the checks are run on is claimed: these versions of CPython, and Linux."""
    night = (ROOT / ".ci" / "nightly").read_text("utf-8")
    run = re.findall(r"^python-(3\.\d+)\(\)", night, re.MULTILINE)
    claimed = [each.split(" :: ") for each in PROJECT["classifiers"]]
    versions = [words[-1] for words in claimed if words[:2] == ["Programming Language", "Python"]]
    assert versions == ["Only", *run]
    systems = [words[1:] for words in claimed if words[0] == "Operating System"]
    assert systems == [["POSIX", "Linux"]]


def test_what_is_installed_without_an_extra(content: dict[str, bytes]) -> None:
    """It is what the clients, the command, batches and the store need; heavy parts are extras."""
    needed = message_from_bytes(content[f"{INFORMATION}/METADATA"]).get_all("Requires-Dist", [])
    base = {found.name for found in map(Requirement, needed) if found.marker is None}
    assert base == {
        "attrs", "cattrs", "certifi", "click", "httptools", "platformdirs", "requests", "rich",
        "trio", "urllib3",
    }  # fmt: skip


def test_the_bill_of_materials(content: dict[str, bytes]) -> None:
    """It is a valid CycloneDX document that names each library a user may need, and its floor."""
    text = content[f"{INFORMATION}/sboms/muybridge.cdx.json"].decode()
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(text) is None
    document = json.loads(text)
    assert document["metadata"]["component"]["version"] == PROJECT["version"]
    found = {each["name"]: each.get("versionRange") for each in document["components"]}
    lines = [*PROJECT["dependencies"]]
    lines += [line for extra in FOR_USERS for line in PROJECT["optional-dependencies"][extra]]
    wanted = {needed.name.lower(): str(needed.specifier) for needed in map(Requirement, lines)}
    del wanted["muybridge"]
    assert found == {
        name: f"vers:pypi/{versions}" if versions else None for name, versions in wanted.items()
    }


def test_the_sdist_makes_the_same_wheel(built: Built) -> None:
    """The wheel from the sdist and the one from the checkout are the same to the byte."""
    assert _content(built.wheel) == _content(built.direct_wheel)
    assert built.wheel.read_bytes() == built.direct_wheel.read_bytes()


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only git knows which files are ours")
def test_the_sdist_is_the_repository(built: Built) -> None:
    """Every file under version control is in the sdist: tests, documents, and how to check it."""
    listing = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607  # wherever git is
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    tracked = {name for name in listing.stdout.split("\0") if name and (ROOT / name).exists()}
    home = built.unpacked
    found = {path.relative_to(home).as_posix() for path in home.rglob("*") if path.is_file()}
    assert tracked - found == set()


def _commands() -> Iterator[tuple[str, str]]:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    sources = [path for home in HOMES.values() for path in home.rglob("*.py")]
    for path in (*pages, *sources, *(ROOT / "benchmarks").glob("*.py")):
        yield from PIP.findall(path.read_text("utf-8"))


def test_pip_commands() -> None:
    """Every `pip install` in README, documents and messages names extras that there are.

    Of the package's name, only those for users: the others need the checkout.
    """
    commands = set(_commands())
    assert {
        (".", "local"),
        (".", "dev"),
        ("muybridge", "local"),
        ("muybridge", "postgres"),
    } <= commands
    for what, extras in commands:
        known = {*FOR_USERS} if what == "muybridge" else {*FOR_USERS, *FOR_OURSELVES}
        assert set(extras.split(",")) <= known, (what, extras)
