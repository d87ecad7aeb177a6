"""How the text endpoints write JSON, and the interface of their protocols."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

from muybridge_protocol.emulator.refused import Refused
from muybridge_protocol.emulator.text.answer import Answer
from muybridge_protocol.emulator.text.node import Node
from muybridge_protocol.emulator.text.prompt import Prompt
from muybridge_protocol.http import HttpResponse
from muybridge_protocol.records.json import JsonObject

JSON_TYPE = "application/json; charset=UTF-8"
EVENT_STREAM = "text/event-stream"


def write(value: JsonObject) -> bytes:
    """Return *value* as JSON in UTF-8 on one line."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # of a lone surrogate, in a name or a schema of the request
        return json.dumps(value, separators=(",", ":")).encode("ascii")


class TextProtocol(ABC):
    """One of the three protocols: how it reads requests and writes responses."""

    @property
    def exists(self) -> bool:
        """Whether the requested path has an endpoint."""
        return True

    @property
    def stream_type(self) -> str:
        """The content type of a streamed response."""
        return EVENT_STREAM

    def model(self, body: JsonObject) -> str:
        """Return the model in the *body* of a request.

        Raises:
            Refused: There is none.
        """
        return Node(body).required("model").text()

    @abstractmethod
    def read(self, body: JsonObject) -> Prompt:
        """Return what the *body* of a request asks for.

        Raises:
            Refused: It is not valid.
        """

    @abstractmethod
    def response(self, answer: Answer) -> JsonObject:
        """Return *answer* as a whole response."""

    @abstractmethod
    def stream(self, answer: Answer) -> tuple[bytes, ...]:
        """Return *answer* as the pieces of a streamed response."""

    def refusal(self, refused: Refused) -> HttpResponse:
        """Return the response that refuses a request."""
        headers = (("Content-Type", JSON_TYPE), *refused.headers)
        return HttpResponse(refused.status, headers, write(self.error(refused)))

    @abstractmethod
    def error(self, refused: Refused) -> JsonObject:
        """Return the body of the response that refuses a request."""
