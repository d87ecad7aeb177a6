"""`GET /v1/models`: the models that a key may use, in the shape that OpenAI's own software reads.

The service's specification has no such endpoint. The local service has it because tools that let
people choose a model ask for this list first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from muybridge.local.pages import only_read
from muybridge_protocol.emulator import Access
from muybridge_protocol.emulator.accounts import authenticate
from muybridge_protocol.emulator.responses import json_response
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.http import Headers, HttpResponse
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.text.models import TEXT_MODELS

PATH = "/v1/models"

_OWNER = "muybridge-local"
_TEXT = "text"


class ModelList:
    """The list of models.

    Args:
        keys: What each API key may use.
    """

    def __init__(self, keys: Mapping[str, Access]) -> None:
        self._keys = keys

    def answer(self, method: str, path: str, headers: Headers) -> HttpResponse | None:
        """Return the response to a request for the list, or None for any other.

        It is None without a valid key, too: the emulator then asks for one.

        Args:
            method: The method.
            path: The path as it came.
            headers: The request's header fields.
        """
        access = authenticate(self._keys, headers) if path == PATH else None
        if access is None:
            return None
        return only_read(method, json_response({"object": "list", "data": list(_models(access))}))


def _models(access: Access) -> Iterator[JsonObject]:
    for family in FAMILIES.values():
        if access.allows_family(family):
            for model in family.models:
                if access.allows_model(model.name):
                    yield _model(model.name, family.name, family.media)
    for name in TEXT_MODELS if access.text else ():
        if access.allows_model(name):
            yield _model(name, _TEXT, _TEXT)


def _model(name: str, family: str, media: str) -> JsonObject:
    return {
        "id": name,
        "object": "model",
        "created": 0,  # the specification gives no date
        "owned_by": _OWNER,
        "family": family,
        "media": media,
    }
