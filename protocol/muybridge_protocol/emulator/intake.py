"""A request to the emulator, and its JSON if that is safe to process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import attrs

from muybridge_protocol.emulator.refused import Refused
from muybridge_protocol.http import MEBIBYTE, Headers, find_header
from muybridge_protocol.records.json import InvalidJson, JsonObject, read_object
from muybridge_protocol.rules.values import is_array

REQUEST_BODY_LIMIT = 32 * MEBIBYTE
"""Most bytes that a request may have: room for reference images in base64."""

MOST_FIELDS = 256
DEEPEST_NESTING = 32
"""Limits of ours. No request that the specification shows comes near them."""


@attrs.frozen
class ServiceRequest:
    """A request as the service receives it.

    Args:
        method: The method, such as `POST`.
        target: The path, percent-encoded as it came, and the query.
        headers: Header fields in the order in which they came.
        body: The body's bytes.
    """

    method: str
    target: str
    headers: Headers = attrs.field(default=(), repr=False)  # they hold the key
    body: bytes = attrs.field(default=b"", repr=lambda body: f"<{len(body)} bytes>")


def read_body(request: ServiceRequest) -> JsonObject:
    """Return the JSON object that a request brings, of a size that is safe to work with.

    Raises:
        Refused: It brings none.
    """
    if len(request.body) > REQUEST_BODY_LIMIT:
        message = f"send at most {REQUEST_BODY_LIMIT} bytes of JSON"
        raise Refused(413, message, "body_too_large")
    if not _says_json(request.headers):
        message = "send the header Content-Type: application/json"
        raise Refused(415, message, "unsupported_media_type")
    try:
        return _read_object(request.body)
    except InvalidJson as error:
        message = f"the body cannot be read: {error}"
        raise Refused(400, message, "invalid_json") from None


def _says_json(headers: Headers) -> bool:
    media_type = (find_header(headers, "content-type") or "").partition(";")[0]
    return media_type.strip().lower() == "application/json"


def _read_object(body: bytes) -> JsonObject:
    # Decoded first, because for bytes the codec has the lower limit of responses.
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidJson("it is not UTF-8") from None
    fields = read_object(text)
    if len(fields) > MOST_FIELDS:
        raise InvalidJson(f"it has more than {MOST_FIELDS} fields")
    level: list[object] = [fields]
    for _ in range(DEEPEST_NESTING):
        level = [item for value in level for item in _items(value)]
        if not level:
            return fields
    raise InvalidJson(f"it is nested more than {DEEPEST_NESTING} levels deep")


def _items(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("JsonObject", value).values()
    return value if is_array(value) else ()
