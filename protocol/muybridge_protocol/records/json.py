"""Reading JSON strictly and within bounds, and writing it.

A record is UTF-8 JSON (a byte order mark is tolerated) without duplicate names, NaN, infinities or
trailing data. Whatever is wrong with it raises `InvalidJson`, and nothing else.

The size of a body does not bound the memory that its value takes: 8 MiB of empty objects take
twenty times as much, and one emoji makes Python store a long text in four bytes a character. So two
more things are bounded before anything is parsed: how many values there are, which is the number of
commas, colons and opening brackets outside of texts, and how much wider texts become in memory. For
a record both bounds are constants. For an answer or an event of a stream they follow from its size
limit, so that its text and its value together take at most three times that limit.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from muybridge_protocol.http import MEBIBYTE

JsonObject = dict[str, Any]

RAW_LIMIT: Final = 64 * 1024
"""Bytes of a response that an error keeps at most."""
NESTING_LIMIT: Final = 100
"""Deepest nesting of arrays and objects that is read. Code that writes, copies or shows the value
later may have less stack left than the reader had."""
VALUES_LIMIT: Final = 100_000
"""Largest number of commas, colons and opening brackets in a record outside of its texts."""
EVENT_LIMIT: Final = 32 * MEBIBYTE
"""Default size limit of an answer or an event of a stream, in bytes."""
SPARE: Final = 2 * MEBIBYTE
"""Bytes by which the texts of a record may grow in memory beyond their size as JSON."""
VALUE_SIZE: Final = 165
"""Bytes in memory for each comma, colon and opening bracket of an answer or an event.

