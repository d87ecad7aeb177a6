"""JSON in and out, strict about what it reads.

A reply is read as UTF-8 JSON (a byte order mark is tolerated) without duplicate names, NaN,
infinities or trailing data.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable
from typing import Any, Final, cast

from muybridge_protocol.http import MEBIBYTE

JsonObject = dict[str, Any]

RAW_LIMIT: Final = 64 * 1024
"""Most bytes of a reply that an error keeps."""
NESTING_LIMIT: Final = 100
"""Most arrays and objects inside one another that are read: whoever writes, copies or shows the
value later may have less stack left than its reader had."""
VALUES_LIMIT: Final = 100_000
"""Most commas, colons and opening brackets that a record may have between its texts: 8 MiB of
nothing but empty objects would take twenty times as much memory."""
EVENT_LIMIT: Final = 32 * MEBIBYTE
"""Most bytes of an answer or an event of a stream, unless told otherwise."""
SPARE: Final = 2 * MEBIBYTE
"""Most bytes that the texts of a record may take in memory beyond what they take as JSON."""
VALUE_SIZE: Final = 165
"""Bytes in memory for each of the commas, colons and opening brackets of an answer or an event.
The most that was measured is 159, for different names of objects inside one another. Accents in
them make it 162, and 172 with what the heap loses, but then 12 more are left for what is not ASCII.
The probabilities of tokens take 43."""
_EVENT_BESIDE: Final = MEBIBYTE // 2
"""Bytes that an answer or an event of the largest size may take beside the text that it is."""
SMALL: Final = VALUES_LIMIT
"""Most bytes of a body that cannot hold too many values, whatever it holds."""


class InvalidJson(ValueError):
    """Bytes that are not the JSON that was expected; the message says why."""


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidJson("a name stands twice in an object")
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

# The closing quote may be missing, so that broken JSON costs no more than other.
_TEXT: Final = r'"(?:[^"\\]++|\\.)*+"?'
_TEXTS: Final = re.compile(_TEXT, re.DOTALL)
_TO_MARK: Final = re.compile(rf'[^",:\[{{]*+(?:{_TEXT}[^",:\[{{]*+)*+([,:\[{{]?)', re.DOTALL)
"""Passes over texts, up to a mark or to the end."""
_ASCII: Final = bytes(range(0x80))
# Not too many at once, so that little of a long text stands there twice.
_BEYOND_ASCII: Final = re.compile(rb"(?:[\xc0-\xff][\x80-\xbf]*){1,4096}")
_SPACE: Final = " \t\n\r"
_ESCAPED: Final = "muybridge_protocol.escaped"
_FOUR_BYTES: Final = re.compile(r"\\u[dD][89abAB]")
_TWO_BYTES: Final = re.compile(r"\\u(?!00)")


def read_json(body: bytes | str) -> Any:
    """Return the JSON value that *body* is.

    Raises:
        InvalidJson: It is no JSON, or not strictly, or would take far more memory than its bytes.
    """
    text = body if isinstance(body, str) else _decode(body, 2 * SPARE)
    if len(text) > SMALL:
        if _marks(text, VALUES_LIMIT) > VALUES_LIMIT:
            raise InvalidJson("it holds too many values")
        _check_widths(text, SPARE)
    return _read(text, _DECODER)


def read_event(body: bytes, limit: float = EVENT_LIMIT) -> Any:
    """Return the JSON value that *body*, an answer or one of many events, is.

    See `event_text` and `event_value`.
    """
    text = _decode(body, 0) if len(body) <= SMALL else event_text(body, limit)
    return event_value(text)


def event_text(body: bytes, limit: float = EVENT_LIMIT) -> str:
    """Return the text of *body*, an answer or one of many events, for `event_value` to read.

    The two are apart so that *body* can be let go of in between. Text and value together then take
    at most twice *limit*.

    Args:
        body: What may be JSON.
        limit: Most bytes that it may have.

    Raises:
        InvalidJson: It is not UTF-8, or would take far more memory than its bytes.
    """
    most = 2 * limit + _EVENT_BESIDE
    text = _decode(body, (most - 2 * len(body)) / 3 * 2 - len(body))
    if len(text) > SMALL:
        room = most - 2 * len(text)  # what they may take beyond the bytes that they have as JSON
        room -= VALUE_SIZE * _marks(text, room / VALUE_SIZE)
        if room < 0:
            raise InvalidJson("it holds too many values for its size limit")
        # Where Python finds only after it has begun that a text needs wider characters, it has
        # all of it twice for a moment.
        _check_widths(text, room / 3, copies=1)
    return text


def event_value(text: str) -> Any:
    """Return the JSON value that *text*, an answer or one of many events, is.

    A name may stand in it twice, and the last one counts: looking for it would double the cost.
    NaN and the infinities, as some write probabilities, are read as null.

    Raises:
        InvalidJson: It is no JSON.
    """
    return _read(text, _EVENT_DECODER)


def _decode(body: bytes, spare: float) -> str:
    """Return *body* as text, in ASCII if it is long.

    Python stores each character of a text in as many bytes as the widest one takes, so that a
    picture would take four times its bytes beside one emoji. So what is not ASCII is escaped first.

    Args:
        body: JSON as UTF-8.
        spare: Most bytes that the escapes may take beyond the characters that they stand for.
    """
    try:
        if len(body) <= SMALL:
            return body.decode().removeprefix("\ufeff")
        if body.isascii():
            return body.decode()
        # An escape takes at most three times the bytes of its character.
        if 2 * len(body.translate(None, _ASCII)) > spare:
            raise InvalidJson("its texts are too long for its size limit")
        return body.decode("ascii", _ESCAPED)
    except UnicodeDecodeError:
        raise InvalidJson("it is not UTF-8") from None


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """Return the escapes of the characters that *error* is about, and where they end.

    This writes them one after the other where they belong: to substitute them by a regular
    expression would hold every piece between them at once, which may be millions.
    """
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101  it is registered for decoding alone
    found = _BEYOND_ASCII.match(error.object, error.start)
    if found is None:
        raise error
    text = found[0].decode()
    return json.dumps(text if error.start else text.removeprefix("\ufeff"))[1:-1], found.end()


codecs.register_error(_ESCAPED, _escaped)


def _marks(text: str, most: float) -> int:
    """Return how many commas, colons and opening brackets stand between the texts of JSON.

    It may be more than there are, but is not more than *most* where there are not.
    """
    marks = sum(map(text.count, ",:[{"))
    # To pass over texts takes long, the more so the more there are.
    if marks <= most or text.count('"') > 4 * most:
        return marks
    marks = 0
    for found in _TO_MARK.finditer(text):
        if not found[1] or marks > most:
            break
        marks += 1
    return marks


def _check_widths(text: str, most: float, *, copies: int = 0) -> None:
    """Check that texts with escapes take at most *most* bytes beyond their own, once they are read.

    Args:
        text: JSON in ASCII.
        most: Most bytes that they may take.
        copies: How many copies of each to count as well.
    """
    if (3 + copies) * len(text) <= most or "\\u" not in text:
        return
    for found in _TEXTS.finditer(text):
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
        # As `decode` does, which looks for white space with regular expressions: that takes a
        # tenth of the time of a short event.
        value, end = decoder.raw_decode(text, len(text) - len(text.lstrip(_SPACE)))
    except InvalidJson:
        raise
    except RecursionError:
        raise InvalidJson("it is nested too deeply") from None
    except ValueError as error:
        said = error.msg if isinstance(error, json.JSONDecodeError) else "a number is too long"
        raise InvalidJson(f"it is not JSON: {said}" if text else "it is empty") from None
    if text[end:].strip(_SPACE):
        raise InvalidJson("it is not JSON: Extra data")
    if text.count("[") + text.count("{") > NESTING_LIMIT and _is_nested_too_deeply(value):
        raise InvalidJson("it is nested too deeply")
    return value


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
        InvalidJson: It is no JSON object.
    """
    value = read_json(body)
    if not isinstance(value, dict):
        raise InvalidJson("it is not a JSON object")
    return cast("JsonObject", value)


