"""Content Credentials (C2PA) in results stay as they are, and are told."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner

import muybridge
from media.corpus import picture, video
from muybridge.cli.commands import muybridge as command
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.source import Fragments

from .drivers import MakeClient
from .in_process import World

# A manifest store: JUMBF boxes, of which only the outermost is read.
_DESCRIPTION = b"c2pa\x00\x11\x00\x10\x80\x00\x00\xaa\x00\x38\x9b\x71\x03c2pa\x00"
_JUMD = struct.pack(">I", 8 + len(_DESCRIPTION)) + b"jumd" + _DESCRIPTION
STORE = struct.pack(">I", 8 + len(_JUMD) + 40) + b"jumb" + _JUMD + bytes(range(40))
UUID = bytes.fromhex("d8fec3d61b0e483c92975828877ec481")


def chunk(name: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return struct.pack(">I", len(data)) + name + data + zlib.crc32(name + data).to_bytes(4, "big")


def png() -> bytes:
    data = picture("PNG", 64, 48)
    return data[:33] + chunk(b"caBX", STORE) + data[33:]


def jpeg() -> bytes:
    data = picture("JPEG", 64, 48)
    segment = b"JP\x00\x01\x00\x00\x00\x01" + STORE
    return data[:2] + b"\xff\xeb" + struct.pack(">H", len(segment) + 2) + segment + data[2:]


def mp4() -> bytes:
    data = video(64, 48, 1)
    (size,) = struct.unpack(">I", data[:4])
    content = UUID + bytes(4) + b"manifest\x00" + bytes(8) + STORE
    return data[:size] + struct.pack(">I", 8 + len(content)) + b"uuid" + content + data[size:]


def webp() -> bytes:
    data = picture("WebP", 64, 48)
    more = data + b"C2PA" + struct.pack("<I", len(STORE)) + STORE + bytes(len(STORE) % 2)
    return more[:4] + struct.pack("<I", len(more) - 8) + more[8:]


SIGNED = {"png": png, "jpg": jpeg, "mp4": mp4, "webp": webp}
PLAIN = {
    "png": lambda: picture("PNG", 64, 48),
    "jpg": lambda: picture("JPEG", 64, 48),
    "mp4": lambda: video(64, 48, 1),
    "webp": lambda: picture("WebP", 64, 48),
}
_TYPES = {"png": "image/png", "jpg": "image/jpeg", "mp4": "video/mp4", "webp": "image/webp"}


@pytest.mark.parametrize("suffix", SIGNED)
def test_they_are_untouched(
    make_client: MakeClient, world: World, tmp_path: Path, suffix: str
) -> None:
    """What is saved, downloaded or read is what the service sent, byte for byte."""
    data = SIGNED[suffix]()
    client = make_client(world)
    for name in ("saved", f"named.{suffix}"):
        world.instead.append(HttpResponse(200, (("Content-Type", _TYPES[suffix]),), data))
        path = client.save(f"{world.url}/media/x", tmp_path / name, sidecar=True)
        assert path.suffix == f".{suffix}"
        assert path.read_bytes() == data
        told = json.loads(path.with_name(f"{path.name}.json").read_text("utf-8"))
        assert told["content_credentials"] is True
    world.instead.append(HttpResponse(200, (("Content-Type", _TYPES[suffix]),), data))
    assert client.read(f"{world.url}/media/x") == data


@pytest.mark.parametrize("suffix", PLAIN)
def test_a_sidecar_says_that_there_are_none(
    make_client: MakeClient, world: World, tmp_path: Path, suffix: str
) -> None:
    """A result without Content Credentials is told as that."""
    world.instead.append(HttpResponse(200, (("Content-Type", _TYPES[suffix]),), PLAIN[suffix]()))
    path = make_client(world).save(f"{world.url}/media/x", tmp_path / "plain", sidecar=True)
    told = json.loads(path.with_name(f"{path.name}.json").read_text("utf-8"))
    assert told["content_credentials"] is False


@pytest.mark.parametrize("suffix", SIGNED)
def test_check_tells_them(tmp_path: Path, suffix: str) -> None:
    """`check` says which of the media of a request have Content Credentials."""
    if suffix == "mp4":
        words = ("check", "vidsb", "--file", f"referenceVideos={tmp_path / 'a.mp4'}")
    else:
        words = ("check", "vidsb", "--file", f"first_image={tmp_path / f'a.{suffix}'}")
    for data, expected in ((SIGNED[suffix](), True), (PLAIN[suffix](), False)):
        (tmp_path / f"a.{suffix}").write_bytes(data)
        done = CliRunner().invoke(command, [*words, "--json"])
        assert json.loads(done.stdout)["media"][0]["content_credentials"] is expected
        shown = CliRunner().invoke(command, [*words]).stdout
        assert ("with Content Credentials" in shown) is expected


@pytest.mark.parametrize("suffix", SIGNED)
def test_the_facts_are_the_same_with_them(suffix: str) -> None:
    """Content Credentials change nothing else that is read from a file."""
    signed = inspect_media(Fragments.of(SIGNED[suffix]()))
    plain = inspect_media(Fragments.of(PLAIN[suffix]()))
    assert signed.credentials
    assert not plain.credentials
    assert (signed.format, signed.width, signed.height, signed.seconds, signed.defect) == (
        plain.format, plain.width, plain.height, plain.seconds, plain.defect,
    )  # fmt: skip


@pytest.mark.parametrize(
    "data",
    [
        picture("PNG", 8, 8)[:33] + chunk(b"tEXt", b"caBX c2pa") + picture("PNG", 8, 8)[33:],
        picture("JPEG", 8, 8)[:2] + b"\xff\xeb\x00\x0cHDR jumdc2" + picture("JPEG", 8, 8)[2:],
        video(64, 48, 1) + struct.pack(">I", 24) + b"uuid" + bytes(16),
    ],
    ids=["png", "jpg", "mp4"],
)
def test_what_only_looks_like_them(data: bytes) -> None:
    """Other notes are not taken for Content Credentials."""
    assert not inspect_media(Fragments.of(data)).credentials


def test_a_loaded_picture_is_sent_with_them(tmp_path: Path) -> None:
    """A local file goes into a request as it is."""
    (tmp_path / "a.png").write_bytes(png())
    loaded = muybridge.load_media(tmp_path / "a.png")
    assert loaded.data == png()
