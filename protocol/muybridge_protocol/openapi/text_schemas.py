"""The schemas of the native text endpoint (spec, "Text request and response").

Fields that are not shown travel unchecked, inline pictures and videos among them, so that further
fields are allowed everywhere.
"""

from __future__ import annotations

from typing import Final

from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.text.content import MODEL, ROLES, USER
from muybridge_protocol.text.responses import FinishReason

_PARTS: Final[JsonObject] = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "minProperties": 1,
        "properties": {"text": {"type": "string"}},
        "description": (
            "A text. Inline images and videos are accepted as well, in a shape that is not shown."
        ),
    },
}

TEXT_REQUEST: Final[JsonObject] = {
    "type": "object",
    "required": ["contents"],
    "properties": {
        "contents": {
            "type": "array",
            "minItems": 1,
            "description": "The turns so far.",
            "items": {
                "type": "object",
                "required": ["parts"],
                "properties": {
                    "role": {
                        "enum": list(ROLES),
                        "description": f"{USER}, or {MODEL} for an earlier answer.",
                    },
                    "parts": _PARTS,
                },
            },
        },
        "generationConfig": {
            "type": "object",
            "properties": {
                "temperature": {
                    "type": "number",
                    "description": "Randomness; lower is more deterministic.",
                },
                "topP": {
                    "type": "number",
                    "description": "Probability mass of nucleus sampling.",
                },
                "maxOutputTokens": {
                    "type": "integer",
                    "description": "Most tokens to generate.",
                },
            },
        },
        "systemInstruction": {
            "type": "object",
            "required": ["parts"],
            "properties": {"parts": _PARTS},
            "description": "What the model is told about its task.",
        },
    },
}

TEXT_RESPONSE: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "candidates": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "content": {
                        "type": "object",
                        "properties": {
                            "parts": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "properties": {"text": {"type": "string"}},
                                },
                            },
                            "role": {"type": "string", "description": f"{MODEL}."},
                        },
                    },
                    "finishReason": {
                        "type": "string",
                        "description": "Why the generation stopped.",
                        "examples": [reason.value for reason in FinishReason],
                    },
                    "index": {"type": "integer"},
                },
            },
        },
        "usageMetadata": {
            "type": "object",
            "properties": {
                "promptTokenCount": {
                    "type": "integer",
                    "description": "Tokens in contents and system instruction.",
                },
                "candidatesTokenCount": {
                    "type": "integer",
                    "description": "Tokens in the candidates.",
                },
                "totalTokenCount": {"type": "integer", "description": "Prompt plus candidates."},
            },
        },
    },
}
