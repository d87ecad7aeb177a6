"""The contact sheet of a batch: pages with every picture, video, prompt and failure.

A batch with more items than fit on a page has an index with counts and links, numbered pages, and
one page of the items that failed or need a decision. A page is written item by item, and only if
something on it has changed: it says in its head what it was made from. So a batch may be larger
than memory, and a sheet of a million items costs little once most of them are finished.

The files work from the disk, without a server, and load nothing but the results next to them and
their thumbnails. Each replaces its earlier version in one step, the index last, so that a process
that is killed leaves a sheet that works.
"""

from __future__ import annotations

import os
import stat
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from hashlib import sha256
from html import escape
from itertools import islice
from pathlib import Path
from typing import Final

import attrs

from muybridge.batch.items.entry import Entry
from muybridge.batch.results.items import Items, Outline
from muybridge.batch.results.missing_files import as_found, is_back, lacks_file
from muybridge.batch.results.places.file_names import link, numbered
from muybridge.batch.results.sheet.figures import PROBLEMS, Page, figure
from muybridge.batch.storable_values import encodable
from muybridge.files.drafts import complete, draft, sweep
from muybridge.signals import genuine
from muybridge.version import __version__
from muybridge_protocol.purchases import Stage

NAME: Final = "index.html"
PER_PAGE: Final = 500
"""Items of a page."""
_PAGES: Final = "sheet"
"""The folder of the pages, within the batch's folder."""
_PROBLEMS: Final = "problems.html"
_MARK_OF_PAGES: Final = ".muybridge"
"""A file that tells the folder from one of the user's."""
_ABOUT_PAGES: Final = "Muybridge keeps pages of a batch's contact sheet here.\n"
_HEAD: Final = (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
    '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
)
_MARK: Final = '<meta name="generator" content="muybridge batch">'
_END: Final = b"</html>\n"
_MARKED_WITHIN: Final = 4096
"""Bytes or characters at the beginning of a page that have its marks."""


@attrs.frozen
class Section:
    """What a page of the sheet is made from.

    Args:
        first: The number of its first item.
        counts: How many of its items are in each state, as their files were found.
        missing: How many of the completed ones have lost their file.
        digest: Differs if anything that the page shows of its items does.
    """

    first: int
    counts: Counter[Stage]
    missing: int
    digest: str

    @property
    def last(self) -> int:
        """The number of its last item."""
        return self.first + self.counts.total() - 1


def sections(items: Items, folder: Path) -> list[Section]:
    """Read what each page of a batch's sheet is made from, and look for its files in *folder*."""
    outlines = items.outlines()
    pages = iter(lambda: list(islice(outlines, PER_PAGE)), [])
    return [_section(page, folder) for page in pages]


def _section(outlines: list[Outline], folder: Path) -> Section:
    counts: Counter[Stage] = Counter()
    missing = 0
    digest = sha256()
    for one in outlines:
        number, state, path, size, facts = one
        lost = path is not None and lacks_file(one, folder)
        back = state is Stage.COMPLETED and is_back(one, folder)
        counts[Stage.COMPLETED if lost else state] += 1
        missing += lost
        made_from = f"{number} {state} {path!r} {size} {lost} {back} {facts}\n"
        digest.update(made_from.encode("utf-8", "replace"))
    return Section(outlines[0].number, counts, missing, digest.hexdigest())


def find_sheet(folder: Path) -> Path | None:
    """Return the contact sheet in *folder*, or None if there is none."""
    for path in numbered(folder / NAME):
        if _is_sheet(path):
            return path
        if not os.path.lexists(path):
            return None
    return None


def write_sheet(folder: Path, items: Items, made_from: list[Section]) -> Path:
    """Write the contact sheet of the batch in *folder*, and return where its index is.

    It only replaces an earlier sheet. If another file has its name, it gets a numbered one.

    Args:
        folder: The batch's folder.
        items: Its items.
        made_from: What `sections` has just returned for them.

    Raises:
        OSError: It cannot be written.
    """
    index = folder / NAME
    sheet = _Sheet(folder, items, made_from, _name_of_index(index))
    sweep(folder, NAME)
    content = sheet.only_page() if len(made_from) <= 1 else sheet.write_pages()
    with draft(index) as file:
        file.writelines(_lines(content))
        new = complete(file)
        path, is_new = link(new, index, _is_sheet)
        # A file that takes an earlier sheet's place at this very moment is replaced.
        return path if is_new else new.replace(path)


