"""Check the requests of a file. JSON lines are read with constant memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from muybridge.batch.items.reading import ItemFields, WrongItem, read_fields, wording_of_all
from muybridge.verbs.request_files import EMPTY, Verdict, folder_of, items, path_of
from muybridge_protocol.errors import IgnoredSetting
from muybridge_protocol.families.family import OwnLinks, no_link
from muybridge_protocol.families.references import problems_of_files
from muybridge_protocol.families.request import parse
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.rules.media import MediaReport

if TYPE_CHECKING:
    from muybridge.client import Client


def validate(
    file: BinaryIO, client: Client | None = None, own: OwnLinks = no_link
) -> Iterator[Verdict]:
    """Yield the verdict on each item of *file*, or one on the file if it has none.

    Args:
        file: JSON lines, or a file of another format that its name says.
        client: Looks at the media of valid items, or None to leave them unchecked.
        own: Recognizes links that the service in use has given out.

    Raises:
        LocalError: The file cannot be read any further.
    """
    empty = True
    folder = folder_of(file)
    for place, item in items(file):
        empty = False
        yield _verdict(place, item, client, folder, own)
    if empty and path_of(file) is not None:
        yield EMPTY


def _verdict(
    place: JsonObject, item: Any, client: Client | None, folder: Path, own: OwnLinks
) -> Verdict:
    try:
        if isinstance(item, WrongItem):
            raise item
        fields = read_fields(item, folder)
    except WrongItem as wrong:
        return Verdict.of(place, item, wrong.problems)
    report = fields.family.check(fields.body, extra=fields.extra, own=own)
    problems = report.problems or problems_of_files(fields.family, fields.body)
    return Verdict(
        place,
        fields.family.name,
        tuple(wording_of_all(problems, fields.family, folder)) if problems else (),
        tuple((notice.field, notice.message) for notice in report.notices),
        None if problems or client is None else _check_media(client, fields),
    )


def _check_media(client: Client, fields: ItemFields) -> MediaReport:
    with warnings.catch_warnings():
        # The verdict has them already.
        warnings.simplefilter("ignore", IgnoredSetting)
        return client.check(parse(fields.family, fields.body, extra=fields.extra))
