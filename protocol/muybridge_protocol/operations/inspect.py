"""Finding out what a URL leads to, without the key and with few bytes.

The operation fetches the beginning, and then the parts that the headers point to, with `Range`
requests. `muybridge_protocol.media` reads them. A server that knows no ranges sends everything: it
is read up to the limit, and the connection is closed. Whatever goes wrong, the outcome is what is
known, with the reason why the rest is not.

The URL comes from the user's request, but may have come from anybody before that. So the same rules
hold as for downloads: `Service.check_download` checks every URL and redirect, and the requests have
`authorized=False`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Self

import attrs

from muybridge_protocol.delivery import DOWNLOAD, Verdict
from muybridge_protocol.errors import InvalidAddress
from muybridge_protocol.http import (
    HttpHead,
    HttpRequest,
    Reason,
    TransportFailure,
    shown_url,
)
from muybridge_protocol.media.facts import MediaFacts
from muybridge_protocol.media.inspect import inspect_media
from muybridge_protocol.media.source import Fragments, Wanted
from muybridge_protocol.operations.download import HOPS
from muybridge_protocol.operations.operation import (
    USER_AGENT,
    Fetch,
    Operation,
    Settled,
    Step,
    Wait,
)
from muybridge_protocol.operations.ranges import content_range, whole_number
from muybridge_protocol.remedies import Remedy, RemedyKind, in_facts
from muybridge_protocol.service import Service, resolve_location

if TYPE_CHECKING:
    from muybridge_protocol.call_info import CallKind

LIMIT: Final = 256 * 1024
"""Bytes of one medium that are fetched at most."""
FIRST: Final = 64 * 1024
"""Bytes of the beginning that are fetched."""
FURTHER: Final = 16 * 1024
"""Bytes of each further part."""
IDLE_TIMEOUT: Final = 10.0
"""Seconds without a byte after which a connection is closed."""

_BEYOND: Final = f"what is needed is not in the {LIMIT // 1024} KiB that are fetched"
_ALLOW: Final = Remedy(kind=RemedyKind.ALLOW, option="allow_insecure_downloads", action="inspect")


class Stage(Enum):
    """What an inspection is doing."""

    FETCHING = auto()
    READING = auto()


@attrs.frozen(kw_only=True)
class Inspection(Operation[MediaFacts]):
    """Find out what a URL leads to.

    Args:
        url: Where it is.
        deadline: When to stop, on the driver's clock.
        fragments: The bytes that are at hand.
        offset: Where the part begins that is being fetched.
        length: How long it is.
        arriving: What has arrived of it.
        whole: Whether the server sends everything from the beginning on, and knows no ranges.
        announces_end: Whether it also says where everything ends.
        stage: What it is doing.
        hops: Redirects followed.
    """

    url: str = attrs.field(repr=shown_url)
    deadline: float
    fragments: Fragments = attrs.field(factory=Fragments)
    offset: int = 0
    length: int = FIRST
    arriving: bytes = attrs.field(default=b"", repr=False)
    whole: bool = False
    announces_end: bool = True
    stage: Stage = Stage.FETCHING
    hops: int = 0

    @classmethod
    def start(cls, url: str, service: Service, *, now: float, seed: int, deadline: float) -> Self:
        """Return the operation in its initial state. It has settled if the URL is not fetched.

        Args:
            url: Where the medium is.
            service: Where the service is.
            now: Seconds on the driver's clock.
            seed: A random number for this operation.
            deadline: When to stop, on the driver's clock.
        """
        operation = cls(service=service, seed=seed, due=now, url=url, deadline=deadline)
        return operation._go_to(url)

    @property
    def kind(self) -> CallKind:
        """What the operation does, for listeners."""
        return "check"

    @property
    def wants_body(self) -> bool:
        """Whether more of the body is to be read."""
        return self.settled is None and self.stage is Stage.READING

    def next_action(self, now: float) -> Wait | Fetch | Settled[MediaFacts]:  # type: ignore[override]  # it is read in pieces
        """Return what to do next, at *now*."""
        if self.settled is not None:
            return self.settled
        if now >= self.deadline:
            return Settled(self._facts("it took too long"))
        return Fetch(self._fetch_request(), self.deadline)

    def accept(self, head: HttpHead, now: float) -> Self:
        """Return the operation after the head of a response. Ignore the body unless `wants_body`.

        Raises:
            RuntimeError: No head is expected.
        """
        self._check_step("accept", head, HttpHead, now=now)
        if DOWNLOAD.judge_status(head.status) is Verdict.REDIRECT:
            return self._redirect(head)
        if head.codings:
            return self._close(f"the response is encoded as {', '.join(head.codings)}")
        match head.status:
            case 206:
                return self._accept_part(head)
            case 200 if self.offset == 0:
                size = whole_number(head.header("Content-Length"))
                inspection = attrs.evolve(self, announces_end=head.announces_end)
                return inspection._begin(size, whole=True)
            case 200:
                return self._close("the server no longer sends ranges")
            case status:
                return self._close(f"the server responded with status {status}")

    def take(self, piece: bytes) -> Self:
        """Return the operation after a piece of the body. Read on while it `wants_body`.

        Raises:
            RuntimeError: No piece is expected.
        """
        self._check_step("take", piece, bytes)
        arriving = self.arriving + piece[: self.length - len(self.arriving)]
        taken = attrs.evolve(self, arriving=arriving)
        if len(arriving) < self.length:
            return taken
        rest = piece[len(arriving) - len(self.arriving) :]
        after = taken._look()
        return after.take(rest) if rest and after.wants_body else after

    def end(self, now: float) -> Self:
        """Return the operation after the end of the body.

        Raises:
            RuntimeError: No body is being read.
        """
        self._check_step("end", now=now)
        if self.whole and not self.announces_end:
            # The connection may have been cut.
            return self._close("the server does not say where it ends")
        if self.whole and self.fragments.size is None:
            size = self.offset + len(self.arriving)
            return attrs.evolve(self, fragments=attrs.evolve(self.fragments, size=size))._look()
        return self._close("the server sent less than it announced")

    def _fail(self, failure: TransportFailure, now: float) -> Self:  # noqa: ARG002  it is not retried
        """Return the operation after a failed exchange."""
        if failure.reason is Reason.PRIVATE_ADDRESS:
            return self._close(f"it was not fetched: {failure}", _ALLOW)
        if failure.reason is Reason.TRUNCATED:
            # So the length that the server announced is wrong, too.
            unsure = attrs.evolve(self, fragments=attrs.evolve(self.fragments, size=None))
            return unsure._close(f"it could not be fetched: {failure}")
        return self._close(f"it could not be fetched: {failure}")

    def _steps(self) -> tuple[Step, ...]:
        return ("accept", "fail") if self.stage is Stage.FETCHING else ("take", "end", "fail")

    def _go_to(self, url: str) -> Self:
        try:
            url = self.service.check_download(url)
        except InvalidAddress:
            return self._close(
                "it was not fetched: the address is neither https nor on a public host, or is "
                "that of a cloud's metadata service",
                _ALLOW,
            )
        return attrs.evolve(self, url=url)

    def _redirect(self, head: HttpHead) -> Self:
        location = head.header("Location")
        if self.hops >= HOPS or location is None:
            return self._close("it has too many redirects" if location else "it leads nowhere")
        try:
            url = resolve_location(self.url, location)
        except InvalidAddress as error:
            problem = error.describe(in_facts)
            return self._close(f"a redirect was not followed: {problem}", *error.remedies)
        return attrs.evolve(self, hops=self.hops + 1)._go_to(url)

    def _accept_part(self, head: HttpHead) -> Self:
        first, last, size = content_range(head.header("Content-Range"))
        if first != self.offset or last is None or (size is not None and last >= size):
            return self._close("the server sent another part than it was asked for")
        if self.fragments.size not in (None, size):
            return self._close("it changed while it was looked at")
        return self._begin(size, whole=False)

    def _begin(self, size: int | None, *, whole: bool) -> Self:
        """Return the operation that reads a body, of a medium with *size* bytes."""
        begun = attrs.evolve(
            self,
            stage=Stage.READING,
            whole=whole,
            fragments=attrs.evolve(self.fragments, size=size),
        )
        begun = attrs.evolve(begun, length=begun._short(self.offset, self.length))
        return begun if begun.length > 0 else begun._look()

    def _look(self) -> Self:
        """Return the operation after all of a part has arrived."""
        fragments = self._gathered()
        try:
            facts = inspect_media(fragments)
        except Wanted as wanted:
            return attrs.evolve(self, fragments=fragments, arriving=b"")._want(wanted)
        return attrs.evolve(self, fragments=fragments, arriving=b"")._settle(facts)

    def _want(self, wanted: Wanted) -> Self:
        """Return the operation that fetches what is *wanted*."""
        held = self.fragments.held
        if self.whole:  # everything comes in order
            end = wanted.offset + wanted.length
            if end > LIMIT:
                return self._close(f"{_BEYOND}, and the server sends no ranges")
            # Not only what is wanted: each look begins at the beginning.
            length = self._short(held, max(end - held, FURTHER))
            return attrs.evolve(self, offset=held, length=length)
        length = self._short(wanted.offset, max(wanted.length, FURTHER))
        if length < wanted.length:
            return self._close(_BEYOND)
        return attrs.evolve(self, stage=Stage.FETCHING, offset=wanted.offset, length=length)

    def _short(self, offset: int, length: int) -> int:
        """Return *length*, cut off at the limit, at the end and where the next fragment begins."""
        length = min(length, LIMIT - self.fragments.held)
        if self.fragments.size is not None:
            length = min(length, self.fragments.size - offset)
        nexts = [start - offset for start, _ in self.fragments.pieces if start > offset]
        return min(length, *nexts) if nexts else length

    def _gathered(self) -> Fragments:
        if not self.arriving:
            return self.fragments
        return self.fragments.having(self.offset, self.arriving)

    def _facts(self, why: str) -> MediaFacts:
        """Return what is known; *why* not more."""
        closed = attrs.evolve(self._gathered(), closed=why)
        return inspect_media(closed)

    def _close(self, why: str, *remedies: Remedy) -> Self:
        return self._settle(attrs.evolve(self._facts(why), remedies=remedies))

    def _fetch_request(self) -> HttpRequest:
        return HttpRequest(
            method="GET",
            url=self.url,
            headers=(
                ("Accept", "*/*"),
                ("Accept-Encoding", "identity"),
                ("User-Agent", USER_AGENT),
                ("Range", f"bytes={self.offset}-{self.offset + self.length - 1}"),
            ),
            public_host_only=self.service.wants_public_host(self.url),
            body_limit=None,
            idle_timeout=IDLE_TIMEOUT,
        )