The largest measured is 159, for nested objects with different names. With accents in the names it
is 162, or 172 with the fragmentation of the heap, but then 12 more are reserved for non-ASCII text.
The probabilities of tokens take 43."""
_EVENT_BESIDE: Final = MEBIBYTE // 2
"""Bytes reserved for an answer or an event of the largest size, in addition to its text."""
SMALL: Final = VALUES_LIMIT
"""Largest size of a body, in bytes, that needs no check because it cannot exceed any bound."""


class InvalidJson(ValueError):
    """The bytes are not the expected JSON; the message says why."""


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidJson("an object has the same name twice")
    return found


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise InvalidJson("a number is out of range")
    return number


def _no_constant(text: str) -> float:
    raise InvalidJson(f"{text} is not JSON")


def _no_number(_: str) -> None:
    """Read NaN or an infinity as null."""


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_without_duplicates,
    parse_float=_finite,
    parse_constant=_no_constant,
)
_EVENT_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number)

# The closing quote is optional, so that malformed JSON takes no longer than valid JSON.
_TEXT: Final = r'"(?:[^"\\]++|\\.)*+"?'
_TEXT_OR_MARK: Final = re.compile(rf"{_TEXT}|[,:\[{{]", re.DOTALL)
_ASCII: Final = bytes(range(0x80))
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")
_PIECE: Final = 64 * 1024
"""Bytes that are escaped at once, so that only a small part of a long text exists twice."""
_SPACE: Final = " \t\n\r"
_FOUR_BYTES: Final = re.compile(r"\\u[dD][89abAB]")
_TWO_BYTES: Final = re.compile(r"\\u(?!00)")


def read_json(body: bytes | str) -> Any:
    """Return the JSON value that *body* is.

    Raises:
        InvalidJson: It is not strict JSON, or would take far more memory than its bytes.
    """
    text = body if isinstance(body, str) else _decode(body, 2 * SPARE)
    if len(text) > SMALL:
        if _marks(text, VALUES_LIMIT) > VALUES_LIMIT:
            raise InvalidJson("it holds too many values")
        _check_widths(text, SPARE)
    return _read(text, _DECODER)


def read_event(body: bytes, limit: float = EVENT_LIMIT) -> Any:
    """Return the JSON value of *body*, an answer or an event of a stream.

    See `event_text` and `event_value`.
    """
    text = _decode(body, 0) if len(body) <= SMALL else event_text(body, limit)
    return event_value(text)


def event_text(body: bytes, limit: float = EVENT_LIMIT) -> str:
    """Return the text of *body*, an answer or an event of a stream, for `event_value`.

    These are two functions so that *body* can be freed in between. Text and value together then
    take at most twice *limit*.

    Args:
        body: What may be JSON.
        limit: Its size limit, in bytes.

    Raises:
        InvalidJson: It is not UTF-8, or would take far more memory than its bytes.
    """
    most = 2 * limit + _EVENT_BESIDE
    text = _decode(body, (most - 2 * len(body)) / 3 * 2 - len(body))
    if len(text) > SMALL:
        room = most - 2 * len(text)  # for growth beyond the size as JSON
        room -= VALUE_SIZE * _marks(text, room / VALUE_SIZE)
        if room < 0:
            raise InvalidJson("it holds too many values for its size limit")
        # If Python finds out in the middle of a text that it needs wider characters, it copies
        # the text, and both copies exist for a moment.
        _check_widths(text, room / 3, copies=1)
    return text


def event_value(text: str) -> Any:
    """Return the JSON value of *text*, an answer or an event of a stream.

    Of duplicate names the last one counts, because looking for them would double the cost. NaN and
    infinities, which some services write as probabilities, are read as null.

    Raises:
        InvalidJson: It is not JSON.
    """
    return _read(text, _EVENT_DECODER)


def _decode(body: bytes, spare: float) -> str:
    """Return *body* as text, in ASCII if it is long.

    Python stores every character of a text in as many bytes as the widest one needs, so that one
    emoji would make a picture in the same body four times as large. So non-ASCII characters are
    escaped first.

    Args:
        body: JSON as UTF-8.
        spare: Bytes that the escapes may take beyond the characters that they replace.
    """
    try:
        if len(body) <= SMALL:
            return body.decode().removeprefix("\ufeff")
        if body.isascii():
            return body.decode()
        # An escape takes at most three times the bytes of its character.
        if 2 * len(body.translate(None, _ASCII)) > spare:
            raise InvalidJson("its texts are too long for its size limit")
        return "".join(_escaped(body))
    except UnicodeDecodeError:
        raise InvalidJson("it is not UTF-8") from None


def _escaped(body: bytes) -> Iterator[str]:
    """Yield *body*, which is UTF-8, as pieces of JSON in ASCII."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    for start in range(0, len(body), _PIECE):
        piece = body[start : start + _PIECE]
        text = decoder.decode(piece, final=start + _PIECE >= len(body))
        if not text.isascii():
            text = _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], text)
        yield text


def _marks(text: str, most: float) -> int:
    """Return the number of commas, colons and opening brackets of JSON outside of its texts.

    The result may be too large, but exceeds *most* only if the true number does, or if the JSON
    has too many texts to find out in a reasonable time.
    """
    marks = sum(map(text.count, ",:[{"))
    # Skipping the texts takes time, the more so the more texts there are.
    if marks <= most or text.count('"') > 4 * most:
        return marks
    marks = 0
    for found in _TEXT_OR_MARK.finditer(text):
        marks += text[found.start()] != '"'
        if marks > most:
            break
    return marks


def _check_widths(text: str, most: float, *, copies: int = 0) -> None:
    """Check that texts with escapes grow by at most *most* bytes when they are read.

    Args:
        text: JSON in ASCII.
        most: The largest growth, in bytes.
        copies: How many copies of each text to add.
    """
    if (3 + copies) * len(text) <= most or "\\u" not in text:
        return
    for found in _TEXT_OR_MARK.finditer(text):
        begin, end = found.span()
        if text.find("\\u", begin, end) < 0:
            continue
        width = 4 if _FOUR_BYTES.search(text, begin, end) else 1
        if width == 1 and _TWO_BYTES.search(text, begin, end):
            width = 2
        most -= (end - begin) * (width - 1 + copies)
        if most < 0:
            raise InvalidJson("its texts are too long for its size limit")


