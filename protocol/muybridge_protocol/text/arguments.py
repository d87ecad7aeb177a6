"""Where the arguments go that users of other software give to a text call.

Only a call with an unknown argument needs this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Final

from muybridge_protocol.text.request import setting_named

_CONTENTS: Final = "write it as contents, the second argument"
_MEDIA: Final = "put it into contents: [muybridge.load_media(path), ...]"
_SYSTEM: Final = "write system_instruction=..."
_CLIENT: Final = "give it to the client: Client({name}=...)"

_PLACES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("prompt", "messages", "input", "text", "content", "question"), _CONTENTS),
    **dict.fromkeys(("image", "images", "imageurl", "imageurls", "file", "files", "media"), _MEDIA),
    **dict.fromkeys(("system", "systemprompt", "instructions", "developer"), _SYSTEM),
    **dict.fromkeys(("apikey", "baseurl", "textbaseurl", "transport"), _CLIENT),
    "config": "write generation_config=..., and extra={{...}} for tools and safety settings",
    "stream": "use stream_{method}",
    "extrabody": "write extra={{...}}",
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


def place_of(method: str, name: str, known: Iterable[str]) -> str:
    """Return where the argument *name* of *method* goes, as the end of a sentence.

    Args:
        method: The method that was called.
        name: The argument that it does not have.
        known: Those that it has.
    """
    close = get_close_matches(name, known, n=1, cutoff=0.8)
    if close:
        return f"did you mean {close[0]}?"
    if "generate_content" not in method:
        return f'put it into the body, the first argument: {method}({{"{name}": ..., ...}})'
    plain = name.replace("_", "").lower()
    if plain in _PLACES:
        return _PLACES[plain].format(name=name, method=method.removeprefix("stream_"))
    others = {setting.lower(): setting for setting in _OTHER_SETTINGS}
    setting = setting_named(plain) or others.get(plain)
    if setting is not None:
        return f'write generation_config={{"{setting}": ...}}'
    fields = {field.lower(): field for field in _FIELDS}
    return f'write extra={{"{fields.get(plain, name)}": ...}} to send it as a field of the request'
