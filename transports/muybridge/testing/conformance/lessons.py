"""What a failed check reports, and what a transport may declare that it does not do."""

from __future__ import annotations

import functools
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

import attrs
import pytest

from muybridge.wire.transport import TransportError
from muybridge_protocol.http import HttpResponse, TransportFailure

_SHOWN = 80  # bytes of a body

Check = TypeVar("Check", bound=Callable[..., None])


class NotConforming(AssertionError):
    """A transport breaks a rule; the message says which, why it matters, and where to look.

    Args:
        expected: What must be true.
        found: What was found instead.
        why: What it would cost, in money or secrets.
        look: Where to look for the mistake.

    Attributes:
        given: The situation of the transport, such as what a server does.
        capability: How to declare that the transport does not have a capability, if it may.
    """

    def __init__(self, expected: str, found: object, why: str, look: str) -> None:
        super().__init__(expected, found, why, look)
        self.given: str = ""
        self.capability: str = ""

    def __str__(self) -> str:
        expected, found, why, look = self.args
        lines = {
            "given": self.given,
            "expected": expected,
            "found": found,
            "why": why,
            "look at": look,
            "or declare": self.capability
            and f"{self.capability}, if your library leaves no way to do it",
        }
        return "".join(f"\n  {name:>10}: {text}" for name, text in lines.items() if text != "")


@attrs.frozen
class Lesson:
    """What a failed check teaches.

    Args:
        why: What it would cost, in money or secrets.
        look: Where to look for the mistake.
    """

    why: str
    look: str

    def require(self, holds: object, expected: str, found: object) -> None:
        """Check that something holds.

        Args:
            holds: Whether it does, by its truth.
            expected: What must be true.
            found: What was found instead.

        Raises:
            NotConforming: It does not.
        """
        __tracebackhide__ = True  # pytest then shows the check itself
        if not holds:
            self.refuse(expected, found)

    def equal(self, found: object, wanted: object, expected: str = "") -> None:
        """Check that *found* is *wanted*, which *expected* says in words.

        Raises:
            NotConforming: It is not.
        """
        __tracebackhide__ = True  # the same
        self.require(found == wanted, expected or str(wanted), found)

    def refuse(self, expected: str, found: object) -> NoReturn:
        """Report that *found* is not what was *expected*.

        Raises:
            NotConforming: Always.
        """
        __tracebackhide__ = True  # the same
        raise NotConforming(expected, shown(found), self.why, self.look)


def shown(found: object) -> object:
    """Return *found* as people read it: how an exchange ended in words, and all else unchanged."""
    match found:
        case TransportError():
            return f"TransportError, {shown(found.failure)}"
        case TransportFailure():
            names = attrs.fields_dict(TransportFailure)
            parts = {name: getattr(found, name) for name in names}
            parts["partial"] = found.partial[:_SHOWN]
            return ", ".join(f"{name}={named(value)}" for name, value in parts.items())
        case HttpResponse(status=status, body=body):
            start = body[:_SHOWN]
            return f"a response of status {status} with a body of {len(body)} bytes, {start!r}"
        case _:
            return found


def named(value: object) -> str:
    """Return *value* as it is written in Python."""
    return f"{type(value).__name__}.{value.name}" if isinstance(value, Enum) else repr(value)


@attrs.frozen(kw_only=True)
class Capabilities:
    """What a transport does beyond the rules for every transport.

    Each is one fact. Whatever is declared False is still checked: the check is reported as an
    expected failure, and the one check that decides about the fact fails if the transport does it
    after all. So a declaration is never out of date.

    Args:
        keeps_alive: Consecutive requests that cost nothing share one connection.
        checks_connected_address: `HttpRequest.public_host_only` is checked on the very addresses
            that are connected to. If not, a host name in a result's URL can lead a download into
            your network.
        discards_unasked_responses: What a server sends unasked is never taken for the response to
            the next request, even if that costs nothing. If not, a poll may be answered with
            another task; the core refuses a record with another id.
        refuses_early_bytes: A paid request is not sent on a connection on which something has
            arrived before it. If not, a stray response from a proxy can be taken for the response
            to a create, which is then paid for twice, reported as refused, or given the id of
            another task.
        refuses_second_responses: A response that refuses a paid request fails if more bytes follow
            it. If not, a create that the second response accepts is reported as refused, or sent
            and paid for again.
        refuses_ambiguous_framing: A head that is ambiguous about where the body ends is malformed.
        detects_cut_tls: A body that ends with its TLS connection is complete only after a closing
            alert. If not, an attacker who cuts the connection can truncate such a body.
        shows_tls_phase: A failure in the TLS handshake is distinguished from a failure to
            connect. If not, the message says that connecting failed.
        shows_sending: A failure while the request is being sent says so, and how much of it was
            sent. If not, its phase may be that of the response's head.
        keeps_cut_heads: The failure keeps what had arrived of a truncated head.
        hides_echoes: The key is in no log, not even if the server's response repeats it.
    """

    subject: ClassVar[str] = "transport"
    """What declares them."""
    otherwise: ClassVar[str] = "declared"
    """What the report says of a check that fails as it is declared."""

    keeps_alive: bool = True
    checks_connected_address: bool = True
    discards_unasked_responses: bool = True
    refuses_early_bytes: bool = True
    refuses_second_responses: bool = True
    refuses_ambiguous_framing: bool = True
    detects_cut_tls: bool = True
    shows_tls_phase: bool = True
    shows_sending: bool = True
    keeps_cut_heads: bool = True
    hides_echoes: bool = True


