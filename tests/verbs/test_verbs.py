"""Verbs: what the command does, as functions that return values and print nothing."""

from __future__ import annotations

import io
import json
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import attrs
import pytest

import muybridge
import muybridge.verbs
from muybridge.local import LocalService
from muybridge.verbs import catalogue, estimation, generation, text, validation
from muybridge.verbs.media import completed
from muybridge.verbs.request_files import Verdict
from muybridge_protocol.families import FAMILIES
from processes import environment

HORSE = muybridge.ImgbRequest(model="imgb-2", prompt="A horse")
ITEM = {"family": "imgb", "model": "imgb-2", "prompt": "A horse"}
WRONG = {**ITEM, "quality": "best"}
VERBS = [
    f"muybridge.verbs.{module.name}" for module in pkgutil.iter_modules(muybridge.verbs.__path__)
]


@pytest.fixture(scope="module")
def service() -> Iterator[LocalService]:
    """The whole service on this machine, in a hurry."""
    with LocalService(speed=50) as running:
        yield running


@pytest.fixture
def client(
    service: LocalService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[muybridge.Client]:
    """A client of that service, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    with muybridge.Client(
        service.api_key, service.base_url, service.text_base_url, poll_interval=0.05
    ) as running:
        yield running


@pytest.fixture(autouse=True)
def quiet(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Nothing is printed by any verb."""
    yield
    assert capfd.readouterr() == ("", "")


def lines(*items: dict[str, str]) -> io.BytesIO:
    return io.BytesIO("".join(f"{json.dumps(item)}\n" for item in items).encode())


@pytest.mark.parametrize("module", VERBS)
def test_no_verb_needs_the_command(module: str) -> None:
    """A verb loads no part of the command, and nothing that parses or prints."""
    program = (
        f"import sys, {module}\n"
        "found = [name for name in sys.modules if name.partition('.')[0] in ('click', 'rich') or "
        "name.startswith('muybridge.cli.')]\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", program], env=environment(), check=True)  # noqa: S603  our own program


def test_values_are_frozen() -> None:
    """Every value that a verb has a class for is frozen."""
    values = [
        kind
        for module in map(import_module, VERBS)
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and attrs.has(kind)
        if not issubclass(kind, BaseException)
    ]
    assert {kind.__name__ for kind in values} == {
        "Decision",
        "Estimation",
        "Generation",
        "Selection",
        "Spending",
        "Spent",
        "Usage",
        "Verdict",
    }
    for kind in values:
        assert kind.__setattr__ is not object.__setattr__, kind


def test_a_run_returns_the_task_the_result_and_the_file(client: muybridge.Client) -> None:
    """`run` creates, waits and saves, and tells each record on the way."""
    records: list[str] = []
    made = generation.run(
        client,
        HORSE,
        "horse",
        sidecar=True,
        on_update=lambda result: records.append(str(result.status)),
    )
    assert made.task is not None
    assert made.result is not None
    assert made.path is not None
    assert made.path == Path("horse.png")
    assert made.path.read_bytes().startswith(b"\x89PNG")
    assert json.loads(Path("horse.png.json").read_bytes())["task"] == made.task.id
    assert records[-1] == made.result.status == "completed"


def test_what_was_created_is_waited_for_later(client: muybridge.Client) -> None:
    """`create` returns the task, `wait` its result, and `download` fetches it once more."""
    task = generation.create(client, HORSE)
    waited = generation.wait(client, task)
    assert (waited.task, waited.path) == (task, None)
    assert waited.result is not None
    assert waited.result.url is not None
    whole = io.BytesIO()
    fetched = generation.download(client, task, whole)
    assert fetched.result is not None
    assert (fetched.result.id, fetched.path) == (task.id, None)
    linked = generation.download(client, waited.result.url, "linked")
    assert (linked.task, linked.result, linked.path) == (None, None, Path("linked.png"))
    assert Path("linked.png").read_bytes() == whole.getvalue()


