"""What holds for the requests of all families alike."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from muybridge_protocol.errors import InvalidRequest
from muybridge_protocol.families import (
    ImgaRequest,
    ImgbRequest,
    Unlisted,
    VidcRequest,
    ViddRequest,
    VideosRequest,
    VidgRequest,
    VidmRequest,
    VidrRequest,
    VidsaRequest,
    VidsbRequest,
    VidvRequest,
)

from .cases import DATA, IMAGE, LAST, python_names
from .contracts import CONTRACTS

REQUESTS: list[Any] = [contract.request for contract in CONTRACTS.values()]

# A field of each family that takes URLs, and the least that stands beside it.
URL_FIELDS: dict[Any, tuple[str, dict[str, Any]]] = {
    ImgaRequest: ("image_urls", {"model": "imga"}),
    ImgbRequest: ("image_urls", {"model": "imgb-2"}),
    VidrRequest: ("input_reference", {"model": "vidrPro"}),
    VidvRequest: ("image_urls", {"model": "vidv_3_1_pro"}),
    VidsbRequest: ("referenceImages", {"model": "vidsb_2_0_pro"}),
    VidgRequest: ("image_urls", {"model": "vidg_video3"}),
    VidcRequest: ("referenceImages", {"model": "vidc_o3"}),
    VideosRequest: ("referenceImages", {"model": "videos", "duration": 5}),
}


@pytest.mark.parametrize("name", ["", " ", "\n", "imga\n", "a\x00b", None, 5, ["imga"]])
def test_unlisted_needs_a_name(name: Any) -> None:
    """A model that is sent on purpose has a name."""
    with pytest.raises(ValueError, match="model name"):
        Unlisted(name)


@pytest.mark.parametrize("request_class", REQUESTS)
def test_problems_are_told_together(request_class: Any) -> None:
    """One error tells of all problems, of every kind: wrong, missing and misspelt fields."""
    body = {"model": "nobody's", "prompt": " ", "promt": "a horse"}
    expected = {"model", "prompt", "promt"}
    if request_class in {VidsaRequest, VidmRequest}:
        expected -= {"promt"}
    if request_class is VidmRequest:
        expected -= {"model"}
    expected |= set(CONTRACTS[request_class.family.name].required)
    with pytest.raises(InvalidRequest) as caught:
        request_class.from_body(body)
    assert {problem.field for problem in caught.value.problems} == expected
    assert caught.value.family == request_class.family.name
    for field in expected:
        assert field in str(caught.value)


@pytest.mark.parametrize("request_class", REQUESTS)
def test_problem_carries_the_value(request_class: Any) -> None:
    """A problem carries the value that was found, for a program to look at."""
    report = request_class.family.check({"prompt": ["a horse"]})
    (problem,) = (problem for problem in report.problems if problem.field == "prompt")
    assert problem.value == ["a horse"]


@pytest.mark.parametrize("request_class", REQUESTS)
def test_deep_values_are_no_crash(request_class: Any) -> None:
    """A value nested more deeply than JSON can be written is a problem like any other."""
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    for wire in python_names("model", "prompt", "duration", "image_urls", "first_image", "x"):
        with pytest.raises(InvalidRequest) as caught:
            request_class.from_body({"model": "vidsa_1_5_pro_720p", wire: deep})
        assert wire in {problem.field for problem in caught.value.problems}


@pytest.mark.parametrize("request_class", REQUESTS)
def test_requests_are_values(request_class: Any) -> None:
    """A request does not change when the arrays and mappings that it was made of do."""
    extra = {"x_nested": {"a": [1]}}
    urls = [IMAGE]
    arguments: dict[str, Any] = {"prompt": "a horse", "extra": extra}
    field, least = URL_FIELDS.get(request_class, ("", {}))
    if field:
        arguments |= {**least, python_names(field)[field]: urls}
    else:
        arguments |= {**CONTRACTS[request_class.family.name].smallest, "prompt": "a horse"}
    request = request_class(**arguments)
    before = request.to_body()
    urls.append("garbage")
    extra["x_nested"]["a"].append(2)
    assert request.to_body() == before
    request.to_body().clear()
    assert request.to_body() == before
    assert "garbage" not in str(before)


@pytest.mark.parametrize("request_class", URL_FIELDS)
def test_url_has_a_host(request_class: Any) -> None:
    """A URL that names no host is no URL to fetch anything from."""
    field, least = URL_FIELDS[request_class]
    for url in ("https://:443/a.png", "https://@/a.png", "http://[/a.png", "http://[::1/a.png"):
        report = request_class.family.check({**least, "prompt": "a horse", field: [url]})
        assert {problem.field for problem in report.problems} == {field}, url


def test_long_path_is_no_base64() -> None:
    """A path on this machine is no image, however much it looks like base64."""
    path = "/home/someone/pictures/horses/running/in/the/year/eighteen/hundred/seventy/eight"
    body = {"model": "vidg_video3", "prompt": "a horse", "image_urls": [path]}
    assert not VidgRequest.family.check(body).ok
    assert VidgRequest.family.check({**body, "image_urls": [DATA]}).ok


@pytest.mark.parametrize("request_class", REQUESTS)
def test_names_are_strings(request_class: Any) -> None:
    """A field whose name is no string cannot be written as JSON: a problem, and no crash."""
    with pytest.raises(InvalidRequest):
        request_class.from_body({"model": "vidsa_1_5_pro_720p", 1: 2})


def test_deep_aliases_are_no_crash() -> None:
    """Two deep values under both names of a field are a problem, and no crash."""
    one: list[Any] = []
    other: list[Any] = []
    for _ in range(5000):
        one, other = [one], [other]
    assert not VideosRequest.family.check({"image": one, "first_image": other}).ok


@pytest.mark.parametrize("request_class", [VidsaRequest, VidmRequest])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", [float("nan")]], ids=ascii)
def test_check_finds_what_cannot_travel(request_class: Any, value: object) -> None:
    """A field that travels unchecked must still be JSON, and the check alone says so."""
    body = {"model": "vidsa_1_5_pro_720p", "seed": value}
    assert {p.field for p in request_class.family.check(body).problems} == {"seed"}


def test_last_image_wants_a_first() -> None:
    """The message names the field that is missing beside `last_image`."""
    report = ViddRequest.family.check(
        {"model": "viddq3-pro", "prompt": "a horse", "last_image": LAST}
    )
    (problem,) = report.problems
    assert "first_image" in str(problem)


def test_digests_are_those_of_the_canonical_json() -> None:
    """A digest is the SHA-256 of the body's JSON in UTF-8, with sorted names and no spaces."""
    request = VidsbRequest(
        prompt="ein Pf\u00e4rd", model="vidsb_2_0_pro", extra={"a": [1, {"b": 2}]}
    )
    written = '{"a":[1,{"b":2}],"model":"vidsb_2_0_pro","prompt":"ein Pf\u00e4rd"}'
    assert request.digest() == sha256(written.encode()).hexdigest()


@pytest.mark.parametrize("request_class", REQUESTS)
def test_digests_tell_requests_apart(request_class: Any) -> None:
    """A request has the same digest however it was made, and another one for other fields."""
    contract = CONTRACTS[request_class.family.name]
    body = contract.smallest
    one = request_class.from_body(body)
    assert one.digest() == request_class.from_body(dict(reversed(body.items()))).digest()
    assert one.digest() != request_class.from_body({**body, "prompt": "another horse"}).digest()


def test_values_spelled_like_fields_stay_as_they_are() -> None:
    """A message about a request in Python renames its fields, and not what the user wrote."""
    with pytest.raises(InvalidRequest) as caught:
        VidsbRequest(model="referenceImages", prompt="A horse", extra={"generateAudio": True})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    model, extra = caught.value.problems
    assert model.message == "'referenceImages' is not accepted"
    assert (extra.named, extra.accepted) == ("generate_audio", "set generate_audio instead")
