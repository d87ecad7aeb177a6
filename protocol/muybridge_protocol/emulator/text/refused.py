"""A text request that gets an error for an answer."""

from __future__ import annotations

from muybridge_protocol.http import Headers


class Refused(Exception):
    """The request cannot be answered; the message says why.

    Args:
        status: The HTTP status. Each protocol has names of its own that go with it.
        message: What is wrong, for people.
        field: The field that is wrong, or None.
        headers: Header fields that go with the status.
    """

    def __init__(
        self, status: int, message: str, *, field: str | None = None, headers: Headers = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
        self.headers = headers
