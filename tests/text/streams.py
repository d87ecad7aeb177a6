"""Bodies of streamed replies as data: each with the places where its events are complete."""

from __future__ import annotations

from dataclasses import dataclass

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Stream:
    """A body, in segments.

    Args:
        segments: What the body is made of, each with the payload that its last byte completes.
        last: The payload of an event that only the end of the body completes, and its bytes.
    """

    segments: tuple[tuple[bytes, bytes | None], ...]
    last: tuple[bytes, bytes] | None = None

    @property
    def body(self) -> bytes:
        """The whole."""
        return b"".join(raw for raw, _ in self.segments) + (self.last[0] if self.last else b"")

    @property
    def payloads(self) -> list[bytes]:
        """What it gives, to the end."""
        return self.given(len(self.body)) + ([self.last[1]] if self.last else [])

    def given(self, size: int) -> list[bytes]:
        """Return what the first *size* bytes give at once."""
        found: list[bytes] = []
        for raw, payload in self.segments:
            size -= len(raw)
            if size < 0:
                break
            if payload is not None:
                found.append(payload)
        return found

    @property
    def is_json(self) -> bool:
        """Whether it is an array or bare JSON."""
        return self.body.removeprefix(BOM).lstrip()[:1] in (b"[", b"{")

    def inside(self, size: int) -> bool:
        """Return whether the first *size* bytes of a JSON form end inside an event."""
        for raw, payload in self.segments:
            if size < len(raw):
                return payload is not None and b"{" in raw[:size]
            size -= len(raw)
        return False


A = b'{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"index":0}]}'
B = b'{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":7}}'
SHORT = b'{"a":1}'
EMPTY = b"{}"
UMLAUTS = '{"text":"Grüße, 馬 \U0001f40e, \\ud83d\\udc0e"}'.encode()
ESCAPES = rb'{"text":"say \"}{\" and \\","more":"\\\\\"]}","end":"\\"}'
BACKSLASHES = b'{"' + b"\\" * 6 + b'":"' + b"\\" * 4 + rb"\"" + b'"}'
BRACES = b'{"a{":"}","b":[{"c":"[{]"},{"d":{}}]}'
PRETTY = b'{\n  "a": [\n    1,\n    {"b": 2}\n  ]\n}'
PICTURE = b'{"inlineData":{"mimeType":"image/png","data":"%s"}}' % (b"iVBORw0KGgo/+" * 12)
CRLF_INSIDE = b'{\r\n  "a": 1\r\n}'


def _sse(*payloads: bytes, end: bytes = b"\n", field: bytes = b"data: ") -> Stream:
    return Stream(tuple((field + payload + end + end, payload) for payload in payloads))


