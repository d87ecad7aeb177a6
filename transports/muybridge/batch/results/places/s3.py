"""A bucket of S3, or of a server that speaks its protocol, as the store of a batch's results.

Each result is one PUT with `If-None-Match: *`: S3 makes the whole object visible at once, or
refuses because there is one of that name. A PUT whose response is lost may have stored the object,
and so may an attempt of a worker that was killed. The object therefore carries its task's id and
its checksum, and the next attempt recognizes it.

Credentials come from where AWS keeps them: the environment, or the role of the machine. The errors
of the library quote responses, which can repeat an access key, so only the status and the error
code of a response are shown.
"""

from __future__ import annotations

import errno
import hashlib
import mmap
import os
import re
from collections.abc import Container, Generator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from muybridge.batch.results.places.names import InS3
from muybridge.batch.results.places.port import PlaceUnusable, Stored
from muybridge.extras import missing_extra
from muybridge.files.suffixes import SUFFIXES
from muybridge.signals import genuine
from muybridge_protocol.errors import InvalidAddress
from muybridge_protocol.service import origin_of

try:
    from obstore.exceptions import AlreadyExistsError, PreconditionError
    from obstore.store import S3Store as Bucket
except ImportError as _missing:
    raise missing_extra(__name__, "obstore", "s3") from _missing

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

_PROBE: Final = ".muybridge"
_PROBE_TEXT: Final = b"Muybridge checked with this that it never writes over an object here.\n"
_CLIENT: Final[ClientConfig] = {"connect_timeout": "10s", "read_timeout": "60s", "timeout": "10m"}
_RETRY: Final[RetryConfig] = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
_TASK: Final = "muybridge-task"
_SHA256: Final = "sha256"
_TYPES: Final = {suffix: media_type for media_type, suffix in SUFFIXES.items()}
_STATUS: Final = re.compile(r"status code: (\d{3})")
_CODE: Final = re.compile(r"<Code>([A-Za-z0-9.]{1,64})</Code>")
_NAMES: Final = 1000
"""Names that are tried for a result."""
_LARGEST: Final = 5 * 1024**3
"""Bytes that one PUT may have. S3 takes more only in parts, which replace whatever is there."""
_ENDPOINTS: Final = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
"""The variables that name another server than AWS's, the one that counts first."""
_MAY_PASS: Final = frozenset({408, 409, 429})


