"""Responses that are not whole, whatever reads them: each is cut off, or contradicts itself.

The server sends one of them and closes the connection. What a transport may or may not accept
besides, such as a repeated header, is not among them.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping
from typing import Final

_BODY = b'{"id": "task-1"}'
_GZIP = gzip.compress(_BODY, mtime=0)
_DEFLATE = zlib.compress(_BODY)
_CHUNKED = b"Transfer-Encoding: chunked"


def head(*fields: bytes, line: bytes = b"HTTP/1.1 200 OK") -> bytes:
    """Return a head with the status line *line*."""
    return b"\r\n".join([line, *fields, b"", b""])


def counted(body: bytes, length: int, *fields: bytes) -> bytes:
    """Return a response whose body is said to have *length* bytes."""
    return head(*fields, b"Content-Length: %d" % length) + body


def chunked(body: bytes, *fields: bytes) -> bytes:
    """Return a response with a chunked body, as it is transferred."""
    return head(*fields, _CHUNKED) + body


NEVER_WHOLE: Final[Mapping[str, bytes]] = {
    "nothing": b"",
    "a byte": b"H",
    "a part of the version": b"HTTP/1.",
    "a status line without its end": b"HTTP/1.1 200 OK",
    "a status line alone": b"HTTP/1.1 200 OK\r\n",
    "a head without its end": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
    "a head that ends within a field": b"HTTP/1.1 200 OK\r\nContent-Len",
    "an informational head alone": b"HTTP/1.1 100 Continue\r\n\r\n",
    "an informational head and a byte": b"HTTP/1.1 103 Early Hints\r\n\r\nH",
    "a body alone": _BODY,
    "a page": b"<html>no HTTP</html>",
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a TLS alert": b"\x15\x03\x01\x00\x02\x02\x28",
    "a status of two digits": b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\n{}",
    "a status of letters": b"HTTP/1.1 2OO OK\r\nContent-Length: 2\r\n\r\n{}",
    "no body": counted(b"", 16),
    "a counted body cut at the first byte": counted(_BODY[:1], 16),
    "a counted body cut at the last byte": counted(_BODY[:-1], 16),
    "a counted body that is far too short": counted(_BODY, 10_000_000),
    "a length of letters": head(b"Content-Length: two") + b"{}",
    "a negative length": head(b"Content-Length: -2") + b"{}",
    "a length with a fraction": head(b"Content-Length: 2.0") + b"{}",
    "a length in hexadecimal": head(b"Content-Length: 0x2") + b"{}",
    "two lengths, the first of them true": head(b"Content-Length: 2", b"Content-Length: 3") + b"{}",
    "two lengths, the second of them true": head(b"Content-Length: 3", b"Content-Length: 2")
    + b"{}",
    "two lengths in a list": head(b"Content-Length: 2, 3") + b"{}",
    "no chunk": chunked(b""),
    "a chunk's size without its end": chunked(b"10"),
    "a chunk without its body": chunked(b"10\r\n"),
    "a chunk cut at the first byte": chunked(b"10\r\n{"),
    "a chunk cut at the last byte": chunked(b"10\r\n" + _BODY[:-1]),
    "a chunk without its end": chunked(b"10\r\n" + _BODY),
    "a chunk without the last chunk": chunked(b"10\r\n" + _BODY + b"\r\n"),
    "two chunks without the last chunk": chunked(b'2\r\n{"\r\n5\r\nid": \r\n'),
    "a last chunk without its end": chunked(b"10\r\n" + _BODY + b"\r\n0"),
    "a chunk whose size is a word": chunked(b"sixteen\r\n" + _BODY + b"\r\n0\r\n\r\n"),
    "a chunk whose size is negative": chunked(b"-10\r\n" + _BODY + b"\r\n0\r\n\r\n"),
    "a chunk without a size": chunked(b"\r\n" + _BODY + b"\r\n0\r\n\r\n"),
    "a chunk that is longer than it says": chunked(b"2\r\n{}junk\r\n0\r\n\r\n"),
    "a body that is said to be chunked": chunked(_BODY),
    "a gzipped body without its end": counted(_GZIP[:-4], 16_384, b"Content-Encoding: gzip"),
    "a gzip stream cut at its last byte": counted(
        _GZIP[:-1], len(_GZIP) - 1, b"Content-Encoding: gzip"
    ),
    "a gzip stream cut within its head": counted(_GZIP[:5], 5, b"Content-Encoding: gzip"),
    "a gzip stream with another checksum": counted(
        _GZIP[:-8] + bytes(8), len(_GZIP), b"Content-Encoding: gzip"
    ),
    "a gzip stream cut off in chunks": chunked(
        b"5\r\n" + _GZIP[:5] + b"\r\n0\r\n\r\n", b"Content-Encoding: gzip"
    ),
    "a body that is said to be gzipped": counted(_BODY, 16, b"Content-Encoding: gzip"),
    "a deflate stream cut at its last byte": counted(
        _DEFLATE[:-1], len(_DEFLATE) - 1, b"Content-Encoding: deflate"
    ),
    "a body that is said to be deflated": counted(b"\xff" * 16, 16, b"Content-Encoding: deflate"),
}
"""What the server sends, by its name. "Two lengths" are different ones."""
