"""The list of models, which only the local service has."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from urllib.parse import urlsplit

from muybridge.local import LocalService
from muybridge.local.model_list import PATH, ModelList
from muybridge_protocol.emulator import Access
from muybridge_protocol.families import FAMILIES
from muybridge_protocol.text.models import TEXT_MODELS

KEYS = {
    "all": Access(),
    "painter": Access(families=frozenset({"imgb", "vidr"}), text=False),
    "planned": Access(models=frozenset({"imgb-2", "textg-2.5-pro"})),
}


def names(key: str) -> list[tuple[str, str, str]]:
    """Return the models that the list shows for *key*, with their families and media."""
    reply = ModelList(KEYS).answer("GET", PATH, (("Authorization", f"Bearer {key}"),))
    assert reply is not None
    record = json.loads(reply.body)
    assert record["object"] == "list"
    assert {model["object"] for model in record["data"]} == {"model"}
    return [(model["id"], model["family"], model["media"]) for model in record["data"]]


def test_every_model_is_listed() -> None:
    """The list has every model of every family, and the text models."""
    images = [model.name for family in FAMILIES.values() for model in family.models]
    assert [name for name, _, _ in names("all")] == [*images, *TEXT_MODELS]
    assert ("vidr", "video") in {model[1:] for model in names("all")}
    assert names("all")[-1] == ("textg-3.1-pro-preview-low", "text", "text")


def test_a_key_sees_what_it_may_use() -> None:
    """Families, models and text that a key is not provisioned for are not listed."""
    assert {family for _, family, _ in names("painter")} == {"imgb", "vidr"}
    assert names("planned") == [
        ("imgb-2", "imgb", "image"), ("textg-2.5-pro", "text", "text")
    ]  # fmt: skip


def test_it_is_served_to_keys_alone() -> None:
    """A valid key reads the list; without one the answer is 401, and no other method is allowed."""
    with LocalService(speed=1000, keys=KEYS) as service:
        connection = HTTPConnection(urlsplit(service.base_url).netloc, timeout=20)
        statuses: list[int] = []
        for method, key in (("GET", "all"), ("GET", "wrong"), ("POST", "all")):
            connection.request(method, PATH, headers={"Authorization": f"Bearer {key}"})
            with connection.getresponse() as reply:
                statuses.append(reply.status)
                reply.read()
        connection.close()
    assert statuses == [200, 401, 405]
