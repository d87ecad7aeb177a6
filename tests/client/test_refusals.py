"""A refusal counts as one only if it holds no task, and if nothing follows it.

A server really sends these bytes, and counts the POSTs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import muybridge
from muybridge.testing.certificates import server_context
from muybridge.testing.conformance.calling import authority
from muybridge_protocol.delivery import THROTTLED_TRIES
from tables import table
from transport.scripted_server import ScriptedServer, response_bytes

from .drivers import TRANSPORTS, AnyClient, MakeClient
from .requests_made import image

TASK = {"id": "t1", "object": "imga", "created": 1, "model": "imga", "status": "queued"}
NO = {"error": {"code": "rate_limit", "message": "slow down"}, "request_id": "r1"}


def written(value: object) -> bytes:
    return json.dumps(value).encode()


def within(value: object, layers: int = 1) -> bytes:
    """Return an error whose message is *value* as JSON, in so many layers."""
    for _ in range(layers):
        value = {"error": {"message": json.dumps(value)}}
    return written(value)


def chunked(status: int, *pieces: bytes) -> bytes:
    head = b"HTTP/1.1 %d Scripted\r\nTransfer-Encoding: chunked\r\n\r\n" % status
    return head + b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (*pieces, b""))


@pytest.fixture(params=TRANSPORTS)
def driver(request: pytest.FixtureRequest) -> str:
    """The name of the driver or transport under test."""
    name: str = request.param
    return name


CREATED = response_bytes(200, written(TASK))
FOLLOWED = {
    "counted": response_bytes(429, written(NO)) + CREATED,
    "closing": response_bytes(429, written(NO), connection="close") + CREATED,
    "empty": response_bytes(429, b"") + CREATED,
    "chunked": chunked(429, written(NO)[:9], written(NO)[9:]) + CREATED,
    "both chunked": chunked(429, written(NO)) + chunked(200, written(TASK)),
    "informed": b"HTTP/1.1 100 Continue\r\n\r\n" + response_bytes(429, written(NO)) + CREATED,
    "refused": response_bytes(400, written(NO)) + CREATED,
    "large": response_bytes(429, b'{"error":"%s"}' % (b"x" * 20_000)) + CREATED,
    "by a record": chunked(429, written(NO)) + written(TASK),
}


@pytest.mark.parametrize("whole", FOLLOWED.values(), ids=FOLLOWED)
def test_a_refusal_with_a_response_behind_it(make_client: MakeClient, whole: bytes) -> None:
    """A refusal that another response follows in the same bytes is ambiguous, with its id."""
    with ScriptedServer(answering(whole)) as server:
        check(make_client(server.url), server)


@pytest.mark.parametrize("case", ["counted", "chunked"])
def test_a_refusal_with_a_response_behind_it_over_tls(
    make_client: MakeClient, case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is over TLS."""
    trusted = tmp_path / "ca.pem"
    authority().cert_pem.write_to_path(str(trusted))
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(trusted))
    context = server_context(authority(), "127.0.0.1")
    with ScriptedServer(answering(FOLLOWED[case]), tls=context) as server:
        check(make_client(server.url), server)


@pytest.mark.parametrize("behind", [response_bytes(429, written(NO)), b"\r\n", b"?"])
def test_a_refusal_with_anything_behind_it(make_client: MakeClient, behind: bytes) -> None:
    """What follows a refusal need not be read: it makes the refusal ambiguous."""
    with ScriptedServer(answering(response_bytes(429, written(NO)) + behind)) as server:
        with pytest.raises(muybridge.CreateAmbiguous) as caught:
            make_client(server.url).create(image())
        assert server.posts == 1
    assert caught.value.candidate_id is None
    assert caught.value.raw == written(NO) + behind


def test_an_accepted_create_with_a_response_behind_it(make_client: MakeClient) -> None:
    """What follows the response that accepts a create does not undo it."""
    with ScriptedServer(answering(CREATED + response_bytes(429, written(NO)))) as server:
        assert make_client(server.url).create(image()).id == "t1"
        assert server.posts == 1


def ask(client: AnyClient) -> object:
    return client.generate_content("textg-2.5-pro", "A horse")


def stream(client: AnyClient) -> object:
    return client.stream_generate_content("textg-2.5-pro", "A horse").__enter__()


def call_any(client: AnyClient) -> object:
    return client.call("POST", "/v1/any", {})


@pytest.mark.parametrize("call", [ask, stream, call_any])
def test_other_paid_requests(make_client: MakeClient, call: Callable[[AnyClient], object]) -> None:
    """Nothing that costs money is sent again if something follows its refusal."""
    with ScriptedServer(answering(FOLLOWED["counted"])) as server:
        client = make_client("", text_base_url=server.url, base_url=server.url)
        with pytest.raises(muybridge.CreateAmbiguous):
            call(client)
        assert server.posts == 1


