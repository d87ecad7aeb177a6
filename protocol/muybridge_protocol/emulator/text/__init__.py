"""The text endpoints: three protocols, one honest answer.

No model answers here. The text says so and restates the request. It depends on nothing else, so the
same request always gets the same text.
"""

from muybridge_protocol.emulator.text.endpoints import answer_text, text_protocol
from muybridge_protocol.emulator.text.markers import TextMarker

__all__ = ["TextMarker", "answer_text", "text_protocol"]