def as_object(value: Any) -> JsonObject | None:
    """Return *value* if it is a JSON object, or None."""
    return cast("JsonObject", value) if isinstance(value, dict) else None


def as_array(value: Any) -> list[Any]:
    """Return *value* if it is a JSON array, or an empty one."""
    return value if isinstance(value, list) else []  # pyright: ignore[reportUnknownVariableType]  of anything


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def write_json(value: object) -> bytes:
    """Return *value* as compact UTF-8 JSON.

    Raises:
        ValueError: It is no JSON value.
    """
    try:
        text = _ENCODER.encode(value)
    except (TypeError, RecursionError) as error:
        raise ValueError(f"it is not JSON: {error}") from None
    return text.encode()


def readable(text: str, limit: int = 500) -> str:
    """Return *text* fit for a message: as `one_line`, without white space around it."""
    return one_line(text.strip(), limit).strip()


def one_line(text: str, limit: int) -> str:
    """Return *text* so that it can be shown, encoded and stored anywhere.

    Lone surrogates become U+FFFD, control characters and line breaks become spaces, and after
    *limit* characters an ellipsis follows.
    """
    shown = text if len(text) <= limit else f"{text[:limit]}..."
    return shown if shown.isprintable() else "".join(map(_printable, shown))


def _printable(mark: str) -> str:
    if mark.isprintable():
        return mark
    return "\ufffd" if "\ud800" <= mark <= "\udfff" else " "


def error_message(body: bytes) -> str:
    """Return what an error reply says, fit for a message, or "". Its shape is not specified."""
    try:
        said: Any = read_json(body)
    except InvalidJson:
        text = body[:RAW_LIMIT].decode("utf-8", "replace").strip()
        return "" if text.startswith("<") else readable(text, 200)
    return error_text(said)


def error_text(said: Any) -> str:
    """Return what an error, as JSON, says, fit for a message. Its shape is not specified."""
    if len(as_array(said)) == 1:
        said = said[0]
    for name in ("error", "message", "msg", "detail"):
        if isinstance(said, dict) and name in said:
            said = cast("JsonObject", said)[name]
    return readable(said if isinstance(said, str) else json.dumps(said))


def is_encodable(text: str) -> bool:
    """Whether *text* is free of lone surrogates, which no encoding can express."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
