"""Libraries that replace parts of the standard library or of requests, each in its own process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
HOMES = [str(TESTS), *(str(TESTS.parent / name) for name in ("protocol", "transports"))]

LIFECYCLE = """
import sys
sys.path[:0] = {homes}
import muybridge
from neighbours.conftest import KEY, PICTURE, serve
from transport.scripted_server import ScriptedServer

IMAGE = muybridge.ImgbRequest(model="imgb-2", prompt="a horse")

def client_of(server):
    return muybridge.Client(KEY, server.url, poll_interval=0, allow_insecure_downloads=True)

def lifecycle(client):
    result = client.run(IMAGE)
    assert result.id == "task-1", result
    return client.download(result, "picture.png").read_bytes()
"""


def run(before: str, after: str, folder: Path) -> str:
    """Run a program in which *before* comes before anything of ours, and return what it prints."""
    program = before + LIFECYCLE.format(homes=HOMES) + after
    done = subprocess.run(  # noqa: S603  our own code
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_gevent(tmp_path: Path) -> None:
    """Patched by gevent, creates at once are each sent once, and a timeout interrupts one."""
    before = "from gevent import monkey; monkey.patch_all()"
    after = """
import gevent
from transport.scripted_server import hang, read_request

with ScriptedServer(serve) as server:
    with client_of(server) as client:
        jobs = [gevent.spawn(client.create, IMAGE) for _ in range(20)]
        assert {job.get().id for job in jobs} == {"task-1"}
        assert server.posts == 20
        assert lifecycle(client) == PICTURE
        assert server.posts == 21

with ScriptedServer([read_request, hang]) as server:
    with muybridge.Client(KEY, server.url) as client:
        try:
            with gevent.Timeout(0.3):
                client.create(IMAGE)
        except gevent.Timeout as error:
            print("may have been accepted" in str(error.__notes__), server.posts)
"""
    assert run(before, after, tmp_path) == "True 1\n"


def test_truststore(tmp_path: Path) -> None:
    """With truststore in the place of ssl's context, certificates of the system are trusted."""
    before = "import truststore; truststore.inject_into_ssl()"
    after = """
import ssl, trustme
from pathlib import Path
from transport.certificates import server_context
from muybridge.wire.requests_transport import RequestsTransport

authority = trustme.CA()
authority.cert_pem.write_to_path("ca.pem")
context = server_context(authority, "127.0.0.1", "localhost")
with ScriptedServer(serve, tls=context) as server:
    with muybridge.Client(KEY, server.url) as client:
        try:
            client.create(IMAGE)
        except muybridge.NotSent as error:
            print(error.failure.reason.value, server.posts)
    trusting = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.load_verify_locations("ca.pem")
    transport = RequestsTransport(ssl_context=trusting)
    with muybridge.Client(KEY, server.url, transport=transport) as client:
        print(client.create(IMAGE).id, server.posts)
    transport.close()
"""
    assert run(before, after, tmp_path) == "certificate 0\ntask-1 1\n"


CASSETTE = """
import json, yaml
request = dict(method="POST", uri="http://any/", body="", headers={})
status = dict(code=200, message="OK")
said = json.dumps(dict(id="task-of-the-mock", object="imga", created=1, status="queued"))
headers = {"Content-Type": ["application/json"]}
response = dict(status=status, headers=headers, body=dict(string=said))
def save(name, *recorded):
    with open(name, "w") as file:
        file.write(yaml.safe_dump(dict(interactions=list(recorded), version=1)))
save("full.yaml", dict(request=request, response=response))
save("empty.yaml")
def cassette(name):
    return vcr.use_cassette(name, record_mode="none", match_on=["method"])
"""

MOCKS = {
    "requests-mock": """
import requests_mock
def full():
    mock = requests_mock.Mocker()
    mock.post(requests_mock.ANY, json=dict(id="task-of-the-mock", status="queued"))
    return mock
empty = requests_mock.Mocker
""",
    "responses": """
import re, responses
def full():
    mock = responses.RequestsMock()
    mock.post(re.compile(".*"), json=dict(id="task-of-the-mock", status="queued"))
    return mock
empty = responses.RequestsMock
""",
    "vcrpy": f"""
import vcr
{CASSETTE}
def full():
    return cassette("full.yaml")
def empty():
    return cassette("empty.yaml")
""",
}
"""Programs that define two mocks: one with a response to a create, and one without any."""


