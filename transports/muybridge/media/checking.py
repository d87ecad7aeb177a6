"""Checks the media of a request: finds out what each of them is, and applies the family's rules.

It is written once, for every driver. Files are read in a thread, and URLs by `Inspection`, an
operation like any other. What a request contains as base64 is at hand already.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from muybridge.drivers.calls import Calls, is_time
from muybridge.drivers.driver import Drive, Driver, Stream
from muybridge.media.files import inspect_file
from muybridge_protocol.arguments import check_type
from muybridge_protocol.families.family import Family
from muybridge_protocol.families.references import Reference, media_fields, references_in
from muybridge_protocol.families.request import MediaRequest
from muybridge_protocol.http import HttpRequest, without_query
from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.inline import InlineMedia
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.source import Fragments
from muybridge_protocol.operations import Inspection
from muybridge_protocol.rules.media import MediaReport, Medium, judge_media
from muybridge_protocol.rules.values import Kind, is_array

MediaFile = str | os.PathLike[str] | bytes
"""A file's path, or its bytes."""
MediaFiles = MediaFile | Sequence[MediaFile]
"""One file for a field, or several."""

_ASSET = "it is an asset, which only the service can look into"


async def check_media(
    driver: Driver,
    calls: Calls,
    request: MediaRequest,
    files: Mapping[str, MediaFiles],
    timeout: float,  # noqa: ASYNC109  it is for all exchanges together
) -> MediaReport:
    """Return whether the media of *request* keep the rules of its family.

    Args:
        driver: Drives the look at each URL.
        calls: Begins it.
        request: The request.
        files: Files in place of a field's URLs, by the field's name.
        timeout: Seconds that fetching may take in all.

    Raises:
        OSError: A file cannot be read.
        ValueError: There is no such field, or the timeout is not positive.
    """
    if not is_time(timeout):
        raise ValueError(f"timeout must be a positive number of seconds (got {timeout!r})")
    family, body = request.family, request.settings()
    given = files_by_field(family, files)
    deadline = driver.runtime.now() + timeout
    several = {field.wire for field in family.fields if field.kind is Kind.STRINGS}
    seen: dict[str | InlineMedia, MediaFacts] = {}
    media: list[Medium] = []
    for wire, kind in media_fields(family).items():
        for index, file in enumerate(given.get(wire, ())):
            if isinstance(file, bytes):
                source, facts = f"{len(file):,} bytes", inspect_media(Fragments.of(file))
            else:
                source = os.fspath(file)
                facts = await driver.runtime.in_thread(partial(inspect_file, file))
            place = index if wire in several else None
            media.append(Medium(field=wire, index=place, kind=kind, source=source, facts=facts))
        if wire in given:
            continue
        for one in references_in(family, body):
            if one.field != wire:
                continue
            if one.value not in seen:
                seen[one.value] = await _look(driver, calls, one, deadline)
            facts = seen[one.value]
            media.append(
                Medium(
                    field=wire, index=one.index, kind=kind, source=_shown(one.value), facts=facts
                )
            )
    return judge_media(family.media_rules, media, body)


def files_by_field(
    family: Family, files: Mapping[str, MediaFiles]
) -> dict[str, Sequence[MediaFile]]:
    """Return *files* by the names of their fields on the wire.

    Raises:
        ValueError: *family* has no such field for media.
    """
    line = "files={'image_urls': 'horse.png'}"
    check_type("files", files, Mapping, "a mapping of fields to files", line)
    by_field: dict[str, Sequence[MediaFile]] = {}
    fields = media_fields(family)
    for name, value in files.items():
        wire = next(
            (field.wire for field in family.fields if name in (field.name, field.wire)), name
        )
        wire = next((alias.field for alias in family.aliases if alias.legacy == wire), wire)
        if wire not in fields:
            names = ", ".join(fields) or "none"
            raise ValueError(f"{name!r} is not a field of {family.name} for media ({names})")
        several = value if is_array(value) else (value,)
        for file in several:
            use = "a path or bytes, or a list of them"
            check_type(f"files[{name!r}]", file, (str, os.PathLike, bytes), use)
        by_field[wire] = cast("Sequence[MediaFile]", several)
    return by_field


async def _look(driver: Driver, calls: Calls, one: Reference, deadline: float) -> MediaFacts:
    """Return what is known about a reference."""
    value = one.value
    if isinstance(value, InlineMedia):
        return value.facts
    if value[:8].lower() == "asset://":
        return MediaFacts(missing=_ASSET)
    if "://" in value[:8]:
        now = driver.runtime.now()
        return await _inspect(driver, calls.inspect(value, now=now, deadline=deadline))
    try:
        data = _decoded(value)
    except binascii.Error as error:
        return MediaFacts(missing=f"its base64 cannot be read: {error}")
    return inspect_media(Fragments.of(data))


def _decoded(text: str) -> bytes:
    """Return the bytes of a `data:` URI or of plain base64, in either alphabet.

    The request's own check has made sure that it is one of the two.

    Raises:
        binascii.Error: It is not complete.
    """
    digits = text.partition(",")[2] if text[:5].lower() == "data:" else text
    digits = digits.rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(digits + "=" * (-len(digits) % 4))


def _shown(value: str | InlineMedia) -> str:
    if isinstance(value, InlineMedia):
        return value.name or f"{len(value.data):,} bytes"
    return without_query(value) if "://" in value[:8] else f"{len(value):,} characters of base64"


async def _inspect(driver: Driver, operation: Inspection) -> MediaFacts:
    """Drive *operation* to its end, and return what is known about the medium."""
    drive = _Inspecting(driver, operation)
    while await drive.step():
        pass
    facts: MediaFacts = drive.outcome()
    return facts


class _Inspecting(Drive[Inspection]):
    """A look at what a URL leads to."""

    async def _fetch(self, request: HttpRequest, deadline: float) -> None:
        self._operation = await self._exchange(request, deadline, self._read)
        self._tracker.tell_end(self._operation.events)

    async def _read(self, stream: Stream) -> None:
        now = self._driver.runtime.now
        async with stream as response:
            moment = now()
            head = self._driver.credentials.redact_head(response.head)
            self._operation = self._operation.accept(head, moment)
            self._tracker.head(head.status, moment)
            if not self._operation.wants_body:
                return
            async for piece in response.pieces():
                self._tracker.piece(len(piece))
                self._operation = self._operation.take(piece)
                if not self._operation.wants_body:
                    return
        self._operation = self._operation.end(now())
