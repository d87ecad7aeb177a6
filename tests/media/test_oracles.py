"""What other libraries read from files with unusual brands, tags, notes and ends, beside our facts.

A rule may only be certainly broken, and a file only certainly unusable, if the library that knows
the format agrees. Each kind of file has a control: one that the library refuses, or reads
otherwise, so that the comparison itself is seen to work.
"""

from __future__ import annotations

import struct
from functools import cache
from io import BytesIO
from typing import Any

import mutagen.apev2
import mutagen.id3
import pillow_heif
import pytest
from PIL import Image, ImageOps, PngImagePlugin

import muybridge
from muybridge_protocol.media.inline import CONTENT_TYPES
from muybridge_protocol.media.kinds import MediaKind

from .corpus import av, picture, sound, video
from .test_inspect import facts_of, piecemeal

heif: Any = pillow_heif
id3: Any = mutagen.id3
apev2: Any = mutagen.apev2
heif.register_heif_opener()


def shape_seen(data: bytes) -> tuple[int, int]:
    """Return the width and height that a viewer shows, after turning."""
    with Image.open(BytesIO(data)) as opened:
        turned: Any = ImageOps.exif_transpose(opened)
        size: tuple[int, int] = turned.size
    return size


# Notes that a picture is shown turned.


def exif(orientation: int) -> bytes:
    note = Image.Exif()
    note[274] = orientation
    return note.tobytes()


def xmp(orientation: int, form: str) -> bytes:
    said = {
        "attribute": f'<rdf:Description tiff:Orientation="{orientation}"/>',
        "element": f"<tiff:Orientation>{orientation}</tiff:Orientation>",
    }[form]
    return f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF>{said}</rdf:RDF></x:xmpmeta>'.encode()


def with_note(form: str, note: str, orientation: int) -> bytes:
    if note == "exif":
        return picture(form, 60, 40, exif=exif(orientation))
    said = xmp(orientation, note)
    if form != "PNG":
        return picture(form, 60, 40, xmp=said)
    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", said.decode())
    return picture(form, 60, 40, pnginfo=text)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("note", ["exif", "attribute", "element"])
@pytest.mark.parametrize("form", ["PNG", "JPEG", "WebP"])
def test_notes_on_orientation(form: str, note: str, orientation: int) -> None:
    """A picture counts as turned exactly if Pillow turns it, wherever its note stands."""
    data = with_note(form, note, orientation)
    late = data
    if form == "PNG" and note == "exif":
        late = moved_to_the_end(data)
    for one in (data, late):
        found = facts_of(one)
        assert (found.width, found.height) == (60, 40)
        assert found.turned == (shape_seen(one) == (40, 60)) == (orientation > 4)
    assert piecemeal(data)[0] == facts_of(data)


def moved_to_the_end(data: bytes) -> bytes:
    """Return a PNG whose eXIf chunk stands behind its data."""
    at = data.index(b"eXIf") - 4
    end = at + 12 + int.from_bytes(data[at : at + 4], "big")
    return data[:at] + data[end:-12] + data[at:end] + data[-12:]


# Brands of ISO files.


@cache
def still(form: str) -> bytes:
    """Return a picture of one colour in an ISO file."""
    file = BytesIO()
    if form == "AVIF":
        Image.new("RGB", (64, 64)).save(file, "AVIF")
    else:
        heif.from_pillow(Image.new("RGB", (64, 64))).save(file)
    return file.getvalue()


def branded(data: bytes, *brands: bytes) -> bytes:
    """Return an ISO file with other brands, whose offsets stay: the box gets no shorter."""
    length = int.from_bytes(data[:4], "big")
    room = (length - 16) // 4
    others = (brands[1:] + (brands[-1],) * room)[:room]
    return data[:8] + brands[0] + data[12:16] + b"".join(others) + data[length:]


BRANDS = (
    *(b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"mif2", b"msf1", b"miaf"),
    *(b"avif", b"avis", b"1pic", b"XXXX", b"mp42", b"isom"),
)


