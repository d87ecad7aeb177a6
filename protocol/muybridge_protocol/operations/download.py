"""Downloading a result: without the key, resumed after an interruption, checked at the end.

The operation decides what to fetch and where its bytes go; the driver moves them:

    operation.next_action(now)  -> Fetch, or Send to query the service for a fresh link
    operation.accept(head, now) -> `stage` tells whether the body is wanted, `part` from where on
    operation.take(piece)       -> counts a piece of the body, which the driver has to save
    operation.end(now)          -> the body is complete, or has to be resumed

Nothing paid is lost by a failed download, so it is retried for as long as each attempt brings new
bytes. It resumes with a `Range` request if the server has given a strong validator, and only a
response that names the very same one continues the file. If a response names another validator or
none, it may be of another version: the download starts over, so that two versions are never joined.
If the link has expired and the task is known, the service is queried for a fresh one, once.

The transport decodes gzip and deflate, which some stores apply although the request asks for the
file as it is. A range counts the bytes of the encoded file, of which none are kept, so an encoded
download starts over. The size limit counts decoded bytes.

A link comes from the service, but may point anywhere. So every URL and every redirect is checked by
`Service.check_download`, and the requests have `authorized=False`: they never carry the key. A
page or an error message instead of a picture or video is not saved.
"""

from __future__ import annotations

import math
import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Self, assert_never

import attrs

from muybridge_protocol.delivery import (
    DOWNLOAD,
    LONGEST_WAIT,
    POLL,
    Verdict,
    backoff,
    http_date,
    refusal,
    retry_after,
)
from muybridge_protocol.errors import (
    DownloadFailed,
    InvalidAddress,
    LinkExpired,
    NotCompleted,
    ServiceError,
    TaskFailed,
)
from muybridge_protocol.events import DownloadProgress, WillRetry
from muybridge_protocol.http import (
    Headers,
    HttpHead,
    HttpRequest,
    HttpResponse,
    Phase,
    Reason,
    TransportFailure,
    shown_url,
)
from muybridge_protocol.operations import defaults
from muybridge_protocol.operations.operation import (
    API_TIMEOUT,
    USER_AGENT,
    Fetch,
    Operation,
    Send,
    Settled,
    Step,
    Wait,
    check_seconds,
)
from muybridge_protocol.operations.poll import result_query
from muybridge_protocol.operations.ranges import content_range, whole_number
from muybridge_protocol.records.json import InvalidJson, read_object
from muybridge_protocol.records.tasks import Result, Status, Task, read_result
from muybridge_protocol.remedies import Remedy, in_facts
from muybridge_protocol.service import ALLOW_DOWNLOADS, Service, resolve_location

if TYPE_CHECKING:
    from muybridge_protocol.call_info import CallKind

DOWNLOAD_TIMEOUT = defaults.DOWNLOAD_TIMEOUT
"""Default timeout of a download, in seconds."""
IDLE_TIMEOUT = 60.0
"""Seconds without a byte after which the connection is closed and the download resumes."""
SIZE_LIMIT = defaults.SIZE_LIMIT
"""Default size limit of a download, in bytes: 4 GiB."""
HOPS = 5
"""Redirects that are followed at most."""
FRUITLESS_TRIES = 5
"""Attempts in a row after which a download fails if none of them brought new bytes."""


@attrs.frozen(kw_only=True)
class Saved:
    """A download that is complete.

    Args:
        size: Bytes.
        content_type: The media type that the server named, such as `video/mp4`, or "".
        length_verified: Whether the server announced the length of the file, and it was right. The
            length of an encoded file is not that of the file.
    """

    size: int
    content_type: str
    length_verified: bool


@attrs.frozen(kw_only=True)
class Part:
    """The part of a file that has been saved, and what is needed to resume.

    Args:
        offset: Bytes saved so far.
        validator: A strong `ETag` of the file, or its `Last-Modified` if that is as good. If it is
            None, the download starts over.
        total: Bytes of the whole file, or None if unknown.
        codings: The content codings that the transport undoes. Such a part cannot be resumed.
    """

    offset: int = 0
    validator: str | None = None
    total: int | None = None
    codings: tuple[str, ...] = ()