def _read(text: str, decoder: json.JSONDecoder) -> Any:
    try:
        # Like `decode`, but that finds white space with regular expressions, which take a tenth
        # of the time of a short event.
        value, end = decoder.raw_decode(text, len(text) - len(text.lstrip(_SPACE)))
    except InvalidJson:
        raise
    except RecursionError:
        raise InvalidJson("it is nested too deeply") from None
    except ValueError as error:
        said = _told(error) if isinstance(error, json.JSONDecodeError) else "a number is too long"
        raise InvalidJson(f"it is not JSON: {said}" if text else "it is empty") from None
    if text[end:].strip(_SPACE):
        raise InvalidJson("it is not JSON: Extra data")
    if text.count("[") + text.count("{") > NESTING_LIMIT and _is_nested_too_deeply(value):
        raise InvalidJson("it is nested too deeply")
    return value


def _told(error: json.JSONDecodeError) -> str:
    line = f"line {error.lineno}, " if "\n" in error.doc.strip(_SPACE) else ""
    return f"{error.msg} ({line}column {error.colno})"


def _is_nested_too_deeply(value: Any) -> bool:
    level: list[Any] = [value]
    for _ in range(NESTING_LIMIT):
        level = [inner for outer in level for inner in _inside(outer)]
    return any(isinstance(inner, dict | list) for inner in level)


def _inside(value: Any) -> Iterable[Any]:
    if not isinstance(value, dict | list):
        return ()
    outer = cast("JsonObject | list[Any]", value)
    return outer.values() if isinstance(outer, dict) else outer


def read_object(body: bytes | str) -> JsonObject:
    """Return the JSON object that *body* is.

    Raises:
        InvalidJson: It is not a JSON object.
    """
    value = read_json(body)
    if not isinstance(value, dict):
        raise InvalidJson("it is not a JSON object")
    return cast("JsonObject", value)


def as_object(value: Any) -> JsonObject | None:
    """Return *value* if it is a JSON object, or None."""
    return cast("JsonObject", value) if isinstance(value, dict) else None


def as_array(value: Any) -> list[Any]:
    """Return *value* if it is a JSON array, or an empty array."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]  of anything


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def write_json(value: object) -> bytes:
    """Return *value* as compact UTF-8 JSON.

    Raises:
        ValueError: It is not a JSON value.
    """
    try:
        text = _ENCODER.encode(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    return text.encode()


def truncated(text: str, limit: int) -> str:
    """Return *text*, with an ellipsis in place of what exceeds *limit* characters."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def readable(text: str, limit: int = 500) -> str:
    """Return *text* for a message: like `one_line`, without surrounding white space."""
    return one_line(text.strip(), limit).strip()


def one_line(text: str, limit: int) -> str:
    """Return *text* in a form that can be shown, encoded and stored anywhere.

    Lone surrogates become U+FFFD, control characters and line breaks become spaces, and texts
    longer than *limit* are truncated with an ellipsis.
    """
    shown = text if len(text) <= limit else f"{text[:limit]}..."
    return shown if shown.isprintable() else "".join(map(_printable, shown))


def _printable(mark: str) -> str:
    if mark.isprintable():
        return mark
    return "\ufffd" if "\ud800" <= mark <= "\udfff" else " "


def error_message(body: bytes) -> str:
    """Return the message in an error response, or "". The shape of such a body is not specified."""
    try:
        said: Any = read_json(body)
    except InvalidJson:
        text = body[:RAW_LIMIT].decode("utf-8", "replace").strip()
        return "" if text.startswith("<") else readable(text, 200)
    return error_text(said)


def error_text(said: Any) -> str:
    """Return the message in an error that was read as JSON. Its shape is not specified."""
    if len(as_array(said)) == 1:
        said = said[0]
    for name in ("error", "message", "msg", "detail"):
        if isinstance(said, dict) and name in said:
            said = cast("JsonObject", said)[name]
    return readable(said if isinstance(said, str) else json.dumps(said))


def is_encodable(text: str) -> bool:
    """Whether *text* has no lone surrogates, which no encoding can express."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
