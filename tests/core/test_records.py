"""Task and result records, of every family as the specification shows them."""

from __future__ import annotations

import json
import pickle
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from families.cases import Records
from families.contracts import CONTRACTS
from muybridge_protocol.errors import LocalError
from muybridge_protocol.families import FAMILIES, Family, family_of_model
from muybridge_protocol.records.json import InvalidJson, read_object
from muybridge_protocol.records.lenient import optional_name
from muybridge_protocol.records.tasks import (
    TERMINAL,
    TRANSITIONS,
    Result,
    Status,
    Task,
    as_task,
    is_terminal,
    may_follow,
    read_result,
    read_task,
)
from muybridge_protocol.service import is_identifier
from tables import table

from .driving import DONE, drive, poll, result, task

CREATED = 1_760_000_000

IMAGES = {name for name, of in CONTRACTS.items() if of.create_path.endswith("/images")}

by_family = pytest.mark.parametrize("name", CONTRACTS)


def task_of(record: dict[str, Any], family: str | None = None) -> Task:
    return read_task(record, family=family, requested_model="asked", submitted_at=5.5)


def result_of(record: dict[str, Any], family: str | None = None) -> Result:
    return read_result(record, family=family)


def test_what_families_make() -> None:
    """Each family makes images where its path says so, and videos elsewhere."""
    assert {"imga", "imgb"} <= IMAGES
    assert {name for name, family in FAMILIES.items() if family.media == "image"} == IMAGES


@by_family
def test_families_state_the_table(name: str) -> None:
    """Each family states the contract's `object` values, retention and habits."""
    family: Family = FAMILIES[name]
    stated = Records(
        family.create_object,
        family.result_object,
        family.omits_error,
        family.starts_processing,
        family.retention.seconds,
        family.retention.record_too,
    )
    assert stated == CONTRACTS[name].records


@by_family
def test_task_records(name: str) -> None:
    """A task record of each family is read, with `error` null or left out as the family does."""
    records = CONTRACTS[name].records
    for status in ["queued", "processing"] if records.starts_processing else ["queued"]:
        record: dict[str, Any] = {
            "id": "t-1",
            "object": records.create_object,
            "created": CREATED,
            "model": "m",
            "status": status,
        }
        if not records.omits_error:
            record["error"] = None
        found = task_of(record, name)
        assert found == Task(
            id="t-1",
            family=name,
            model="m",
            requested_model="asked",
            status=status,
            object=records.create_object,
            created=CREATED,
            error=None,
            submitted_at=5.5,
        )
        assert found.raw == record
        assert found.unknown == {}
        assert found.known_family is FAMILIES[name]
        assert found.began_at == 5.5


@by_family
def test_result_records(name: str) -> None:
    """A result record of each family is read at every status."""
    result_object = CONTRACTS[name].records.result_object
    retention = CONTRACTS[name].records.retention
    url = "image_url" if name in IMAGES else "video_url"
    base = {"id": "t-1", "object": result_object or "x", "created": CREATED, "model": "m"}
    for status in ("queued", "processing"):
        waiting = result_of({**base, "status": status, url: None}, name)
        assert (waiting.status, waiting.url, waiting.error) == (status, None, None)
        assert not waiting.is_terminal
        assert waiting.expires_at is None
        early = result_of({**base, "status": status, url: "https://x.example/a"}, name)
        assert early.expires_at is None
    done = result_of({**base, "status": "completed", url: "https://x.example/a"}, name)
    assert done.is_terminal
    assert done.url == "https://x.example/a"
    assert done.image_url == (done.url if name in IMAGES else None)
    assert done.video_url == (None if name in IMAGES else done.url)
    assert done.object == (result_object or "x")
    assert done.family == name
    assert done.expires_at == (None if retention is None else CREATED + retention)
    without_url = result_of({**base, "status": "completed", url: None}, name)
    assert without_url.expires_at is None
    failed = result_of({**base, "status": "failed", "error": "bad", url: None}, name)
    assert failed.is_terminal
    assert failed.error == "bad"
    for status in ("failed", "cancelled"):
        with_url = result_of({**base, "status": status, url: "https://x.example/a"}, name)
        assert failed.expires_at is with_url.expires_at is None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, None),
        ({"error": None}, None),
        ({"error": ""}, ""),
        ({"error": "unreachable reference image"}, "unreachable reference image"),
        ({"error": {"message": "x"}}, '{"message": "x"}'),
        ({"error": ["a"]}, '["a"]'),
        ({"error": 5}, "5"),
        ({"error": False}, "false"),
    ],
)
def test_errors_of_records(fields: dict[str, Any], error: str | None) -> None:
    """`error` may be left out, null or a text; anything else is shown as JSON."""
    record = {"id": "a", "status": "failed", **fields}
    assert task_of(record).error == error
    assert result_of(record).error == error


