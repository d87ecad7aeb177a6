"""Text requests as they go out: whole or streamed, in each of the protocols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muybridge_protocol.codec import write_json
from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.operations.operation import USER_AGENT
from muybridge_protocol.rules import Problem
from muybridge_protocol.service import Service
from muybridge_protocol.text.defaults import REPLY_LIMIT, SILENCE_LIMIT
from muybridge_protocol.text.models import path_name
from muybridge_protocol.text.request import GenerateContentRequest

_EVENTS_AT_ONCE = 2
"""How many events of the largest size a streamed reply may have in all."""


def encode_content(
    request: GenerateContentRequest,
    service: Service,
    *,
    stream: bool = False,
    size_limit: int = REPLY_LIMIT,
) -> HttpRequest:
    """Return the call for a request in the native protocol, complete but for the key.

    Args:
        request: What to say.
        service: Where the service is.
        stream: Whether the reply is to come in chunks.
        size_limit: Most bytes of a whole reply, or of one event of a streamed one.

    Raises:
        InvalidAddress: There is no text base URL.
        InvalidIdentifier: The model's name holds what a path may not.
        ValueError: What the request's `extra` holds was changed to what is not JSON.
    """
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    path = f"/v1/models/{path_name(request.model)}:{method}"
    return _post(service, path, request.to_body(), stream=stream, size_limit=size_limit)


def encode_mapping(
    body: Mapping[str, Any],
    service: Service,
    *,
    path: str,
    stream: bool = False,
    size_limit: int = REPLY_LIMIT,
) -> HttpRequest:
    """Return the call for a request whose shape is not shown, complete but for the key.

    Args:
        body: The JSON body. `stream` is set in it where the reply is to come in chunks.
        service: Where the service is.
        path: The path below the text base URL.
        stream: Whether the reply is to come in chunks.
        size_limit: Most bytes of a whole reply, or of one event of a streamed one.

    Raises:
        InvalidAddress: There is no text base URL, or the path leaves its origin.
        InvalidRequest: The body is none, or asks for the other kind of reply.
    """
    problems = list(_problems(body, stream=stream))
    if problems:
        raise InvalidRequest("text", problems)
    fields = {**body, "stream": True} if stream else dict(body)
    return _post(service, path, fields, stream=stream, size_limit=size_limit)


def _problems(body: Mapping[str, Any], *, stream: bool) -> list[Problem]:
    if not isinstance(body, Mapping) or not body:  # pyright: ignore[reportUnnecessaryIsInstance]  callers are not all typed
        return [Problem("", None, "type", "the body is no mapping", "use the fields by name")]
    asked: object = body.get("stream", stream)
    if bool(asked) is not stream:
        other = "the streaming method" if asked else "the method for a whole reply"
        return [
            Problem("stream", asked, "stream", "asks for the other kind of reply", f"use {other}")
        ]
    try:
        write_json(dict(body))
    except ValueError as error:
        return [Problem("", None, "json", f"cannot be written: {error}", "use plain JSON values")]
    return []


def _post(
    service: Service, path: str, fields: Mapping[str, Any], *, stream: bool, size_limit: int
) -> HttpRequest:
    accept = "text/event-stream, application/json" if stream else "application/json"
    return HttpRequest(
        method="POST",
        url=service.text_url(path),
        headers=(
            ("Accept", accept),
            ("Accept-Encoding", "gzip"),
            ("User-Agent", USER_AGENT),
            ("Content-Type", "application/json"),
        ),
        body=write_json(fields),
        authorized=True,
        paid=True,
        interruptible=True,
        body_limit=size_limit * _EVENTS_AT_ONCE if stream else size_limit,
        idle_timeout=SILENCE_LIMIT if stream else None,
    )
