"""Open the store that a user names, and find the folder on this machine that goes with it."""

from __future__ import annotations

import os
from pathlib import Path

from muybridge.batch.results.places.folder import FolderStore
from muybridge.batch.results.places.names import check_folder, is_in_s3
from muybridge.batch.results.places.port import Store
from muybridge.files.state import state_folder


def open_store(out: str | os.PathLike[str], spool: Path | None = None) -> Store:
    """Return the store called *out*: a folder, or `s3://BUCKET/PREFIX`.

    Args:
        out: Its name.
        spool: The folder on this machine for unfinished downloads, if the store is to check that.

    Raises:
        LocalError: It is neither.
        ModuleNotFoundError: It is in S3, and obstore is not installed.
    """
    if is_in_s3(out):
        from muybridge.batch.results.places.s3 import S3Store

        return S3Store(os.fspath(out))
    return FolderStore(Path(check_folder(out)), spool)


def spool_of(out: str | os.PathLike[str], spool: str | os.PathLike[str] | None) -> Path:
    """Return the folder on this machine for unfinished downloads and unrecorded responses.

    Args:
        out: Where results go.
        spool: The folder that the user chose, or None for *out* if that is a folder, and otherwise
            for one in the user's state folder.
    """
    if spool is not None:
        return Path(spool)
    return state_folder() / "spool" if is_in_s3(out) else Path(out)
