"""A blocking transport on pycurl, made of the parts in `docs/write-a-transport.md`."""

from __future__ import annotations

import ssl
import time
from collections import deque
from collections.abc import Callable, Generator

import pycurl

from muybridge.wire import building
from muybridge_protocol.http import HttpRequest, Reason

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
    ) -> building.Response:
        """Send *request* on entering the context, and return its response; see `Transport`."""
        return building.Response(self._send, building.Exchange(request, timeout), authorization)

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
        self._lines: deque[bytes] = deque()
        self._reader = building.ResponseReader(exchange.request.method)
        self._body: deque[bytes] = deque()
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
            pycurl.HEADERFUNCTION: self._lines.append,
            pycurl.WRITEFUNCTION: self._body.append,
        }
        for option, value in options.items():
            self._curl.setopt(option, value)
        self._multi.add_handle(self._curl)

    def open(self) -> building.Opened:
        """Send the request, and return its response once the head has arrived."""
        pieces = self._pieces()
        while self._reader.head is None:
            if next(pieces, None) is None:
                raise building.Fault(Reason.CLOSED)
        return building.Opened(self._reader.head, pieces, pieces.close)

    def _pieces(self) -> Generator[bytes]:
        """Yield the body, and b"" while nothing of it arrives; close libcurl in the end."""
        try:
            while (arrived := self._reader.head and self._body) or not self._ended:
                if not arrived:
                    self._step()
                yield self._body.popleft() if arrived else b""
            if self._fault is not None:
                raise self._fault
        finally:
            self._multi.remove_handle(self._curl)
            self._curl.close()
            self._multi.close()

    def _step(self) -> None:
        """Let libcurl do what it can, and wait for the network if it can do nothing."""
        exchange, curl = self._exchange, self._curl
        _, running = self._multi.perform()
        if self._raised is not None:
            raise self._raised
        while self._lines and self._reader.head is None:  # trailers may follow the head
            self._reader.feed(exchange.receive(self._lines.popleft()))
        seconds = exchange.awaiting() if exchange.sent else exchange.remaining()
        if exchange.sent:
            size = curl.getinfo(pycurl.REQUEST_SIZE) + curl.getinfo(pycurl.SIZE_UPLOAD_T)
            exchange.bytes_sent = size
            self._limit_silence(
                curl.getinfo(pycurl.HEADER_SIZE) + curl.getinfo(pycurl.SIZE_DOWNLOAD_T)
            )
        if running and not self._body:
            self._multi.select(min(seconds, _TURN))
        self._ended = not running
        for _, number, told in self._multi.info_read()[2]:
            reason = _REASONS.get(number, Reason.MALFORMED)
            if "unexpected eof" in told:  # TLS ended without a closing alert
                reason = Reason.TRUNCATED if self._reader.head else Reason.CLOSED
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