class DownloadStage(Enum):
    """What a download is doing, which decides what it may be given next."""

    FETCHING = auto()
    READING = auto()
    REFRESHING = auto()


_STEPS: Final[dict[DownloadStage, tuple[Step, ...]]] = {
    DownloadStage.FETCHING: ("accept", "fail"),
    DownloadStage.READING: ("take", "end", "fail"),
    DownloadStage.REFRESHING: ("receive", "fail"),
}


@attrs.frozen(kw_only=True)
class Download(Operation[Saved]):
    """Download a result.

    Args:
        url: Where it is.
        task: Whose result it is, or None if only the link is known.
        deadline: When to stop, on the driver's clock.
        size_limit: Largest size in bytes, or None for no limit.
        part: What has been saved so far.
        stage: What it is doing.
        hops: Redirects followed since the link was given.
        refreshed: Whether a fresh link has already been requested.
        fruitless: Attempts in a row that brought nothing new.
        furthest: Largest offset that an earlier attempt has reached.
        content_type: The media type that the server named.
        keeps_part: Whether the part outlasts a failure.
    """

    url: str | None = attrs.field(repr=shown_url)
    task: Task | None
    deadline: float
    size_limit: int | None = SIZE_LIMIT
    part: Part = Part()
    stage: DownloadStage = DownloadStage.FETCHING
    hops: int = 0
    refreshed: bool = False
    fruitless: int = 0
    furthest: int = 0
    content_type: str = ""
    keeps_part: bool = True

    @classmethod
    def start(
        cls,
        url: str | None,
        service: Service,
        *,
        task: Task | None = None,
        part: Part | None = None,
        now: float,
        seed: int,
        timeout: float = API_TIMEOUT,
        deadline: float | None = None,
        size_limit: int | None = SIZE_LIMIT,
        keeps_part: bool = True,
    ) -> Self:
        """Return the operation in its initial state.

        Args:
            url: Where the result is, or None to query the service for the link first.
            service: Where the service is.
            task: Whose result it is, or None if only the link is known.
            part: What an earlier download has saved, or None.
            now: Seconds on the driver's clock.
            seed: A random number for this operation; the delays between attempts derive from it.
            timeout: Timeout of a query for a fresh link, in seconds.
            deadline: When to stop, on the driver's clock, or None for an hour from now.
            size_limit: Largest size in bytes, or None for no limit.
            keeps_part: Whether the part outlasts a failure, so that another download can resume.

        Raises:
            InvalidAddress: Results must not be downloaded from the URL.
            ValueError: There is neither a link nor a task.
        """
        check_seconds("deadline", deadline, least=-math.inf)
        part = part if part is not None else Part()
        if url is not None:
            url = service.check_download(url)
        elif task is None:
            raise ValueError("a download needs a link or a task")
        return cls(
            service=service,
            seed=seed,
            timeout=timeout,
            due=now,
            url=url,
            task=task,
            deadline=now + DOWNLOAD_TIMEOUT if deadline is None else deadline,
            size_limit=size_limit,
            keeps_part=keeps_part,
            part=part,
            furthest=part.offset,
            stage=DownloadStage.FETCHING if url is not None else DownloadStage.REFRESHING,
            refreshed=url is None,
        )

    @property
    def kind(self) -> CallKind:
        """What the operation does, for listeners."""
        return "download"

    def next_action(self, now: float) -> Send | Wait | Fetch | Settled[Saved]:  # type: ignore[override]  # a download is read in pieces
        """Return what to do next, at *now*."""
        if self.settled is not None:
            return self.settled
        if now >= self.deadline:
            return Settled(self._error("it took too long"))
        if now < self.due:
            return Wait(min(self.due, self.deadline))
        if self.stage is DownloadStage.REFRESHING and self.task is not None:
            query = result_query(self.task, self.service)
            return Send(query, min(now + self.timeout, self.deadline))
        return Fetch(self._fetch_request(), self.deadline)

    def accept(self, head: HttpHead, now: float) -> Self:
        """Return the operation after the head of a response.

        If its `stage` is then `READING`, the body belongs at `part.offset`, and anything saved
        beyond that must be dropped. Otherwise the body is ignored.

        Raises:
            RuntimeError: No head is expected.
        """
        self._check_step("accept", head, HttpHead, now=now)
        if head.status == 416:  # noqa: PLR2004  the part is not a part of this file
            return self._start_over("the linked file has changed; starting over", now)
        match verdict := DOWNLOAD.judge_status(head.status):
            case Verdict.ANSWER:
                return self._begin(head, now)
            case Verdict.REDIRECT:
                return self._redirect(head, now)
            case Verdict.MISSING:
                return self._refresh(head.status, now)
            case Verdict.REFUSED:
                return self._settle(self._lasting(f"status {head.status}", head.status))
            case Verdict.THROTTLED | Verdict.RETRY:
                pause = min(retry_after(head) or 0.0, LONGEST_WAIT)
                return self._retry(f"status {head.status}", now, at_least=pause)
            case _:
                assert_never(verdict)

    def take(self, piece: bytes) -> Self:
        """Return the operation after a piece of the body. Save the piece unless it has settled.

        Raises:
            RuntimeError: No piece is expected.
        """
        self._check_step("take", piece, bytes)
        if self.part.offset == 0 and _looks_like_text(piece):
            return self._settle(self._lasting("the response is a page or a message, not media"))
        offset = self.part.offset + len(piece)
        total = self.part.total
        if self.size_limit is not None and offset > self.size_limit:
            return self._settle(self._too_large())
        if total is not None and offset > total:
            return self._settle(self._error("the server sent more bytes than it announced"))
        return attrs.evolve(
            self,
            part=attrs.evolve(self.part, offset=offset),
            events=(DownloadProgress(offset, total),),
        )

    def end(self, now: float) -> Self:
        """Return the operation after the end of the body.

        Raises:
            RuntimeError: No body is being read.
        """
        self._check_step("end", now=now)
        total = self.part.total
        if total is not None and self.part.offset < total:
            return self._retry("the download ended early", now)
        if self.part.offset == 0:
            return self._retry("the file is empty", now)
        return self._settle(
            Saved(
                size=self.part.offset,
                content_type=self.content_type,
                length_verified=total is not None,
            )
        )

    def _receive(self, response: HttpResponse, now: float) -> Self:
        """Return the operation after the response to the query for a fresh link."""
        status = response.status
        reason = f"the query for a fresh link returned status {status}"
        match verdict := POLL.judge_status(status):
            case Verdict.ANSWER:
                return self._read(response, now)
            case Verdict.REFUSED:
                return self._settle(refusal(response, self.task))
            case Verdict.MISSING:
                reason = f"the service does not know the task (status {status})"
                return self._settle(self._link_expired(reason, status))
            case Verdict.VIOLATION:
                return self._settle(self._error(reason, status))
            case Verdict.THROTTLED | Verdict.RETRY:
                return self._retry(reason, now, at_least=retry_after(response) or 0.0)
            case _:
                assert_never(verdict)

    def _fail(self, failure: TransportFailure, now: float) -> Self:
        """Return the operation after a failed exchange."""
        if failure.reason is Reason.PRIVATE_ADDRESS:
            return self._settle(self._lasting(str(failure), advice=(ALLOW_DOWNLOADS,)))
        if DOWNLOAD.judge_failure(failure) is Verdict.NOT_SENT:
            return self._settle(self._lasting(str(failure), advice=failure.remedies))
        undecodable = failure.phase is Phase.BODY and failure.reason is Reason.MALFORMED
        if self.stage is DownloadStage.READING and self.part.codings and undecodable:
            (coding,) = self.part.codings
            return self._settle(self._lasting(f"the response is not {coding}, as it says"))
        return self._retry(str(failure), now)

    def _steps(self) -> tuple[Step, ...]:
        return _STEPS[self.stage]

    def _fetch_request(self) -> HttpRequest:
        assert self.url is not None  # noqa: S101  without a link the stage is REFRESHING
        headers: Headers = (
            ("Accept", "*/*"),
            ("Accept-Encoding", "identity"),
            ("User-Agent", USER_AGENT),
        )
        if self.part.offset and self.part.validator is not None:
            headers = (
                *headers,
                ("Range", f"bytes={self.part.offset}-"),
                ("If-Range", self.part.validator),
            )
        return HttpRequest(
            method="GET",
            url=self.url,
            headers=headers,
            public_host_only=self.service.wants_public_host(self.url),
            body_limit=None,
            idle_timeout=IDLE_TIMEOUT,
        )

    def _read(self, response: HttpResponse, now: float) -> Self:
        """Return the operation after a response that should contain a fresh link."""
        try:
            result = read_result(read_object(response.body), family=None)
        except InvalidJson as error:
            return self._retry(f"the response with a fresh link cannot be read: {error}", now)
        if self.task is None or result.id != self.task.id:
            return self._settle(self._error("the response is about another task"))
        if result.url is None:
            return self._settle(self._without_link(result))
        try:
            url = self.service.check_download(result.url)
        except InvalidAddress as error:
            reason = f"the fresh link cannot be used: {error.describe(in_facts)}"
            return self._settle(self._lasting(reason, advice=error.remedies))
        return attrs.evolve(self, url=url, stage=DownloadStage.FETCHING, hops=0, due=now, events=())

    def _without_link(self, result: Result) -> ServiceError:
        """Return what it means that *result*, the latest record of the task, has no link."""
        if self.url is None:  # there has never been one
            if result.status in (Status.FAILED, Status.CANCELLED):
                return TaskFailed(result=result, task=self.task)
            if result.status != Status.COMPLETED:
                return NotCompleted(reason=f"the task is {result.status}", task=self.task)
        return self._link_expired(f"the service has no link for it (status {result.status})")

    def _begin(self, head: HttpHead, now: float) -> Self:
        content_type = (head.header("Content-Type") or "").partition(";")[0].strip().lower()
        codings = head.codings
        if content_type in _NO_MEDIA:
            return self._settle(self._lasting(f"the response is {content_type}, not media"))
        if codings and codings not in _DECODED:
            used = ", ".join(codings)
            reason = f"the response is encoded as {used}, and only gzip and deflate can be decoded"
            return self._settle(self._lasting(reason))
        match head.status:
            case 200 if codings:
                part: Part | None = Part(codings=codings)
            case 200:
                length = whole_number(head.header("Content-Length"))
                part = Part(validator=_validator(head), total=length)
            case 206:
                part = self._rest(head)
            case _:  # a success without a file
                return self._settle(self._error(f"status {head.status}", head.status))
        if part is None:
            return self._start_over("the server sent a different range", now)
        if self.size_limit is not None and part.total is not None and part.total > self.size_limit:
            return self._settle(self._too_large())
        return attrs.evolve(
            self,
            stage=DownloadStage.READING,
            part=part,
            content_type=content_type,
            events=(DownloadProgress(part.offset, part.total),),
        )

    def _rest(self, head: HttpHead) -> Part | None:
        """Return the saved part if *head* announces the rest of the same file, or None."""
        saved, validator = self.part, _validator(head)
        first, last, total = content_range(_only(head, "Content-Range"))
        if head.codings or first != saved.offset:
            return None
        if saved.offset and (saved.validator is None or saved.validator != validator):
            return None  # without a validator, no range was requested
        if total is None:
            total = saved.total
        if total is None or last != total - 1 or saved.total not in (None, total):
            return None  # this may be another file, or not all of the rest
        return Part(offset=saved.offset, validator=validator, total=total)

    def _redirect(self, head: HttpHead, now: float) -> Self:
        location = head.header("Location")
        if self.hops >= HOPS or location is None or self.url is None:
            reason = "too many redirects" if location else f"status {head.status} leads nowhere"
            return self._settle(self._lasting(reason, head.status))
        try:
            url = self.service.check_download(resolve_location(self.url, location))
        except InvalidAddress as error:
            reason = f"a redirect was not followed: {error.describe(in_facts)}"
            return self._settle(self._lasting(reason, head.status, advice=error.remedies))
        return attrs.evolve(self, url=url, hops=self.hops + 1, due=now, events=())

    def _refresh(self, status: int, now: float) -> Self:
        """Query the service for a fresh link, once, if the task is known."""
        if self.task is None or self.refreshed:
            reason = f"the link no longer works (status {status})"
            return self._settle(self._link_expired(reason, status))
        return attrs.evolve(
            self, stage=DownloadStage.REFRESHING, refreshed=True, due=now, events=()
        )

    def _start_over(self, reason: str, now: float) -> Self:
        return attrs.evolve(self, part=Part())._retry(reason, now)

    def _retry(self, reason: str, now: float, *, at_least: float = 0.0) -> Self:
        # Bytes that were fetched before are no progress, so a server that always cuts at the same
        # place ends the download. An attempt that gained some is the first of a new row.
        gained = self.part.offset > self.furthest
        fruitless = 1 if gained else self.fruitless + 1
        if fruitless >= FRUITLESS_TRIES:
            return self._settle(self._error(reason))
        delay = max(backoff(self.seed, fruitless), min(at_least, LONGEST_WAIT))
        due, event = now + delay, WillRetry("download", reason, delay, fruitless)
        stage = DownloadStage.FETCHING if self.stage is DownloadStage.READING else self.stage
        return attrs.evolve(
            self,
            stage=stage,
            fruitless=fruitless,
            furthest=max(self.furthest, self.part.offset),
            due=due,
            # The deadline comes first: nothing will be retried.
            events=() if due >= self.deadline else (event,),
        )

    def _error(self, reason: str, status: int | None = None) -> ServiceError:
        resumes = self.keeps_part and self.part.offset > 0 and self.part.validator is not None
        return DownloadFailed(reason=reason, status=status, resumes=resumes, task=self.task)

    def _lasting(
        self, reason: str, status: int | None = None, *, advice: tuple[Remedy, ...] = ()
    ) -> ServiceError:
        return DownloadFailed(
            reason=reason, status=status, lasting=True, advice=advice, task=self.task
        )

    def _link_expired(self, reason: str, status: int | None = None) -> ServiceError:
        return LinkExpired(reason=reason, status=status, lasting=True, task=self.task)

    def _too_large(self) -> ServiceError:
        return self._lasting(f"the file has more than {self.size_limit} bytes, the limit set")


