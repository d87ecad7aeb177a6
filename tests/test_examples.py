"""Every example in README and docs runs against the local service."""

from __future__ import annotations

import ast
import asyncio
import os
import re
from collections.abc import Callable, Iterator
from inspect import signature
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from mcp.client import stdio
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

from batch.fixtures import postgres
from muybridge import AsyncClient, Client
from muybridge.local import LocalService
from muybridge_protocol.families import FAMILIES

__all__ = ["postgres", "stdio"]
# Loaded here, because a server's stderr is what stderr is at this import.

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
DATABASE = "postgresql://studio@db.internal/studio"
"""A database of the pages. The tests have one of their own in its place."""
ELSEWHERE = {"job-queues.md"}
"""Pages whose Python runs in a suite with its own environment: `tests/queues`."""


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=50) as running:
        yield running


def to_run(page: Path) -> object:
    """Return the parameter for *page*; where clients meet a proxy, tests may send paid requests."""
    marks = [pytest.mark.muybridge_paid_requests] if page.name == "proxy.md" else []
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


def hurried(initialize: Callable[..., None]) -> Callable[..., None]:
    """Return *initialize* with a short poll interval, for all clients of the local service.

    A client with a clock or transport of its page's own lives in virtual time, where polls are what
    takes time.
    """

    def init(self: object, *arguments: Any, **options: Any) -> None:
        if not {"clock", "transport"} & options.keys():
            options.setdefault("poll_interval", 0.1)
        initialize(self, *arguments, **options)

    return init


class Cells:
    """Runs blocks of code as a notebook does: in one event loop, and `await` stands anywhere.

    Args:
        runner: Runs the blocks that await something.
        database: Takes the place of `DATABASE`.
    """

    def __init__(self, runner: asyncio.Runner, database: str) -> None:
        self._runner = runner
        self._database = database

    def __call__(self, example: Example) -> None:
        """Run *example* in the namespace of its page."""
        lines = "\n" * (example.line + example.parsed.line_offset)  # so that tracebacks are right
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        parsed = example.parsed.replace(DATABASE, self._database)
        code = compile(lines + parsed, example.path, "exec", flags, dont_inherit=True)
        awaited = eval(code, example.namespace)  # noqa: S307  our own pages
        if awaited is not None:
            self._runner.run(awaited)


@pytest.mark.parametrize("page", [to_run(page) for page in PAGES if page.name not in ELSEWHERE])
def test_examples_run(
    page: Path,
    request: pytest.FixtureRequest,
    service: LocalService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The Python on a page runs from top to bottom, and prints what the page shows.

    Each section of the README also runs when it is pasted alone. Tests on the page run as under
    pytest. Clients poll more often than the real service allows.
    """
    for client in (Client, AsyncClient):
        monkeypatch.setattr(client, "__init__", hurried(client.__init__))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUYBRIDGE_API_KEY", service.api_key)
    monkeypatch.setenv("MUYBRIDGE_BASE_URL", service.base_url)
    monkeypatch.setenv("MUYBRIDGE_TEXT_BASE_URL", service.text_base_url)

    def printed_at_last(example: Example) -> None:
        assert capsys.readouterr().out.endswith(str(example.parsed))

    text = page.read_text(encoding="utf-8")
    has_database = DATABASE in text
    database = request.getfixturevalue("postgres").fresh() if has_database else ""
    # An example may set variables, too.
    with patch.dict(os.environ), asyncio.Runner() as runner:
        cells = CodeBlockParser("python", Cells(runner, database))
        document = Sybil([cells, CodeBlockParser("text", printed_at_last)]).parse(page)
        section = -1
        for example in document.examples():
            begins = text.rfind("\n## ", 0, example.start)
            if page == README and begins != section:
                section = begins
                document.namespace.clear()
            example.evaluate()
    for name, test in document.namespace.items():
        if name.startswith("test_"):
            test(**{each: request.getfixturevalue(each) for each in signature(test).parameters})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_quoted_code(page: Path) -> None:
    """Quotes of our own code (as `py`, not `python`) match it word for word."""
    quotes = re.findall(
        r"^```py\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    wire = ROOT / "transports" / "muybridge" / "wire"
    modules = [wire / f"{name}.py" for name in ("transport", "async_transport", "httpx2_transport")]
    examples = ROOT / "tests" / "testing"
    modules += [examples / f"{name}.py" for name in ("on_pycurl", "on_aiohttp")]
    modules.append(ROOT / "tests" / "purchases" / "on_mariadb.py")
    code = "\n".join(module.read_text(encoding="utf-8") for module in modules)
    assert [quote for quote in quotes if quote not in code] == []


def test_the_page_of_media_rules_is_complete() -> None:
    """The docs list the rules about the media itself for every family."""
    page = (ROOT / "docs" / "check-media.md").read_text(encoding="utf-8")
    for family in FAMILIES.values():
        for note in family.notes:
            assert f"- {note}" in page.replace("\n  ", " "), family.name
