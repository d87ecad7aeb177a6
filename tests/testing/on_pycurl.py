"""A blocking transport on pycurl, made of the parts in `docs/write-a-transport.md`."""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import Callable, Iterator

import pycurl

from muybridge.wire import building
from muybridge_protocol.http import HttpHead, HttpRequest, Reason

_REASONS = {
    pycurl.E_COULDNT_CONNECT: Reason.REFUSED,
    pycurl.E_PEER_FAILED_VERIFICATION: Reason.CERTIFICATE,
    pycurl.E_SSL_CONNECT_ERROR: Reason.TLS,
    pycurl.E_GOT_NOTHING: Reason.CLOSED,
    pycurl.E_PARTIAL_FILE: Reason.TRUNCATED,
    pycurl.E_SEND_ERROR: Reason.RESET,
    pycurl.E_RECV_ERROR: Reason.RESET,
}
_TURN = 0.05  # seconds that libcurl waits at a time, for signal handlers to run


class PycurlTransport:
    """A `Transport` on libcurl. Each request has its own connection.

    Args:
        ssl_context: The context whose CA certificates are trusted.
    """

    def __init__(self, ssl_context: ssl.SSLContext) -> None:
        found = ssl_context.get_ca_certs(binary_form=True)
        self._authorities = "".join(map(ssl.DER_cert_to_PEM_cert, found)).encode()

    def stream(
        self, request: HttpRequest, *, timeout: float, authorization: str | None = None
    ) -> building.Reply:
        """Send *request* on entering the context, and return its response; see `Transport`."""
        return building.Reply(self._send, building.Exchange(request, timeout), authorization)

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    def _send(self, exchange: building.Exchange, authorization: str | None) -> building.Opened:
        request = exchange.request
        origin, target = building.locate(request)
        fields = building.fields_of(request, origin, authorization)
        host, port = origin.host.strip("[]"), origin.port
        addresses = building.addresses_of(exchange, host, port)
        unwanted = {"User-Agent", "Accept", "Expect", "Content-Type"} - dict(fields).keys()
        options: dict[int, object] = {
            pycurl.URL: f"{origin.scheme}://{origin.host}:{port}/",
            pycurl.REQUEST_TARGET: target,
            pycurl.RESOLVE: [f"{host}:{port}:{','.join(addresses)}"],
            pycurl.CUSTOMREQUEST: request.method,
            pycurl.NOBODY: request.method == "HEAD",
            pycurl.HTTPHEADER: [name.encode() + b": " + value for name, value in fields]
            + [f"{name}:".encode() for name in unwanted],
            pycurl.CAINFO_BLOB: self._authorities,
        }
        if "Content-Length" in dict(fields):
            options[pycurl.POSTFIELDS] = request.body or b""
        return Conversation(exchange, options).open()


class Conversation:
    """One request, and what libcurl calls meanwhile."""

    def __init__(self, exchange: building.Exchange, options: dict[int, object]) -> None:
        self._exchange, self._multi, self._curl = exchange, pycurl.CurlMulti(), pycurl.Curl()
        self._arrived: deque[bytes] = deque()
        self._lines: list[bytes] = []
        self._head: HttpHead | None = None
        self._pieces: deque[bytes] = deque()
        self._fault: building.Fault | None = None
        self._raised: BaseException | None = None
        self._ended = False
        self._received, self._heard = 0, 0.0
        options |= {
            pycurl.PROXY: "",
            pycurl.NOSIGNAL: 1,
            pycurl.HTTP_VERSION: pycurl.CURL_HTTP_VERSION_1_1,
            pycurl.PREREQFUNCTION: self._kept(self._begin),
            # No Python runs in these two, so that no signal handler can raise within libcurl.
            pycurl.HEADERFUNCTION: self._arrived.append,
            pycurl.WRITEFUNCTION: self._pieces.append,
        }
        for option, value in options.items():
            self._curl.setopt(option, value)
        self._multi.add_handle(self._curl)

    def open(self) -> building.Opened:
        """Send the request, and return its response once the head has arrived."""
        try:
            while self._head is None and not self._ended:
                self._step()
            if self._head is None:
                raise self._fault or building.Fault(Reason.CLOSED)  # noqa: TRY301  closed as any other
        except BaseException:
            self._close()
            raise
        return building.Opened(self._head, self._body(), self._close)

    def _body(self) -> Iterator[bytes]:
        while self._pieces or not self._ended:
            if self._pieces:
                yield self._pieces.popleft()
            else:
                self._step()
        if self._fault is not None:
            raise self._fault

    def _step(self) -> None:
        """Let libcurl do what it can, and wait for the network if it can do nothing."""
        exchange, curl = self._exchange, self._curl
        _, running = self._multi.perform()
        if self._raised is not None:
            raise self._raised
        while self._arrived:
            self._take_line(self._arrived.popleft())
        seconds = exchange.awaiting() if exchange.sent else exchange.remaining()
        if exchange.sent:
            size = curl.getinfo(pycurl.REQUEST_SIZE) + curl.getinfo(pycurl.SIZE_UPLOAD_T)
            exchange.bytes_sent = size
            self._limit_silence(
                curl.getinfo(pycurl.HEADER_SIZE) + curl.getinfo(pycurl.SIZE_DOWNLOAD_T)
            )
        if running and not self._pieces:
            self._multi.select(min(seconds, _TURN))
        self._ended = not running
        for _, number, told in self._multi.info_read()[2]:
            reason = _REASONS.get(number, Reason.MALFORMED)
            if "unexpected eof" in told:  # TLS ended without a closing alert
                reason = Reason.CLOSED if self._head is None else Reason.TRUNCATED
            self._fault = building.Fault(reason, f"libcurl reports error {number}")

    def _kept(self, callback: Callable[..., int]) -> Callable[..., int]:
        """Keep what a signal handler raises within *callback*: libcurl would drop it."""

        def call(*arguments: object) -> int:
            try:
                return callback(*arguments)
            except BaseException as error:  # noqa: BLE001  raised again once libcurl has returned
                self._raised = error
                return -1

        return call

    def _limit_silence(self, received: int) -> None:
        """Raise if nothing has arrived for too long; libcurl itself counts in whole seconds."""
        now, longest = time.monotonic(), self._exchange.request.idle_timeout
        if received != self._received or not self._heard:
            self._received, self._heard = received, now
        if longest is not None and now - self._heard > longest:
            raise building.Fault(Reason.TIMED_OUT, f"nothing arrived for {longest} s")

    def _begin(self, *_: object) -> int:
        """Record that the connection is made, and that the request is sent next."""
        self._exchange.begin()
        self._exchange.sent = True
        return pycurl.PREREQFUNC_OK

    def _take_line(self, line: bytes) -> None:
        """Take a line of a head, or of a trailer."""
        self._exchange.receive(line)
        self._lines.append(line.strip(b"\r\n"))
        if self._head is None and not self._lines[-1]:
            first, *fields = [text.decode("latin-1") for text in self._lines[:-1]]
            self._lines.clear()
            pairs = [field.partition(":") for field in fields]
            headers = tuple((name, value.strip(" \t")) for name, _, value in pairs)
            if (status := int(first.split(" ")[1])) >= 200:  # else another head follows
                self._head = HttpHead(status, headers)

    def _close(self) -> None:
        self._multi.remove_handle(self._curl)
        self._curl.close()
        self._multi.close()