@pytest.mark.parametrize("first", BRANDS)
@pytest.mark.parametrize("form", ["HEIC", "AVIF"])
def test_brands_of_pictures(form: str, first: bytes) -> None:
    """A still picture is one whatever its first brand is, and is never sent as a video."""
    data = branded(still(form), first, b"mif1", b"heic" if form == "HEIC" else b"avif")
    for one in (data, branded(still(form), first), data + b"a telephone's trailer"):
        found = facts_of(one)
        assert (found.kind, found.defect) == (MediaKind.IMAGE, "")
        assert piecemeal(one)[0] == found
        assert media_type(one).startswith("image/")
    assert facts_of(data).format == form
    opener = heif.open_heif if form == "HEIC" else Image.open
    if first in {b"heic", b"mif1", b"avif"}:
        assert opener(BytesIO(data)).size == (64, 64)


@pytest.mark.parametrize("first", BRANDS)
def test_a_video_with_any_brand(first: bytes) -> None:
    """The control: a film stays one under the brand of a picture, as FFmpeg says."""
    data = branded(video(320, 240, 4), first, b"mif1", b"heic")
    assert frames(data) == 16
    found = facts_of(data)
    assert (found.kind, found.width, found.seconds, found.defect) == (MediaKind.VIDEO, 320, 4, "")
    assert media_type(data) == "video/mp4"


@pytest.mark.parametrize("form", ["HEIC", "AVIF"])
def test_a_picture_that_is_cut(form: str) -> None:
    """The control: a still without its data is truncated, and its library cannot open it."""
    data = still(form)[:-9]
    assert facts_of(data).defect == "is truncated"
    with pytest.raises((OSError, SyntaxError, ValueError)), Image.open(BytesIO(data)) as opened:
        opened.load()


def media_type(data: bytes) -> str:
    """Return the media type under which a request would send a file."""
    media = muybridge.load_media(data, allow_inline=True)
    body: dict[str, Any]
    if facts_of(data).kind is MediaKind.VIDEO:
        film = muybridge.VidcRequest(model="vidc_o3", prompt="-", reference_videos=[media])
        body = film.to_body()
    else:
        still = muybridge.ImgaRequest(model="imga", prompt="-", image_urls=[media])
        body = still.to_body()
    (sent,) = body.get("referenceVideos") or body["image_urls"]
    return str(sent).partition(";")[0].removeprefix("data:")


# Bytes behind the last box of a film.


def frames(data: bytes) -> int:
    """Return how many frames FFmpeg decodes."""
    with av.open(BytesIO(data)) as container:
        return sum(1 for _ in container.decode(video=0))


