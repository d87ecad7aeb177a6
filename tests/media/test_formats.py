"""The table of formats: every mark, suffix and type in it belongs to one format."""

from __future__ import annotations

from itertools import chain

import pytest

from muybridge_protocol.families import FAMILIES
from muybridge_protocol.media.formats import BMP, FORMATS, PDF, USUAL, Format, format_of
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.media.source import Fragments
from muybridge_protocol.rules.media import Each
from muybridge_protocol.rules.media_conditions import Formats


def beginnings(form: Format) -> list[bytes]:
    """Return how files of a format begin."""
    header = bytes(6) + (40).to_bytes(4, "little") if form is BMP else b""
    plain = [mark.ljust(8, b"\0") + part for mark in form.marks for part in form.parts or (header,)]
    return plain + [b"\0\0\0\x14ftyp" + brand + bytes(8) for brand in form.brands]


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_each_mark_is_recognized(form: Format) -> None:
    """Whatever begins with a mark of a format, or has one of its brands, is of that format."""
    for beginning in beginnings(form):
        assert format_of(beginning) is form


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_what_can_be_sent_is_read(form: Format) -> None:
    """The headers of each format that has a media type are read, so that rules can be checked."""
    for beginning in beginnings(form) if form.content_type else ():
        facts = inspect_media(Fragments.of(beginning))
        assert facts.missing != "its headers are not read here", (
            f"give {form.name} a reader: _READERS in media/inspect.py"
        )


def test_suffixes_and_types_are_of_one_format() -> None:
    """No suffix and no media type stands for two formats."""
    every = [*FORMATS.values(), PDF]
    suffixes = list(chain.from_iterable(form.suffixes for form in every))
    types = [form.content_type for form in every if form.content_type]
    assert len(set(suffixes)) == len(suffixes)
    assert len(set(types)) == len(types)
    assert all(form.suffixes for form in every if form.content_type)


def test_the_usual_formats_are_of_their_kinds() -> None:
    """There is one for each kind, whose media type says the same."""
    assert set(USUAL) == set(MediaKind)
    kinds = {"image": MediaKind.IMAGE, "video": MediaKind.VIDEO, "audio": MediaKind.SOUND}
    for kind, form in USUAL.items():
        assert kinds[form.content_type.partition("/")[0]] == kind


def test_families_name_formats_of_the_table() -> None:
    """A family's rule that names formats uses the names that the headers' reader finds."""
    rules = chain.from_iterable(family.media_rules for family in FAMILIES.values())
    conditions = chain.from_iterable(rule.conditions for rule in rules if isinstance(rule, Each))
    named = [one.names for one in conditions if isinstance(one, Formats)]
    assert len(named) >= 3
    assert set(chain.from_iterable(named)) <= set(FORMATS)
