"""What the tests ask of the local service, and what it answers."""

from __future__ import annotations

MODEL = "textg-2.5-pro"

HONESTY = "This is Muybridge's local emulator of the service: no model has answered."

# The beginning of a PNG. In base64 it has letters that the URL-safe alphabet writes otherwise.
PICTURE = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR"
    + (640).to_bytes(4)
    + (480).to_bytes(4)
    + b"\xfb\xef\xff" * 5
)
DESCRIBED = "- image/png: a PNG picture of 640x480 pixels, 39 bytes."

WRONG_KEY = "send the header Authorization: Bearer <API_KEY> with a valid key"


def answer(*facts: str) -> str:
    """Return the whole answer to a request with *facts*."""
    return "\n".join((HONESTY, f"Model: {MODEL}.", *facts))


def one_turn(text: str, *facts: str) -> str:
    """Return the whole answer to one turn with *text*, and with *facts* beside."""
    return answer("Turns: 1 (user).", f'Last user text: "{text}".', *facts)
