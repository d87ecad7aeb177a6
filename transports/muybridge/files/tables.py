"""Tables in CSV that people fill in, in an editor or a spreadsheet.

Such a table is edited by hand, and may be sorted, cut or another one. So every problem is reported
with its line. What it shows may come from anybody, and a spreadsheet computes cells that begin like
formulas. Such cells get an apostrophe in front, which spreadsheets hide.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs

from muybridge.files.encodings import encoding_of_file

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that a spreadsheet computes."""


@attrs.frozen
class Line:
    """A line of a table.

    Args:
        where: Where it is, such as `line 3`.
        cells: Its cells by column, as they stand there.
        problem: Why it cannot be read, or "".
    """

    where: str
    cells: dict[str, str] = attrs.field(factory=dict[str, str])
    problem: str = ""


def write_table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a CSV table with a line of names, in which no spreadsheet computes anything."""
    table = io.StringIO()
    writer = csv.writer(table, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(map(cell, row))
    return table.getvalue()


def read_table(path: Path, columns: Collection[str], required: Collection[str]) -> Iterator[Line]:
    """Yield the lines of a table, and those that cannot be read.

    Args:
        path: The file.
        columns: The columns that it may have once. Others are ignored.
        required: The columns that it must have.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        text = path.read_text(encoding=encoding_of_file(path))
    except UnicodeDecodeError as error:
        line = bytes(error.object[: error.start]).count(b"\n") + 1
        yield Line(f"line {line}", problem="it is not UTF-8: save the table as CSV UTF-8")
        return
    heading = text.partition("\n")[0]
    # Where a comma separates decimals, spreadsheets separate cells by semicolons.
    delimiter = max(",;\t", key=heading.count)
    rows = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
    start = 1
    try:
        names = [name.strip().lower() for name in next(rows, list[str]())]
        missing = {*required} - {*names}
        doubled = {name for name in names if name in columns and names.count(name) > 1}
        if missing or doubled:
            problem = "is missing" if missing else "occurs twice"
            for name in sorted(missing or doubled):
                yield Line("line 1", problem=f"the column {name} {problem}")
            return
        start = rows.line_num + 1
        for row in rows:
            where, start = f"line {start}", rows.line_num + 1
            if len(row) > len(names):
                problem = f"it has {len(row)} cells, and line 1 has {len(names)}"
                yield Line(where, problem=problem)
            else:
                yield Line(where, dict(zip(names, row, strict=False)))
    except csv.Error as error:
        yield Line(f"line {start}", problem=f"it is not CSV: {error}")


def cell(text: str) -> str:
    """Return *text* as a cell that no spreadsheet computes."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def plain(cell: str) -> str:
    """Return a cell without the apostrophe that kept a spreadsheet from computing it."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell
