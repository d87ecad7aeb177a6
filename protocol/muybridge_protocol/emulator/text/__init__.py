"""The text endpoints: three protocols, one honest answer.

No model answers here. The text says so and restates the request; a declared function is called, and
JSON that a request asks for satisfies its schema. The answer depends on nothing else, so the same
request always gets the same one. A script replaces it.
"""

from muybridge_protocol.emulator.text.endpoints import answer_text, text_protocol
from muybridge_protocol.emulator.text.markers import TextMarker
from muybridge_protocol.emulator.text.script import Script, read_answers

__all__ = [
    "Script",
    "TextMarker",
    "answer_text",
    "read_answers",
    "text_protocol",
]
