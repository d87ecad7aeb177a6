"""Judges media of the corpus by the rules of a family."""

from __future__ import annotations

from muybridge_protocol.families import FAMILIES
from muybridge_protocol.families.references import media_fields
from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.source import Fragments
from muybridge_protocol.rules.media import MediaReport, Medium, judge_media

FACES = "must be an asset"
PORTRAIT = "real portrait photograph"
UNSEEN = (FACES, PORTRAIT)
"""Rules that no header decides."""


def report(family: str, field: str, *data: bytes | MediaFacts, **body: object) -> MediaReport:
    """Return the report on *data* in one field of a request."""
    found = FAMILIES[family]
    kind = media_fields(found)[field]
    media = [
        Medium(
            field=field,
            index=index,
            kind=kind,
            source="",
            facts=one if isinstance(one, MediaFacts) else inspect_media(Fragments.of(one)),
        )
        for index, one in enumerate(data)
    ]
    return judge_media(found.media_rules, media, body)


def check(found: MediaReport, broken: str = "", undecided: str = "") -> None:
    """Check that a report has exactly these rules as problems, and these as undecided."""
    assert len(found.problems) == bool(broken), found.problems
    assert all(broken in one.rule for one in found.problems), found.problems
    left_open = [one for one in found.undecided if not any(word in one.rule for word in UNSEEN)]
    assert len(left_open) == bool(undecided), left_open
    assert all(undecided in one.rule for one in left_open), left_open
    assert found.ok == (not broken)
    assert found.decided + len(found.undecided) == len(found.findings)
