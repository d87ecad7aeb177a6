"""A picture that the local service made becomes a video there, under every driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from muybridge import (
    ImgaRequest,
    InvalidRequest,
    MediaRequest,
    ViddRequest,
    VidgRequest,
    VidsbRequest,
)
from muybridge.clock import SystemClock
from muybridge.local import LocalService
from muybridge_protocol.families import FAMILIES, Family
from muybridge_protocol.families.examples import examples
from muybridge_protocol.families.references import media_fields
from muybridge_protocol.families.request import parse
from muybridge_protocol.media.kinds import MediaKind
from muybridge_protocol.rules.values import Kind

from .drivers import AnyClient, MakeClient
from .fleets import run_all
from .in_process import World

PUBLIC = "https://media.example.com/horse.png"


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    with LocalService(speed=500) as running:
        yield running


def client_of(service: LocalService, make_client: MakeClient) -> AnyClient:
    return make_client(
        service.base_url, api_key=service.api_key, clock=SystemClock(), poll_interval=0.02
    )


def picture(client: AnyClient) -> str:
    """Return the URL of a picture that the service made."""
    url = client.run(ImgaRequest(model="imga", prompt="A horse")).url
    assert url is not None
    return url


def animating(url: str) -> list[MediaRequest]:
    """Return a request for each family, model and field that a picture can be put into."""
    found: list[MediaRequest] = []
    for family in FAMILIES.values():
        for body in examples(family).values():
            for wire, kind in media_fields(family).items():
                if kind is not MediaKind.IMAGE:
                    continue
                # A frame may need the other one. A model may not take the field.
                for others in ((), ("first_image",), ("last_image",)):
                    if family.check(with_picture(family, body, PUBLIC, wire, *others)).ok:
                        found.append(parse(family, with_picture(family, body, url, wire, *others)))
                        break
    return found


def with_picture(
    family: Family, body: Mapping[str, object], url: str, *wires: str
) -> dict[str, object]:
    """Return *body* with the picture in the fields *wires*, beside all that it has."""
    several = {field.wire for field in family.fields if field.kind is Kind.STRINGS}
    return {**body, **{wire: [url] if wire in several else url for wire in wires}}


def test_a_picture_becomes_a_video(service: LocalService, make_client: MakeClient) -> None:
    """In every family and model that takes a picture, and under every name of this machine."""
    client = client_of(service, make_client)
    url = picture(client)
    requests = animating(url)
    takers = {family.name for family in FAMILIES.values() if media_fields(family)}
    assert {request.family.name for request in requests} == takers
    for request in requests:
        assert client.create(request).id
    renamed = url.replace("127.0.0.1", "localhost")
    assert client.run(ViddRequest(model="viddq3-pro", prompt="It runs", first_image=renamed)).url


def needing_public(url: str) -> list[MediaRequest]:
    return [
        ViddRequest(model="viddq3-pro", prompt="It runs", first_image=url),
        VidsbRequest(model="vidsb_2_0_pro", prompt="It runs", first_image=url),
        VidgRequest(model="vidg_video3_max", prompt="It runs", image_urls=[url]),
        VidgRequest(model="vidg_video3_stable", prompt="It runs", image_urls=[url]),
    ]


def calls(client: AnyClient, request: MediaRequest) -> list[Callable[[], object]]:
    """Return every call that takes the request."""
    good = ImgaRequest(model="imga", prompt="A horse")
    return [
        lambda: client.create(request),
        lambda: client.run(request),
        lambda: client.create_once("an order", request),
        lambda: client.check(request),
        lambda: client.create(request.family.name, request.to_body()),
        lambda: run_all(client, [good, request]),
    ]


HERE = (
    "http://127.0.0.1:8000/media/a.png",
    "http://localhost:8000/media/a.png",
    "http://[::1]:8000/media/a.png",
    "http://127.1.2.3/a.png",
    "http://horse.localhost/a.png",
)


@pytest.mark.parametrize("url", HERE)
def test_the_real_service_cannot_reach_this_machine(
    make_client: MakeClient, world: World, url: str
) -> None:
    """It is said by every call that could pay, for all of a run, before anything is sent."""
    client = make_client(world)
    for request in needing_public(url):
        for call in calls(client, request):
            with pytest.raises(InvalidRequest) as caught:
                call()
            (problem,) = caught.value.problems
            assert str(problem).endswith(
                f"{url!r} is not a public address; use a public http(s) URL"
                + (" or asset://<id>" if request.family.name == "vidsb" else "")
            )
    assert world.seen == []


def test_another_server_on_this_machine(service: LocalService, make_client: MakeClient) -> None:
    """The local service's links are those at its own port; it refuses others itself, too."""
    client = client_of(service, make_client)
    made = service.emulator.task_count
    for request in needing_public("http://127.0.0.1:9/a.png"):
        with pytest.raises(InvalidRequest, match="is not a public address"):
            client.create(request)
        refused = client.call("POST", request.family.create_path, request.to_body())
        assert refused.status == 400
        assert b"is not a public address" in refused.body
    assert service.emulator.task_count == made


def test_every_problem_at_once(make_client: MakeClient, world: World) -> None:
    """A link to this machine does not hide what else became wrong since the request was made."""
    client = make_client(world)
    for request in needing_public("http://127.0.0.1:9/a.png"):
        changed = type(request).from_dict({**request.to_dict(), "extra": {"seed": {}}})
        deep: Any = changed.extra["seed"]
        deep["x"] = {1}
        with pytest.raises(InvalidRequest) as caught:
            client.create(changed)
        assert {problem.rule for problem in caught.value.problems} == {"media_url", "json"}
    assert world.seen == []


@pytest.mark.parametrize(
    "url", ["http://nas/a.png", "http://192.168.1.7/a.png", "https://camera.lan/a.png"]
)
def test_what_no_service_reaches(url: str) -> None:
    """An address of the inner network is refused when the request is made."""
    for request in needing_public(PUBLIC):
        (wire,) = media_fields(request.family).keys() & request.to_body().keys()
        body = with_picture(request.family, request.to_body(), url, wire)
        with pytest.raises(InvalidRequest, match="is not a public address"):
            type(request).from_body(body)
