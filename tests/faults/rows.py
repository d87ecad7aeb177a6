"""What a row of the table says, and the outcomes that many rows share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, StrEnum

import attrs

from muybridge_protocol.records.tasks import Result, Task

from .hostile_server import TASK_ID, Act
from .operations import MEBIBYTES_8, OK, OPERATIONS, UNDECIDED


class Point(StrEnum):
    """Where in an exchange the fault is committed."""

    LOCAL = "on this machine"
    CONNECT = "connecting"
    PROXY = "asking the proxy"
    TLS = "the handshake"
    SEND = "sending"
    HEAD = "the reply's head"
    BODY = "the reply's body"
    MEANING = "what the reply says"
    IDLE = "between two exchanges"


class Where(Enum):
    """What the base URL leads to."""

    SERVER = "the hostile server"
    NOBODY = "a port at which nobody listens"
    DEAF = "a port that never answers"
    NOWHERE = "a name that cannot be resolved"
    PROXY = "another host, behind the hostile server"


class Certificate(StrEnum):
    """What the server shows in its handshakes."""

    GOOD = "good"
    UNKNOWN = "of an unknown authority"
    OTHER_HOST = "of another host"
    EXPIRED = "expired"


Outcomes = Mapping[str, str]
"""What comes of each operation: `ok`, the name of an error, or several with a bar between them."""


@attrs.frozen(kw_only=True)
class Row:
    """A fault, what is done to commit it, and what must come of it.

    Attributes:
        numbers: The cases that it is.
        name: Short, unique in the table.
        point: Where it is committed.
        does: What the server does, in words.
        always: The outcome of each operation when the fault is committed every time.
        once: The same when it is committed once and the service is well afterwards.
        on_connection: What does it to a connection.
        on_request: What does it to a request.
        schemes: The schemes that it can be committed on.
        where: What the base URL leads to.
        certificate: What the server shows.
        hangs: Whether it ends only at the deadline, so that the call is given little time.
        closes: Whether the connection ends with it.
        declines: Whether the service refuses, so that nothing is charged.
        warm: Whether a good exchange comes first, on the same connection.
        task: What `get` and `wait` ask for, given the Unix time.
        link: What is downloaded or checked, given the server's URL, or None for a link of this
            service.
        long: Whether a create or text request has a prompt of some megabytes.
        large: Whether the response has megabytes, so that reading it takes long.
        size_limit: Most bytes of a text, or of one event of a streamed one.
        without: Operations that are left out, and why.
    """

    numbers: tuple[int, ...]
    name: str
    point: Point
    does: str
    always: Outcomes
    once: Outcomes = attrs.field(factory=dict[str, str])
    on_connection: Act | None = None
    on_request: Act | None = None
    schemes: tuple[str, ...] = ("http", "https")
    where: Where = Where.SERVER
    certificate: Certificate = Certificate.GOOD
    hangs: bool = False
    closes: bool = True
    declines: bool = False
    warm: bool = False
    task: Callable[[float], Task | Result | str] = lambda _: TASK_ID
    link: Callable[[str], str] | None = None
    long: bool = False
    large: bool = False
    size_limit: int = MEBIBYTES_8
    without: Mapping[str, str] = attrs.field(factory=dict[str, str])


KIT = "../transports/muybridge/testing/conformance"


@attrs.frozen(kw_only=True)
class Elsewhere:
    """A case that other tests prove.

    Attributes:
        numbers: The cases.
        tests: Node ids, from the folder of all tests on. Those below `KIT` are run on our own
            transports by `testing/test_conformance.py`.
    """

    numbers: tuple[int, ...]
    tests: tuple[str, ...]


@attrs.frozen(kw_only=True)
class NotApplicable:
    """A case that does not arise here.

    Attributes:
        numbers: The cases.
        reason: Why.
    """

    numbers: tuple[int, ...]
    reason: str


Entry = Row | Elsewhere | NotApplicable

ALL = tuple(OPERATIONS)
PAID = tuple(name for name, operation in OPERATIONS.items() if operation.paid)
FREE = tuple(name for name in OPERATIONS if name not in PAID)
LINKED = ("download", "check")
"""Operations that are given a link, and ask for it without the key."""
RECORDS = tuple(name for name in ALL if name not in ("call", *LINKED))
"""Operations that read a JSON record."""

CREATES = ("create", "batch", "call")
STREAMED = ("text stream", "messages stream")
TEXTS = ("text", *STREAMED)

NO_RECORD = {
    "call": "hands any reply over",
    "download": "reads no JSON record",
    "check": "reads no JSON record",
}


def every(outcome: str, names: tuple[str, ...] = ALL) -> dict[str, str]:
    """Return the same outcome for each of *names*."""
    return dict.fromkeys(names, outcome)


WELL = every(OK)
WELL_AFTER = {**WELL, "check": UNDECIDED}
"""A check is not tried again: it says what it could not find out."""
UNSENT = {
    **every("NotSent", PAID),
    "get": "ServiceUnreachable",
    "wait": "WaitTimeout",
    "delete": "NotSent",
    "download": "DownloadFailed",
    "check": UNDECIDED,
}
"""Not a byte of it left, however often it was tried."""
UNSENT_FOR_GOOD = {**UNSENT, "wait": "ServiceUnreachable"}
"""The same, and nobody tries again."""
AMBIGUOUS = {**every("CreateAmbiguous", CREATES), **every("TextAmbiguous", TEXTS)}
LOST = {
    **AMBIGUOUS,
    "get": "ServiceUnreachable",
    "wait": "WaitTimeout",
    "delete": "AssetDeleteUnknown",
    "download": "DownloadFailed",
    "check": UNDECIDED,
}
"""It may have arrived, and there is no whole reply."""
LOST_ONCE = {**AMBIGUOUS, **every(OK, FREE), "check": UNDECIDED}
"""What is free is asked for again; what costs money is not, and neither is a check."""
HUNG_ONCE = {**LOST_ONCE, "download": "DownloadFailed"}
"""The same, where the deadline of the whole download was that of the one exchange."""
INTERRUPTED = every("StreamInterrupted", STREAMED)
"""A stream had begun by then."""
CUT = {**LOST, **INTERRUPTED}
"""As `LOST`, after the reply's head."""
CUT_ONCE = {**LOST_ONCE, **INTERRUPTED}
HUNG_CUT_ONCE = {**HUNG_ONCE, **INTERRUPTED}
FORGIVEN = every(OK, STREAMED)
"""What came of a stream tells that it was whole, whatever becomes of its connection then."""
UNREADABLE = {
    "create": "CreateAmbiguous",
    "batch": "CreateAmbiguous",
    "text": "TextAmbiguous",
    **INTERRUPTED,
    "get": "ProtocolViolation",
    "wait": "ProtocolViolation",
    "delete": "AssetDeleteUnknown",
}
"""There is a whole reply, and it is none that can be read."""
UNREADABLE_ONCE = {
    "create": "CreateAmbiguous",
    "batch": "CreateAmbiguous",
    "text": "TextAmbiguous",
    **INTERRUPTED,
    "get": OK,
    "wait": OK,
    "delete": "AssetDeleteUnknown",
}


def only(outcomes: Outcomes, *names: str) -> dict[str, str]:
    """Return the outcomes of these operations alone."""
    return {name: outcomes[name] for name in names}