@table(
    ("wire", "name", "value", "found"),
    [
        ("actualDuration", "actual_duration", 8, 8),
        ("actualDuration", "actual_duration", 5.04, 5.04),
        ("actualDuration", "actual_duration", None, None),
        ("actualDuration", "actual_duration", "8", None),
        ("actualDuration", "actual_duration", True, None),
        ("totalTokens", "total_tokens", 108900, 108900),
        ("totalTokens", "total_tokens", 0, 0),
        ("totalTokens", "total_tokens", 12.5, 12.5),
        ("totalTokens", "total_tokens", None, None),
        ("totalTokens", "total_tokens", "12", None),
        ("totalTokens", "total_tokens", False, None),
        ("totalTokens", "total_tokens", 10**300, None),
        ("created", "created", CREATED, CREATED),
        ("totalTokens", "total_tokens", -1, None),
        ("totalTokens", "total_tokens", 2**63 - 1, 2**63 - 1),
        ("totalTokens", "total_tokens", 2**63, None),
        ("totalTokens", "total_tokens", 1e308, 1e308),
        ("actualDuration", "actual_duration", -0.5, None),
        ("created", "created", 0, 0),
        ("created", "created", -5, None),
        ("created", "created", 32_503_679_999, 32_503_679_999),
        ("created", "created", 32_503_680_000, None),
        ("created", "created", CREATED * 1000, None),
        ("created", "created", 2**63 - 1, None),
        ("created", "created", 2**64 - 1, None),
        ("created", "created", 1.5, None),
        ("created", "created", "now", None),
        ("created", "created", True, None),
        ("created", "created", 10**300, None),
        ("model", "model", "m", "m"),
        ("model", "model", 5, None),
        ("model", "model", ["m"], None),
        ("object", "object", {}, None),
        ("image_url", "image_url", 5, None),
        ("video_url", "video_url", ["https://x"], None),
        ("video_url", "video_url", "https://x", "https://x"),
    ],
)
def test_types_of_fields(wire: str, name: str, value: Any, found: Any) -> None:
    """A field of an unexpected type is read as missing, and the raw record keeps what came."""
    record = {"id": "a", "status": "completed", wire: value}
    read = result_of(record)
    assert getattr(read, name) == found
    assert type(getattr(read, name)) is type(found)
    assert read.raw == record
    if name in {"created", "model", "object"}:
        assert getattr(task_of(record), name) == found


def test_fields_left_out() -> None:
    """A result needs an id and a status, a task an id; everything else may be missing."""
    assert result_of({"id": "a", "status": "queued"}) == Result(id="a", status="queued")
    bare = task_of({"id": "a"})
    assert (bare.status, bare.model, bare.created, bare.error) == (None, None, None, None)


NO_IDS: list[Any] = [None, 5, 1.5, True, "", [], {}, ["a"]]


@table("name", [*NO_IDS, "..", "a\n", "x" * 5000, "\ud800", "a\x00"])
def test_ids_that_cannot_be_used(name: Any) -> None:
    """A task record whose id cannot stand in a path is not a task's."""
    with pytest.raises(InvalidJson):
        task_of({"id": name, "status": "queued"})


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"status": "queued"},
        {"id": "a"},
        {"id": "a", "status": None},
        {"id": "a", "status": 5},
        *({"id": name, "status": "queued"} for name in NO_IDS[:4]),
    ],
)
def test_what_a_result_needs(fields: dict[str, Any]) -> None:
    """A result record without an id or a status that are texts cannot be read."""
    with pytest.raises(InvalidJson):
        result_of(fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "it has no id"),
        ({"id": 5}, "5 is not a str"),
        ({"id": "x" * 99, "status": None}, "its status is not a string"),
        ({"id": ["x" * 99], "status": "queued"}, f"['{'x' * 38}... is not a str"),
        ({"id": "a"}, "it has no status"),
    ],
)
def test_what_is_wrong_with_a_record_is_told(fields: dict[str, Any], said: str) -> None:
    """The first field that a result lacks, or that has the wrong type, is reported."""
    with pytest.raises(InvalidJson) as told:
        result_of(fields)
    assert str(told.value) == said


