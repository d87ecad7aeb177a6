"""One small request for each family, and what the specification says of each."""

from __future__ import annotations

import muybridge
from muybridge import MediaRequest

PROMPT = "a horse at a gallop"
VIDEO = "https://media.example.com/clip.mp4"


def image(prompt: str = PROMPT) -> MediaRequest:
    """A request whose task takes 4 s in the emulator."""
    return muybridge.ImgaRequest(model="imga", prompt=prompt)


def small(prompt: str = PROMPT) -> dict[str, MediaRequest]:
    """One small request for each family, by the family's name."""
    return {
        "imga": image(prompt),
        "imgb": muybridge.ImgbRequest(model="imgb-2", prompt=prompt),
        "vidr": muybridge.VidrRequest(model="vidrPlus", prompt=prompt),
        "vidv": muybridge.VidvRequest(model="vidv_3_1_fast", prompt=prompt),
        "vidsa": muybridge.VidsaRequest(model="vidsa_1_5_pro_720p", prompt=prompt),
        "vidsb": muybridge.VidsbRequest(model="vidsb_2_0_pro", prompt=prompt),
        "vidd": muybridge.ViddRequest(model="viddq3-turbo", prompt=prompt),
        "vidg": muybridge.VidgRequest(model="vidg_video3", prompt=prompt),
        "vidc": muybridge.VidcRequest(model="vidc_o3", prompt=prompt),
        "videos": muybridge.VideosRequest(model="videos", prompt=prompt, duration=4),
        "vidm": muybridge.VidmRequest(prompt=prompt),
    }


FAMILIES = tuple(small())

# Spec, "Polling guidance": the shortest and the longest interval in seconds. vidm has no row
# there; it is taken for a video family like most others.
PACE: dict[str, tuple[float, float]] = {
    "imga": (2, 5),
    "imgb": (2, 5),
    "vidr": (30, 60),
    "vidv": (30, 60),
    "vidsa": (30, 60),
    "vidsb": (20, 40),
    "vidd": (30, 60),
    "vidg": (30, 60),
    "vidc": (30, 60),
    "videos": (30, 60),
    "vidm": (30, 60),
}
