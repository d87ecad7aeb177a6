"""What every error says as data: what was charged, whose task it is, and what to do."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from importlib import import_module
from inspect import isclass

import pytest

from muybridge.batch import PlaceUnusable
from muybridge.cli.errors import in_command
from muybridge.purchases import CannotDecide, StoreUnusable
from muybridge_protocol.errors import (
    AssetDeleteFailed,
    AssetDeleteUnknown,
    CreateAmbiguous,
    DownloadFailed,
    InputProblem,
    InvalidAddress,
    InvalidInput,
    LocalError,
    MuybridgeError,
    NotSent,
    ProtocolViolation,
    Refused,
    TaskFailed,
    WaitTimeout,
)
from muybridge_protocol.http import Phase, Reason, TransportFailure
from muybridge_protocol.records.json import JsonObject
from muybridge_protocol.records.tasks import Result, Status, Task
from muybridge_protocol.remedies import (
    Remedy,
    RemedyKind,
    in_python,
    in_records,
    message,
)
from muybridge_protocol.service import Service, check_key

PUBLIC = ("muybridge", "muybridge.batch", "muybridge.purchases", "muybridge_protocol.errors")


def public_errors() -> Iterator[type[MuybridgeError]]:
    """Yield each class of error that users can import."""
    found: set[object] = set()
    for name in PUBLIC:
        module = import_module(name)
        for public in module.__all__:
            value = getattr(module, public)
            if isclass(value) and issubclass(value, MuybridgeError) and value not in found:
                found.add(value)
                yield value


@pytest.mark.parametrize("kind", [*public_errors()], ids=lambda kind: kind.__name__)
def test_every_error_has_its_facts(kind: type[MuybridgeError]) -> None:
    """Whether it was charged, the task, the candidate and the remedies are there on every error."""
    assert {"charged", "task", "candidate_id", "remedies", "describe"} <= set(dir(kind))


def test_a_face_words_its_own_arguments() -> None:
    """The same error names an argument in Python, and an option in the command."""
    with pytest.raises(LocalError) as caught:
        check_key("")
    error = caught.value
    assert error.argument == "api_key"
    assert str(error) == "The API key is empty. Set MUYBRIDGE_API_KEY, or give api_key."
    assert error.describe(in_command) == (
        "The API key is empty. Set MUYBRIDGE_API_KEY, or give --api-key-file."
    )
    assert [remedy.to_dict() for remedy in error.remedies] == [
        {"kind": "give", "option": "api_key", "variable": "MUYBRIDGE_API_KEY"}
    ]
    assert pickle.loads(pickle.dumps(error)).remedies == error.remedies  # noqa: S301  our own


def test_a_face_leaves_quoted_text_alone() -> None:
    """What a user or the service wrote is shown as it is, even if it reads like our own."""
    said = "https://pass allow_plain_http=True, give out, Unlisted(name)"
    error = InvalidAddress(f"{said} cannot be read.", Remedy(kind=RemedyKind.USE_HTTPS))
    for face in (in_python, in_command, in_records):
        assert error.describe(face) == f"{said} cannot be read. Use https."


def test_what_to_correct_comes_first() -> None:
    """The argument that is wrong begins the message, under the name that its reader knows."""
    with pytest.raises(InvalidAddress) as caught:
        Service(base_url="https://:1")
    assert str(caught.value).startswith("base_url cannot be used: ")
    assert caught.value.describe(in_command).startswith(
        "MUYBRIDGE_BASE_URL or --base-url cannot be used: "
    )


def test_resuming() -> None:
    """Where Python calls `wait`, the command has `muybridge wait`; a record has its task."""
    task = Task(id="task-1", family="imga")
    error = WaitTimeout(waited=1.0, task=task)
    assert (error.charged, error.task, error.candidate_id) == ("yes", task, None)
    assert error.remedies == (Remedy(kind=RemedyKind.WAIT, task="task-1"),)
    assert error.next_step() == "To resume: wait('task-1')."
    assert error.next_step(in_command) == "To resume: muybridge wait task-1."
    assert error.next_step(in_records) == ""


def test_an_id_that_could_be_misread() -> None:
    """Where an id alone would be taken for a link, the remedy has the token."""
    task = Task(id="https://task.test/1")
    (remedy,) = WaitTimeout(waited=1.0, task=task).remedies
    assert Task.from_token(remedy.task).id == task.id


def test_a_candidate() -> None:
    """An id in an unusable response is no task: it is to be queried."""
    error = CreateAmbiguous(reason="a reset", candidate_id="task-1")
    assert (error.charged, error.task, error.candidate_id) == ("perhaps", None, "task-1")
    assert error.remedies == (Remedy(kind=RemedyKind.QUERY, task="task-1"),)
    assert "`muybridge get task-1`" in error.describe(in_command)
    assert "get('task-1')" in str(error)


def test_a_purchase_to_decide_about() -> None:
    """Its reader looks at the account first. The command names the store, if it needs to."""
    decide = Remedy(kind=RemedyKind.DECIDE, purchase="k1", store="my store.sqlite3")
    error = CreateAmbiguous(reason="a reset", advice=(decide,))
    for face in (in_python, in_command, in_records):
        assert error.next_step(face) == (
            "Before you send the request again, check your account for a new task; to decide: "
            "muybridge decide --store 'my store.sqlite3' k1."
        )
    usual = CreateAmbiguous(
        reason="a reset",
        candidate_id="task-1",
        advice=(Remedy(kind=RemedyKind.DECIDE, purchase="k1"),),
    )
    assert usual.next_step().endswith("; to decide: muybridge decide k1.")


def test_a_failure_brings_its_remedies() -> None:
    """What a transport knows to do is on the error, and replaces the usual advice."""
    remedy = Remedy(kind=RemedyKind.BYPASS_PROXY, variable="NO_PROXY")
    failure = TransportFailure(
        phase=Phase.PROXY, sent=False, reason=Reason.REFUSED_HERE, remedies=(remedy,)
    )
    error = NotSent(failure=failure)
    assert (error.charged, error.remedies) == ("no", (remedy, Remedy(kind=RemedyKind.RESEND)))
    assert error.next_step() == (
        "Nothing was charged. Name the service's host in NO_PROXY, then send the request again."
    )


@pytest.mark.parametrize("kind", RemedyKind)
def test_every_remedy_has_words_in_python(kind: RemedyKind) -> None:
    """No remedy is silent in Python, and each is data that JSON takes."""
    remedy = Remedy(
        kind=kind, option="out", variable="OUT", task="task-1", purchase="a1", form="text"
    )
    assert in_python(remedy)
    assert json.loads(json.dumps(remedy.to_dict())) == remedy.to_dict()


def test_parts_of_a_message() -> None:
    """Remedies end a sentence after a colon, and are an alternative to one that has not ended."""
    give = Remedy(kind=RemedyKind.GIVE, option="out")
    assert message(("It has no place:", give), in_python) == "It has no place: give out."
    assert message(("Put it elsewhere", give), in_python) == "Put it elsewhere, or give out"
    assert message(("It ended.", give, "That is all."), in_python) == (
        "It ended. Give out. That is all."
    )


@pytest.mark.parametrize(
    ("said", "end"),
    [("No such prompt.", "prompt."), ("Why?", "Why?"), ("No!", "No!"), ("no reason", "reason.")],
)
def test_sentences_of_the_service_end_once(said: str, end: str) -> None:
    """A message that ends with a sentence of somebody else has no second full stop."""
    result = Result(id="task-1", status=Status.FAILED, error=said)
    for error in (
        TaskFailed(result=result),
        Refused(status=400, message=said),
        AssetDeleteFailed(asset_id="asset-1", code="1", msg=said),
        AssetDeleteUnknown(asset_id="asset-1", reason=said),
        DownloadFailed(reason=said),
        ProtocolViolation(reason=said),
    ):
        assert error.what().endswith(f" {end}")


@pytest.mark.parametrize(
    ("error", "facts"),
    [
        (LocalError("It is wrong.", argument="tags"), {"argument": "tags"}),
        (StoreUnusable("It is gone.", lacks="past"), {"lacks": "past", "away": False}),
        (StoreUnusable("It is busy.", away=True), {"lacks": "", "away": True}),
        (PlaceUnusable("It is busy.", away=True), {"away": True}),
        (CannotDecide("It is under way.", later=True), {"later": True}),
        (
            InvalidInput("the batch", [InputProblem("line 3", "is missing", "prompt")]),
            {"problems": [{"where": "line 3", "message": "is missing", "field": "prompt"}]},
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_facts_tell_errors_of_one_class_apart(error: MuybridgeError, facts: JsonObject) -> None:
    """No program has to read a message: the facts are in the record, also in another process."""
    for one in (error, pickle.loads(pickle.dumps(error))):  # noqa: S301  our own
        told = json.loads(json.dumps(one.to_dict()))
        assert {name: told[name] for name in facts} == facts
        assert str(one) == str(error)
