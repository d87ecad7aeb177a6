"""A request that is answered with an error."""

from __future__ import annotations

import attrs

from muybridge_protocol.http import Headers
from muybridge_protocol.rules.values import Problem


@attrs.define(slots=False, eq=False)
class Refused(Exception):
    """The request cannot be answered; the message says why.

    Args:
        status: The HTTP status.
        message: The problem, for people.
        code: The error's name, for programs. The text endpoints have names of their own.
        field: The field that is wrong, or None.
        problems: What is wrong with single fields.
        headers: Header fields for the status.
    """

    status: int
    message: str
    code: str = ""
    field: str | None = attrs.field(default=None, kw_only=True)
    problems: tuple[Problem, ...] = attrs.field(default=(), kw_only=True)
    headers: Headers = attrs.field(default=(), kw_only=True)

    def __str__(self) -> str:
        return self.message


def wrong_method(allowed: str) -> Refused:
    """Return the refusal of a request whose method is not the one *allowed*."""
    headers = (("Allow", allowed),)
    return Refused(405, f"use {allowed}", "method_not_allowed", headers=headers)
