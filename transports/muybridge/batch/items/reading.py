"""Reading a batch: requests from JSON lines, JSON or CSV, all checked before anything is sent.

An item is an object with `family` and the fields, by their names on the wire or in Python. Optional
are `name`, for its file, `extra`, for fields that are sent unchecked, and `unlisted_model`, for a
model that the tables do not list. The fields may be in an object of their own, `body`. In a field
for media, a file may name a local file as `@PATH`, relative to itself, and Python code gives a
`Path`, bytes or an open file; `allow_inline` is that of `load_media`.
"""

from __future__ import annotations

import csv
import json
import os
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final, cast

import attrs

from muybridge.files.encodings import UTF_8, encoding_of_file
from muybridge.files.inline_media import LocalMedia
from muybridge.files.saving import safe_stem
from muybridge.media.by_name import by_wire
from muybridge.media.loading import local_media, with_files
from muybridge.purchases.store import NewItem
from muybridge_protocol.arguments import check_type
from muybridge_protocol.errors import InputProblem, InvalidInput, InvalidRequest, LocalError
from muybridge_protocol.families import Family, Field, MediaRequest, Unlisted, find_family
from muybridge_protocol.families.family import OwnLinks, any_link
from muybridge_protocol.families.request import parse, with_loading
from muybridge_protocol.purchases import Amounts, written_amounts
from muybridge_protocol.records.json import InvalidJson, read_json
from muybridge_protocol.remedies import Remedy, RemedyKind, in_all_faces
from muybridge_protocol.rules.files import IN_FIELDS, FileForms
from muybridge_protocol.rules.values import Kind, Problem, shown

_LONGEST_NAME: Final = 200
_OWN: Final = ("family", "name", "extra", "unlisted_model", "allow_inline", "body")
_CSV_LIMIT: Final = 64 * 1024 * 1024
"""Longest CSV cell in characters: it may hold a reference as base64."""
LINES: Final = (".jsonl", ".ndjson")
"""The suffixes of JSON lines."""
NO_ITEM: Final = "it has no item"
THE_BATCH: Final = "the batch"
"""What messages call the items together."""
_IN_MEMORY: Final = 1024 * 1024
"""Bytes of checked items kept in memory; more go to a temporary file."""


class WrongItem(ValueError):
    """One item's problems.

    Args:
        *problems: The field's name on the wire, or "", and what is wrong with it.
    """

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(problems)
        self.problems: tuple[tuple[str, str], ...] = problems


class UnreadableRest(WrongItem):
    """The rest of a file cannot be read, so that nobody knows which items it has."""


@attrs.frozen(kw_only=True)
class ItemFields:
    """The fields of an item, with the right shape, but not checked against its family's rules.

    Args:
        name: The user's name for the item, or "".
        family: The family of its request.
        body: The request's fields by their names on the wire.
        extra: Fields that are sent unchecked, or None.
    """

    name: str
    family: Family
    body: Mapping[str, object]
    extra: Mapping[str, object] | None


@attrs.frozen(kw_only=True)
class CheckedItem:
    """A valid item of a batch.

    Args:
        name: The user's name for the item, or "".
        stem: The name of its file, without the suffix; unique in the batch, ignoring case.
        family: The family of the request.
        body: The request as it is sent.
    """

    name: str
    stem: str
    family: str
    body: Mapping[str, object]

    def new(self, amounts: Amounts | None = None) -> NewItem:
        """Return it for a store.

        Args:
            amounts: What it consumes, if whoever sends it may not know its price.
        """
        return NewItem(
            name=self.name,
            stem=self.stem,
            family=self.family,
            body=json.dumps(self.body),
            amounts=None if amounts is None else written_amounts(amounts),
        )


@attrs.frozen(eq=False)
class CheckedItems:
    """The valid items of a batch, read from a temporary file because there may be very many.

    Args:
        file: A line of JSON for each item.
        count: How many there are.
    """

    _file: IO[bytes]
    _count: int

    def __len__(self) -> int:
        """Return how many items there are."""
        return self._count

    def __iter__(self) -> Iterator[CheckedItem]:
        """Yield the items from the first one."""
        self._file.seek(0)
        for line in self._file:
            name, stem, family, body = json.loads(line)
            yield CheckedItem(name=name, stem=stem, family=family, body=body)


Items = str | os.PathLike[str] | Iterable[MediaRequest | Mapping[str, Any]]
"""A file, or requests, or objects with the keys of a file's items."""


