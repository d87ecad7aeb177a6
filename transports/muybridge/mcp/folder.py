"""The one folder that the tools write to and read from, and what hosts are shown of it."""

from __future__ import annotations

import base64
import mimetypes
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from mcp_types import ImageContent, Resource, ResourceLink

from muybridge.batch.results.sheet.thumbnails import make_thumbnail
from muybridge.files.sidecar import sidecar_path, task_in
from muybridge.files.suffixes import media_of_suffix
from muybridge_protocol.errors import LocalError
from muybridge_protocol.families.family import Family
from muybridge_protocol.families.references import media_fields
from muybridge_protocol.http import MEBIBYTE
from muybridge_protocol.rules.values import is_array, shown

_LONGEST_NAME: Final = 200
_LARGEST_PREVIEW: Final = 200_000
"""Most bytes of a preview, which the model's context has to hold."""
_LARGEST_READ: Final = 16 * MEBIBYTE
"""Most bytes of a file that is returned whole."""
_MOST_LISTED: Final = 100
_FILE: Final = "@"
"""What a field begins with that names a file of the folder."""


class Folder:
    """The folder of a server. It is created when the first result is saved.

    Args:
        root: Where it is.
    """

    def __init__(self, root: Path) -> None:
        self.root: Path = root.expanduser().resolve()

    def place(self, name: str) -> Path:
        """Return the path of a file that is called *name* in the folder.

        Raises:
            LocalError: The name leads out of the folder, or is not a name of a file.
        """
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise LocalError(
                f"A file name has 1 to {_LONGEST_NAME} printable characters (got {shown(name)})."
            )
        path = (self.root / name).resolve()  # follows links, as whoever opens it does
        if not path.is_relative_to(self.root) or path == self.root:
            raise LocalError(_outside(name))
        return path

    def check_fields(self, family: Family, fields: Mapping[str, Any]) -> None:
        """Check that each file that *fields* of a request name with `@` is in the folder.

        Raises:
            LocalError: One is not.
        """
        takes_media = media_fields(family)
        names = {name for one in family.fields for name in (one.name, one.wire)
                 if one.wire in takes_media}  # fmt: skip
        for field, value in fields.items():
            for one in value if is_array(value) else (value,):
                if not isinstance(one, str) or not one.startswith(_FILE):
                    continue
                if field in names and "://" in one:
                    raise LocalError(f"{shown(one)}: give a URL without {_FILE}.")
                if not self._holds(one[1:]):
                    raise LocalError(_outside(one))

    def _holds(self, name: str) -> bool:
        """Whether a path, if it can be one, is in the folder."""
        try:
            return (self.root / name).resolve().is_relative_to(self.root)
        except (OSError, ValueError):  # nothing can be read there
            return True

    def saved(self, name: str, task_id: str) -> Path | None:
        """Return the file *name* if it has the result of a task already, or None if it is free.

        Raises:
            LocalError: Another file has the name.
        """
        path = self.place(name)
        # A download adds the suffix of what it gets, if the name has another or none.
        for one in (path, *path.parent.glob(f"{path.name}.*")):
            if one.is_file() and media_of_suffix(one.name):
                if task_in(sidecar_path(one)) == task_id:
                    return one
                if one == path:
                    raise LocalError(f"There is another file {name} already. Give another name.")
        return None

    def link(self, path: Path) -> ResourceLink:
        """Return a link to a file in the folder."""
        return ResourceLink(**self._described(path))

    def preview(self, path: Path) -> ImageContent | None:
        """Return a small copy of a picture, or None if there can be none."""
        if media_of_suffix(path.name) != "image":
            return None
        with TemporaryDirectory() as scratch:
            thumbnail = Path(scratch) / "preview.webp"
            make_thumbnail(path, thumbnail)
            small = thumbnail if thumbnail.exists() else path
            if small.stat().st_size > _LARGEST_PREVIEW:
                return None
            data = base64.b64encode(small.read_bytes()).decode()
        return ImageContent(type="image", data=data, mime_type=_type_of(small))

    def resources(self) -> list[Resource]:
        """Return the newest results in the folder."""
        paths = sorted(self._results(), key=lambda path: -path.stat().st_mtime)
        return [Resource(**self._described(path)) for path in paths[:_MOST_LISTED]]

    def read(self, uri: str) -> tuple[bytes, str]:
        """Return the content and the type of a result in the folder.

        Raises:
            LocalError: There is no such file in the folder, or it is too large.
        """
        parts = urlsplit(uri)
        path = Path(unquote(parts.path)).resolve()
        inside = parts.scheme == "file" and path.is_relative_to(self.root)
        if not inside or not path.is_file() or not media_of_suffix(path.name):
            raise LocalError("There is no such result in the folder of this server.")
        if path.stat().st_size > _LARGEST_READ:
            raise LocalError("The result is too large to be sent. Open the file itself.")
        return path.read_bytes(), _type_of(path)

    def _results(self) -> Iterator[Path]:
        paths = (path for path in self.root.rglob("*") if media_of_suffix(path.name))
        return (path for path in paths if path.is_file())

    def _described(self, path: Path) -> dict[str, Any]:
        return {
            "name": path.relative_to(self.root).as_posix(),
            "uri": path.as_uri(),
            "mime_type": _type_of(path),
            "size": path.stat().st_size,
        }


def _outside(name: str) -> str:
    return (
        f"{shown(name)} is outside the folder of this server, so it is not used. Give the name of "
        "a file within it."
    )


def _type_of(path: Path) -> str:
    return mimetypes.guess_type(path.name)[0] or "application/octet-stream"
