"""Text requests as they are sent, whole or streamed, in each of the protocols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.http import HttpRequest
from muybridge_protocol.operations.operation import USER_AGENT
from muybridge_protocol.records.json import as_array, as_object, write_json
from muybridge_protocol.rules.json_values import unwritable
from muybridge_protocol.rules.values import Problem
from muybridge_protocol.service import Service
from muybridge_protocol.text.defaults import CHAT_PATH, RESPONSE_LIMIT, SILENCE_LIMIT
from muybridge_protocol.text.files import (
    chat_block,
    messages_block,
    problems_of_messages,
    with_files,
)
from muybridge_protocol.text.models import path_name
from muybridge_protocol.text.request import GenerateContentRequest


def encode_content(
    request: GenerateContentRequest,
    service: Service,
    *,
    stream: bool = False,
    size_limit: int = RESPONSE_LIMIT,
    silence: float | None = SILENCE_LIMIT,
) -> HttpRequest:
    """Return the HTTP request for a request in the native protocol, complete except for the key.

    Args:
        request: The text request.
        service: Where the service is.
        stream: Whether to request the response in chunks.
        size_limit: Most bytes of the response, whole or streamed.
        silence: Seconds that may pass without a byte of a streamed response, or None.

    Raises:
        InvalidAddress: There is no text base URL.
        LocalError: The model's name has characters that a path may not contain.
    """
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    path = f"/v1/models/{path_name(request.model)}:{method}"
    return _post(service, path, request.body, size_limit, stream=stream, silence=silence)


def encode_mapping(
    body: Mapping[str, Any],
    service: Service,
    *,
    path: str,
    stream: bool = False,
    size_limit: int = RESPONSE_LIMIT,
    silence: float | None = SILENCE_LIMIT,
) -> HttpRequest:
    """Return the HTTP request for a body that is sent as given, complete except for the key.

    Only files, and strings in the list of a message's content, are written as the protocol has
    them: that of chat completions at its own path, else that of messages.

    Args:
        body: The JSON body. For a stream, `stream` is set in it.
        service: Where the service is.
        path: The path below the text base URL.
        stream: Whether to request the response in chunks.
        size_limit: Most bytes of the response, whole or streamed.
        silence: Seconds that may pass without a byte of a streamed response, or None.

    Raises:
        InvalidAddress: There is no text base URL, or the path leaves its origin.
        InvalidRequest: The body is empty, is not JSON, or asks for the other kind of response.
    """
    if not isinstance(body, Mapping) or not body:  # pyright: ignore[reportUnnecessaryIsInstance]  callers are not all typed
        raise _invalid("", body, "type", "the body is not a mapping of fields", "give them by name")
    choice: object = body.get("stream")
    if choice is not None and bool(choice) is not stream:
        other = "the streaming method" if choice else "the method for a whole response"
        raise _invalid(
            "stream", choice, "stream", "asks for the other kind of response", f"use {other}"
        )
    fields, refused = with_files(body, chat_block if path == CHAT_PATH else messages_block)
    refused += _blank_questions(body)
    refused += problems_of_messages(body)
    # A file that is refused is still in the fields, and would be reported twice.
    if not refused:
        problems = [unwritable(name, value) for name, value in fields.items()]
        refused = [problem for problem in problems if problem is not None]
    if refused:
        raise InvalidRequest("text", refused)
    if stream:
        fields["stream"] = True
    return _post(service, path, write_json(fields), size_limit, stream=stream, silence=silence)


def _blank_questions(body: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the messages of a user that are blank, which would be paid for and answered as well."""
    for number, message in enumerate(map(as_object, as_array(body.get("messages")))):
        if message is not None and message.get("role") == "user":
            content: object = message.get("content")
            if isinstance(content, str) and not content.strip():
                field = f"messages[{number}].content"
                yield Problem(field, content, "required", "is blank", "ask something")


def _invalid(field: str, value: object, rule: str, message: str, accepted: str) -> InvalidRequest:
    return InvalidRequest("text", [Problem(field, value, rule, message, accepted)])


def _post(
    service: Service,
    path: str,
    body: bytes,
    size_limit: int,
    *,
    stream: bool,
    silence: float | None,
) -> HttpRequest:
    accept = "text/event-stream, application/json" if stream else "application/json"
    # A server or proxy that compresses holds data back until it has enough of it.
    coding = "identity" if stream else "gzip"
    return HttpRequest(
        method="POST",
        url=service.text_url(path),
        headers=(
            ("Accept", accept),
            ("Accept-Encoding", coding),
            ("User-Agent", USER_AGENT),
            ("Content-Type", "application/json"),
        ),
        body=body,
        authorized=True,
        paid=True,
        interruptible=True,
        body_limit=size_limit,
        idle_timeout=silence if stream else None,
    )
