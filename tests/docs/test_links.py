"""Links between pages work on a code host and in the built site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"^(```+|~~~+).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^()\s]+(?:\([^()\s]*\))?)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def prose(page: Path) -> str:
    """Return the text of *page* outside of code blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links_on(page: Path) -> list[str]:
    """Return the targets of the links on *page*."""
    return _LINK.findall(prose(page))


def anchors_on(page: Path) -> Iterator[str]:
    """Yield the anchors that a code host creates for the headings of *page*."""
    seen: dict[str, int] = {}
    for heading in _HEADING.findall(prose(page)):
        text = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-")
        count = seen.get(text, 0)
        seen[text] = count + 1
        yield f"{text}-{count}" if count else text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """A link to a file or heading leads to one that exists in this tree."""
    dead: list[str] = []
    for link in links_on(page):
        address = urlsplit(link)
        if address.scheme:
            continue
        target = page if not address.path else (page.parent / address.path).resolve()
        inside = target.is_relative_to(ROOT) and target.is_file()  # Sphinx knows no folders
        if not inside or (address.fragment and address.fragment not in anchors_on(target)):
            dead.append(link)
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_elsewhere_are_well_formed(page: Path) -> None:
    """A link to another host uses https and names the host."""
    for link in links_on(page):
        address = urlsplit(link)
        assert not address.scheme or (address.scheme == "https" and "." in address.netloc), link


def test_links_are_found() -> None:
    """The search finds links, including those to anchors on other pages."""
    assert "docs/batches.md" in links_on(ROOT / "README.md")
    assert "cli.md#ask-a-model-text" in links_on(ROOT / "docs" / "text.md")
    assert "ask-a-model-text" in anchors_on(ROOT / "docs" / "cli.md")
    assert "ask-a-model" not in anchors_on(ROOT / "docs" / "cli.md")