@pytest.mark.parametrize("status", [5, None, ["queued"], {}, True])
def test_an_odd_status_does_not_lose_a_task(status: Any) -> None:
    """A task record with an id is a task's, whatever its status is."""
    assert task_of({"id": "a", "status": status}).status is None


def test_unknown_fields_are_kept() -> None:
    """Fields that the specification does not name are kept, and the whole record is at hand."""
    record = {"id": "a", "status": "completed", "progress": 10**300, "seed": {"x": [1]}}
    assert result_of(record).unknown == {"progress": 10**300, "seed": {"x": [1]}}
    assert task_of({**record, "totalTokens": 5}).unknown == {
        "progress": 10**300,
        "seed": {"x": [1]},
        "totalTokens": 5,
    }
    assert result_of(record).raw is record


def test_a_record_cannot_pose_as_ours() -> None:
    """No field of a record sets what this library alone knows of a task."""
    posing = {"family": "vidsa", "requested_model": "x", "submitted_at": 1, "raw": {"y": 1}}
    disguised = {f"\0{name}": value for name, value in posing.items()}
    found = task_of({"id": "a", **posing, **disguised}, "imga")
    assert (found.family, found.requested_model, found.submitted_at) == ("imga", "asked", 5.5)
    assert found.raw["raw"] == {"y": 1}
    read = result_of({"id": "a", "status": "queued", **posing, **disguised}, "imga")
    assert read.family == "imga"
    assert read.unknown["family"] == "vidsa"


def test_another_model_is_no_violation() -> None:
    """A record whose model is another than was asked for is read: the service chooses backends."""
    about = task(requested_model="vidsb_2_0", family="vidsb", model="vidsb_2_0")
    run = drive(poll(about), result("completed", model="backend-7", video_url="https://x.example"))
    assert isinstance(run.outcome, Result)
    assert run.outcome.model == "backend-7"


def test_half_characters() -> None:
    """Half a character in a record, which JSON can say, is replaced; the raw record keeps it."""
    record = read_object(
        b'{"id":"a","status":"\\ud800","model":"\\udc00","error":"no \\ud83d","object":"\\ud800",'
        b'"image_url":"https://x.example/\\ud800","x":"\\ud800"}'
    )
    found = task_of(record)
    assert (found.status, found.model, found.error) == ("\ufffd", "\ufffd", "no \ufffd")
    assert Task.from_token(found.to_token()) == attrs.evolve(found, error=None, object=None)
    repr(found).encode()
    read = result_of(record)
    assert (read.status, read.object, read.url) == ("\ufffd", "\ufffd", None)
    assert not read.is_terminal
    repr(read).encode()
    assert pickle.loads(pickle.dumps(read)).raw == record  # noqa: S301  our own bytes


@pytest.mark.parametrize("field", ["error", "status", "model", "object"])
def test_texts_of_a_record_are_one_short_line(field: str) -> None:
    """Line breaks and escape sequences become spaces, and megabytes are clipped, but in `raw`."""
    most = 2000 if field == "error" else 200
    for said, shown in (
        ("no\nto resume: x", "no to resume: x"),
        ("\x1b[31mred\u2028\x85\u202e", None),
        ("x" * most, "x" * most),
        ("x" * (most + 1), "x" * most + "..."),
        ("\ud83d" * 7_000_000, "\ufffd" * most + "..."),
    ):
        record = {"id": "a", "status": "failed", field: said}
        for read in (task_of(record), result_of(record)):
            found = getattr(read, field)
            assert found.isprintable()
            assert found.encode()
            assert shown is None or found == shown
            assert read.raw[field] is said


@pytest.mark.parametrize(
    "said",
    [
        "completed\n",
        " completed",
        "completed\x00",
        "\ud800completed",
        "completed\u200b",
        "Completed",
    ],
)
def test_a_repaired_status_is_never_a_known_one(said: str) -> None:
    """A status that had to be repaired is unknown, and a task of it is polled on."""
    assert not result_of({"id": "a", "status": said}).is_terminal


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
NAMES = ["id", "object", "created", "model", "status", "error", "image_url", "video_url",
         "actualDuration", "totalTokens", "\0raw", "\0family", "raw"]  # fmt: skip
odd_records = st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=4), json_values)


