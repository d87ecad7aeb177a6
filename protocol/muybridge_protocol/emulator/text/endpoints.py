"""Find the protocol of a text request, and answer it."""

from __future__ import annotations

from urllib.parse import unquote

from muybridge_protocol.emulator.accounts import Access, check_model, forbidden
from muybridge_protocol.emulator.intake import ServiceRequest, read_body
from muybridge_protocol.emulator.refused import Refused, wrong_method
from muybridge_protocol.emulator.responses import StreamedResponse
from muybridge_protocol.emulator.tasks import Timing
from muybridge_protocol.emulator.text.answer import answer
from muybridge_protocol.emulator.text.chat import Chat
from muybridge_protocol.emulator.text.markers import TextMarker, read_marker
from muybridge_protocol.emulator.text.messages import Messages
from muybridge_protocol.emulator.text.native import Native
from muybridge_protocol.emulator.text.script import Script
from muybridge_protocol.emulator.text.wire import JSON_TYPE, TextProtocol, write
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.rules.values import ModelName, either, shown
from muybridge_protocol.text.models import TEXT_MODELS


def text_protocol(target: str) -> TextProtocol | None:
    """Return the protocol of a request for *target*, a path and query.

    If the path is not a text endpoint, return None.
    """
    path, _, query = target.partition("?")
    match [unquote(segment) for segment in path.split("/")]:
        case ["", "v1", "models", segment]:
            return Native.at(segment, query)
        case ["", "v1", "chat", "completions"]:
            return Chat()
        case ["", "v1", "messages"]:
            return Messages()
        case _:
            return None


def answer_text(
    protocol: TextProtocol,
    request: ServiceRequest,
    access: Access,
    *,
    timing: Timing,
    strict: bool,
    script: Script,
    now: float,
    new_id: str,
) -> HttpResponse:
    """Answer a text request.

    Args:
        protocol: The protocol of the request.
        request: The request, which may be invalid in any way.
        access: What its key may use.
        timing: How fast text streams.
        strict: Whether models that the specification does not list are refused.
        script: The scripted answers, of which one is taken if it fits the request.
        now: Unix seconds.
        new_id: The stem of the answer's identifier.

    Raises:
        Refused: It cannot be answered.
    """
    if not protocol.exists:
        raise Refused(404, "there is no such endpoint")
    if not access.text:
        raise forbidden("the key is not provisioned for text")
    if request.method != "POST":
        raise wrong_method("POST")
    body = read_body(request)
    model = protocol.model(body)
    check_model(access, model)
    is_served = model in TEXT_MODELS or (not strict and ModelName().complaint(model) is None)
    if not is_served:
        message = f"{shown(model)} is not a text model; use {either(list(TEXT_MODELS))}"
        raise Refused(404, message, field="model")
    prompt = protocol.read(body)
    marker = read_marker(prompt.last_user_text)
    if marker is TextMarker.ERROR:
        raise Refused(500, f"the marker {marker} asks for this error")
    if marker is TextMarker.THROTTLED:
        raise Refused(429, f"the marker {marker} asks for this", headers=(("Retry-After", "1"),))
    answer_id = new_id.removeprefix("task-")
    made = answer(prompt, marker, script.take(prompt), answer_id=answer_id, now=now)
    if not prompt.streaming:
        return HttpResponse(200, (("Content-Type", JSON_TYPE),), write(protocol.response(made)))
    return StreamedResponse.of(
        200,
        (("Content-Type", protocol.stream_type),),
        protocol.stream(made),
        interval=timing.between_pieces(),
    )