class _Sheet:
    """The pages of a sheet.

    Args:
        folder: The batch's folder.
        items: Its items.
        made_from: What each page is made from.
        index: The name of the index.
    """

    def __init__(self, folder: Path, items: Items, made_from: list[Section], index: str) -> None:
        self._folder = folder
        self._index_name = index
        self._items = items
        self._sections = made_from
        self._title = folder.resolve().name
        counts = sum((section.counts for section in made_from), Counter[Stage]())
        self._counts = {state: counts[state] for state in Stage if counts[state]}

    def only_page(self) -> Iterator[str]:
        """Yield the whole sheet of a batch whose items fit on one page."""
        total = sum(self._counts.values())
        yield from _head(self._title, f"{total} items: {_counted(self._counts)}")
        yield from self._figures(self._items.entries(), Page(self._folder, ""))
        yield from _foot()

    def write_pages(self) -> Iterator[str]:
        """Write the pages that have changed, and return what the index has."""
        pages = _folder_of_pages(self._folder)
        sweep(pages)
        for number, section in enumerate(self._sections, start=1):
            path = pages / f"{number}.html"
            before = f"{number - 1}.html" if number > 1 else ""
            after = f"{number + 1}.html" if number < len(self._sections) else ""
            made_from = _made_from(self._title, section.digest, self._index_name, before, after)
            if not _is_made_from(path, made_from):
                _write(path, self._numbered_page(section, made_from, before, after))
        problem_count = sum(self._counts.get(state, 0) for state in PROBLEMS)
        if problem_count:
            _write(pages / _PROBLEMS, self._page_of_problems(problem_count))
        else:
            (pages / _PROBLEMS).unlink(missing_ok=True)
        return self._index(pages.name, problem_count)

    def _index(self, pages: str, problems: int) -> Iterator[str]:
        total = sum(self._counts.values())
        yield from _head(self._title, f"{total:,} items: {_counted(self._counts)}")
        yield (
            f'<div id="jump" data-pages="{escape(pages)}" data-per-page="{PER_PAGE}" '
            f'data-items="{total}" hidden><label>Item <input id="number" inputmode="numeric" '
            'placeholder="number"></label><button id="go">Show</button></div>'
        )
        if problems:
            yield (
                f'<p><a class="problem" href="{escape(pages)}/{_PROBLEMS}">Failed and undecided '
                f"items: {problems:,}</a></p>"
            )
        yield (
            "<p>Each page has a search of its own. To search all items, write the manifest: "
            "<code>muybridge batch manifest DIR</code>.</p>"
        )
        yield "<ol>"
        for number, section in enumerate(self._sections, start=1):
            others = _counted({**section.counts, Stage.DOWNLOADED: 0})
            others = f"<small>{others}</small>" if others else ""
            yield (
                f'<li><a href="{escape(pages)}/{number}.html">{_range(section)}</a>{others}</li>'
            )
        yield "</ol>"
        yield from _foot()

    def _numbered_page(
        self, section: Section, made_from: str, before: str, after: str
    ) -> Iterator[str]:
        links = _links({"All pages": f"../{self._index_name}", "Back": before, "Next": after})
        counts = f"Items {_range(section)}: {_counted(section.counts)}"
        yield from _head(self._title, counts, links, made_from=made_from)
        entries = islice(self._items.entries(after=section.first - 1), section.counts.total())
        yield from self._figures(entries, Page(self._folder, "../"))
        yield from _foot(links)

    def _page_of_problems(self, count: int) -> Iterator[str]:
        links = _links({"All pages": f"../{self._index_name}"})
        shown = f", the first {PER_PAGE} of them" if count > PER_PAGE else ""
        yield from _head(self._title, f"{count:,} failed and undecided items{shown}", links)
        numbers = (one.number for state in PROBLEMS for one in self._items.outlines(state))
        entries = map(self._items.entry, islice(numbers, PER_PAGE))
        yield from self._figures(entries, Page(self._folder, "../"))
        yield from _foot(links)

    def _figures(self, entries: Iterable[Entry], page: Page) -> Iterator[str]:
        yield "<main>"
        for entry in map(partial(as_found, folder=self._folder), entries):
            yield figure(entry, page)
        yield "</main>"


