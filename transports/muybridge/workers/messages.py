"""Which messages of a job queue are accepted.

Whoever can write to the broker can send any message. The only one that is accepted names a batch,
as JSON, and asks for nothing besides. Everything else is refused before a process takes it: other
tasks, other encodings, arguments that a worker must not take from outside, follow-up tasks, and
time limits, which would kill a worker whose create is under way. Headers that a turn does not need
have no effect: tracing adds its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from muybridge.batch.shared import is_batch_name

TASK: Final = "muybridge.take_turn"
MOST_BYTES: Final = 8192
"""Most bytes of a message's headers, and of its body. Those of a turn have far fewer."""
LONGEST_ID: Final = 100
"""Most characters of a message's id, which logs show."""
LONGEST_DELAY: Final = timedelta(hours=1)
"""Far more than the pause between two turns, because the clocks of machines differ."""
_JSON: Final = ("application/json", "utf-8")
_FOLLOWING: Final = ("callbacks", "errbacks", "chain", "chord")


def check_message(
    headers: Mapping[str, object],
    body: bytes | str,
    content_type: str,
    encoding: str,
    now: datetime,
) -> dict[str, object]:
    """Check a message in Celery's protocol 2, without running anything.

    Args:
        headers: The headers.
        body: The body, as it came.
        content_type: Its media type.
        encoding: Its encoding.
        now: The time, with its zone.

    Returns:
        The headers that have an effect, and those with which its result is not stored.

    Raises:
        ValueError: It is not accepted.
    """
    for size in (len(body), _size(headers)):
        if size > MOST_BYTES:
            raise ValueError(f"it has {size} bytes; the limit is {MOST_BYTES}")
    if headers.get("task") != TASK:
        raise ValueError(f"it is for another task than {TASK}")
    if headers.get("compression"):
        raise ValueError("it is compressed")
    if (content_type, encoding.lower()) != _JSON:
        raise ValueError("it is not JSON in UTF-8")
    limits = headers.get("timelimit")
    if limits not in (None, [None, None], (None, None)):
        raise ValueError(
            "it has a time limit, which could end a worker while a create is under way"
        )
    try:
        read: object = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON in UTF-8") from None
    arguments, options, embedded = _parts(read)
    if options or len(arguments) != 1:
        raise ValueError("its arguments are not the name of a batch")
    batch = check_batch(arguments[0])
    if any(map(embedded.get, _FOLLOWING)):
        raise ValueError("it asks for other tasks afterwards")
    if not embedded.keys() <= {*_FOLLOWING}:
        raise ValueError("its body is not that of a turn")
    if headers.get("expires") is not None:
        raise ValueError("it expires")
    retries = headers.get("retries", 0)
    if type(retries) is not int or retries != 0:
        raise ValueError("it is a retry, and a turn has none")
    return {
        "lang": "py",
        "task": TASK,
        "id": _id(headers.get("id")),
        "eta": _eta(headers.get("eta"), now),
        "retries": 0,
        "argsrepr": repr((batch,)),
        "kwargsrepr": "{}",
        "ignore_result": True,
    }


def check_batch(name: object) -> str:
    """Return *name* if it can be that of a batch.

    Raises:
        ValueError: It cannot.
    """
    if is_batch_name(name):
        return str(name)
    raise ValueError("its argument is not the name of a batch")


def _parts(body: object) -> tuple[list[object], dict[str, object], dict[str, object]]:
    """Return the arguments, the options and what Celery adds.

    Raises:
        ValueError: The body does not consist of these.
    """
    parts: Any = body
    if isinstance(body, list) and [*map(type, parts)] == [list, dict, dict]:
        return parts[0], parts[1], parts[2]
    raise ValueError("its arguments are not the name of a batch")


def _size(headers: Mapping[str, object]) -> int:
    try:
        return len(repr(headers))
    except RecursionError:
        raise ValueError("its headers are nested too deeply") from None


def _id(given: object) -> str:
    if isinstance(given, str) and 0 < len(given) <= LONGEST_ID and given.isprintable():
        return given
    raise ValueError("its id is not a short text on one line")


def _eta(given: object, now: datetime) -> str | None:
    """Return when a turn begins, or None for now.

    Raises:
        ValueError: It is not a time, or later than the next turn can be.
    """
    if given is None:
        return None
    try:
        begins = datetime.fromisoformat(given if isinstance(given, str) else "")
        begins = (begins if begins.tzinfo else begins.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("its eta is not a time") from None
    if begins - now > LONGEST_DELAY:
        raise ValueError("its eta is more than an hour from now")
    return begins.isoformat() if begins > now else None