HOLDING = {
    "an envelope": written({"status": "queued", "data": {"id": "t1"}}),
    "an envelope of a task": written({"state": "PROCESSING", "task": {"id": "t1", "x": 1}}),
    "in a text": within(TASK),
    "in a text of a text": within(TASK, 3),
    "in a text among words": written({"error": f"upstream said {json.dumps(TASK)}; try again"}),
    "in a text that is cut": written({"error": json.dumps(TASK)[:-3]}),
    "in a text of what is cut": within(TASK)[:-3],
    "the body is a text": written(json.dumps(TASK)),
    **{
        f"in {coding}": json.dumps({"detail": [TASK]}).encode(coding)
        for coding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be")
    },
    "cut in utf-16": json.dumps(TASK).encode("utf-16")[:-3],
    **{
        f"{name} beside {state}": written({**NO, "data": [{name: "t1", key: state}]})
        for name, key, state in (
            ("jobId", "status", "queued"),
            ("job_id", "state", "PENDING"),
            ("uuid", "status", "IN_QUEUE"),
            ("request_id", "status", "IN_PROGRESS"),
            ("requestId", "status", "processing"),
            ("generation_id", "state", "Completed"),
            ("predictionId", "phase", "running"),
            ("GUID", "jobState", "JOB_STATE_SUCCEEDED"),
            ("taskUUID", "task_status", "TASK_STATUS_QUEUED"),
            ("id", "state", "in progress"),
            ("identifier", "status", "submitted"),
        )
    },
    "beside an object": written({"jobId": "t1", "status": {"code": 1, "name": "queued"}}),
    "beside the request's id": written({"request_id": "r1", "jobId": "t1", "status": "queued"}),
    "cut": written({"uuid": "t1", "status": "IN_QUEUE"})[:-1],
    "in a line": written(NO) + b"\n" + written({"jobId": "t1", "state": "running"}),
}


@pytest.mark.parametrize("status", [429, 422])
@table("name", HOLDING)
def test_a_refusal_that_holds_a_task(make_client: MakeClient, name: str, status: int) -> None:
    """A refusal that holds a task in any encoding, under any name, is ambiguous, with its id."""
    with ScriptedServer(answering(response_bytes(status, HOLDING[name]))) as server:
        check(make_client(server.url), server)


REFUSALS = {
    "an error in an envelope": {"status": "success", "error": {"id": "r1"}},
    "limited": {"id": "r1", "status": "rate_limit_exceeded"},
    "a process": {"pid": 1, "status": "running"},
    "chat": {"error": {"message": "Rate limit reached", "type": "requests", "param": None,
                       "code": "rate_limit_exceeded"}},
    "messages": {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"},
                 "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"},
    "native": {"error": {"code": 429, "message": "Resource exhausted", "status":
                         "RESOURCE_EXHAUSTED", "details": [
                             {"@type": "type.googleapis.com/google.rpc.RetryInfo",
                              "retryDelay": "30s"},
                             {"@type": "type.googleapis.com/google.rpc.RequestInfo",
                              "requestId": "r1", "servingData": ""}]}},
    "native, in an array": [{"error": {"code": 400, "message": "API key not valid", "status":
                                       "INVALID_ARGUMENT"}}],
    "ours": {"error": {"code": "invalid_request", "message": "no", "problems": [
        {"field": "prompt", "message": "it is missing"}]}},
    "detail": {"detail": "User is locked. Reason: Exhausted balance."},
    "validation": {"detail": [{"loc": ["body", "prompt"], "msg": "field required", "type":
                               "value_error.missing", "ctx": {"request_id": "r1"}}]},
    "problem": {"title": "Rate limited", "detail": "Request was throttled.", "status": 429,
                "instance": "urn:uuid:1", "request_id": "r1"},
    "asset": {"code": "1", "msg": "no", "data": None},
    "coded": {"code": 1302, "message": "account rate limit", "request_id": "CjMT7WdSwWcAAAAA"},
    "enveloped": {"base_resp": {"status_code": 1002, "status_msg": "rate limit"}, "task_id": ""},
    "throttling": {"code": "Throttling.RateQuota", "message": "no", "request_id": "r1"},
    "usual": {"error": "slow down", "request_id": "r1"},
    "usual, in camel case": {"error": "slow down", "requestId": "r1", "traceId": "x"},
    "unknown state": {"error": "slow down", "request_id": "r1", "status": "throttled"},
    "unknown state of an id": {"id": "r1", "status": "throttled"},
    "failed": {"jobId": "j1", "status": "failed"},
    "rejected": {"uuid": "u1", "state": "rejected"},
    "numbers": {"request_id": "r1", "status": 429, "state": 3},
    "state elsewhere": {"request_id": "r1", "limits": {"status": "pending"}},
    "not an id": {"valid": "no", "paid": "no", "status": "pending"},
    "an id that is none": {"jobId": None, "uuid": "", "request_id": True, "status": "queued"},
    "a text": {"error": 'send {"prompt": "a horse"}', "request_id": "r1"},
    "a text with an error": {"error": json.dumps(NO), "status": "error"},
}  # fmt: skip


@table("name", REFUSALS)
def test_a_refusal_as_services_word_it(make_client: MakeClient, name: str) -> None:
    """An error of a service is a refusal, whatever ids it has: a 429 is tried again."""
    with ScriptedServer(answering(response_bytes(429, written(REFUSALS[name])))) as server:
        with pytest.raises(muybridge.RateLimited):
            make_client(server.url).create(image())
        assert server.posts == THROTTLED_TRIES


def answering(whole: bytes) -> Callable[[Any], None]:
    """Return a script that answers each request with the same bytes, sent at once."""

    def script(peer: Any) -> None:
        while True:
            peer.read_request()
            peer.send(whole)

    return script


def check(client: AnyClient, server: ScriptedServer) -> None:
    """Check that a create is ambiguous, names the task, and is sent once."""
    with pytest.raises(muybridge.CreateAmbiguous) as caught:
        client.create(image())
    assert caught.value.candidate_id == "t1"
    assert caught.value.raw
    assert server.posts == 1