def _write(path: Path, content: Iterator[str]) -> None:
    """Write a page, whole or not at all, in the place of an earlier one."""
    with draft(path) as file:
        file.writelines(_lines(content))
        complete(file).replace(path)


def _lines(content: Iterable[str]) -> Iterator[bytes]:
    return (f"{encodable(line)}\n".encode() for line in content)


def _name_of_index(index: Path) -> str:
    """Return the name that the index has, or will have if another file has its own."""
    paths = numbered(index)
    return next(path.name for path in paths if not os.path.lexists(path) or _is_sheet(path))


def _folder_of_pages(folder: Path) -> Path:
    """Return the folder of the pages, and make it if it is missing. Others' folders are left."""
    paths = numbered(folder / _PAGES)
    path = next(path for path in paths if _is_ours(path))
    (path / _MARK_OF_PAGES).write_text(_ABOUT_PAGES, encoding="utf-8")
    return path


def _is_ours(path: Path) -> bool:
    """Whether *path* is a folder of pages, or an empty one. A missing one is made."""
    try:
        path.mkdir()
    except genuine(FileExistsError):
        pass
    if path.is_symlink() or not path.is_dir():
        return False
    return (path / _MARK_OF_PAGES).is_file() or not any(path.iterdir())


def _made_from(*parts: str) -> str:
    """Return what the head of a page says about its content, which this package made."""
    parts_of_page = "\0".join((*parts, __version__, _template()))
    return sha256(parts_of_page.encode("utf-8", "replace")).hexdigest()


def _is_made_from(path: Path, made_from: str) -> bool:
    """Whether a whole page that was made from that is at *path*; a power cut may have torn it."""
    try:
        with path.open("rb") as file:
            if f'content="{made_from}"'.encode() not in file.read(_MARKED_WITHIN):
                return False
            file.seek(-len(_END), os.SEEK_END)
            return file.read() == _END
    except genuine(OSError):
        return False


def _is_sheet(path: Path) -> bool:
    """Whether a contact sheet is at *path*. Links and pipes are not opened."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open(encoding="utf-8", errors="replace") as file:
            beginning = file.read(_MARKED_WITHIN)
    except genuine(OSError):
        return False
    return beginning.startswith(_HEAD) and _MARK in beginning


@cache
def _template() -> str:
    return Path(__file__).with_name("page.html").read_text("utf-8")


def _head(title: str, counts: str, links: str = "", *, made_from: str = "") -> Iterator[str]:
    """Yield what stands before the content of a page."""
    before = _template().partition("{{content}}\n")[0]
    for mark, text in (
        ("{{script}}", _script_hash(_template())),
        ("{{made-from}}", made_from),
        ("{{counts}}", counts),
        ("{{links}}", links),
        ("{{title}}", escape(title)),  # the last, because it is the user's
    ):
        before = before.replace(mark, text)
    yield before.rstrip("\n")


def _foot(links: str = "") -> Iterator[str]:
    """Yield what stands behind the content of a page."""
    yield _template().partition("{{content}}\n")[2].replace("{{links}}", links).rstrip("\n")


def _script_hash(template: str) -> str:
    """Return what permits the page's own script, and no other."""
    script = template.partition("<script>")[2].partition("</script>")[0]
    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"


def _links(pages: Mapping[str, str]) -> str:
    """Return links to other pages, where there are such pages."""
    shown = (f'<a href="{escape(page)}">{name}</a>' for name, page in pages.items() if page)
    return f"<nav>{''.join(shown)}</nav>"


def _counted(counts: Mapping[Stage, int]) -> str:
    return ", ".join(f"{counts[state]:,} {state}" for state in Stage if counts.get(state))


def _range(section: Section) -> str:
    return f"{section.first:,}-{section.last:,}"