_NO_MEDIA = frozenset(
    {
        "text/html",
        "text/plain",
        "text/xml",
        "application/json",
        "application/problem+json",
        "application/xml",
        "application/xhtml+xml",
    }
)


def _looks_like_text(piece: bytes) -> bool:
    """Whether a body begins like HTML, XML or JSON, and so unlike any PNG, JPEG, WebP or MP4.

    A first piece may have only one byte, so that byte decides: a bracket, or the white space or
    byte order mark before one.
    """
    return piece[:1] in (b"<", b"{", b"[", b" ", b"\t", b"\r", b"\n", b"\xef")


_DECODED = (("gzip",), ("x-gzip",), ("deflate",))
"""The content codings that every transport decodes."""


def _only(head: HttpHead, name: str) -> str | None:
    """Return the value of the header *name*, or None if it is absent or given more than once."""
    match head.values(name):
        case [value]:
            return value
        case _:
            return None


def _validator(head: HttpHead) -> str | None:
    """Return what proves that two responses are of the same file, or None.

    That is a strong `ETag`. If the server sends no `ETag` at all, a `Last-Modified` is as good,
    provided that the file had not just been modified (RFC 9110, sections 8.8.2.2 and 13.1.5).
    """
    if head.values("ETag"):
        etag = _only(head, "ETag") or ""
        return etag if re.fullmatch(r'"[\x21\x23-\x7e]+"', etag, re.ASCII) else None
    modified, sent = _only(head, "Last-Modified") or "", http_date(_only(head, "Date") or "", 0.0)
    if sent is None:
        return None
    then = http_date(modified, sent)
    return None if then is None or sent - then < _SETTLED else modified


_SETTLED = 60.0
"""Seconds for which a file must have been unmodified, because dates have whole seconds and clocks
differ."""
