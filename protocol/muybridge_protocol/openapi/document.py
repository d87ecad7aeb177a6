"""The whole document: every endpoint with its requests and responses."""

from __future__ import annotations

from typing import Final

from muybridge_protocol.families import FAMILIES, Family, Media
from muybridge_protocol.families.examples import PROMPT, examples
from muybridge_protocol.openapi.bodies import body_schema
from muybridge_protocol.openapi.records import ASSET_DELETION, result_schema, task_schema
from muybridge_protocol.openapi.text_schemas import text_request_schema, text_response_schema
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.text.defaults import CHAT_PATH, MESSAGES_PATH
from muybridge_protocol.text.models import TEXT_MODELS

_VERSION: Final = "1"
_ABOUT: Final = (
    "Image and video generation is asynchronous: a create call returns a task at once, whose "
    "result is polled until its status is completed, failed or cancelled. Text is in the "
    "response itself.\n\n"
    "Numbers of type integer are written without a fraction: 5, not 5.0. Requirements for the "
    "media itself, such as its size, are in the description of each endpoint. The schemas of "
    "requests allow the fields and models that the service's specification lists; it does not say "
    "what happens to others. Statuses and shapes that it does not show are left open."
)
_JSON: Final = "application/json"


def openapi_document(
    *, base_url: str | None = None, text_base_url: str | None = None
) -> JsonObject:
    """Return the service's description, an OpenAPI 3.1 document, as JSON.

    Args:
        base_url: Where the image, video and asset endpoints are, or None to leave it open.
        text_base_url: Where the text endpoints are, or None to leave it open.
    """
    text_servers = [_server("text_base_url", text_base_url, "http://text.example.com")]
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Asynchronous media generation",
            "version": _VERSION,
            "description": _ABOUT,
        },
        "servers": [_server("base_url", base_url, "https://api.example.com")],
        "security": [{"bearer": []}],
        "tags": [
            {"name": "Images"},
            {"name": "Videos"},
            {"name": "Results"},
            {"name": "Assets"},
            {"name": "Text"},
        ],
        "paths": {
            **{family.create_path: {"post": _create(family)} for family in FAMILIES.values()},
            "/v1/result/{id}": {"get": _RESULT_QUERY},
            "/vidsb/asset/{assetId}": {"delete": _ASSET_DELETION},
            **{
                path: {"servers": text_servers, "post": operation}
                for path, operation in _text_operations().items()
            },
        },
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "The API key."}
            },
            "schemas": {
                **{f"{_title(family)}Request": body_schema(family) for family in FAMILIES.values()},
                **{f"{_title(family)}Task": task_schema(family) for family in FAMILIES.values()},
                "Result": result_schema(),
                "AssetDeletion": ASSET_DELETION,
                "GenerateContentRequest": text_request_schema(),
                "GenerateContentResponse": text_response_schema(),
            },
            "responses": {
                "Unauthorized": {"description": "The key is missing, malformed, wrong or revoked."},
                "Forbidden": {
                    "description": "The key may not use this endpoint, model or feature."
                },
                "Unknown": {"description": "Other statuses, and the bodies of errors: not shown."},
            },
        },
    }


def _server(name: str, url: str | None, example: str) -> JsonObject:
    if url is not None:
        return {"url": url.rstrip("/")}
    about = "Where the service is; ask its operator."
    return {"url": f"{{{name}}}", "variables": {name: {"default": example, "description": about}}}


def _title(family: Family) -> str:
    return family.name.capitalize()


def _create(family: Family) -> JsonObject:
    return {
        "operationId": f"create_{family.name}",
        "tags": ["Images" if family.media is Media.IMAGE else "Videos"],
        "summary": f"Create {'an' if family.media is Media.IMAGE else 'a'} {family.media} "
        f"({family.name})",
        "description": "\n\n".join(_paragraphs(family)),
        "requestBody": {
            "required": True,
            "content": {
                _JSON: {
                    "schema": _reference(f"{_title(family)}Request"),
                    "examples": {
                        name: {"value": value} for name, value in examples(family).items()
                    },
                }
            },
        },
        "responses": _responses(
            "The task.",
            _reference(f"{_title(family)}Task"),
            links={
                "result": {"operationId": "get_result", "parameters": {"id": "$response.body#/id"}}
            },
        ),
    }


