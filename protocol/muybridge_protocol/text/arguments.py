"""Where the arguments go that users of other software give to `generate_content`.

Only a call with an unknown argument needs this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from muybridge_protocol.text.request import setting_named

_CONTENTS: Final = "write it as contents, the second argument"
_MEDIA: Final = "put it into contents: [muybridge.load_media(path), ...]"
_SYSTEM: Final = "write system_instruction=..."

_PLACES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("prompt", "messages", "input", "text", "content", "question"), _CONTENTS),
    **dict.fromkeys(("image", "images", "imageurl", "imageurls", "file", "files", "media"), _MEDIA),
    **dict.fromkeys(("system", "systemprompt", "instructions", "developer"), _SYSTEM),
    "config": "write generation_config=..., and extra={...} for tools and safety settings",
    "extrabody": "write extra={...}",
}
"""By the name of an argument, in lower case and without underscores."""
_FIELDS: Final = ("tools", "toolConfig", "safetySettings", "cachedContent", "labels")
"""Fields of a native request beside those with an argument."""
_OTHER_SETTINGS: Final = (
    "topK", "candidateCount", "stopSequences", "seed", "presencePenalty", "frequencyPenalty",
    "responseMimeType", "responseSchema", "responseJsonSchema", "responseModalities",
    "responseLogprobs", "logprobs", "thinkingConfig", "mediaResolution", "speechConfig",
    "imageConfig",
)  # fmt: skip
"""Native settings that the specification does not show, for hints only."""


def place_of(method: str, name: str) -> str:
    """Return where the argument *name* of *method* goes, as a clause, or "" if that is unknown."""
    plain = name.replace("_", "").lower()
    if plain in _PLACES:
        return _PLACES[plain]
    if plain == "stream":
        return f"use stream_{method.removeprefix('stream_')}"
    others = {setting.lower(): setting for setting in _OTHER_SETTINGS}
    if setting := setting_named(plain) or others.get(plain):
        return f'write generation_config={{"{setting}": ...}}'
    fields = {field.lower(): field for field in _FIELDS}
    return f'write extra={{"{fields[plain]}": ...}}' if plain in fields else ""
