"""Odd heads and bodies, and what each binding of HTTP/1.1 makes of them.

The server sends one of them as the response to a paid request, and closes the connection. Each has
one verdict: the body of a whole response, or the phase and the reason of a failure. The rows of the
conformance kit are among them.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Mapping

from muybridge.testing.conformance.wires import NEVER_WHOLE, chunked, head
from muybridge_protocol.http import Phase, Reason

Verdict = bytes | tuple[Phase, Reason]

BAD_HEAD: Verdict = (Phase.HEAD, Reason.MALFORMED)
CUT_HEAD: Verdict = (Phase.HEAD, Reason.TRUNCATED)
NO_HEAD: Verdict = (Phase.HEAD, Reason.CLOSED)
BAD_BODY: Verdict = (Phase.BODY, Reason.MALFORMED)
CUT_BODY: Verdict = (Phase.BODY, Reason.TRUNCATED)

TWO = b"Content-Length: 2"
GZIP = gzip.compress(b"{}", mtime=0)
DEFLATE = zlib.compress(b"{}")


def status(line: bytes) -> bytes:
    return head(TWO, line=line) + b"{}"


def fields(*lines: bytes) -> bytes:
    return head(*lines, TWO) + b"{}"


def coded(body: bytes, coding: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return head(b"Content-Encoding: " + coding, length) + body


STATUS_LINES: Mapping[str, tuple[bytes, Verdict]] = {
    "HTTP/1.0": (status(b"HTTP/1.0 200 OK"), b"{}"),
    "no reason": (status(b"HTTP/1.1 200"), b"{}"),
    "an empty reason": (status(b"HTTP/1.1 200 "), b"{}"),
    "a long reason": (status(b"HTTP/1.1 200 " + b"O" * 1000), b"{}"),
    "a reason in latin-1": (status(b"HTTP/1.1 200 Tr\xe8s bien"), b"{}"),
    "a reason with a tab": (status(b"HTTP/1.1 200 O\tK"), b"{}"),
    "a reason of digits": (status(b"HTTP/1.1 200 200"), b"{}"),
    "a reason with NUL": (status(b"HTTP/1.1 200 O\0K"), b"{}"),
    "status 201": (status(b"HTTP/1.1 201 Created"), b"{}"),
    "status 299": (status(b"HTTP/1.1 299 Odd"), b"{}"),
    "status 999": (status(b"HTTP/1.1 999 Odd"), b"{}"),
    "status 000": (status(b"HTTP/1.1 000 Odd"), BAD_HEAD),
    "status 99": (status(b"HTTP/1.1 99 Odd"), BAD_HEAD),
    "status 099": (status(b"HTTP/1.1 099 Odd"), BAD_HEAD),
    "status 2000": (status(b"HTTP/1.1 2000 OK"), BAD_HEAD),
    "status -200": (status(b"HTTP/1.1 -200 OK"), BAD_HEAD),
    "status +200": (status(b"HTTP/1.1 +200 OK"), BAD_HEAD),
    "status 2e2": (status(b"HTTP/1.1 2e2 OK"), BAD_HEAD),
    "no status": (status(b"HTTP/1.1"), BAD_HEAD),
    "a status after two spaces": (status(b"HTTP/1.1  200 OK"), BAD_HEAD),
    "a status after a tab": (status(b"HTTP/1.1\t200 OK"), BAD_HEAD),
    "HTTP/2": (status(b"HTTP/2 200 OK"), BAD_HEAD),
    "HTTP/2.0": (status(b"HTTP/2.0 200 OK"), BAD_HEAD),
    "HTTP/0.9": (status(b"HTTP/0.9 200 OK"), BAD_HEAD),
    "HTTP/1.2": (status(b"HTTP/1.2 200 OK"), BAD_HEAD),
    "HTTP/1.10": (status(b"HTTP/1.10 200 OK"), BAD_HEAD),
    "HTTP/1": (status(b"HTTP/1 200 OK"), BAD_HEAD),
    "http/1.1": (status(b"http/1.1 200 OK"), BAD_HEAD),
    "ICY": (status(b"ICY 200 OK"), BAD_HEAD),
    "RTSP": (status(b"RTSP/1.0 200 OK"), BAD_HEAD),
    "a space before it": (b" " + status(b"HTTP/1.1 200 OK"), BAD_HEAD),
    "a line break before it": (b"\r\n" + status(b"HTTP/1.1 200 OK"), BAD_HEAD),
    "a byte order mark before it": (b"\xef\xbb\xbf" + status(b"HTTP/1.1 200 OK"), BAD_HEAD),
    "a line feed alone behind it": (b"HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\n{}", BAD_HEAD),
    "a return alone behind it": (b"HTTP/1.1 200 OK\rContent-Length: 2\r\n\r\n{}", BAD_HEAD),
    "line feeds alone": (b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", BAD_HEAD),
    "no field": (head() + b"{}", b"{}"),
}

FIELDS: Mapping[str, tuple[bytes, Verdict]] = {
    "a field twice": (fields(b"X: a", b"X: b"), b"{}"),
    "an empty value": (fields(b"X:"), b"{}"),
    "a value without a space": (fields(b"X:y"), b"{}"),
    "a value in spaces": (fields(b"X:   y   "), b"{}"),
    "a value with a tab": (fields(b"X: a\tb"), b"{}"),
    "a value in latin-1": (fields(b"X: caf\xe9"), b"{}"),
    "a value in UTF-8": (fields("X: \N{HORSE}".encode()), b"{}"),
    "a value with NUL": (fields(b"X: a\0b"), BAD_HEAD),
    "a value with a control character": (fields(b"X: a\x01b"), BAD_HEAD),
    "a value with DEL": (fields(b"X: a\x7fb"), BAD_HEAD),
    "a value with a return": (fields(b"X: a\rb"), BAD_HEAD),
    "a value with a line feed": (fields(b"X: a\nb"), BAD_HEAD),
    "a folded value": (fields(b"X: a\r\n b"), BAD_HEAD),
    "a value folded with a tab": (fields(b"X: a\r\n\tb"), BAD_HEAD),
    "a folded first line": (fields(b" X: a"), BAD_HEAD),
    "a name with a space behind it": (fields(b"X : y"), BAD_HEAD),
    "a name with a space within it": (fields(b"X Y: z"), BAD_HEAD),
    "a name with a bracket": (fields(b"X(: y"), BAD_HEAD),
    "a name in latin-1": (fields(b"\xe9: y"), BAD_HEAD),
    "a name of signs": (fields(b"!#$%&'*+-.^_`|~: y"), b"{}"),
    "a name with NUL": (fields(b"X\0: y"), BAD_HEAD),
    "no name": (fields(b": y"), BAD_HEAD),
    "no colon": (fields(b"no colon"), BAD_HEAD),
    "a line feed behind a field": (fields(b"X: y\nZ: w"), BAD_HEAD),
    "a line feed before the end": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\n{}", BAD_HEAD),
    "a line feed as the end": (b"HTTP/1.1 200 OK\r\nContent-Length: 2\n\n{}", BAD_HEAD),
    "99 fields besides": (fields(*[b"X-%d: y" % n for n in range(99)]), b"{}"),
    "100 fields besides": (fields(*[b"X-%d: y" % n for n in range(100)]), BAD_HEAD),
    "a value of 60,000 bytes": (fields(b"X: " + b"y" * 60_000), b"{}"),
    "a value of 66,000 bytes": (fields(b"X: " + b"y" * 66_000), BAD_HEAD),
    "a name of 66,000 bytes": (fields(b"X" * 66_000 + b": y"), BAD_HEAD),
    "an upgrade": (fields(b"Upgrade: h2c", b"Connection: upgrade"), b"{}"),
    "an unknown option": (fields(b"Connection: odd"), b"{}"),
    "keep-alive and close": (fields(b"Connection: keep-alive, close"), b"{}"),
    "a trailer announced": (fields(b"Trailer: X"), b"{}"),
}

LENGTHS: Mapping[str, tuple[bytes, Verdict]] = {
    "true": (head(TWO) + b"{}", b"{}"),
    "in lower case": (head(b"content-length: 2") + b"{}", b"{}"),
    "with zeros": (head(b"Content-Length: 002") + b"{}", b"{}"),
    "in spaces": (head(b"Content-Length:   2  ") + b"{}", b"{}"),
    "after a tab": (head(b"Content-Length:\t2") + b"{}", b"{}"),
    "0": (head(b"Content-Length: 0"), b""),
    "twice the same": (head(TWO, TWO) + b"{}", BAD_HEAD),
    "twice the same in a list": (head(b"Content-Length: 2, 2") + b"{}", BAD_HEAD),
    "the same with zeros": (head(TWO, b"Content-Length: 02") + b"{}", BAD_HEAD),
    "twice 0": (head(b"Content-Length: 0", b"Content-Length: 0"), BAD_HEAD),
    "an empty one": (head(b"Content-Length:") + b"{}", BAD_HEAD),
    "a list with nothing behind": (head(b"Content-Length: 2,") + b"{}", BAD_HEAD),
    "with a sign": (head(b"Content-Length: +2") + b"{}", BAD_HEAD),
    "with an underscore": (head(b"Content-Length: 1_0") + b"{}", BAD_HEAD),
    "with a superscript": (head(b"Content-Length: \xb2") + b"{}", BAD_HEAD),
    "with a unit": (head(b"Content-Length: 2 bytes") + b"{}", BAD_HEAD),
    "two numbers": (head(b"Content-Length: 2 2") + b"{}", BAD_HEAD),
    "with an exponent": (head(b"Content-Length: 2e0") + b"{}", BAD_HEAD),
    "quoted": (head(b'Content-Length: "2"') + b"{}", BAD_HEAD),
    "beyond 64 bits": (head(b"Content-Length: 99999999999999999999") + b"{}", BAD_HEAD),
    "2 to the 64": (head(b"Content-Length: 18446744073709551618") + b"{}", BAD_HEAD),
    "with more behind the body": (head(TWO) + b"{}more", b"{}"),
    "with a response behind the body": (head(TWO) + b"{}" + head(TWO) + b"{}", b"{}"),
    "with more behind a success": (status(b"HTTP/1.1 299 Odd") + b"more", b"{}"),
    "with more behind a refusal": (status(b"HTTP/1.1 300 Odd") + b"more", BAD_BODY),
    "together with chunks": (head(TWO, b"Transfer-Encoding: chunked") + b"{}", BAD_HEAD),
    "behind chunks": (head(b"Transfer-Encoding: chunked", TWO) + b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
    "together with identity": (head(TWO, b"Transfer-Encoding: identity") + b"{}", BAD_HEAD),
}

TRANSFERS: Mapping[str, tuple[bytes, Verdict]] = {
    name: (head(*[b"Transfer-Encoding:" + value for value in values]) + sent, verdict)
    for name, values, sent, verdict in (
        ("in upper case", [b" CHUNKED"], b"2\r\n{}\r\n0\r\n\r\n", b"{}"),
        ("without a space", [b"chunked"], b"2\r\n{}\r\n0\r\n\r\n", b"{}"),
        ("in spaces", [b"  chunked  "], b"2\r\n{}\r\n0\r\n\r\n", b"{}"),
        ("empty", [b""], b"{}", BAD_HEAD),
        ("identity", [b" identity"], b"{}", BAD_HEAD),
        ("gzip", [b" gzip"], b"{}", BAD_HEAD),
        ("gzip and chunked", [b" gzip, chunked"], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
        ("chunked and gzip", [b" chunked, gzip"], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
        ("chunked and identity", [b" chunked, identity"], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
        ("chunked twice in a list", [b" chunked, chunked"], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
        ("chunked twice", [b" chunked", b" chunked"], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
        ("a list with nothing behind", [b" chunked,"], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
        ("a list with nothing before", [b" ,chunked"], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
        ("with a parameter", [b" chunked;x=y"], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
        ("quoted", [b' "chunked"'], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
        ("with another letter", [b" xchunked"], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
        ("with a vertical tab", [b" \x0bchunked"], b"2\r\n{}\r\n0\r\n\r\n", BAD_HEAD),
    )
}

CHUNKS: Mapping[str, tuple[bytes, Verdict]] = {
    name: (chunked(body), verdict)
    for name, body, verdict in (
        ("none but the last", b"0\r\n\r\n", b""),
        ("one", b"2\r\n{}\r\n0\r\n\r\n", b"{}"),
        ("two", b"1\r\n{\r\n1\r\n}\r\n0\r\n\r\n", b"{}"),
        ("a size with zeros", b"0002\r\n{}\r\n0\r\n\r\n", b"{}"),
        ("a last size with zeros", b"2\r\n{}\r\n000\r\n\r\n", b"{}"),
        ("a size in upper case", b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        ("a size in lower case", b"a\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        ("an extension", b"2;x=y\r\n{}\r\n0\r\n\r\n", b"{}"),
        ("a quoted extension", b'2;x="y z"\r\n{}\r\n0\r\n\r\n', b"{}"),
        ("an extension without a value", b"2;x\r\n{}\r\n0\r\n\r\n", b"{}"),
        ("an extension of the last", b"2\r\n{}\r\n0;x=y\r\n\r\n", b"{}"),
        ("a space behind a size", b"2 \r\n{}\r\n0\r\n\r\n", b"{}"),
        ("a tab behind a size", b"2\t\r\n{}\r\n0\r\n\r\n", b"{}"),
        ("a trailer", b"2\r\n{}\r\n0\r\nX: y\r\n\r\n", b"{}"),
        ("a trailer with a length", b"2\r\n{}\r\n0\r\nContent-Length: 9\r\n\r\n", BAD_BODY),
        ("more behind the end", b"2\r\n{}\r\n0\r\n\r\nmore", b"{}"),
        ("a space before a size", b" 2\r\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("a sign before a size", b"+2\r\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("0x before a size", b"0x2\r\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("an underscore in a size", b"1_0\r\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("a size beyond 64 bits", b"1" + b"0" * 16 + b"\r\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("a huge size", b"7" * 16 + b"\r\n{}\r\n0\r\n\r\n", CUT_BODY),
        ("a size that is too large", b"5\r\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("a size that is too small", b"1\r\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("a line feed behind a size", b"2\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("a return behind a size", b"2\r{}\r\n0\r\n\r\n", BAD_BODY),
        ("a line feed behind a chunk", b"2\r\n{}\n0\r\n\r\n", BAD_BODY),
        ("nothing behind a chunk", b"2\r\n{}0\r\n\r\n", BAD_BODY),
        ("a line feed behind the last", b"2\r\n{}\r\n0\n\r\n", BAD_BODY),
        ("a line feed as the end", b"2\r\n{}\r\n0\r\n\n", BAD_BODY),
        ("NUL in an extension", b"2;x=\0\r\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("a line feed in an extension", b"2;x=\ny\r\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("an open quote", b'2;x="y\r\n{}\r\n0\r\n\r\n', BAD_BODY),
        ("a comma behind a size", b"2,\r\n{}\r\n0\r\n\r\n", BAD_BODY),
        ("an extension of 70,000 bytes", b"2;" + b"x" * 70_000, BAD_BODY),
        ("a trailer of 72,000 bytes", b"0\r\n" + b"X-Y: z\r\n" * 9000, BAD_BODY),
        ("a trailer without a colon", b"2\r\n{}\r\n0\r\nno colon\r\n\r\n", BAD_BODY),
        ("a trailer without its end", b"2\r\n{}\r\n0\r\nX: y\r\n", CUT_BODY),
    )
}

CODINGS: Mapping[str, tuple[bytes, Verdict]] = {
    "gzip": (coded(GZIP, b"gzip"), b"{}"),
    "x-gzip": (coded(GZIP, b"x-gzip"), b"{}"),
    "GZIP": (coded(GZIP, b"GZIP"), b"{}"),
    "deflate": (coded(DEFLATE, b"deflate"), b"{}"),
    "deflate without its wrapping": (coded(DEFLATE[2:-4], b"deflate"), b"{}"),
    "identity": (coded(b"{}", b"identity"), b"{}"),
    "a word that is no coding": (coded(b"{}", b"utf-8"), b"{}"),
    "an empty body": (coded(b"", b"gzip"), b""),
    "two gzip members": (coded(gzip.compress(b"{") + gzip.compress(b"}"), b"gzip"), b"{}"),
    "gzip in chunks": (
        chunked(b"%x\r\n%b\r\n0\r\n\r\n" % (len(GZIP), GZIP), b"Content-Encoding: gzip"),
        b"{}",
    ),
    "gzip until the end": (head(b"Content-Encoding: gzip") + GZIP, b"{}"),
    "gzip and zeros": (coded(GZIP + bytes(8), b"gzip"), BAD_BODY),
    "gzip and junk": (coded(GZIP + b"junk", b"gzip"), BAD_BODY),
    "deflate and junk": (coded(DEFLATE + b"junk", b"deflate"), BAD_BODY),
    "gzip called deflate": (coded(GZIP, b"deflate"), BAD_BODY),
    "gzip cut by the end": (head(b"Content-Encoding: gzip") + GZIP[:-1], CUT_BODY),
    "br": (coded(b"{}", b"br"), BAD_HEAD),
    "zstd": (coded(b"{}", b"zstd"), BAD_HEAD),
    "gzip twice": (coded(GZIP, b"gzip, gzip"), BAD_HEAD),
}

EARLIER: Mapping[str, tuple[bytes, Verdict]] = {
    "100": (head(line=b"HTTP/1.1 100 Continue") + fields(), b"{}"),
    "103 twice": (head(line=b"HTTP/1.1 103 Early Hints") * 2 + fields(), b"{}"),
    "199": (head(line=b"HTTP/1.1 199 Odd") + fields(), b"{}"),
    "102 of HTTP/1.0": (head(line=b"HTTP/1.0 102 Processing") + fields(), b"{}"),
    "103 with a length": (head(TWO, line=b"HTTP/1.1 103 Early Hints") + fields(), b"{}"),
    "103 with a body": (head(TWO, line=b"HTTP/1.1 103 Early Hints") + b"{}" + fields(), BAD_HEAD),
    "100 with a line feed": (b"HTTP/1.1 100 Continue\n\n" + fields(), BAD_HEAD),
}

BODILESS: Mapping[str, tuple[bytes, Verdict]] = {
    "204": (head(line=b"HTTP/1.1 204 No Content"), b""),
    "204 with a length": (head(TWO, line=b"HTTP/1.1 204 No Content"), b""),
    "204 with a body": (head(TWO, line=b"HTTP/1.1 204 No Content") + b"{}", b""),
    "204 with two lengths": (head(TWO, TWO, line=b"HTTP/1.1 204 No Content"), BAD_HEAD),
    "304": (head(line=b"HTTP/1.1 304 Not Modified"), b""),
    "304 with a length": (head(TWO, line=b"HTTP/1.1 304 Not Modified"), b""),
    "400 with a length": (head(TWO, line=b"HTTP/1.1 400 Bad Request") + b"{}", b"{}"),
    "400 with more behind it": (head(TWO, line=b"HTTP/1.1 400 No") + b"{}more", BAD_BODY),
    "400 with a response behind it": (
        head(TWO, line=b"HTTP/1.1 400 No") + b"{}" + fields(),
        BAD_BODY,
    ),
    "400 in chunks with a response behind it": (
        head(b"Transfer-Encoding: chunked", line=b"HTTP/1.1 400 No")
        + b"2\r\n{}\r\n0\r\n\r\n"
        + fields(),
        BAD_BODY,
    ),
    "304 with a body": (head(TWO, line=b"HTTP/1.1 304 Not Modified") + b"{}", BAD_BODY),
}

_OF_THE_KIT: Mapping[str, Verdict] = {
    **dict.fromkeys(NEVER_WHOLE, CUT_BODY),
    "nothing": NO_HEAD,
    **dict.fromkeys(
        (
            "a byte",
            "a part of the version",
            "a status line without its end",
            "a status line alone",
            "a head without its end",
            "a head that ends within a field",
            "an informational head alone",
            "an informational head and a byte",
        ),
        CUT_HEAD,
    ),
    **dict.fromkeys(
        (
            "a body alone",
            "a page",
            "another protocol",
            "a TLS alert",
            "a status of two digits",
            "a status of letters",
            "a length of letters",
            "a negative length",
            "a length with a fraction",
            "a length in hexadecimal",
            "two lengths, the first of them true",
            "two lengths, the second of them true",
            "two lengths in a list",
        ),
        BAD_HEAD,
    ),
    **dict.fromkeys(
        (
            "a chunk whose size is a word",
            "a chunk whose size is negative",
            "a chunk without a size",
            "a chunk that is longer than it says",
            "a body that is said to be chunked",
            "a gzip stream with another checksum",
            "a body that is said to be gzipped",
            "a body that is said to be deflated",
        ),
        BAD_BODY,
    ),
}

WIRES: Mapping[str, tuple[bytes, Verdict]] = {
    f"{group}: {name}": row
    for group, rows in {
        "status line": STATUS_LINES,
        "fields": FIELDS,
        "length": LENGTHS,
        "transfer": TRANSFERS,
        "chunks": CHUNKS,
        "coding": CODINGS,
        "earlier": EARLIER,
        "status": BODILESS,
        "kit": {name: (wire, _OF_THE_KIT[name]) for name, wire in NEVER_WHOLE.items()},
    }.items()
    for name, row in rows.items()
}
"""Each wire and its verdict."""
