"""One small request for each family, and how often its result is asked for."""

from __future__ import annotations

import muybridge
from families.contracts import CONTRACTS
from muybridge import MediaRequest

PROMPT = "a horse at a gallop"
VIDEO = "https://media.example.com/clip.mp4"


def image(prompt: str = PROMPT) -> MediaRequest:
    """A request whose task takes 4 s in the emulator."""
    return muybridge.ImgaRequest(model="imga", prompt=prompt)


def small(prompt: str = PROMPT) -> dict[str, MediaRequest]:
    """One small request for each family, by the family's name."""
    return {
        name: contract.request.from_body({**contract.smallest, "prompt": prompt})
        for name, contract in CONTRACTS.items()
    }


FAMILIES = tuple(CONTRACTS)

# The shortest and the longest interval in seconds, for each of those.
PACE = {name: contract.pace for name, contract in CONTRACTS.items()}
