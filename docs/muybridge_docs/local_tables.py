"""A table of what the local service makes, from the code that decides it."""

from __future__ import annotations

from muybridge.local.drawing.dimensions import dimensions
from muybridge.local.drawing.image import Picture
from muybridge.local.drawing.video import Film
from muybridge_docs.markdown import code, table
from muybridge_protocol.emulator.tasks import ASSUMED_RETENTION
from muybridge_protocol.families import FAMILIES, Family
from muybridge_protocol.families.family import HOUR


def results() -> str:
    """Return what each family makes if only the required fields are sent."""
    return table(
        ("Family", "Pixels", "Seconds", "Frames per second", "Sound", "Kept"),
        [(code(family.name), *_result(family), _kept(family)) for family in FAMILIES.values()],
    )


def _result(family: Family) -> tuple[str, ...]:
    body = {"model": family.models[0].name} if family.models else {}
    size = dimensions(family, body)
    pixels = f"{size.width}x{size.height}"
    if size.seconds is None:
        return pixels, "", "", ""
    picture = Picture(
        width=size.width,
        height=size.height,
        prompt="",
        family=family.name,
        model="",
        settings=(),
        seed=0,
    )
    film = Film(picture=picture, duration=size.seconds, sound=size.sound)
    field = family.field("duration")
    seconds = "as asked" if field is not None and field.required else f"{size.seconds:g}"
    return pixels, seconds, str(film.fps), "yes" if size.sound else "no"


def _kept(family: Family) -> str:
    seconds = family.retention.seconds
    kept = ASSUMED_RETENTION if seconds is None else seconds
    return f"{kept // HOUR} hours{' (assumed)' if seconds is None else ''}"