ENDS = {
    "ID3v1": b"TAG" + b"A horse".ljust(125, b"\0"),
    "zeros": bytes(700),
    "few zeros": bytes(5),
    "text": b"made by a telephone, plate 12\n" * 20,
    "a short box": b"\0\0\0\3abcd",
    "a long head": b"\0\0\0\1abcd",
    "a telephone's directory": struct.pack("<4sI", b"SEFH", 106) + bytes(90) + b"SEFT",
    "high bytes": b"\xff" * 999,
    "a note that is cut": b"\0\1\0\0free" + bytes(9),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("how", ["mp4", "mp4, fast start", "quicktime"])
def test_films_with_an_end(how: str, end: str) -> None:
    """A film of which FFmpeg plays all frames is not truncated, whatever stands behind it."""
    form = "mov" if how == "quicktime" else "mp4"
    whole = video(320, 240, 5, form=form, fast_start="fast" in how)
    found = facts_of(whole + ENDS[end])
    assert frames(whole + ENDS[end]) == 20
    assert (found.seconds, found.width, found.defect, found.missing) == (5, 320, "", "")


@pytest.mark.parametrize("fast_start", [True, False])
def test_films_that_are_cut(fast_start: bool) -> None:  # noqa: FBT001  pytest passes it
    """The control: a film of which FFmpeg plays fewer frames, or none, is truncated."""
    data = video(320, 240, 5, fast_start=fast_start)
    for end in (-2000, -len(data) // 2):
        assert facts_of(data[:end]).defect == "is truncated"
        try:
            left = frames(data[:end])
        except av.error.FFmpegError:
            left = 0
        assert left < 20


# Sounds: what stands behind a tag, and counts of frames.


def tagged(data: bytes, version: int = 4, *, cover: int = 0) -> bytes:
    """Return *data* behind the ID3 tag that mutagen writes."""
    tag, file = id3.ID3(), BytesIO(b"")
    tag.add(id3.TIT2(encoding=3, text="A horse"))
    if cover:
        tag.add(id3.APIC(encoding=0, mime="image/png", type=3, desc="", data=bytes(cover)))
    if version == 3:
        tag.update_to_v23()
    tag.save(file, v2_version=version, v1=0)
    return file.getvalue() + data


@cache
def aac() -> bytes:
    """Return a sound as AAC in ADTS, as FFmpeg writes it."""
    file = BytesIO()
    with av.open(file, "w", format="adts") as container:
        stream = container.add_stream("aac", rate=48_000, layout="mono")
        for number in range(200):
            frame = av.AudioFrame(format="fltp", layout="mono", samples=1024)
            for plane in frame.planes:
                plane.update(bytes(plane.buffer_size))
            frame.sample_rate, frame.pts = 48_000, number * 1024
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


def format_read(data: bytes) -> str:
    """Return the name of the format as FFmpeg says it."""
    with av.open(BytesIO(data)) as container:
        name: str = container.format.name
    return {"aac": "AAC", "flac": "FLAC", "mp3": "MP3", "wav": "WAV", "ogg": "Ogg"}[name]


SOUNDS = {
    "FLAC": lambda: sound(3, "flac"),
    "AAC": aac,
    "MP3": lambda: sound(3, "mp3"),
    "WAV": lambda: sound(3),
    "Ogg": lambda: sound(3, "ogg"),
}


@pytest.mark.parametrize("cover", [0, 5_000, 200_000])
@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize("name", SOUNDS)
def test_what_stands_behind_a_tag(name: str, version: int, cover: int) -> None:
    """The format of a sound is that of what stands behind its tag, as FFmpeg says."""
    plain = SOUNDS[name]()
    data = tagged(plain, version, cover=cover)
    assert format_read(plain) == facts_of(plain).format == name
    found = facts_of(data)
    assert (found.format, found.kind is MediaKind.VIDEO, found.defect) == (name, False, "")
    assert found.seconds == pytest.approx(facts_of(plain).seconds)
    assert piecemeal(data)[0].format == name
    if name in {"AAC", "FLAC", "MP3"}:
        assert format_read(data) == name


def test_a_tag_with_nothing_known_behind_it() -> None:
    """It may be a sound, so that nothing is certain; and three letters are no tag."""
    for rest in (b"", b"a text", bytes(2000), b"\xf0\x0d" * 99):
        found = facts_of(tagged(rest))
        assert (found.kind, found.defect) == (None, "")
    assert facts_of(b"ID3 tags stand before sounds").defect == "is a text"


def seconds_heard(data: bytes) -> float:
    """Return how long the sound is that FFmpeg decodes."""
    with av.open(BytesIO(data)) as container:
        rate = container.streams.audio[0].rate
        samples: int = sum(frame.samples for frame in container.decode(audio=0))
    return samples / rate


def with_count(data: bytes, factor: float) -> bytes:
    """Return an MP3 whose header counts other frames than it has."""
    at = max(data.find(b"Xing"), data.find(b"Info"))
    assert at > 0
    count = int.from_bytes(data[at + 8 : at + 12], "big")
    return data[: at + 8] + struct.pack(">I", round(count * factor)) + data[at + 12 :]


def with_end(data: bytes, kind: str) -> bytes:
    """Return an MP3 with a tag at its end, as mutagen writes it."""
    file = BytesIO(data)
    if kind == "ID3v1":
        tag = id3.ID3()
        tag.add(id3.TIT2(encoding=3, text="A horse"))
        tag.save(file, v1=2)
    elif kind == "APE":
        tag = apev2.APEv2()
        tag["Title"] = "A horse"
        tag.save(file)
    return file.getvalue()


@pytest.mark.parametrize("end", ["none", "ID3v1", "APE"])
@pytest.mark.parametrize("bit_rate", [32_000, 0])
@pytest.mark.parametrize("factor", [0.1, 0.5, 0.9, 1, 1.2, 10, 1000])
def test_counts_of_frames(factor: float, bit_rate: int, end: str) -> None:
    """A length is only told if it is the one that is heard: a count may be wrong."""
    data = with_end(with_count(sound(8, "mp3", bit_rate=bit_rate), factor), end)
    told = facts_of(data)
    assert (told.defect, told.format) == ("", "MP3")
    if factor == 1:
        assert told.seconds == pytest.approx(seconds_heard(data), abs=0.2)
        assert piecemeal(data)[0].seconds == told.seconds
    else:
        assert (told.seconds, told.missing) == (
            None, "its header counts other frames than the file has",
        )  # fmt: skip


@pytest.mark.parametrize("factor", [10, 1000])
def test_a_count_beyond_the_size(factor: float) -> None:
    """Of a sound at a URL only the beginning is read; its size alone can refute the count."""
    found, read = piecemeal(with_count(sound(60, "mp3"), factor))
    assert (found.seconds, found.missing) == (
        None, "its header counts other frames than the file has",
    )  # fmt: skip
    assert read < 5_000


def test_sounds_that_are_joined() -> None:
    """Two sounds in one file have the count of the first alone: it decides nothing."""
    data = sound(8, "mp3") * 2
    assert facts_of(data).seconds is None
    assert piecemeal(sound(90, "mp3") * 9)[0].seconds is None


@pytest.mark.parametrize("form", ["mp4", "webm"])
def test_a_container_with_sound_alone(form: str) -> None:
    """What has no picture is a sound, and is sent as one."""
    file = BytesIO()
    with av.open(file, "w", format=form) as container:
        codec = "aac" if form == "mp4" else "libopus"
        stream = container.add_stream(codec, rate=48_000, layout="mono")
        for number in range(100):
            frame = av.AudioFrame(
                format="fltp" if form == "mp4" else "s16", layout="mono", samples=960
            )
            for plane in frame.planes:
                plane.update(bytes(plane.buffer_size))
            frame.sample_rate, frame.pts = 48_000, number * 960
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    data = file.getvalue()
    with av.open(BytesIO(data)) as container:
        assert not container.streams.video
    assert facts_of(data).kind is MediaKind.SOUND
    assert CONTENT_TYPES[facts_of(data).format or ""] == f"audio/{form}"


@pytest.mark.parametrize("width", range(40, 60))
@pytest.mark.parametrize("how", [{"lossless": True}, {"quality": 40}, {"exif": exif(1)}], ids=str)
def test_webp_of_any_length(width: int, how: dict[str, Any]) -> None:
    """A whole WebP is not truncated; cut by what Pillow misses, it is."""
    data = picture("WebP", width, 31, **how)
    assert facts_of(data).defect == ""
    assert facts_of(data + b"more").defect == ""
    assert facts_of(data[:-20]).defect == "is truncated"


def test_a_preview_in_front() -> None:
    """If the first page of a TIFF is a preview, as in raw photographs, its size decides nothing."""
    file = BytesIO()
    preview, whole = Image.new("L", (160, 120)), Image.new("L", (1600, 1200))
    preview.save(file, "TIFF", tiffinfo={254: 1}, save_all=True, append_images=[whole])
    found = facts_of(file.getvalue())
    assert (found.width, found.defect) == (None, "")
    assert found.missing == "its headers cannot be read: its first page is a preview"