@given(odd_records, st.sampled_from([None, *CONTRACTS]))
def test_any_record(record: dict[str, Any], family: str | None) -> None:
    """Any JSON object is read as a task or a result, or refused with InvalidJson alone."""
    for kind, read in ((Task, task_of), (Result, result_of)):
        try:
            found = read(record, family)
        except InvalidJson:
            continue
        assert isinstance(found, kind)
        assert found.raw == record
        repr(found)
        assert isinstance(found.unknown, dict)
        if isinstance(found, Result):
            assert found.expires_at is None or isinstance(found.expires_at, int)
            assert found.url is None or found.url
            assert found.to_task().to_result().id == found.id


@given(odd_records)
def test_a_record_with_an_id_is_never_lost(record: dict[str, Any]) -> None:
    """A record with a good id is a task's, whatever else is in it."""
    assert task_of({**record, "id": "good"}).id == "good"


def test_links_are_not_shown() -> None:
    """A result shows its link without the query, which may hold a signature."""
    read = result_of(
        {"id": "a", "status": "completed", "video_url": "https://x.example/a?sig=s3cret"}
    )
    assert "s3cret" not in repr(read)
    assert "x.example/a" in repr(read)
    assert "s3cret" not in repr(read.to_task())


# States.


def test_transitions() -> None:
    """The transitions are those of the specification's table."""
    assert {status.value for status in Status} == {
        "queued", "processing", "completed", "failed", "cancelled",
    }  # fmt: skip
    assert {
        None: {"queued", "processing", "failed"},
        "queued": {"processing", "cancelled"},
        "processing": {"completed", "failed", "cancelled"},
        "completed": set(),
        "failed": set(),
        "cancelled": set(),
    } == TRANSITIONS
    assert {"completed", "failed", "cancelled"} == TERMINAL
    assert {status for status in Status if not TRANSITIONS[status]} == TERMINAL


STATUSES = ["queued", "processing", "completed", "failed", "cancelled", "weird", "Completed", ""]


@table("before", [None, *STATUSES])
@table("after", STATUSES)
def test_what_may_follow(before: str | None, after: str) -> None:
    """Only a terminal status allows no other after it: skipped and unknown states are legal."""
    final = before in {"completed", "failed", "cancelled"}
    assert may_follow(before, after) is (not final or before == after)
    assert is_terminal(after) is (after in {"completed", "failed", "cancelled"})


# Tokens.

FULL = Task(
    id="t-1",
    family="vidsb",
    model="backend",
    requested_model="vidsb_2_0_fast",
    status=Status.QUEUED,
    object="video",
    created=CREATED,
    error=None,
    submitted_at=CREATED + 0.25,
    next_poll_at=CREATED + 30.5,
    raw={"id": "t-1", "video_url": "https://x.example/a?sig=s3cret", "key": "s3cret"},
)


def test_token_round_trip() -> None:
    """A token carries what other processes need: the id, family, models, status and times."""
    token = FULL.to_token()
    assert "\n" not in token
    assert json.loads(token) == {
        "muybridge_task": 1,
        "id": "t-1",
        "family": "vidsb",
        "model": "backend",
        "requested_model": "vidsb_2_0_fast",
        "status": "queued",
        "created": CREATED,
        "submitted_at": CREATED + 0.25,
        "next_poll_at": CREATED + 30.5,
    }
    again = Task.from_token(token)
    assert again.next_poll_at == CREATED + 30.5
    assert again == attrs.evolve(FULL, object=None)
    assert again.status is Status.QUEUED
    assert as_task(f"  {token}\n") == again
    assert again.to_token() == token


def test_a_token_holds_no_secret() -> None:
    """A token holds no link and nothing of the raw record."""
    assert "s3cret" not in FULL.to_token()
    assert "http" not in FULL.to_token()


def test_a_small_token() -> None:
    """A bare id has a token too."""
    assert Task.from_token(Task(id="a").to_token()) == Task(id="a")
    assert Task.from_token('{"muybridge_task":1,"id":"a","later":{"x":1}}') == Task(id="a")


NAMES_READ = st.none() | st.text(max_size=40).map(optional_name)


@given(
    st.builds(
        Task,
        id=st.text(min_size=1, max_size=40).filter(is_identifier),
        family=st.none() | st.sampled_from(list(CONTRACTS)),
        model=NAMES_READ,
        requested_model=NAMES_READ,
        status=NAMES_READ,
        created=st.none() | st.integers(0, 32_503_679_999),
        submitted_at=st.none() | st.floats(0, 32_503_679_999),
    )
)
def test_any_token_round_trip(task: Task) -> None:
    """Every task comes back from its token as it was."""
    assert Task.from_token(task.to_token()) == task