class S3Store:
    """A part of a bucket.

    Args:
        url: `s3://BUCKET` or `s3://BUCKET/PREFIX`.

    Raises:
        LocalError: It is no such address.
        PlaceUnusable: The endpoint or another AWS_ setting cannot be used.
    """

    def __init__(self, url: str) -> None:
        place = InS3.read(url)
        self._url = str(place)
        self._place = f"{self._url}{self._server()}"
        allow_http = os.environ.get("AWS_ALLOW_HTTP", "").lower() in {"1", "true"}
        with self._telling():
            self._bucket = Bucket(
                place.bucket,
                prefix=place.prefix or None,
                client_options={**_CLIENT, "allow_http": allow_http},
                retry_config=_RETRY,
            )

    @property
    def name(self) -> str:
        """Where it is, for messages."""
        return self._url

    def check(self) -> None:
        """Check that objects can be stored, and that none is ever replaced.

        One small object, `.muybridge`, is left there.

        Raises:
            PlaceUnusable: They cannot; `away` if that may pass.
        """
        if self._put(_PROBE, _PROBE_TEXT, {}) and self._put(_PROBE, _PROBE_TEXT, {}):
            raise PlaceUnusable(
                f"{self._place}: the server ignores If-None-Match, so results could replace other "
                "objects. Nothing was sent. Use another server or a folder."
            )
        # A server may refuse every object as if there were one, or take it and keep nothing.
        if not self._returns(_PROBE, _PROBE_TEXT):
            raise PlaceUnusable(
                f"{self._place}: the server does not return what was stored there. Nothing was "
                "sent. Use another server or a folder."
            )

    def taken_names(self, saved: Path, stem: str) -> list[str]:  # noqa: ARG002  objects say whose they are
        """Return none: each object says whose it is."""
        return []

    def place(self, saved: Path, stem: str, task_id: str, leftovers: Container[str]) -> Stored:  # noqa: ARG002  there are none
        """Store *saved* as an object that replaces no other one.

        Args:
            saved: A whole file on this machine.
            stem: The intended name, without the suffix.
            task_id: The task whose result it is.
            leftovers: Unused.

        Raises:
            PlaceUnusable: It cannot be stored.
            OSError: It cannot be read, or is too large for S3.
        """
        if saved.stat().st_size > _LARGEST:
            message = "it is too large for one PUT to S3; copy this file, which is kept"
            raise OSError(errno.EFBIG, message, str(saved))
        with saved.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
            # The system reads it in as it is sent, so memory does not depend on its size.
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
            marks = {_TASK: quote(task_id, safe=""), _SHA256: sha256}
            if saved.suffix in _TYPES:
                marks["Content-Type"] = _TYPES[saved.suffix]
            wanted = name = f"{stem}{saved.suffix}"
            numbers = iter(range(2, _NAMES + 1))
            # Also after a PUT that has succeeded: the file is removed as soon as this is recorded.
            while not self._has(name, size, marks, stored=self._put(name, data, marks)):
                number = next(numbers, None)
                if number is None:
                    raise PlaceUnusable(
                        f"{self._place}: {_NAMES} names such as {wanted} are taken. The result is "
                        "kept on this machine. Use another prefix."
                    )
                name = f"{stem}-{number}{saved.suffix}"
        return Stored(
            name=f"{self._url}/{name}",
            size=size,
            sha256=sha256,
            avoided="" if name == wanted else wanted,
        )

    def _put(self, name: str, data: bytes | mmap.mmap, attributes: Mapping[str, str]) -> bool:
        """Store an object, unless there is one of this name; return whether it was stored."""
        with self._telling():
            try:
                self._bucket.put(name, data, attributes=dict(attributes), mode="create")
            except (AlreadyExistsError, PreconditionError):
                return False
        return True

    def _has(self, name: str, size: int, marks: Mapping[str, str], *, stored: bool) -> bool:
        """Whether the object of this name is of the same task, and has the same content.

        Raises:
            PlaceUnusable: It is not, although it was just stored.
        """
        try:
            with self._telling():
                response = self._bucket.get(name)
                its = {str(key): value for key, value in response.attributes.items()}
                same = response.meta["size"] == size and all(
                    its.get(mark) == marks[mark] for mark in (_TASK, _SHA256)
                )
        except PlaceUnusable as error:
            raise self._not_kept(name) if stored and not error.away else error from None
        if stored and not same:
            raise self._not_kept(name)
        return same

    def _not_kept(self, name: str) -> PlaceUnusable:
        return PlaceUnusable(
            f"{self._place}: the server reported {name} as stored and does not return it. The "
            "result is kept on this machine. Use another server or a folder."
        )

    def _returns(self, name: str, data: bytes) -> bool:
        """Whether the object of this name has this content."""
        with self._telling():
            try:
                response = self._bucket.get(name)
            except FileNotFoundError:
                return False
            return response.meta["size"] == len(data) and bytes(response.bytes()) == data

    @contextmanager
    def _telling(self) -> Generator[None, None, None]:
        """Turn an error of the library into one that says what to do, and shows no credentials."""
        try:
            yield
        except genuine(Exception) as error:
            raise self._unusable(str(error)) from None

    def _unusable(self, message: str) -> PlaceUnusable:
        status, code = _STATUS.search(message), _CODE.search(message)
        if "/latest/api/token" in message:
            return PlaceUnusable(
                f"{self._place}: no AWS credentials were found. Set AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY, or give the machine a role."
            )
        if "BadScheme" in message:
            return PlaceUnusable(
                f"{self._place}: the endpoint is plain http. Use https, or set AWS_ALLOW_HTTP=true "
                "for a server on a network that you trust."
            )
        if status is None:
            away = "HTTP error" in message
            problem = "it cannot be reached" if away else "it cannot be used"
            text = f"{self._place}: {problem}. Check the endpoint and the AWS_ settings."
            return PlaceUnusable(text, away=away)
        answer = f"the response was {status[1]}" + (f" {code[1]}" if code else "")
        if int(status[1]) in _MAY_PASS or int(status[1]) >= 500:  # noqa: PLR2004  the server's fault
            return PlaceUnusable(f"{self._place}: {answer}. Nothing was lost.", away=True)
        return PlaceUnusable(
            f"{self._place}: {answer}. Check the bucket, its region and the permissions "
            "(s3:GetObject, s3:PutObject)."
        )

    def _server(self) -> str:
        """Return the server for messages, or "" for AWS's.

        Raises:
            PlaceUnusable: The library would panic, because its address cannot be read.
        """
        variable = next((name for name in _ENDPOINTS if os.environ.get(name)), None)
        if variable is None:
            return ""
        try:
            _, host, port = origin_of(os.environ[variable])
        except InvalidAddress as error:
            message = f"{self._url}: {error} Nothing was sent. Correct {variable}."
            raise PlaceUnusable(message) from None
        return f" at {host}:{port}"