@attrs.frozen
class ValidItems:
    """The valid items of a source, for every call that takes one. The others are skipped.

    To send one later, put it, corrected, at the end of the source: items of a batch keep their
    order.

    Args:
        source: A file, requests, or objects with the keys of a file's items.
        on_invalid: Called with each problem of the items that are skipped. If no item is valid, or
            the file cannot be read to its end, all problems are raised as `InvalidInput` instead.
    """

    source: str | os.PathLike[str] | Iterable[MediaRequest | Mapping[str, Any]]
    on_invalid: Callable[[InputProblem], None]


Source = Items | CheckedItems | ValidItems
"""Items, such that were checked, or the valid ones among them."""


def read_items(source: Source) -> list[CheckedItem]:
    """Return the items of *source*, each checked.

    Args:
        source: A file whose name ends with `.jsonl`, `.json` or `.csv`; or requests, or objects
            with the keys of a file's items; or the `ValidItems` of one of these.

    Raises:
        InvalidInput: Some items are not valid; all problems are listed.
        OSError: The file cannot be read.
    """
    with checked_items(source) as items:
        return list(items)


@contextmanager
def checked_items(source: Source, own: OwnLinks = any_link) -> Generator[CheckedItems, None, None]:
    """Check all items of *source*, and provide them as long as the context lasts.

    Args:
        source: The items.
        own: Whether a URL on this machine is one that the service gave out.

    Raises:
        InvalidInput: Some items are not valid; all problems are listed.
        OSError: The file cannot be read, or the temporary folder has no room for its items.
    """
    if isinstance(source, CheckedItems):
        yield source
        return
    on_invalid = None
    if isinstance(source, ValidItems):
        on_invalid = source.on_invalid
        source = source.source
    problems: list[InputProblem] = []
    stems = _Stems()
    count = 0
    whole = True
    folder = Path(source).parent if isinstance(source, str | os.PathLike) else None
    with SpooledTemporaryFile(_IN_MEMORY) as file:
        for where, value in located(source):
            try:
                if isinstance(value, WrongItem):
                    raise value
                name, request, body = _checked(value, folder, own)
            except WrongItem as wrong:
                problems += [
                    InputProblem(where, message, field) for field, message in wrong.problems
                ]
                whole = whole and not isinstance(wrong, UnreadableRest)
                continue
            count += 1
            stem = stems.add(name, count)
            item = (name, stem, request.family.name, body)
            file.write(json.dumps(item).encode() + b"\n")
        if not count and not problems:
            problems.append(InputProblem(THE_BATCH, NO_ITEM))
        if on_invalid is not None and count and whole:
            for problem in problems:
                on_invalid(problem)
        elif problems:
            raise InvalidInput(THE_BATCH, problems)
        yield CheckedItems(file, count)


def located(source: Items) -> Iterator[tuple[str, Any]]:
    """Yield each item, or a `WrongItem`, with its place in the source."""
    if isinstance(source, MediaRequest | Mapping):
        yield "the batch", WrongItem(("", "it is a single item; put it into a list"))
        return
    if hasattr(source, "read"):
        check_type("source", source, (), "a file's path or a list of requests")
    if not isinstance(source, str | os.PathLike):
        check_type("source", source, Iterable, "a file's path or a list of requests")
        for number, item in enumerate(source, start=1):
            yield f"item {number}", item
        return
    path = Path(source)
    readers = {".csv": _csv_rows, ".json": _json_items, **dict.fromkeys(LINES, _lines)}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        kind = "it is a binary file, and " if _is_binary(path) else ""
        message = f"{kind}its name does not end with one of {', '.join(readers)}"
        yield str(path), WrongItem(("", message))
        return
    encoding = encoding_of_file(path)
    # Looked for first: a decoder reads ahead, so that its error would not say which line it is.
    line = _not_utf8(path) if encoding == UTF_8 else None
    if line is not None:
        yield f"line {line}", WrongItem(("", "it is not UTF-8; save the file as UTF-8"))
        return
    # The CSV reader handles line ends itself; elsewhere a carriage return is white space.
    newline = "" if reader is _csv_rows else "\n"
    with path.open(encoding=encoding, newline=newline) as file:
        try:
            yield from reader(file)
        except UnicodeDecodeError:
            yield str(path), UnreadableRest(("", "it is not UTF-16; save the file as UTF-8"))