def test_nothing_is_downloaded_too_soon(client: muybridge.Client) -> None:
    """A task that is in progress is an error with the task, and not a wait."""
    slow = muybridge.ImgbRequest(model="imgb-2", prompt="A horse [slow:100]")
    task = generation.create(client, slow)
    with pytest.raises(muybridge.NotCompleted) as caught:
        generation.download(client, task, "horse.png")
    assert caught.value.task == task
    assert not Path("horse.png").exists()


def test_a_failed_task_is_an_error(client: muybridge.Client) -> None:
    """The error carries the task that was paid for."""
    with pytest.raises(muybridge.TaskFailed) as caught:
        generation.run(
            client, muybridge.ImgbRequest(model="imgb-2", prompt="[fail:content-policy]")
        )
    assert caught.value.task is not None


def test_an_answer_is_returned_and_told_piece_by_piece(client: muybridge.Client) -> None:
    """The pieces of a streamed answer are its text; a whole one is told in no pieces."""
    pieces: list[str] = []
    answer = text.ask(client, "textg-2.5-pro", ["Why?"], on_text=pieces.append)
    assert "".join(pieces) == answer.text
    whole = text.ask(client, "textg-2.5-pro", ["Why?"], streams=False, on_text=pieces.append)
    assert whole.text == answer.text == "".join(pieces)
    assert text.calls_in(whole) == text.others_in(whole) == [*text.save_files(whole)] == []


def test_an_interrupted_answer_is_kept(client: muybridge.Client) -> None:
    """What has arrived is handed over before the interruption goes on."""
    kept: list[str] = []

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        text.ask(
            client,
            "textg-2.5-pro",
            ["Why?"],
            on_text=interrupt,
            on_interruption=lambda answer: kept.append(answer.text),
        )
    assert len(kept) == 1
    assert kept[0]


def test_items_are_judged() -> None:
    """Each item has a verdict, with its place and family."""
    first, second = validation.validate(lines(ITEM, WRONG))
    assert first == Verdict({"line": 1}, "imgb")
    assert (second.place, second.family, second.ok) == ({"line": 2}, "imgb", False)
    assert [field for field, _ in second.errors] == ["quality"]


def test_media_of_items_are_judged(client: muybridge.Client) -> None:
    """With a client, the verdict on a valid item has what was found out about its media."""
    verdicts = [*validation.validate(lines(ITEM, WRONG), client)]
    assert verdicts[0].media == muybridge.MediaReport()
    assert verdicts[1].media is None


def test_items_are_estimated() -> None:
    """Valid items are summed, and the first of the others are named."""
    found = estimation.estimate(lines(ITEM, *[WRONG] * 60, ITEM))
    assert (found.totals.total.requests, found.wrong_count) == (2, 60)
    assert [one.place["line"] for one in found.wrong] == [*range(2, 52)]


def test_a_file_that_cannot_be_read() -> None:
    """A failing file is an error of its own, and not taken for the end of the file."""

    class Failing(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:  # noqa: ARG002  it fails
            raise OSError(5, "Input/output error")

    with pytest.raises(muybridge.LocalError, match="Input/output error"):
        estimation.estimate(Failing())


@pytest.mark.parametrize(
    ("name", "families", "texts"),
    [
        ("imgb", ["imgb"], False),
        ("imgb-2", ["imgb"], False),
        ("text", [], True),
        (None, [*FAMILIES], True),
    ],
)
def test_models_are_selected(name: str | None, families: list[str], *, texts: bool) -> None:
    """A family, a model, the text models, or everything."""
    found = catalogue.select(name)
    assert [family.name for family, _ in found.families] == families
    assert bool(found.texts) is texts


def test_an_incomplete_request_is_completed() -> None:
    """Files get a link each, and missing settings a value, so that the request can be checked."""
    family = FAMILIES["vidc"]
    body = completed(family, {}, {"referenceImages": ["a.png", "b.png"]})
    assert len(body["referenceImages"]) == 2  # type: ignore[arg-type]
    assert {field.wire for field in family.fields if field.required} <= body.keys()
