"""Reading JSON strictly and within bounds, and writing it.

A record is UTF-8 JSON (a byte order mark is tolerated) without duplicate names, NaN, infinities or
trailing data. Whatever is wrong with it raises `InvalidJson`, and nothing else.

The size of a body does not bound the memory that its value takes: 8 MiB of empty objects take
twenty times as much. So the number of values is bounded before anything is parsed, by the number of
commas, colons and opening brackets outside of strings: by a constant for a record, and in
proportion to its size limit for an answer or an event of a stream.

Strings need no bound of their own. Python stores each in as many bytes a character as its widest
character takes, so that one emoji makes a long string four times as large, but never more. Bytes,
text and value together take at most ten times the largest size, or three times for plain ASCII.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, cast

from muybridge_protocol.http import MEBIBYTE

JsonObject = dict[str, Any]

RAW_LIMIT: Final = 64 * 1024
"""Bytes of a response that an error keeps at most."""
NESTING_LIMIT: Final = 100
"""Deepest nesting of arrays and objects that is read. Code that writes, copies or shows the value
later may have less stack left than the reader had."""
VALUES_LIMIT: Final = 100_000
"""Largest number of commas, colons and opening brackets in a record outside of its strings."""
EVENT_LIMIT: Final = 32 * MEBIBYTE
"""Default size limit of an answer or an event of a stream, in bytes."""
BYTES_A_VALUE: Final = 80
"""An answer or an event may have one comma, colon or opening bracket outside of its strings for so
many bytes of its size limit. Each takes up to 172 bytes in memory (nested objects whose names are
all different), but the probabilities of tokens, the densest that services send, only 43."""
SMALL: Final = VALUES_LIMIT
"""Largest size of a body, in bytes, that needs no check because it cannot exceed any bound."""


class InvalidJson(ValueError):
    """The bytes are not the expected JSON; the message says why."""


def _object_without_duplicates(pairs: list[tuple[str, Any]]) -> JsonObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidJson("an object has the same name twice")
    return members


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
_UP_TO_A_MARK: Final = re.compile(
    r"""(?: [^",:\[{]++ | "(?:[^"\\]++|\\.)*+"? )*+ ([,:\[{]?)""", re.DOTALL | re.VERBOSE
)
_SPACE: Final = " \t\n\r"


def read_json(body: bytes | str) -> Any:
    """Return the JSON value that *body* is.

    Raises:
        InvalidJson: It is not strict JSON, or holds too many values.
    """
    return _read(_text(body, VALUES_LIMIT), _DECODER)


def read_event(body: bytes, limit: float = EVENT_LIMIT) -> Any:
    """Return the JSON value of *body*, an answer or an event of a stream.

    See `event_text` and `event_value`.
    """
    return event_value(event_text(body, limit))


def event_text(body: bytes, limit: float = EVENT_LIMIT) -> str:
    """Return the text of *body*, an answer or an event of a stream, for `event_value`.

    These are two functions so that *body* can be freed in between.

    Args:
        body: What may be JSON.
        limit: Its size limit, in bytes.

    Raises:
        InvalidJson: It is not UTF-8, or holds too many values.
    """
    return _text(body, limit / BYTES_A_VALUE)


def event_value(text: str) -> Any:
    """Return the JSON value of *text*, an answer or an event of a stream.

    Of duplicate names the last one counts, because looking for them would double the cost. NaN and
    infinities, which some services write as probabilities, are read as null.

    Raises:
        InvalidJson: It is not JSON.
    """
    return _read(text, _EVENT_DECODER)


def _text(body: bytes | str, most: float) -> str:
    """Return *body* as text with at most *most* commas, colons and opening brackets.

    Raises:
        InvalidJson: It is not UTF-8, or holds too many values.
    """
    try:
        text = body if isinstance(body, str) else body.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError:
        raise InvalidJson("it is not UTF-8") from None
    if len(text) > SMALL and _exceeds(text, most):
        raise InvalidJson("it holds too many values")
    return text


def _exceeds(text: str, most: float) -> bool:
    """Whether JSON has more than *most* commas, colons and opening brackets outside of strings."""
    if sum(map(text.count, ",:[{")) <= most:  # most large bodies are large strings without any
        return False
    pieces = islice(_UP_TO_A_MARK.finditer(text), int(most) + 1)
    return sum(bool(piece[1]) for piece in pieces) > most


def _read(text: str, decoder: json.JSONDecoder) -> Any:
    try:
        # Like `decode`, but that finds white space with regular expressions, which take a tenth
        # of the time of a short event.
        value, end = decoder.raw_decode(text, len(text) - len(text.lstrip(_SPACE)))
    except InvalidJson:  # from our hooks: it is a `ValueError`, as those below are
        raise
    except RecursionError:
        raise InvalidJson("it is nested too deeply") from None
    except ValueError as error:
        problem = (
            _syntax_error(error)
            if isinstance(error, json.JSONDecodeError)
            else "a number is too long"
        )
        raise InvalidJson(f"it is not JSON: {problem}" if text else "it is empty") from None
    if text[end:].strip(_SPACE):
        raise InvalidJson("it is not JSON: Extra data")
    # Most texts have too few brackets to be nested so deeply, and counting costs next to nothing.
    if text.count("[") + text.count("{") > NESTING_LIMIT and _is_nested_too_deeply(value):
        raise InvalidJson("it is nested too deeply")
    return value


def _syntax_error(error: json.JSONDecodeError) -> str:
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
        record: Any = read_json(body)
    except InvalidJson:
        text = body[:RAW_LIMIT].decode("utf-8", "replace").strip()
        return "" if text.startswith("<") else readable(text, 200)
    return error_text(record)


def error_text(error: Any) -> str:
    """Return the message in an error that was read as JSON. Its shape is not specified."""
    if len(as_array(error)) == 1:
        error = error[0]
    for name in ("error", "message", "msg", "detail"):
        if isinstance(error, dict) and name in error:
            error = cast("JsonObject", error)[name]
    return readable(error if isinstance(error, str) else json.dumps(error))


def is_encodable(text: str) -> bool:
    """Whether *text* has no lone surrogates, which no encoding can express."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