def _is_binary(path: Path) -> bool:
    """Whether a file begins with bytes that no text has, as pictures do."""
    try:
        with path.open("rb") as file:
            return b"\0" in file.read(1024)
    except OSError:
        return False


def _not_utf8(path: Path) -> int | None:
    """Return the number of the first line that is not UTF-8, or None if all are."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number
    return None


def _lines(file: IO[str]) -> Iterator[tuple[str, Any]]:
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield f"line {number}", parsed(line.removesuffix("\n"))


def _json_items(file: IO[str]) -> Iterator[tuple[str, Any]]:
    value = parsed(file.read())
    if isinstance(value, list):
        for number, item in enumerate(cast("list[object]", value), start=1):
            yield f"item {number}", item
        return
    if not isinstance(value, WrongItem):
        value = WrongItem(("", "it is not an array of objects"))
    yield "the file", value


def _csv_rows(file: IO[str]) -> Iterator[tuple[str, Any]]:
    csv.field_size_limit(_CSV_LIMIT)
    rows = csv.reader(file, strict=True)
    try:
        names = [name.strip() for name in next(rows, list[str]())]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            yield "line 1", WrongItem(*((name, "the column occurs twice") for name in doubled))
            return
        if names and "family" not in names:
            yield "line 1", WrongItem(("", _without_family(names)))
            return
        start = rows.line_num + 1
        for row in rows:
            # A row may take several lines, and is called by its first one.
            where, start = f"line {start}", rows.line_num + 1
            if not any(cell.strip() for cell in row):
                continue
            if len(row) > len(names):
                yield (
                    where,
                    WrongItem(("", f"it has {len(row)} cells, and line 1 has {len(names)}")),
                )
                continue
            # An empty cell stands for a field that is not given.
            cells = {name: cell for name, cell in zip(names, row, strict=False) if cell != ""}
            yield where, _typed(cells)
    except csv.Error as error:
        yield f"line {rows.line_num}", UnreadableRest(("", f"it is not CSV: {error}"))


def _without_family(names: list[str]) -> str:
    """Return what is wrong with the header *names*, none of which is the family."""
    for separator, plural in ((";", "semicolons"), ("\t", "tabs")):
        if len(names) == 1 and separator in names[0]:
            return f"it is one column; separate the columns by commas in place of {plural}"
    return "the header has no column family; line 1 names the columns"


def _typed(cells: Mapping[str, str]) -> dict[str, Any] | WrongItem:
    """Return a row's cells in the types of their fields, or unchanged if that fails."""
    item: dict[str, Any] = dict(cells)
    try:
        family = find_family(cells.get("family", ""))
    except LocalError:
        return item  # reported with the other problems
    for name, cell in cells.items():
        field = next((one for one in family.fields if name in (one.wire, one.name)), None)
        if name in ("extra", "body"):
            item[name] = _json_cell(name, cell)
        elif name == "allow_inline":
            item[name] = _as_boolean(cell)
        elif field is not None and name not in _OWN:
            item[name] = _cell_value(field, cell)
    wrong = [value for value in item.values() if isinstance(value, WrongItem)]
    if wrong:
        return WrongItem(*(problem for one in wrong for problem in one.problems))
    return item


def _json_cell(name: str, cell: str) -> object:
    value = parsed(cell)
    if isinstance(value, WrongItem):
        return WrongItem(*((name, message) for _, message in value.problems))
    return value


def _cell_value(field: Field, cell: str) -> object:
    text = cell.strip()
    match field.kind:
        case Kind.STRING:
            return cell
        case Kind.STRINGS:
            return _json_or(text, [text])
        case Kind.BOOLEAN:
            return _as_boolean(cell)
        case _:
            return _json_or(text, cell)


def _as_boolean(cell: str) -> object:
    return {"true": True, "false": False}.get(cell.strip().lower(), cell)


def _json_or(text: str, otherwise: object) -> object:
    try:
        return read_json(text)
    except InvalidJson:
        return otherwise


def parsed(text: str | bytes) -> Any:
    """Return the JSON value that *text* is, or a `WrongItem`."""
    try:
        return read_json(text)
    except InvalidJson as error:
        return WrongItem(("", str(error)))


def read_item(
    item: object, folder: Path | None = None, own: OwnLinks = any_link
) -> tuple[str, MediaRequest]:
    """Return the name and the request of *item*.

    Args:
        item: A request, or an object with the keys of a file's items.
        folder: Where the file with the item is, or None if it comes from Python code.
        own: Whether a URL on this machine is one that the service gave out.

    Raises:
        WrongItem: It is not valid.
    """
    name, request, _ = _checked(item, folder, own)
    return name, request