def _paragraphs(family: Family) -> list[str]:
    pacing = family.pacing
    least = f", never below {pacing.minimum:g} s" if pacing.minimum is not None else ""
    assumed = " (an assumption: it is not shown)" if pacing.assumed else ""
    about = [
        f"Ask for the result every {pacing.shortest:g}-{pacing.longest:g} s{least}{assumed}.",
        f"How long results are kept: {family.retention.note}.",
    ]
    if not family.body_shown:
        about.append("The request is not shown in full: further fields are accepted.")
    if family.notes:
        about.append("\n".join(("Also:", "", *(f"- {note}" for note in family.notes))))
    return about


def _reference(name: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{name}"}


def _responses(about: str, schema: JsonObject | None, **more: JsonObject) -> JsonObject:
    success: JsonObject = {"description": about, **more}
    if schema is not None:
        success["content"] = {_JSON: {"schema": schema}}
    return {
        "200": success,
        "401": {"$ref": "#/components/responses/Unauthorized"},
        "403": {"$ref": "#/components/responses/Forbidden"},
        "default": {"$ref": "#/components/responses/Unknown"},
    }


def _in_path(name: str, about: str) -> JsonObject:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": about,
        "schema": {"type": "string"},
    }


_RESULT_QUERY: Final[JsonObject] = {
    "operationId": "get_result",
    "tags": ["Results"],
    "summary": "Ask for a task's result",
    "description": "For families imga, vidr and vidm, no more of the response is shown.",
    "parameters": [_in_path("id", "The id from the create call's response.")],
    "responses": _responses("The state of the task.", _reference("Result")),
}

_ASSET_DELETION: Final[JsonObject] = {
    "operationId": "delete_asset",
    "tags": ["Assets"],
    "summary": "Delete an asset of family vidsb for good",
    "description": "Tasks that still refer to a deleted asset may fail.",
    "parameters": [_in_path("assetId", "The asset's id.")],
    "responses": _responses("Whether it was deleted.", _reference("AssetDeletion")),
}


def _text_operations() -> JsonObject:
    model = _in_path("model", "The text model.")
    model["schema"] = {"enum": list(TEXT_MODELS)}
    generate: JsonObject = {
        "tags": ["Text"],
        "parameters": [model],
        "requestBody": {
            "required": True,
            "content": {
                _JSON: {
                    "schema": _reference("GenerateContentRequest"),
                    "examples": {
                        "question": {
                            "value": {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]}
                        }
                    },
                }
            },
        },
    }
    return {
        "/v1/models/{model}:generateContent": {
            "operationId": "generate_content",
            "summary": "Generate text",
            **generate,
            "responses": _responses("The answer.", _reference("GenerateContentResponse")),
        },
        "/v1/models/{model}:streamGenerateContent": {
            "operationId": "stream_generate_content",
            "summary": "Generate text, streamed",
            "description": (
                "How chunks look is not shown. With `?alt=sse`, an assumption, they are asked for "
                "as server-sent events."
            ),
            **generate,
            "responses": _responses("A series of incremental chunks.", None),
        },
        CHAT_PATH: {
            "operationId": "chat_completions",
            "summary": "Generate text, chat-completions-style",
            **_not_shown("Request and response are not shown."),
        },
        MESSAGES_PATH: {
            "operationId": "messages",
            "summary": "Generate text, messages-style",
            **_not_shown("That there is such an endpoint is shown; this path is an assumption."),
        },
    }


def _not_shown(about: str) -> JsonObject:
    return {
        "tags": ["Text"],
        "description": about,
        "requestBody": {"required": True, "content": {_JSON: {"schema": {"type": "object"}}}},
        "responses": _responses("The answer.", None),
    }