@pytest.mark.parametrize("mock", MOCKS.values(), ids=MOCKS)
@pytest.mark.parametrize("first", ["full", "empty"])
def test_the_first_client_is_made_under_a_mock(tmp_path: Path, mock: str, first: str) -> None:
    """A mock is obeyed if our module is imported under it, and no longer than it is there."""
    after = f"""
def create(client):
    try:
        return client.create(IMAGE).id
    except muybridge.NotSent as error:
        return error.failure.reason.value

with ScriptedServer(serve) as server:
    with {first}():
        client = client_of(server)
        told = [create(client), server.posts]
    told += [create(client), server.posts]
    with full():
        told += [create(client), server.posts]
    with empty():
        told += [create(client), create(client_of(server)), server.posts]
    print(*told, lifecycle(client) == PICTURE, server.posts, sep=", ")
"""
    began = "task-of-the-mock" if first == "full" else "refused here"
    others = "refused here, refused here"
    expected = f"{began}, 0, task-1, 1, task-of-the-mock, 1, {others}, 1, True, 2\n"
    assert run(mock, after, tmp_path) == expected


def test_recording_with_the_first_client(tmp_path: Path) -> None:
    """vcrpy records and plays back what the first client does; the key is not in the cassette."""
    after = """
with ScriptedServer(serve) as server:
    for _ in range(2):
        with vcr.use_cassette("cassette.yaml", record_mode="once"):
            with client_of(server) as client:
                assert lifecycle(client) == PICTURE
        Path("picture.png").unlink()
        print(server.posts)
    assert KEY not in Path("cassette.yaml").read_text()
"""
    assert run("import vcr; from pathlib import Path", after, tmp_path) == "1\n1\n"


@pytest.mark.parametrize("library", ["requests", "urllib3"])
def test_instrumented_before(tmp_path: Path, library: str) -> None:
    """An instrumentation that is there before us sees each exchange."""
    name = {"requests": "RequestsInstrumentor", "urllib3": "URLLib3Instrumentor"}[library]
    before = f"""
from opentelemetry.instrumentation.{library} import {name}
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
provider, exporter = TracerProvider(), InMemorySpanExporter()
provider.add_span_processor(SimpleSpanProcessor(exporter))
{name}().instrument(tracer_provider=provider)
"""
    after = """
with ScriptedServer(serve) as server:
    with client_of(server) as client:
        assert lifecycle(client) == PICTURE
    print(server.posts, len(exporter.get_finished_spans()))
"""
    assert run(before, after, tmp_path) == "1 3\n"


def test_requests_cache_by_itself(tmp_path: Path) -> None:
    """A cached session beside ours caches nothing of ours."""
    before = "import requests_cache; cached = requests_cache.CachedSession(backend='memory')"
    after = """
with ScriptedServer(serve) as server:
    with client_of(server) as client:
        cached.get(server.url)
        assert lifecycle(client) == PICTURE
        print(len(cached.cache.responses), server.posts)
"""
    assert run(before, after, tmp_path) == "1 1\n"


def test_requests_cache_installed(tmp_path: Path) -> None:
    """Where requests-cache has replaced requests' session, a client is refused by name."""
    before = "import requests_cache; requests_cache.install_cache(backend='memory')"
    after = """
try:
    muybridge.Client(KEY, "http://127.0.0.1:1")
except ImportError as error:
    print(error)
"""
    said = run(before, after, tmp_path)
    assert "requests_cache" in said
    assert "requests.Session" in said


def test_requests_cache_while_it_is_installed(tmp_path: Path) -> None:
    """A client that was refused beside requests-cache can be made once that is gone."""
    before = "import requests_cache"
    after = """
with requests_cache.enabled(backend="memory"):
    try:
        muybridge.Client(KEY, "http://127.0.0.1:1")
    except ImportError as error:
        print("requests_cache" in str(error))
with ScriptedServer(serve) as server:
    with client_of(server) as client:
        assert lifecycle(client) == PICTURE
        print(server.posts)
"""
    assert run(before, after, tmp_path) == "True\n1\n"


def test_requests_cache_installed_later(tmp_path: Path) -> None:
    """Installed after us, it replaces the session of others alone."""
    after = """
import requests_cache
with ScriptedServer(serve) as server:
    with client_of(server) as client:
        requests_cache.install_cache(backend="memory")
        assert lifecycle(client) == PICTURE
        print(len(requests_cache.get_cache().responses), server.posts)
"""
    assert run("", after, tmp_path) == "0 1\n"
