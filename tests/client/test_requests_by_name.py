"""Requests given as a family's name and its fields: the same as typed requests, for every call."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import muybridge
from media.corpus import picture
from muybridge_protocol.errors import LocalError

from .drivers import AnyClient, MakeClient
from .fleets import run_all
from .in_process import World

FIELDS: dict[str, Any] = {"model": "imgb-2", "prompt": "A horse"}
TYPED = muybridge.ImgbRequest(**FIELDS)
HORSE = picture("PNG", 640, 480)

Call = Callable[..., Any]
CALLS = ("create", "create_once", "run", "check", "run_all")


def called(name: str, client: AnyClient, *what: Any) -> None:
    """Call the method *name*, which takes a request, with *what*."""
    if name == "run_all":
        run_all(client, [what])  # type: ignore[list-item]  # one may be wrong
    else:
        once = ("a name",) if name == "create_once" else ()
        getattr(client, name)(*once, *what)


@pytest.fixture(params=CALLS)
def call(request: pytest.FixtureRequest) -> Call:
    """A call that takes a request."""
    name: str = request.param
    return partial(called, name)


@pytest.fixture
def client(
    make_client: MakeClient, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AnyClient:
    monkeypatch.setenv("MUYBRIDGE_STORE", str(tmp_path / "store"))
    return make_client(world)


def created(world: World) -> list[object]:
    """Return what the service knows of the requests that it was sent."""
    return [seen.path for seen in world.posts]


@pytest.mark.parametrize("name", CALLS)
def test_the_same_as_a_typed_request(client: AnyClient, world: World, name: str) -> None:
    """A name and fields are sent to the family's endpoint, as a typed request is."""
    called(name, client, "imgb", FIELDS)
    assert created(world) == ([] if name == "check" else ["/v1/image2/images"])


def test_the_same_request(client: AnyClient, world: World) -> None:
    """Under one name, the typed request and the one by name pay once: they are equal."""
    task = client.create_once("order 7", TYPED)
    assert client.create_once("order 7", "imgb", FIELDS).id == task.id
    assert len(world.posts) == 1


def test_names_of_fields(client: AnyClient) -> None:
    """Fields have their names in Python or on the wire; None means not set, as in a request."""
    typed = muybridge.VidcRequest(
        model="vidc_o3", prompt="-", reference_images=["https://a.example.com/a.png"]
    )
    shared: dict[str, Any] = {"model": "vidc_o3", "prompt": "-", "duration": None, "extra": {}}
    client.create_once("a", typed)
    for name in ("reference_images", "referenceImages"):
        client.create_once("a", "vidc", {**shared, name: ["https://a.example.com/a.png"]})


WRONG: dict[str, tuple[tuple[object, ...], type[Exception], str]] = {
    "an unknown family": (("imgbb", FIELDS), LocalError, "did you mean imgb"),
    "a model": (
        ("vidg_video3", {"prompt": "-"}),
        LocalError,
        "vidg_video3 is a model of family vidg; give 'vidg' as the family, and 'vidg_video3' as mo",
    ),
    "an owner and a model": (("imga/imga-pro", {}), LocalError, "imga-pro is a model of family"),
    "an owner and a family": (("imga/imgb", {}), LocalError, "did you mean imgb?"),
    "a model with a typo": (
        ("vidg", {"model": "vidg_video_3", "prompt": "-"}),
        muybridge.InvalidRequest,
        r"model: 'vidg_video_3' is not accepted; did you mean vidg_video3\? use vidg_video3,",
    ),
    "the id of a task": (("task-1", {}), LocalError, "there is no family 'task-1'"),
    "all problems": (
        ("imgb", {"model": "imgb-2", "size": "1x1", "qualty": "low"}),
        muybridge.InvalidRequest,
        r"(?s)3 problems in the imgb request.*prompt: is required.*size: .*did you mean quality",
    ),
    "twice": (
        (
            "vidc",
            {"model": "vidc_o3", "prompt": "-", "referenceImages": [], "reference_images": []},
        ),
        muybridge.InvalidRequest,
        "referenceImages: is given twice, as referenceImages and reference_images; give it once",
    ),
    "extra that is none": (
        ("imgb", {**FIELDS, "extra": 7}),
        muybridge.InvalidRequest,
        "extra: 7 is not a mapping",
    ),
    "a request and fields": ((TYPED, FIELDS), TypeError, "only a name takes fields"),
    "fields that are none": (("imgb", ["A horse"]), TypeError, "is not a mapping of fields"),
}


def test_wrong_requests(client: AnyClient, world: World, call: Call) -> None:
    """A mistake raises what a typed request raises, with all problems, and nothing is sent."""
    for what, kind, said in WRONG.values():
        with pytest.raises(kind, match=said):
            call(client, *what)
    assert world.seen == []


def test_files(client: AnyClient, call: Call, tmp_path: Path) -> None:
    """A path, bytes and an open file in a field for media are loaded and sent."""
    path = tmp_path / "horse.png"
    path.write_bytes(HORSE)
    files: list[Any] = [path, HORSE, io.BytesIO(HORSE)]
    call(client, "vidg", {"model": "vidg_video3", "prompt": "-", "image_urls": files})


def test_files_that_cannot_be_sent(client: AnyClient, world: World, tmp_path: Path) -> None:
    """Files that cannot be read, or are not taken there, are problems of their fields."""
    fields = {"model": "vidg_video3", "image_urls": [tmp_path / "nothing.png"]}
    with pytest.raises(muybridge.InvalidRequest) as caught:
        client.run("vidg", fields)
    assert [(one.field, one.rule) for one in caught.value.problems] == [
        ("image_urls", "file"),
        ("prompt", "required"),
    ]
    assert "nothing.png" in str(caught.value)
    with pytest.raises(muybridge.InvalidRequest, match="specification does not say"):
        client.run("imgb", {**FIELDS, "image_urls": [HORSE]})
    with pytest.raises(muybridge.InvalidRequest, match="is not a URL") as caught:
        client.run("imga", {"model": "imga", "prompt": "-", "image_urls": ["horse.png"]})
    assert "for a local file, pathlib.Path('horse.png')" in str(caught.value)
    assert world.seen == []
    allowed = muybridge.load_media(HORSE, allow_inline=True)
    client.run("imgb", {**FIELDS, "image_urls": [allowed]})


def test_files_that_are_sent_on_request(client: AnyClient, world: World, call: Call) -> None:
    """The mapping says `allow_inline` as an item of a batch does, and the message says so."""
    with pytest.raises(muybridge.InvalidRequest, match='with "allow_inline": True'):
        call(client, "imgb", {**FIELDS, "image_urls": [HORSE]})
    with pytest.raises(muybridge.InvalidRequest, match="allow_inline: 'yes' is not a boolean"):
        call(client, "imgb", {**FIELDS, "image_urls": [HORSE], "allow_inline": "yes"})
    assert world.seen == []
    call(client, "imgb", {**FIELDS, "image_urls": [HORSE], "allow_inline": True})