@table(
    "token",
    [
        "",
        "{}",
        "[]",
        "null",
        "t-1",
        '{"id":"a"}',
        '{"muybridge_task":2,"id":"a"}',
        '{"muybridge_task":0,"id":"a"}',
        '{"muybridge_task":"1","id":"a"}',
        '{"muybridge_task":null,"id":"a"}',
        '{"muybridge_task":true,"id":"a"}',
        '{"muybridge_task":1.0,"id":"a"}',
        '{"muybridge_task":1}',
        '{"muybridge_task":1,"id":5}',
        '{"muybridge_task":1,"id":""}',
        '{"muybridge_task":1,"id":".."}',
        '{"muybridge_task":1,"id":"a\\n"}',
        '{"muybridge_task":1,"id":"a","id":"b"}',
        '{"muybridge_task":1,"id":"a"',
        '{"muybridge_task":1,"id":"a","created":NaN}',
        "{" * 10**5,
    ],
)
def test_junk_tokens(token: str) -> None:
    """Invalid tokens, and those of an unknown version, raise an error of this machine."""
    with pytest.raises(LocalError, match="not a task token"):
        Task.from_token(token)


@given(st.dictionaries(st.sampled_from([*attrs.fields_dict(Task), "\0raw"]), json_values))
def test_any_token(fields: dict[str, Any]) -> None:
    """A token with fields of any type is read or refused, and what is read can be waited for."""
    token = json.dumps({**fields, "muybridge_task": 1, "id": "t1"})
    try:
        found = Task.from_token(token)
    except LocalError:
        return
    assert found.raw == {}
    assert found.unknown == {}
    assert drive(poll(found), forever=DONE).actions > 0


@pytest.mark.parametrize("size", [400, 5000])
def test_a_token_from_beyond_time(size: int) -> None:
    """A time with hundreds of digits breaks neither a token nor a wait."""
    huge = "9" * size
    for name in ("created", "submitted_at", "next_poll_at"):
        token = f'{{"muybridge_task":1,"id":"t1","{name}":{huge}}}'
        try:
            found = Task.from_token(token)
        except LocalError:
            assert size == 5000
            continue
        assert isinstance(drive(poll(found), DONE).outcome, Result)
    old = result_of(read_object(f'{{"id":"t1","status":"queued","created":{"9" * 400}}}'), "imgb")
    assert old.expires_at is None
    assert isinstance(drive(poll(as_task(old)), DONE).outcome, Result)


def test_what_stands_for_a_task() -> None:
    """A task, a result, a token and a bare id all stand for a task."""
    assert as_task(FULL) is FULL
    assert as_task("t-1") == Task(id="t-1")
    read = result_of({"id": "a", "status": "completed", "created": 5}, "imgb")
    found = as_task(read)
    assert (found.id, found.family, found.status, found.created) == ("a", "imgb", "completed", 5)
    assert found.submitted_at is None
    assert found.began_at == 5
    for text, argument in (("a\tb", "task_id"), (" {", "token")):
        with pytest.raises(LocalError) as caught:
            as_task(text)
        assert caught.value.argument == argument


@pytest.mark.parametrize("name", CONTRACTS)
def test_a_listed_model_names_its_family(name: str) -> None:
    """A record without more than its model is one of the model's family."""
    family = FAMILIES[name]
    for model in (*(model.name for model in family.models), f"{name}-9", f"{name}_9_new", name):
        assert family_of_model(model) is family
        result = read_result({"id": "t-1", "status": "queued", "model": model}, family=None)
        assert result.family == name
        assert Task(id="t-1", model=model).known_family is family
        assert Task(id="t-1", model="a-backend", requested_model=model).known_family is family


@pytest.mark.parametrize(
    "model", [None, "", "a-backend", "vid", "vidgets", "vids", "IMGA", "imgaa", "vidm9"]
)
def test_other_models_belong_to_nobody(model: str | None) -> None:
    """What only looks like a family's model is not taken for one."""
    assert family_of_model(model) is None
    result = read_result({"id": "t-1", "status": "queued", "model": model}, family=None)
    assert result.family is None
    assert read_result({"id": "t-1", "status": "queued", "model": model}, family="x").family == "x"


def test_a_family_that_is_given_is_not_doubted() -> None:
    """The model in a record is the backend's, and says nothing against the family asked for."""
    record = {"id": "t-1", "status": "queued", "model": "imga"}
    assert read_result(record, family="vidv").family == "vidv"
    assert Task(id="t-1", family="later", model="imga").known_family is None
