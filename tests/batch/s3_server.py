"""An S3 for tests: moto's, on a thread of this process, with faults in front of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from typing import Any
from urllib.request import Request, urlopen

import pytest

moto = pytest.importorskip("moto", reason="moto is not installed")
serving = pytest.importorskip("werkzeug.serving", reason="moto's server is not installed")
pytest.importorskip("obstore", reason="obstore is not installed")

ACCESS_KEY = "AKIA-the-access-key"
SECRET_KEY = "the-secret-of-the-access-key"  # noqa: S105  of a bucket in memory
_LONG_AGO = "Sat, 15 Jun 1878 12:00:00 GMT"


class Fault(StrEnum):
    """How a PUT is answered."""

    NONE = "stored, and answered"
    OVERLOADED = "not stored, 503"
    DENIED = "not stored, 403"
    STORED_AND_LOST = "stored, then 500"
    UNCONDITIONAL = "stored, whatever is there"
    TAKEN = "not stored, 412, whatever is there"
    FORGOTTEN = "not stored, 200"


class S3:
    """A running server.

    Attributes:
        fault: Gives the fault for a PUT of the object with this path.
        puts: The paths of the objects that were to be stored.
        anything: What is answered to every GET, or None for what was stored.
    """

    def __init__(self) -> None:
        apps: Any = import_module("moto.moto_server.werkzeug_app")
        self._app: Any = apps.DomainDispatcherApplication(apps.create_backend_app)
        self._server: Any = serving.make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.reset()

    def reset(self) -> None:
        """Forget everything, and begin with the empty bucket `studio`."""
        self.fault: Callable[[str], Fault] = lambda _: Fault.NONE
        self.anything: bytes | None = None
        self.puts: list[str] = []
        self._ask("POST", "/moto-api/reset")
        self._ask("PUT", "/studio")
        self.puts.clear()

    @property
    def settings(self) -> dict[str, str]:
        """The environment of a worker."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ALLOW_HTTP": "true",
        }

    def objects(self) -> dict[str, bytes]:
        """Return what is in the bucket, without the probe of workers."""
        keys = self._keys
        return {name: keys[name].value for name in keys if not name.endswith("/.muybridge")}

    def type_of(self, name: str) -> str | None:
        """Return the Content-Type of an object."""
        metadata: dict[str, str] = {
            key.lower(): it for key, it in self._keys[name].metadata.items()
        }
        return metadata.get("content-type")

    def store(self, name: str, data: bytes) -> None:
        """Store an object that is no result."""
        self._ask("PUT", f"/studio/{name}", data)

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def _keys(self) -> dict[str, Any]:
        models: Any = import_module("moto.s3.models")
        keys: dict[str, Any] = models.s3_backends["123456789012"]["aws"].buckets["studio"].keys
        return keys

    def _ask(self, method: str, path: str, data: bytes = b"") -> None:
        headers = {
            "Authorization": "AWS4-HMAC-SHA256 Credential=test/20261123/us-east-1/s3/aws4",
            "Content-Type": "application/octet-stream",
        }
        with urlopen(Request(self.url + path, data, headers, method=method)):  # noqa: S310  it is ours
            pass

    def _answer(self, environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        is_object = environ["REQUEST_METHOD"] == "PUT" and path.count("/") > 1
        fault = Fault.NONE
        if environ["REQUEST_METHOD"] == "GET" and self.anything is not None:
            length = str(len(self.anything))
            head = [("ETag", '"0"'), ("Last-Modified", _LONG_AGO), ("Content-Length", length)]
            start("200 OK", head)
            return [self.anything]
        if is_object:
            self.puts.append(path.removeprefix("/studio/"))
            fault = self.fault(path)
        match fault:
            case Fault.OVERLOADED:
                return _refuse(start, "503 Slow Down", "SlowDown")
            case Fault.DENIED:
                return _refuse(start, "403 Forbidden", "InvalidAccessKeyId")
            case Fault.TAKEN:
                return _refuse(start, "412 Precondition Failed", "PreconditionFailed")
            case Fault.FORGOTTEN:
                environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"] or 0))
                start("200 OK", [("ETag", '"0"'), ("Content-Length", "0")])
                return []
            case Fault.UNCONDITIONAL:
                environ.pop("HTTP_IF_NONE_MATCH", None)
            case Fault.STORED_AND_LOST:
                list(self._app(environ, _unheard))
                return _refuse(start, "500 Internal Server Error", "InternalError")
            case _:
                pass
        answered: Iterable[bytes] = self._app(environ, start)
        return answered


def _unheard(*_: object) -> None:
    """Take the head of a response that is lost."""


def _refuse(start: Any, status: str, code: str) -> list[bytes]:
    start(status, [("Content-Type", "application/xml")])
    # As AWS does: with the access key.
    text = f"<Error><Code>{code}</Code><AWSAccessKeyId>{ACCESS_KEY}</AWSAccessKeyId></Error>"
    return [text.encode()]


@contextmanager
def running() -> Generator[S3, None, None]:
    """Run a server as long as the context lasts."""
    server = S3()
    try:
        yield server
    finally:
        server.close()
