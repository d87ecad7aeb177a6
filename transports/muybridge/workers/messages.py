"""Which messages of a job queue are accepted.

Whoever can write to the broker can send any message. The only one that is accepted names a batch,
as JSON, and asks for nothing besides. Everything else is refused before a process takes it: other
tasks, other encodings, arguments that a worker must not take from outside, follow-up tasks, and
time limits, which would kill a worker whose create is under way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

TASK: Final = "muybridge.take_turn"
MOST_BYTES: Final = 8192
LONGEST_NAME: Final = 200
_JSON: Final = ("application/json", "utf-8")
_FOLLOWING: Final = ("callbacks", "errbacks", "chain", "chord")


class Refused(ValueError):
    """A message that is not accepted."""


def check_message(
    headers: Mapping[str, object], body: bytes | str, content_type: str, encoding: str
) -> None:
    """Check a message in Celery's protocol 2, without running anything.

    Args:
        headers: The headers.
        body: The body, as it came.
        content_type: Its media type.
        encoding: Its encoding.

    Raises:
        Refused: It is not accepted.
    """
    if len(body) > MOST_BYTES:
        raise Refused(f"it has {len(body)} bytes; the limit is {MOST_BYTES}")
    if headers.get("task") != TASK:
        raise Refused(f"it is for another task than {TASK}")
    if (content_type, encoding.lower()) != _JSON:
        raise Refused("it is not JSON in UTF-8")
    limits = headers.get("timelimit")
    if limits not in (None, [None, None], (None, None)):
        raise Refused("it has a time limit, which could end a worker while a create is under way")
    try:
        read: object = json.loads(body)
    except (ValueError, RecursionError):
        raise Refused("it is not JSON in UTF-8") from None
    arguments, options, embedded = _parts(read)
    if options or len(arguments) != 1:
        raise Refused("its arguments are not the name of a batch")
    check_batch(arguments[0])
    if any(map(embedded.get, _FOLLOWING)):
        raise Refused("it asks for other tasks afterwards")


def check_batch(name: object) -> str:
    """Return *name* if it can be that of a batch.

    Raises:
        Refused: It cannot.
    """
    if isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and name.isprintable():
        return name
    raise Refused("its argument is not the name of a batch")


def _parts(body: object) -> tuple[list[object], dict[str, object], dict[str, object]]:
    """Return the arguments, the options and what Celery adds.

    Raises:
        Refused: The body does not consist of these.
    """
    parts: Any = body
    if isinstance(body, list) and [*map(type, parts)] == [list, dict, dict]:
        return parts[0], parts[1], parts[2]
    raise Refused("its arguments are not the name of a batch")
