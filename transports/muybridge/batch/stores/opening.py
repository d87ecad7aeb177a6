"""Find the store that a user names, and the folder on this machine that goes with it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from muybridge.batch.stores.folder import FolderStore
from muybridge.batch.stores.port import Store

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def open_store(out: str | os.PathLike[str]) -> Store:
    """Return the store called *out*: a folder, or `s3://BUCKET/PREFIX`.

    Raises:
        ValueError: It is neither.
        ModuleNotFoundError: It is in S3, and obstore is not installed.
    """
    named = os.fspath(out)
    if _is_in_s3(named):
        from muybridge.batch.stores.s3 import S3Store  # noqa: PLC0415  an extra

        return S3Store(named)
    if _SCHEME.match(named):
        # A folder of that name would take the results, and nobody would find them.
        scheme = named.partition(":")[0]
        raise ValueError(f"results go to a folder or to s3://BUCKET/PREFIX (got {scheme}:...)")
    return FolderStore(Path(named))


def spool_of(out: str | os.PathLike[str], spool: str | os.PathLike[str] | None) -> Path:
    """Return the folder on this machine for unfinished downloads and unrecorded responses.

    Args:
        out: Where results go.
        spool: The folder that the user chose, or None for *out* if that is a folder, and otherwise
            for one in the user's state folder.

    Raises:
        ModuleNotFoundError: platformdirs is not installed; the message says what to do.
    """
    if spool is not None:
        return Path(spool)
    if not _is_in_s3(named := os.fspath(out)):
        return Path(named)
    try:
        from platformdirs import user_state_path  # noqa: PLC0415  an extra
    except ModuleNotFoundError as error:
        if error.name != "platformdirs":
            raise
        raise ModuleNotFoundError(
            'The default spool needs platformdirs: pip install "muybridge[s3]". Or name a folder: '
            "give spool. Nothing was sent.",
            name=error.name,
        ) from None
    return user_state_path("muybridge") / "spool"


def _is_in_s3(named: str) -> bool:
    return named.startswith("s3://")
