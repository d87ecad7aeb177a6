"""What is given in place of what a parameter takes: it is taken, or refused with what to write."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import attrs
import pytest
from PIL import Image

import muybridge
from muybridge import FleetOutcome, ImgaRequest, ImgbRequest, InvalidRequest, Result, Task
from muybridge_protocol.errors import LocalError

from .drivers import AnyClient, MakeClient
from .fleets import run_all
from .in_process import World

PNG = io.BytesIO()
PICTURE = Image.new("RGB", (640, 480))
PICTURE.save(PNG, "PNG")
REQUEST = ImgaRequest(model="imga", prompt="a horse")
TASK = Task(id="task-1", family="imga")
RESULT = Result(id="task-1", status="completed", image_url="https://cdn.test/horse.png")
VALUES: Mapping[str, Callable[[], object]] = {
    "name": lambda: "horse.png",
    "path": lambda: Path("horse.png"),
    "bytes": PNG.getvalue,
    "file": lambda: io.BytesIO(PNG.getvalue()),
    "picture": lambda: PICTURE,
    "request": lambda: REQUEST,
    "task": lambda: TASK,
    "result": lambda: RESULT,
    "outcome": lambda: FleetOutcome(key=0, outcome=RESULT, task=TASK),
    "mapping": lambda: {"id": "task-1"},
    "list": lambda: [RESULT],
    "none": lambda: None,
}
ERRORS = (TypeError, ValueError, InvalidRequest, LocalError)


@attrs.frozen
class Parameter:
    """A parameter of a client.

    Args:
        use: Gives it a value.
        told: What the error says, whatever the value.
        taken: The values that it takes.
        lines: What the error says to write for some values.
    """

    use: Callable[[AnyClient, Any], object]
    told: str
    taken: frozenset[str] = frozenset()
    lines: Mapping[str, str] = attrs.field(factory=dict[str, str])


def parameter(
    use: Callable[[AnyClient, Any], object], told: str, taken: str = "", **lines: str
) -> Parameter:
    return Parameter(use, told, frozenset(taken.split()), lines)


REQUESTED = r"is not a request: build one|there is no family"
FIELDS = r"is not a mapping of fields: write the request as 'imga', \{|model: is required"
WAITED = r"the task must be a Task, a Result, a token or an id, not"
OF_OUTCOME = r"FleetOutcome: write outcome\.task\. Nothing was sent"
SECONDS = "timeout must be a"
CALLED = "must be callable, or None"
METHODS = {
    "create request": parameter(
        lambda client, value: client.create(value), REQUESTED, "request", mapping=r"ImgaRequest\("
    ),
    "create fields": parameter(lambda client, value: client.create("imga", value), FIELDS),
    "create family": parameter(
        lambda client, value: client.create(value, {"prompt": "a horse"}),
        "is not the name of a family|there is no family",
    ),
    "create_once name": parameter(
        lambda client, value: client.create_once(value, REQUEST),
        "once must be a string, not",
        "name",
    ),
    "create_once request": parameter(
        lambda client, value: client.create_once("order", value), REQUESTED, "request"
    ),
    "get task": parameter(
        lambda client, value: client.get(value), WAITED, "name task result", outcome=OF_OUTCOME
    ),
    "wait task": parameter(
        lambda client, value: client.wait(value), WAITED, "name task result", outcome=OF_OUTCOME
    ),
    "wait timeout": parameter(
        lambda client, value: client.wait("task-1", timeout=value), SECONDS, "none"
    ),
    "wait on_update": parameter(
        lambda client, value: client.wait("task-1", on_update=value), CALLED, "none"
    ),
    "watch task": parameter(
        lambda client, value: list(client.watch(value)),
        WAITED,
        "name task result",
        outcome=OF_OUTCOME,
    ),
    "watch timeout": parameter(
        lambda client, value: list(client.watch("task-1", timeout=value)), SECONDS, "none"
    ),
    "run request": parameter(lambda client, value: client.run(value), REQUESTED, "request"),
    "run fields": parameter(lambda client, value: client.run("imga", value), FIELDS),
    "run timeout": parameter(
        lambda client, value: client.run(REQUEST, timeout=value), SECONDS, "none"
    ),
    "run on_update": parameter(
        lambda client, value: client.run(REQUEST, on_update=value), CALLED, "none"
    ),
    "run_all work": parameter(
        run_all,
        r"work must be a list of requests and tasks|put it into a list|is not a request",
        "list",
    ),
    "run_all item": parameter(
        lambda client, value: run_all(client, [value]),
        f"{REQUESTED}|{WAITED}",
        "name request task result",
        outcome=OF_OUTCOME,
    ),
    "run_all concurrency": parameter(
        lambda client, value: run_all(client, [REQUEST], concurrency=value), "concurrency must be"
    ),
    "run_all per_family": parameter(
        lambda client, value: run_all(client, [REQUEST], per_family=value),
        "per_family must be one number, or one by family",
        "none",
    ),
    "run_all timeout": parameter(
        lambda client, value: run_all(client, [REQUEST], timeout=value), SECONDS, "none"
    ),
    "run_all dedupe": parameter(
        lambda client, value: run_all(client, [REQUEST], dedupe=value),
        "dedupe must be True, False or",
    ),
    "check request": parameter(lambda client, value: client.check(value), REQUESTED, "request"),
    "check files": parameter(
        lambda client, value: client.check(REQUEST, files=value),
        r"files must be a mapping .*: write files=\{'image_urls'|'id' is not a field of imga for",
        "none",
    ),
    "check file": parameter(
        lambda client, value: client.check(REQUEST, files={"image_urls": value}),
        r"files\['image_urls'\] must be a path or bytes, or a list of them",
        "name path bytes",
    ),
    "check timeout": parameter(lambda client, value: client.check(REQUEST, timeout=value), SECONDS),
    "delete_asset": parameter(
        lambda client, value: client.delete_asset(value), "asset_id must be a string", "name"
    ),
    "call method": parameter(
        lambda client, value: client.call(value, "/v1/x"),
        "method must be a string, such as 'GET'|is not an HTTP method; use capital letters",
    ),
    "call path": parameter(
        lambda client, value: client.call("GET", value),
        "path must be a string, such as '/v1/|is not a path of the service: begin with one slash",
    ),
    "call json": parameter(
        lambda client, value: client.call("POST", "/v1/x", value), "JSON", "name mapping none"
    ),
}
CONSTRUCTOR = {
    "api_key": ("api_key must be a string|There is no API key", "name"),
    "base_url": ("base_url must be a string|base_url cannot be used", "none"),
    "text_base_url": ("text_base_url must be a string|text_base_url cannot be used", "none"),
    "allow_plain_http": ("allow_plain_http must be True or False", ""),
    "allow_insecure_downloads": ("allow_insecure_downloads must be True or False", ""),
    "timeout": ("timeout must be a positive number of seconds", ""),
    "poll_interval": ("poll_interval must be at least 0 seconds", "none"),
    "on_submitted": ("on_submitted must be callable, or None", "none"),
    "on_event": ("on_event must be callable, or None", "none"),
    "budget": (r"budget must be a Budget, not .*: write Budget\(creates=3\)", "none"),
    "store": ("store must be a path, 'postgresql://...' or a Store", "name path none"),
    "prices": (r"prices must be a PriceList, not .*: write muybridge.load_prices\(path\)", "none"),
    "dedupe": ("dedupe must be True, False or", ""),
    "account": ("account must be a string", "name none"),
}


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "horse.png").write_bytes(PNG.getvalue())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MUYBRIDGE_STORE", str(tmp_path / "store.sqlite3"))


@pytest.mark.parametrize("name", METHODS)
def test_methods(make_client: MakeClient, world: World, name: str) -> None:
    """A method takes a value, or says what to give before anything is sent."""
    client, wrong = make_client(world), METHODS[name]
    for kind in VALUES.keys() - wrong.taken:
        with pytest.raises(ERRORS, match=wrong.lines.get(kind, wrong.told)):
            wrong.use(client, VALUES[kind]())
        assert world.seen == [], kind
    for kind in wrong.taken:
        with suppress(muybridge.ServiceError):  # there is no such task
            wrong.use(make_client(World()), VALUES[kind]())


@pytest.mark.parametrize("name", CONSTRUCTOR)
def test_constructors(make_client: MakeClient, world: World, name: str) -> None:
    """A client takes a value, or says what to give before the first call."""
    told, taken = CONSTRUCTOR[name]
    for kind in VALUES:
        options: dict[str, Any] = {name: VALUES[kind]()}
        if kind in taken.split():
            make_client(world, **options)
            continue
        with pytest.raises((*ERRORS, muybridge.LocalError), match=told):
            make_client(world, **options)
    assert world.seen == []


@pytest.mark.parametrize("kind", [kind for kind in VALUES if kind != "none"])
def test_parts(kind: str) -> None:
    """A transport or a clock that cannot be one is refused by the constructor."""
    value: Any = VALUES[kind]()
    for make in (muybridge.Client, muybridge.AsyncClient, muybridge.TrioClient):
        with pytest.raises(TypeError, match=r"transport must be an? (async )?transport, or None"):
            make("key", "https://service.test", transport=value)
        with pytest.raises(TypeError, match=r"transport must be .*, not the class Requests"):
            make("key", "https://service.test", transport=muybridge.RequestsTransport)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="clock must be a clock, or None"):
        muybridge.Client("key", "https://service.test", clock=value)
    with pytest.raises(TypeError, match="wall must be callable"):
        muybridge.AsyncClient("key", "https://service.test", wall=value)


LOADED = r"muybridge\.load_media"
OF_RESULT, OF_TASK = r"such as result\.image_url", r"such as client\.wait\(task\)\.image_url"
MEDIA = {
    "name": rf"'horse.png' is not a URL; .*; for a local file, {LOADED}\('horse.png'\)",
    "path": LOADED,
    "bytes": LOADED,
    "file": LOADED,
    "picture": LOADED,
    "task": OF_TASK,
    "result": OF_RESULT,
    "outcome": r"such as outcome\.result\.image_url",
}


@pytest.mark.parametrize("kind", VALUES)
def test_fields(kind: str) -> None:
    """Every field of a request names itself, and a field for media says how to give a file."""
    value: Any = VALUES[kind]()
    with pytest.raises(InvalidRequest, match=f"image_urls: .*{MEDIA.get(kind, 'use an array')}"):
        ImgbRequest(model="imgb-2", prompt="a horse", image_urls=[value])
    for request in (family.request for family in muybridge.FAMILIES.values()):
        for name in (field.name for field in request.family.fields):
            try:
                made = request(**{name: value})
            except InvalidRequest as error:
                assert kind in ("name", "none") or name in str(error)  # noqa: PT017  each kind of value, at each field
            else:
                assert made.family.name == "vidm"  # nothing of it is required
        if value is not None and not isinstance(value, Mapping):
            with pytest.raises(InvalidRequest, match=r"extra: .* is not a mapping"):
                cast("Any", request)(extra=value)


@pytest.mark.parametrize("kind", VALUES)
def test_load_media(kind: str) -> None:
    """`load_media` takes a file, or says how to make one of what it was given."""
    value: Any = VALUES[kind]()
    if kind in ("name", "path", "bytes", "file"):
        assert muybridge.load_media(value).data == PNG.getvalue()
        return
    lines = {
        "picture": r"Image: write source.save\(file := io.BytesIO\(\), 'PNG'\); load_media\(file.",
        "result": r"Result: write source.url in place of load_media\(source\)",
    }
    with pytest.raises(TypeError, match=lines.get(kind, "source must be a path, bytes or an open")):
        muybridge.load_media(value)


def test_the_line_for_a_picture() -> None:
    """What the error says to write for a picture of Pillow does load it."""
    source = PICTURE
    with pytest.raises(TypeError) as caught:
        muybridge.load_media(source)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    line = str(caught.value).partition(": write ")[2].removesuffix(". Nothing was sent.")
    found: dict[str, Any] = {"io": io, "load_media": muybridge.load_media, "source": source}
    first, last = line.split("; ")
    exec(first, found)  # noqa: S102  our own message
    assert eval(last, found).facts.format == "PNG"  # noqa: S307  the same


FUNCTIONS: dict[str, tuple[Callable[[Any], object], str, str]] = {
    "load_prices": (muybridge.load_prices, "path must be the path of a price file", "name path"),
    "from_token": (Task.from_token, "token must be a token|not a task token", ""),
    "from_body": (ImgaRequest.from_body, "body must be a mapping of fields|has no such field", ""),
    "estimate": (REQUEST.estimate, "prices must be a PriceList", "none"),
    "allow_inline": (
        lambda value: muybridge.load_media("horse.png", allow_inline=value),
        "allow_inline must be True or False",
        "",
    ),
    "size_limit": (
        lambda value: muybridge.load_media("horse.png", size_limit=value),
        "size_limit must be a number of bytes",
        "",
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name: str) -> None:
    """A function takes a value, or says what to give."""
    use, told, taken = FUNCTIONS[name]
    for kind in VALUES.keys() - taken.split():
        with pytest.raises(ERRORS, match=told):
            use(VALUES[kind]())