def _checked(
    item: object, folder: Path | None, own: OwnLinks
) -> tuple[str, MediaRequest, dict[str, object]]:
    """Return the name, the request and the body of *item*.

    Raises:
        WrongItem: It is not valid.
    """
    name, request = _made(item, folder)
    body = request.to_body()
    problems = request.family.out_of_reach(body, own)
    if problems:
        raise WrongItem(*wording_of_all(problems, request.family, folder))
    return name, request, body


def _made(item: object, folder: Path | None) -> tuple[str, MediaRequest]:
    if isinstance(item, MediaRequest):
        return "", item
    fields = read_fields(item, folder)
    try:
        return fields.name, parse(fields.family, fields.body, extra=fields.extra)
    except InvalidRequest as error:
        raise WrongItem(*wording_of_all(error.problems, fields.family, folder)) from None


def read_fields(item: object, folder: Path | None = None) -> ItemFields:
    """Return the fields of *item*, an object with the keys of a file's items.

    Args:
        item: The object.
        folder: Where the file with the item is, or None if it comes from Python code.

    Raises:
        WrongItem: It does not have the right shape.
    """
    if not isinstance(item, Mapping):
        raise WrongItem(("", f"{shown(item)} is not a JSON object"))
    values = cast("Mapping[str, Any]", item)
    problems = list(_misshapen(values))
    try:
        family = find_family(values["family"]) if isinstance(values.get("family"), str) else None
    except LocalError as error:
        raise WrongItem(("family", str(error)), *problems) from None
    if family is None or problems:
        raise WrongItem(*problems)
    return ItemFields(
        name=values.get("name", ""),
        family=family,
        body=_with_files(family, _body(family, values), values, folder),
        extra=values.get("extra"),
    )