SERVER_SENT: dict[str, Stream] = {
    "LF": _sse(A, B),
    "CR": _sse(A, B, end=b"\r"),
    # CRLF: the CR of the blank line is its end already.
    "CRLF": Stream(
        (
            (b"data: " + A + b"\r\n\r", A),
            (b"\n", None),
            (b"data: " + B + b"\r\n\r", B),
            (b"\n", None),
        )
    ),
    "without a space": _sse(A, B, field=b"data:"),
    "with further spaces": _sse(SHORT, field=b"data:  "),
    "with a tab": _sse(SHORT, field=b"data:\t"),
    "mixed line ends": Stream(
        (
            (b"data: " + SHORT + b"\r\n\n", SHORT),
            (b"data:" + A + b"\n\r", A),
            (b"\ndata: " + B + b"\r\r", B),
            (b"\n\r\n\n\rdata:" + EMPTY + b"\r\n\r", EMPTY),
            (b"\n", None),
        )
    ),
    "an object on a line of its own": Stream(
        ((b"data: " + A + b"\n\n", A), (b'{"error":{"code":500}}\n', b'{"error":{"code":500}}'))
    ),
    "DONE": _sse(A, b"[DONE]"),
    "DONE without a space": _sse(A, b"[DONE]", field=b"data:"),
    "DONE and a space": Stream(((b"data: [DONE] \n\n", b"[DONE]"),)),
    "DONE without a blank line": Stream(
        ((b"data: " + A + b"\n\n", A),), last=(b"data: [DONE]", b"[DONE]")
    ),
    "no last blank line": Stream(((b"data: " + A + b"\n\n", A),), last=(b"data: " + B + b"\n", B)),
    "no last line end": Stream(((b"data: " + A + b"\n\n", A),), last=(b"data: " + B, B)),
    "no last LF": Stream((), last=(b"data: " + A + b"\r", A)),
    "no last blank line, CRLF": Stream((), last=(b"data: " + A + b"\r\n", A)),
    "comments": Stream(
        (
            (b": hello\n\n", None),
            (b":\n: OPENROUTER PROCESSING\n\n:data: 5\n", None),
            (b"data: " + A + b"\n: in between\n\n", A),
            (b": data: 6\n\n", None),
        )
    ),
    "other fields": Stream(
        (
            (b"event: message\nid: 1\nretry: 10\ndata: " + A + b"\n\n", A),
            (b"event: ping\nid\n\n", None),
            (b"datum: 1\ndata : 1\n data: 1\nDATA: 1\ndatadata: 1\ndata2\n\n", None),
            (b'event: content_block_delta\ndata: {"type":"x"}\nid: 2\n\n', b'{"type":"x"}'),
        )
    ),
    "multi-line data": Stream(
        (
            (
                b'data: {\ndata:  "a": [\ndata:    1, {"b": 2}\ndata\ndata:]\ndata: }\n\n',
                b'{\n "a": [\n   1, {"b": 2}\n\n]\n}',
            ),
            (b"data: " + SHORT + b"\n\n", SHORT),
        )
    ),
    "multi-line data, CRLF": Stream(
        (
            (b'data: {\r\ndata: "a":1\r\ndata: }\r\n\r', b'{\n"a":1\n}'),
            (b"\ndata: " + SHORT + b"\r\n\r", SHORT),
            (b"\n", None),
        )
    ),
    "multi-line data, CR": Stream(((b'data: {\rdata: "a":1\rdata:}\r\r', b'{\n"a":1\n}'),)),
    "multi-line data with comments": Stream(
        ((b'data: {\n: still here\ndata: "a":1\nid: 7\ndata: }\n\n', b'{\n"a":1\n}'),)
    ),
    "signs of life": Stream(
        (
            (b"data\n\n", None),
            (b"data:\n\ndata: \n\ndata:  \n\n", None),
            (b"data\ndata\n\n", None),
            (b"data: " + SHORT + b"\n\n", SHORT),
            (b"data\n\n", None),
        )
    ),
    "byte order mark": Stream(
        ((BOM + b"data: " + A + b"\n\n", A), (b"data: " + BOM + b"5\n\n", BOM + b"5"))
    ),
    "half a byte order mark": Stream(
        ((BOM[:2] + b"data: 5\n\n", None), (b"data: " + SHORT + b"\n\n", SHORT))
    ),
    "two byte order marks": Stream(
        ((BOM + BOM + b"data: 5\n\n", None), (b"data: " + SHORT + b"\n\n", SHORT))
    ),
    "white space first": Stream(((BOM + b"\r\n \tdata: " + A + b"\n\n", A),)),
    "blank lines": Stream(((b"\n\n\ndata: " + A + b"\n\n", A), (b"\r\n\r\n\r\n", None))),
    "characters of several bytes": _sse(UMLAUTS),
    "other line ends are none": _sse('{"text":"a\u2028b\u2029c\u0085d\x0be\x0cf\x1c"}'.encode()),
    "escapes": _sse(ESCAPES, BACKSLASHES, BRACES),
    "inline picture": _sse(PICTURE),
    "opaque payloads": _sse(b"not JSON", b"{", b'"data: 5"', b"[1,2]", b":", b"data:", b"\xff\x00"),
    "HTML": Stream(((b"<html>\n<p>502 Bad gateway\n\n</html>\n", None),)),
    "plain text": Stream(((b"busy", None),)),
}

