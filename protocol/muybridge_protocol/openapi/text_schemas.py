"""The schemas of the native text endpoint (spec, "Text request and response").

Fields that are not shown travel unchecked, inline pictures and videos among them, so that further
fields are allowed everywhere.
"""

from __future__ import annotations

from muybridge_protocol.openapi.objects import array_schema, object_schema
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.text.content import MODEL, ROLES, USER, Content, GenerationConfig, Part
from muybridge_protocol.text.request import GenerateContentRequest
from muybridge_protocol.text.responses import Candidate, FinishReason, UsageMetadata


def text_request_schema() -> JsonObject:
    """Return the schema of a native text request; only parts with texts are shown."""
    part = {
        **object_schema(Part, text={"type": "string"}),
        "minProperties": 1,
        "description": (
            "A text. Inline images and videos are accepted as well, in a shape that is not shown."
        ),
    }
    parts = array_schema(part, minItems=1)
    role = {"enum": list(ROLES), "description": f"{USER}, or {MODEL} for an earlier answer."}
    return object_schema(
        GenerateContentRequest,
        required=["contents"],
        contents=array_schema(
            object_schema(Content, required=["parts"], role=role, parts=parts),
            minItems=1,
            description="The turns so far.",
        ),
        generation_config=object_schema(
            GenerationConfig,
            temperature=_described("number", "Randomness; lower is more deterministic."),
            top_p=_described("number", "Probability mass of nucleus sampling."),
            max_output_tokens=_described("integer", "Most tokens to generate."),
        ),
        system_instruction={
            **object_schema(Content, required=["parts"], parts=parts),
            "description": "Instructions for the model.",
        },
    )


def text_response_schema() -> JsonObject:
    """Return the schema of a whole response. Streams have none: their events are not specified."""
    candidate = object_schema(
        Candidate,
        finish_reason={
            **_described("string", "Why the generation stopped."),
            "examples": list(FinishReason),
        },
        index={"type": "integer"},
    )
    candidate["properties"]["content"] = object_schema(
        Content,
        parts=array_schema(object_schema(Part, text={"type": "string"})),
        role=_described("string", f"{MODEL}."),
    )
    usage = object_schema(
        UsageMetadata,
        prompt_token_count=_described("integer", "Tokens in contents and system instruction."),
        candidates_token_count=_described("integer", "Tokens in the candidates."),
        total_token_count=_described("integer", "Prompt plus candidates."),
    )
    properties = {"candidates": array_schema(candidate), "usageMetadata": usage}
    return {"type": "object", "properties": properties}


def _described(kind: str, description: str) -> JsonObject:
    return {"type": kind, "description": description}
