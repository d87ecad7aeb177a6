"""Statements about the library that no example shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import moments
import muybridge
from muybridge_protocol.emulator import CANCEL, FAILURES, SLOW, TextMarker

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    """Return the page *name*."""
    return (DOCS / name).read_text(encoding="utf-8")


def test_pages_name_the_version() -> None:
    """The contract and the changelog are those of this version."""
    version = muybridge.__version__
    assert f"Muybridge is at {version}," in page("api.md")
    changelog = (DOCS.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", changelog, re.MULTILINE)[0] == version


def test_every_page_is_in_the_contents() -> None:
    """The index links to each page, for readers and in the contents for Sphinx."""
    index = page("index.md")
    contents = re.findall(r"^```\{toctree\}$(.*?)^```$", index, re.MULTILINE | re.DOTALL)
    listed = {line for part in contents for line in part.split("\n") if re.match(r"[a-z]", line)}
    written = {path.stem for path in DOCS.glob("*.md")} - {"index"}
    assert listed == written | {"reference/index"}
    assert all(f"]({name}.md)" in index for name in listed)


def test_every_marker_is_named() -> None:
    """The page about the local service explains each marker."""
    text = page("local-service.md")
    for marker, reason in FAILURES.items():
        assert f"| `{marker}` | the task fails: {reason} |" in text
    for marker in (CANCEL, SLOW.format(seconds="SECONDS"), *TextMarker):
        assert f"`{marker}`" in text


def test_every_error_is_explained() -> None:
    """Each error that programs can catch is on a page that says what to do."""
    text = page("costs.md") + page("text.md") + page("assets.md") + page("resume.md")
    bases = {"MuybridgeError", "ServiceError"}
    package: Any = muybridge
    for name in cast("list[str]", package.__all__):
        kind = getattr(muybridge, name)
        if isinstance(kind, type) and issubclass(kind, muybridge.MuybridgeError):
            assert f"`{name}`" in text or name in bases, name


def test_every_variable_is_named() -> None:
    """The page about proxies lists each environment variable that is read."""
    text = page("proxy.md")
    authorities: tuple[str, ...] = getattr(*moments.constant("variables that name authorities"))
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY", *authorities):
        assert f"`{name}`" in text