JSON: dict[str, Stream] = {
    # As the native protocol answers without `alt=sse`.
    "array": Stream(((b"[" + A, A), (b"\n,\r\n" + B, B), (b"\n]", None))),
    "compact array": Stream(((b"[" + A, A), (b"," + EMPTY, EMPTY), (b"," + B, B), (b"]", None))),
    "pretty array": Stream(
        ((b"[\n" + PRETTY, PRETTY), (b",\n" + PRETTY, PRETTY), (b"\n]\n", None))
    ),
    "array of one": Stream(((b'[{"error":{"code":429}}', b'{"error":{"code":429}}'), (b"]", None))),
    "empty array": Stream(((b"[ \r\n]", None),)),
    "array, byte order mark": Stream(((BOM + b" \n[ " + SHORT, SHORT), (b" ] \r\n\t", None))),
    "array, escapes": Stream(
        (
            (b"[" + ESCAPES, ESCAPES),
            (b"," + BACKSLASHES, BACKSLASHES),
            (b",\n" + BRACES, BRACES),
            (b"]", None),
        )
    ),
    "array, characters of several bytes": Stream(((b"[" + UMLAUTS, UMLAUTS), (b"]\n", None))),
    "array, inline picture": Stream(
        ((b"[" + PICTURE, PICTURE), (b"\n,\r\n" + PICTURE, PICTURE), (b"\n]\n", None))
    ),
    "array without its end": Stream(((b"[" + A, A), (b"\n,\r\n" + B, B))),
    "array, line ends inside": Stream(((b"[" + CRLF_INSIDE, CRLF_INSIDE), (b"]", None))),
    "one object": Stream(((A, A),)),
    "one object, pretty": Stream(((PRETTY, PRETTY), (b"\n", None))),
    "objects on lines": Stream(((A, A), (b"\n" + B, B), (b"\n", None))),
    "objects on lines, CRLF": Stream(((A, A), (b"\r\n" + B, B), (b"\r\n\r\n", None))),
    "objects without anything between": Stream(((A, A), (EMPTY, EMPTY), (B, B))),
    "objects with commas": Stream(((A, A), (b"," + EMPTY, EMPTY), (b",\n" + B, B), (b",\n", None))),
    "objects, byte order mark": Stream(((BOM + A, A), (b" \t" + SHORT, SHORT))),
    "objects, escapes": Stream(((ESCAPES, ESCAPES), (BACKSLASHES, BACKSLASHES), (BRACES, BRACES))),
    "objects, data in strings": Stream(
        ((b'{"a":"\ndata: 5\n\n"}', b'{"a":"\ndata: 5\n\n"}'), (b"\n" + SHORT, SHORT))
    ),
}

EMPTY_BODIES: dict[str, Stream] = {
    "nothing": Stream(()),
    "a byte order mark": Stream(((BOM, None),)),
    "white space": Stream(((b" \r\n\n\t ", None),)),
    "byte order mark, white space": Stream(((BOM + b"\r\n", None),)),
}

STREAMS: dict[str, Stream] = {**SERVER_SENT, **JSON, **EMPTY_BODIES}

MALFORMED: dict[str, tuple[bytes, list[bytes]]] = {
    "array goes on with a bracket": (b"[" + SHORT + b"]]", [SHORT]),
    "array goes on with an object": (b"[" + SHORT + b"] " + EMPTY, [SHORT]),
    "array goes on with an array": (b"[" + SHORT + b"]\n[", [SHORT]),
    "array goes on with a comma": (b"[" + SHORT + b"],", [SHORT]),
    "array goes on with a field": (b"[" + SHORT + b"]\ndata: " + SHORT + b"\n\n", [SHORT]),
    "array goes on with NUL": (b"[]\x00", []),
    "array goes on with a byte order mark": (b"[]" + BOM, []),
    "two commas": (b"[" + SHORT + b",," + SHORT + b"]", [SHORT]),
    "comma first": (b"[," + SHORT + b"]", []),
    "comma last": (b"[" + SHORT + b",]", [SHORT]),
    "no comma": (b"[" + SHORT + b"\n" + SHORT + b"]", [SHORT]),
    "array of numbers": (b"[1,2]", []),
    "array of strings": (b'["a"]', []),
    "array of arrays": (b"[[" + SHORT + b"]]", []),
    "null in an array": (b"[" + SHORT + b",null]", [SHORT]),
    "brace too many": (b"[" + SHORT + b"}]", [SHORT]),
    "DONE alone": (b"[DONE]", []),
    "backslash in an array": (b"[" + SHORT + b"\\", [SHORT]),
    "two commas between objects": (SHORT + b",," + SHORT, [SHORT]),
    "bracket after an object": (SHORT + b"]", [SHORT]),
    "array after an object": (SHORT + b"\n[" + SHORT + b"]", [SHORT]),
    "text after an object": (SHORT + b"\nBad gateway", [SHORT]),
    "event after an object": (SHORT + b"\ndata: " + SHORT + b"\n\n", [SHORT]),
    "odd white space after an object": (SHORT + b"\xa0" + SHORT, [SHORT]),
    "object without end": (SHORT + b'{"a":', [SHORT]),
    "string without end": (SHORT + rb'{"a":"}\"', [SHORT]),
    "escape without end": (b'[{"a":"\\', []),
}
