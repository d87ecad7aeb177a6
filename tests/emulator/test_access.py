"""Who may use the service: expectations from the specification's "Authentication"."""

from __future__ import annotations

import pytest

from emulator.caller import BEARER, JSON, KEY, Caller, new_emulator, read
from families.contracts import CONTRACTS
from muybridge_protocol.emulator import Access, ServiceRequest
from muybridge_protocol.http import Headers

CREATE_PATHS = tuple(contract.create_path for contract in CONTRACTS.values())
ENDPOINTS = (
    *(("POST", path) for path in CREATE_PATHS),
    ("GET", "/v1/result/task-1"),
    ("DELETE", "/vidsb/asset/asset-1"),
    ("GET", "/"),
    ("POST", "/v1/result/task-1"),
)
WRONG_HEADERS: dict[str, Headers] = {
    "missing": (),
    "empty": (("Authorization", ""),),
    "no scheme": (("Authorization", KEY),),
    "misspelt scheme": (("Authorization", f"Baerer {KEY}"),),
    "another scheme": (("Authorization", f"Basic {KEY}"),),
    "no space": (("Authorization", f"Bearer{KEY}"),),
    "two spaces": (("Authorization", f"Bearer  {KEY}"),),
    "a tab": (("Authorization", f"Bearer\t{KEY}"),),
    "leading space": (("Authorization", f" Bearer {KEY}"),),
    "trailing space": (("Authorization", f"Bearer {KEY} "),),
    "line end": (("Authorization", f"Bearer {KEY}\n"),),
    "scheme alone": (("Authorization", "Bearer"),),
    "unknown key": (("Authorization", "Bearer another-key"),),
    "key in another case": (("Authorization", f"Bearer {KEY.upper()}"),),
    "part of the key": (("Authorization", f"Bearer {KEY[:-1]}"),),
    "twice": (BEARER, BEARER),
    "another header": (("X-Api-Key", KEY),),
}


@pytest.mark.parametrize("headers", WRONG_HEADERS.values(), ids=WRONG_HEADERS)
@pytest.mark.parametrize(("method", "path"), ENDPOINTS)
def test_no_endpoint_answers_without_a_good_key(
    caller: Caller, method: str, path: str, headers: Headers
) -> None:
    """A missing, malformed or unknown key gets 401 everywhere, before all else."""
    reply = caller.send(method, path, b"not even JSON", headers)
    assert reply.status == 401
    assert read(reply)["error"]["code"] == "unauthorized"


def test_the_header_may_be_written_in_any_case(caller: Caller) -> None:
    """A header's name has no case, so a lower-case one authenticates as well."""
    headers = (("authorization", f"Bearer {KEY}"), ("content-type", "application/json"))
    assert caller.send("POST", "/v1/vidm/videos", b"{}", headers).status == 200


@pytest.mark.parametrize("path", CREATE_PATHS)
def test_a_key_provisioned_for_nothing_creates_nothing(path: str) -> None:
    """A key that is not provisioned for an endpoint gets 403 there, whatever it sends."""
    caller = Caller(new_emulator(access=Access(families=frozenset())))
    reply = caller.send("POST", path, b"not even JSON")
    assert reply.status == 403
    assert read(reply)["error"]["code"] == "forbidden"


def test_a_key_creates_in_the_families_it_is_provisioned_for() -> None:
    """A key that is provisioned for one family creates there, and nowhere else."""
    caller = Caller(new_emulator(access=Access(families=frozenset({"imga"}))))
    assert caller.post("/v1/imga/images", {"model": "imga", "prompt": "x"}).status == 200
    assert caller.post("/v1/vidm/videos", {}).status == 403


def test_a_plan_without_a_model_refuses_it() -> None:
    """A model that the account's plan does not include gets 403, and the others go on."""
    caller = Caller(new_emulator(access=Access(models=frozenset({"imga-2"}))))
    assert caller.post("/v1/imga/images", {"model": "imga-2", "prompt": "x"}).status == 200
    assert caller.post("/v1/imga/images", {"model": "imga-pro", "prompt": "x"}).status == 403


def test_a_key_without_assets_deletes_none() -> None:
    """A key that is not provisioned for assets gets 403, and the asset stays."""
    caller = Caller(new_emulator(access=Access(assets=False), assets=("asset-1",)))
    assert caller.send("DELETE", "/vidsb/asset/asset-1").status == 403
    assert caller.emulator.assets == {"asset-1"}


def test_an_emulator_does_not_show_its_keys(caller: Caller) -> None:
    """A key appears neither in the emulator's text nor in a request's."""
    assert KEY not in repr(caller.emulator)
    assert KEY not in repr(ServiceRequest("GET", "/", (BEARER, JSON)))