class Declaration(Protocol):
    """What a kind of subject declares: each fact is a field, and True by default."""

    @property
    def subject(self) -> str:
        """What declares them."""
        ...

    @property
    def otherwise(self) -> str:
        """What the report says of a check that fails as it is declared."""
        ...


class _Declaring(Protocol):
    @property
    def capabilities(self) -> Declaration: ...


def promises(
    name: str, *, decides: bool = True, of: type[attrs.AttrsInstance] = Capabilities
) -> Callable[[Check], Check]:
    """Return a decorator for a check of the capability *name*.

    Args:
        name: The capability.
        decides: Whether a transport that passes it must declare the capability. A transport
            without the capability may well pass the other checks that depend on it.
        of: What has the capability.
    """
    if name not in attrs.fields_dict(of):
        raise ValueError(f"{name} is no capability")

    def decorate(check: Check) -> Check:
        @functools.wraps(check)
        def checked(suite: _Declaring, *arguments: object, **named: object) -> None:
            __tracebackhide__ = True  # as in Lesson
            declared = getattr(suite.capabilities, name)
            subject = suite.capabilities.subject
            try:
                check(suite, *arguments, **named)
            except NotConforming as refusal:
                if UNKNOWN.why in refusal.args:  # no capability covers that
                    raise
                if not declared:
                    pytest.xfail(f"{suite.capabilities.otherwise}: {name}=False")
                refusal.capability = f"{of.__name__}({name}=False)"
                raise
            if not decides:
                return
            lesson = Lesson(
                f"users choose a {subject} by what it declares",
                f"the capabilities of {type(suite).__name__}: declare {name}=True",
            )
            expected = f"the {subject} to fail, for it declares {name}=False"
            lesson.require(declared, expected, f"it does what {name} promises")

        return cast("Check", checked)

    return decorate


class _Smoking(Protocol):
    def smoke(self) -> None: ...


def require_smoke(suite: _Smoking, request: pytest.FixtureRequest) -> None:
    """End a check in one line if the smoke check of its suite fails, which says why.

    If the smoke check has not been selected, its failure must not go unnoticed.
    """
    kind = type(suite)
    if kind not in _SMOKE:
        try:
            suite.smoke()
        except Exception as error:  # noqa: BLE001  # test_smoke shows it
            _SMOKE[kind] = f"{type(error).__module__}.{type(error).__qualname__}"
        else:
            _SMOKE[kind] = ""
    if raised := _SMOKE[kind].removeprefix("builtins."):
        message = f"the smoke check fails with {raised}: run {kind.__name__}::test_smoke first"
        if any(
            isinstance(item, pytest.Function)
            and item.cls is kind
            and item.originalname == "test_smoke"
            for item in request.session.items
        ):
            pytest.skip(message)
        pytest.fail(message, pytrace=False)


_SMOKE: WeakKeyDictionary[type[Any], str] = WeakKeyDictionary()
"""What the smoke check of each suite raised, or "" if it passed."""


UNSENT = (
    "the client retries a create that was certainly not sent; reported as sent, it ends as "
    "ambiguous, and a person has to look up what was never charged"
)
SENT = (
    "a create that may have arrived must never be sent again; reported as unsent, it is sent a "
    "second time and paid for twice"
)
ONCE = "each POST may be charged: one request, one POST, whatever comes back"
WHOLE = (
    "a truncated response is not a response: its id would be lost, and with it what was paid for; "
    "half a picture would be saved as a whole one"
)
BOUND = (
    "one bad response must not take the memory of a process that waits for a thousand paid tasks"
)
TIME = (
    "a call that outlives its timeout delays everything behind it; a paid exchange of an "
    "async transport is shielded, and could not even be cancelled"
)
KEY = "anyone who has the key spends your money"


NAMED = Lesson(
    "phase, reason and bytes_sent tell a person where to look for the mistake; and a few reasons, "
    "such as a bad certificate, are not retried",
    "where an exception becomes a TransportFailure: set `phase` before each step, and count the "
    "bytes at the socket; muybridge.wire.building.reason_of finds the reason in exceptions of the "
    "operating system, and Exchange.failure also where a connection was closed too early, or a "
    "library could not read the response",
)
UNKNOWN = Lesson(
    "a driver turns TransportError into an outcome that says what was paid for; any other "
    "exception bypasses it, and a paid id is lost",
    "the code around the library's calls, on entering the context, in `pieces` and in `close`: "
    "whatever they raise must become a TransportError; muybridge.wire.building.Response does it",
)
