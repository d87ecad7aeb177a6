"""A table that stays readable on a narrow terminal."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text


class NarrowTable(Table):
    """A table if no word of it has to be broken, and otherwise a list.

    The list has the first value of each row, and below it a line for each other value.
    """

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what is shown."""
        parts = list(super().__rich_console__(console, options))
        shown = "".join(part.text for part in parts if isinstance(part, Segment))
        cells = (str(cell) for column in self.columns for cell in (column.header, *column.cells))
        whole = all(word in shown for cell in cells for word in cell.split())
        yield from parts if whole or not self.show_header else self._listed()

    def _listed(self) -> Iterator[Text | Padding]:
        headings = [str(column.header) for column in self.columns]
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            yield Text(str(cells[0]), style="bold", overflow="fold")
            for heading, cell in islice(zip(headings, cells, strict=True), 1, None):
                if cell:
                    yield Padding(Text(f"{heading}: {cell}", overflow="fold"), (0, 0, 0, 2))