def _misshapen(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the problems with keys that are not fields of the request."""
    if "family" not in item:
        close = _closest("family", item)
        yield "family", f"is required; rename {close} to family" if close else "is required"
    for name, kind, wanted in (
        ("family", str, "a string"),
        ("name", str, "a string"),
        ("unlisted_model", str, "a string"),
        ("extra", Mapping, "a JSON object"),
        ("allow_inline", bool, "true or false"),
        ("body", Mapping, "a JSON object"),
    ):
        if name in item and not isinstance(item[name], kind):
            yield name, f"{shown(item[name])} is not {wanted}"
    name = item.get("name", "")
    if isinstance(name, str) and (len(name) > _LONGEST_NAME or not name.isprintable()):
        yield "name", f"use at most {_LONGEST_NAME} characters that can be printed"
    if "body" in item:
        for field in item:
            if field not in _OWN:
                yield field, "stands beside body; put it inside"


def _body(family: Family, item: Mapping[str, Any]) -> Mapping[str, object]:
    """Return the fields of *item* by their names on the wire.

    Raises:
        WrongItem: A field is given twice, or the model is not one.
    """
    given = item.get("body", item)
    given = {name: value for name, value in given.items() if "body" in item or name not in _OWN}
    body, doubled = by_wire(family, given)
    if doubled:
        raise WrongItem(*map(wording_of, doubled))
    if "unlisted_model" in item:
        if "model" in body:
            raise WrongItem(("model", "is given beside unlisted_model; give only one"))
        try:
            body["model"] = Unlisted(item["unlisted_model"])
        except ValueError as error:
            raise WrongItem(("unlisted_model", str(error))) from None
    return body


def _named(path: str) -> str:
    return json.dumps(f"@{path}", ensure_ascii=False)


def _in_place(_: str) -> str:
    return "it in place of the name"


IN_ITEMS: Final = FileForms(_named, _in_place)
"""How a batch file names a file in place of a URL, and the text in a file."""


def _forms(folder: Path | None) -> FileForms:
    return IN_FIELDS if folder is None else IN_ITEMS


def wording_of_all(
    problems: Iterable[Problem], family: Family, folder: Path | None
) -> Iterator[tuple[str, str]]:
    """Return the fields of *problems*, and what to do about them in an item.

    Args:
        problems: What is wrong with the item.
        family: The family of its request.
        folder: Where the file with the item is, or None if it comes from Python code.
    """
    return map(wording_of, with_loading(problems, family, _forms(folder)))


def wording_of(problem: Problem) -> tuple[str, str]:
    """Return the field of *problem*, and what to do about it in an item."""
    own = _closest(problem.field, _OWN) if problem.rule == "unknown_field" else None
    if own is not None:
        return problem.field, f"an item has no such key; did you mean {own}?"
    return problem.field, problem.sentence(in_items)


def in_items(remedy: Remedy) -> str:
    """Return what to do in a batch file."""
    match remedy.kind:
        case RemedyKind.ALLOW:
            return f'send the file all the same with "{remedy.option}": true'
        case RemedyKind.UNLIST:
            return f"{remedy.option} sends another on purpose"
        case _:
            return in_all_faces(remedy)


def _closest(name: str, names: Iterable[object]) -> str | None:
    """Return the one of *names* that is probably *name*, misspelled, or None."""
    from difflib import get_close_matches

    texts = [one for one in names if isinstance(one, str)]
    return next(iter(get_close_matches(name, texts, n=1, cutoff=0.7)), None)


def _with_files(
    family: Family, body: Mapping[str, object], item: Mapping[str, Any], folder: Path | None
) -> Mapping[str, object]:
    """Return *body* with the content of the files that it names.

    Raises:
        WrongItem: A file cannot be sent. Everything else that is wrong is listed, too.
    """

    def file_in(value: object) -> LocalMedia | None:
        if folder is None:
            return local_media(value)
        named = isinstance(value, str) and value.startswith("@")
        name = str(value)[1:]
        # A URL is no path below the folder: as it is, `load_media` says what to do about it.
        return (name if "://" in name else folder / name) if named else None

    allow_inline = item.get("allow_inline") is True
    forms = _forms(folder)
    fields, wrong = with_files(family, body, file_in, forms, allow_inline=allow_inline)
    if wrong:
        blamed = {problem.field for problem in wrong}
        others = family.check(fields, extra=item.get("extra"), own=any_link).problems
        wrong += [problem for problem in others if problem.field not in blamed]
        raise WrongItem(*wording_of_all(wrong, family, folder))
    return fields


class _Texts:
    """A set of texts that takes 16 to 32 bytes for each: it keeps 64 bits of their hashes.

    A text that it does not have is hardly ever taken for one that it has, and for the same ones in
    every process.
    """

    def __init__(self) -> None:
        self._marks = array("Q", bytes(8 * 1024))  # an empty slot is 0
        self._count = 0

    def __contains__(self, text: str) -> bool:
        return self._marks[self._slot_of(_mark_of(text))] != 0

    def add(self, text: str) -> None:
        mark = _mark_of(text)
        slot = self._slot_of(mark)
        self._count += not self._marks[slot]
        self._marks[slot] = mark
        # At most half of the slots are used, so that a search ends soon.
        if 2 * self._count > len(self._marks):
            before, self._marks = self._marks, array("Q", bytes(16 * len(self._marks)))
            for kept in filter(None, before):
                self._marks[self._slot_of(kept)] = kept

    def _slot_of(self, mark: int) -> int:
        """Return where *mark* is, or where it belongs."""
        marks = self._marks
        last = len(marks) - 1
        slot = mark & last
        while marks[slot] not in (0, mark):
            slot = (slot + 1) & last
        return slot


def _mark_of(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest()) or 1


class _Stems:
    """The names of files that items have, without the suffix, ignoring case.

    There may be millions of items. One that is named after its number takes a byte.
    """

    def __init__(self) -> None:
        self._named = _Texts()
        self._numbered = bytearray()

    def add(self, name: str, number: int) -> str:
        """Return a name for the file of item *number*, the next one, that no other item has."""
        wanted = safe_stem(name) if name else f"{number:04}"
        stem = wanted
        # Not from 2 on: a million items of one name would each try all numbers before them.
        counter = number
        while self._has(stem.casefold()):
            stem = f"{wanted}-{counter}"
            counter += 1
        is_number = stem == f"{number:04}"
        self._numbered.append(is_number)
        if not is_number:
            self._named.add(stem.casefold())
        return stem

    def _has(self, stem: str) -> bool:
        if stem in self._named:
            return True
        # Only such a name can be the number of an item.
        if not (stem.isascii() and stem.isdigit() and len(stem) < 19):  # noqa: PLR2004  of 64 bits
            return False
        number = int(stem)
        if not 0 < number <= len(self._numbered) or stem != f"{number:04}":
            return False
        return bool(self._numbered[number - 1])
