"""Which CA certificates are trusted, and what an error says about them."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from muybridge import NotSent
from muybridge.testing.certificates import server_context
from muybridge_protocol.http import Reason
from transport.scripted_server import ScriptedServer, serve

from .drivers import TRANSPORTS, MakeClient
from .requests_made import image

VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
"""The first one that is set counts."""
CREATED = b'{"id": "task-1", "object": "imga", "created": 1, "status": "queued"}'


@pytest.fixture(params=TRANSPORTS)
def driver(request: pytest.FixtureRequest) -> str:
    """The name of the driver or transport under test."""
    name: str = request.param
    return name


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path) -> str:
    """A file with the certificate of the authority."""
    path = str(tmp_path / "ca.pem")
    authority.cert_pem.write_to_path(path)
    return path


def refused(make_client: MakeClient, authority: trustme.CA, *hosts: str) -> NotSent:
    """Return the error of a create for a server with a certificate for *hosts*."""
    tls = server_context(authority, *(hosts or ("127.0.0.1",)))
    with ScriptedServer(serve(200, CREATED), tls=tls) as server:
        with pytest.raises(NotSent) as caught:
            make_client(server.url).create(image())
        assert server.posts == 0
    assert caught.value.failure.reason is Reason.CERTIFICATE
    return caught.value


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_variable(
    make_client: MakeClient,
    authority: trustme.CA,
    trusted: str,
    variable: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The CA certificates in the file that any of the variables names are trusted."""
    monkeypatch.setenv(variable, trusted)
    with ScriptedServer(serve(200, CREATED), tls=server_context(authority, "127.0.0.1")) as server:
        assert make_client(server.url).create(image()).id == "task-1"


@pytest.mark.parametrize("place", [0, 1])
def test_the_first_variable_counts(
    make_client: MakeClient,
    authority: trustme.CA,
    trusted: str,
    place: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two variables the first counts alone, even if the other one names the right file."""
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    monkeypatch.setenv(VARIABLES[place], str(other))
    monkeypatch.setenv(VARIABLES[place + 1], trusted)
    told = str(refused(make_client, authority))
    assert f"now {VARIABLES[place]} names the CA certificates" in told


def test_an_unknown_issuer(make_client: MakeClient, authority: trustme.CA) -> None:
    """If the certificate's issuer is not trusted, the error names the variable to set."""
    told = str(refused(make_client, authority))
    assert "to trust its CA, set REQUESTS_CA_BUNDLE to the CA's certificate file" in told
    assert "now" not in told.partition("REQUESTS_CA_BUNDLE")[2].partition(")")[0]


def test_another_host(
    make_client: MakeClient, authority: trustme.CA, trusted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trusted certificate for another host is not a matter of CA certificates."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", trusted)
    assert "CA_BUNDLE" not in str(refused(make_client, authority, "elsewhere.example"))


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("content", [None, b"", b"no certificate"], ids=["none", "empty", "other"])
def test_a_file_that_cannot_be_read(
    make_client: MakeClient,
    variable: str,
    content: bytes | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file that is missing or holds no certificate is an error that names it and its variable."""
    path = tmp_path / "missing.pem"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv(variable, str(path))
    with pytest.raises(NotSent) as caught:
        make_client("https://127.0.0.1:9").create(image())
    told = str(caught.value)
    assert f"the CA certificates at {path}, which {variable} names, cannot be read: " in told
    assert caught.value.attempts == 1
