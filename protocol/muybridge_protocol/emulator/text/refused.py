"""A text request that is answered with an error."""

from __future__ import annotations

from muybridge_protocol.http import Headers


class Refused(Exception):
    """The request cannot be answered; the message says why.

    Args:
        status: The HTTP status. Each protocol adds names of its own.
        message: The problem, for people.
        field: The field that is wrong, or None.
        headers: Header fields for the status.
    """

    def __init__(
        self, status: int, message: str, *, field: str | None = None, headers: Headers = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.field = field
        self.headers = headers
