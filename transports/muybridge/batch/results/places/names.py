"""The names of places for results: a folder, or `s3://BUCKET/PREFIX`.

They are read without the library that reaches the place, because a batch may be submitted on a
machine that stores nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, Self

import attrs

from muybridge_protocol.arguments import check_type
from muybridge_protocol.errors import LocalError
from muybridge_protocol.remedies import Remedy, RemedyKind

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_IN_S3: Final = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([^?#\x00-\x20\x7f]*))?")


@attrs.frozen
class InS3:
    """A part of a bucket.

    Args:
        bucket: The bucket.
        prefix: What the names of its objects begin with, without a slash at the end, or "".
    """

    bucket: str
    prefix: str

    @classmethod
    def read(cls, url: str) -> Self:
        """Return the part of a bucket that *url* names.

        Raises:
            LocalError: It names none.
        """
        parts = _IN_S3.fullmatch(url)
        if parts is None:
            raise _wrong("this is not a place in S3: use s3://BUCKET/PREFIX, without a query")
        prefix = (parts[2] or "").strip("/")
        if {"", ".", ".."} & set(prefix.split("/")) and prefix:
            raise _wrong(f"the prefix has an empty or relative part: {prefix}")
        return cls(parts[1], prefix)

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def check_place(out: object) -> None:
    """Check that *out* may name a folder or a place in S3.

    Raises:
        TypeError: It is something else.
    """
    check_type("out", out, (str, os.PathLike), "a folder, or s3://BUCKET/PREFIX")


def is_in_s3(out: str | os.PathLike[str]) -> bool:
    """Whether *out* names a place in S3."""
    return os.fspath(out).startswith("s3://")


def check_folder(out: str | os.PathLike[str]) -> str:
    """Return *out*, which names a folder.

    Raises:
        LocalError: It names something else. A folder of that name would take the results, and
            nobody would find them.
    """
    named = os.fspath(out)
    if _SCHEME.match(named):
        scheme = named.partition(":")[0]
        raise _wrong(f"results go to a folder or to s3://BUCKET/PREFIX (got {scheme}:...)")
    return named


def place_for_all(out: str | os.PathLike[str]) -> str:
    """Return *out* as the store keeps it, so that it means the same to every worker.

    Raises:
        LocalError: It is a relative folder, which is another one on each machine, or no place.
    """
    whole = _whole(out)
    if not is_in_s3(out) and not Path(out).is_absolute():
        raise _wrong(
            f"{os.fspath(out)!r} is another folder on each machine. Nothing was sent:",
            Remedy(
                kind=RemedyKind.GIVE,
                option="out",
                form="s3://BUCKET/PREFIX or as an absolute path",
            ),
            Remedy(kind=RemedyKind.START_EACH),
        )
    return whole


def agreed_place(given: str | os.PathLike[str] | None, kept: str | None) -> str:
    """Return where a worker stores results.

    Args:
        given: The place that its user chose, or None.
        kept: The place that the store has for the batch, or None.

    Raises:
        LocalError: There is none, or the two differ.
    """
    if given is None and kept is None:
        raise _wrong(
            "The batch has no place for its results. Nothing was sent:",
            Remedy(kind=RemedyKind.GIVE, option="out"),
            Remedy(kind=RemedyKind.RESUBMIT, form="a place for all workers"),
        )
    if given is not None and kept is not None and _whole(given) != kept:
        raise _wrong(
            f"The results of this batch go to {kept}, and this worker was given {_whole(given)}. "
            "Nothing was sent.",
            Remedy(kind=RemedyKind.OMIT, option="out"),
            Remedy(kind=RemedyKind.RESUBMIT, form="another place"),
        )
    return os.fspath(given) if given is not None else str(kept)


def _whole(out: str | os.PathLike[str]) -> str:
    """Return *out* in the form in which equal places are equal texts."""
    if is_in_s3(out):
        return str(InS3.read(os.fspath(out)))
    return os.path.normpath(Path(check_folder(out)).absolute())


def _wrong(*parts: str | Remedy) -> LocalError:
    return LocalError(*parts, argument="out")
