"""JSON as the text endpoints write it, and what each of their protocols can do."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod

from muybridge_protocol.emulator.text.answer import Answer
from muybridge_protocol.emulator.text.node import Node
from muybridge_protocol.emulator.text.prompt import Prompt
from muybridge_protocol.emulator.text.refused import Refused
from muybridge_protocol.records.json import JsonObject

JSON_TYPE = "application/json; charset=UTF-8"
EVENT_STREAM = "text/event-stream"


def write(value: JsonObject) -> bytes:
    """Return *value*, whose texts are fit to print, as JSON in UTF-8 on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class TextProtocol(ABC):
    """How one of the three protocols asks and answers."""

    @property
    def exists(self) -> bool:
        """Whether there is an endpoint at the path that was asked for."""
        return True

    @property
    def stream_type(self) -> str:
        """The content type of a streamed reply."""
        return EVENT_STREAM

    def model(self, body: JsonObject) -> str:
        """Return the model that a request with *body* asks for.

        Raises:
            Refused: It names none.
        """
        return Node(body).required("model").text()

    @abstractmethod
    def read(self, body: JsonObject) -> Prompt:
        """Return what a request with *body* says.

        Raises:
            Refused: It cannot be understood.
        """

    @abstractmethod
    def reply(self, answer: Answer) -> JsonObject:
        """Return *answer* as one reply."""

    @abstractmethod
    def stream(self, answer: Answer) -> tuple[bytes, ...]:
        """Return *answer* as the pieces of a streamed reply."""

    @abstractmethod
    def error(self, refused: Refused) -> JsonObject:
        """Return the body of a reply that says why a request is refused."""
