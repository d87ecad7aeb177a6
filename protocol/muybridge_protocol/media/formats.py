"""The formats of media: what each is called, how it begins, and how its files are named.

Whatever has to know a format derives it from this table: the reading of headers, the rules about
media and about texts that name a file, the types of files within requests, and the names of
results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from muybridge_protocol.media.kinds import MediaKind

BEGINNING: Final = 512
"""Bytes by which formats are recognized."""

_IMAGE, _VIDEO, _SOUND = MediaKind.IMAGE, MediaKind.VIDEO, MediaKind.SOUND


class Format(NamedTuple):
    """A format of media, and how its data is recognized."""

    name: str
    """What it is called."""
    kind: MediaKind | None
    """What it is, or None if only the rest of its headers says so."""
    content_type: str = ""
    """Its media type, or "" for a format that is recognized, but never sent and not named."""
    suffixes: tuple[str, ...] = ()
    """The suffixes of its files; the first is what a result gets."""
    marks: tuple[bytes, ...] = ()
    """What it begins with: one of these."""
    parts: tuple[bytes, ...] = ()
    """What stands at byte 8 as well: one of these. Several formats share an outer form."""
    brands: tuple[bytes, ...] = ()
    """The brands that it has as an ISO file (for pictures: ISO/IEC 23008-12)."""
    moves: bool = False
    """Whether an image of this format may move."""

    @property
    def suffix(self) -> str:
        """The suffix that a result gets."""
        return self.suffixes[0]


PNG: Final = Format(
    "PNG", _IMAGE, "image/png", (".png",), marks=(b"\x89PNG\r\n\x1a\n",), moves=True
)
MP4: Final = Format("MP4", None, "video/mp4", (".mp4", ".m4v", ".3gp"))
"""Of an ISO file with none of the brands in the table."""
QUICKTIME: Final = Format("QuickTime", None, "video/quicktime", (".mov", ".qt"), brands=(b"qt  ",))
WAV: Final = Format(
    "WAV", _SOUND, "audio/wav", (".wav",), marks=(b"RIFF", b"RF64", b"BW64"), parts=(b"WAVE",)
)
HEIF: Final = Format(
    "HEIF", _IMAGE, "image/heif", (".heif",), moves=True,
    brands=(b"mif1", b"mif2", b"msf1", b"miaf", b"1pic", b"avci", b"avcs", b"j2ki", b"j2is"),
)  # fmt: skip
"""Of pictures in an ISO file whose brands name no encoding that has a format of its own."""
CR3: Final = Format("CR3", _IMAGE, brands=(b"crx ",))
BMP: Final = Format("BMP", _IMAGE, "image/bmp", (".bmp",), marks=(b"BM",))
MPEG_TS: Final = Format("MPEG-TS", _VIDEO)
MP3: Final = Format("MP3", _SOUND, "audio/mpeg", (".mp3",))
AAC: Final = Format("AAC", _SOUND, suffixes=(".aac",))
SVG: Final = Format("SVG", _IMAGE, suffixes=(".svg",), moves=True)
PDF: Final = Format("PDF", None, "application/pdf", (".pdf",), marks=(b"%PDF-",))
"""Of documents, which are no media, but files that text requests take."""

FORMATS: Final[Mapping[str, Format]] = {
    one.name: one
    for one in (
        PNG,
        Format(
            "JPEG", _IMAGE, "image/jpeg", (".jpg", ".jpeg", ".jpe", ".jfif"),
            marks=(b"\xff\xd8\xff",),
        ),
        Format("GIF", _IMAGE, "image/gif", (".gif",), marks=(b"GIF87a", b"GIF89a"), moves=True),
        Format(
            "WebP", _IMAGE, "image/webp", (".webp",), marks=(b"RIFF",), parts=(b"WEBP",), moves=True
        ),
        BMP,
        Format(
            "TIFF", _IMAGE, "image/tiff", (".tiff", ".tif"),
            marks=(b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
        ),
        Format(
            "AVIF", _IMAGE, "image/avif", (".avif",), brands=(b"avif", b"avis", b"avio"), moves=True
        ),
        Format(
            "HEIC", _IMAGE, "image/heic", (".heic",),
            brands=(b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs"),
        ),
        HEIF,
        MP4,
        QUICKTIME,
        Format("WebM", None, "video/webm", (".webm",), marks=(b"\x1aE\xdf\xa3",)),
        WAV,
        MP3,
        Format("M4A", _SOUND, "audio/mp4", (".m4a",)),
        Format("WebA", _SOUND, "audio/webm", (".weba",)),
        SVG,
        CR3,
        Format("Photoshop", _IMAGE, marks=(b"8BPS",)),
        Format("JPEG 2000", _IMAGE, marks=(b"\0\0\0\x0cjP  ",)),
        Format("JPEG XL", _IMAGE, marks=(b"\0\0\0\x0cJXL ", b"\xff\x0a")),
        Format("Matroska", None, suffixes=(".mkv",)),
        Format("AVI", _VIDEO, suffixes=(".avi",), marks=(b"RIFF",), parts=(b"AVI ",)),
        Format("FLV", _VIDEO, marks=(b"FLV\x01",)),
        Format("MPEG", _VIDEO, suffixes=(".mpg", ".mpeg"), marks=(b"\0\0\x01\xba",)),
        MPEG_TS,
        Format("ASF", None, marks=(b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",)),
        Format("Ogg", None, suffixes=(".ogg", ".opus"), marks=(b"OggS",)),
        Format("FLAC", _SOUND, suffixes=(".flac",), marks=(b"fLaC",)),
        AAC,
        Format(
            "AIFF", _SOUND, suffixes=(".aiff", ".aif"), marks=(b"FORM",), parts=(b"AIFF", b"AIFC")
        ),
        Format("AMR", _SOUND, marks=(b"#!AMR",)),
        Format("MIDI", _SOUND, marks=(b"MThd",)),
    )
}  # fmt: skip
"""Every format that is recognized, by its name."""

USUAL: Final[Mapping[str, Format]] = {_IMAGE: PNG, _VIDEO: MP4, _SOUND: WAV}
"""The format of an image, a video or a sound, where nothing says another one."""

CONTENT_TYPES: Final[Mapping[str, str]] = {
    one.name: one.content_type for one in FORMATS.values() if one.content_type
}
"""The media type of each format that can be sent."""

_BRANDS: Final = {brand: one for one in FORMATS.values() for brand in one.brands}
_QUICKTIME: Final = (b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot")
"""Boxes with which a QuickTime file begins that has no brand."""
_BMP_HEADERS: Final = (12, 16, 40, 52, 56, 64, 108, 124)


def format_of(start: bytes) -> Format | None:
    """Return the format of what begins with *start*, or None if it begins like none of them.

    Some formats are known only by what follows: those of sounds in frames, and of texts.
    """
    for one in FORMATS.values():
        if start.startswith(one.marks) and (not one.parts or start[8:12] in one.parts):
            is_chance = (
                one is BMP and int.from_bytes(start[14:18], "little") not in _BMP_HEADERS
            )  # two letters
            if not is_chance:
                return one
    if start[4:8] == b"ftyp":
        return _by_brands(start)
    if start[4:8] in _QUICKTIME:
        return QUICKTIME
    if len(start) > 376 and start[0] == start[188] == start[376] == 0x47:  # packets of 188 bytes
        return MPEG_TS
    return None


def _by_brands(start: bytes) -> Format:
    """Return what the brands of an ISO file say: the first one, and those it is compatible with."""
    end = min(int.from_bytes(start[:4], "big"), len(start))
    # Between the first brand and the others stands its version.
    brands = [start[at : at + 4] for at in (8, *range(16, end - 3, 4))]
    formats = [_BRANDS[brand] for brand in brands if brand in _BRANDS]
    if brands[0] in (*QUICKTIME.brands, *CR3.brands):  # which the first brand alone says
        return formats[0]
    pictures = [one for one in formats if one not in (QUICKTIME, CR3)]
    return next((one for one in pictures if one is not HEIF), HEIF if pictures else MP4)
