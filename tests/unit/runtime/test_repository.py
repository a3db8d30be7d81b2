"""Jars from a repository whose certificate only this machine's settings vouch for."""

from __future__ import annotations

import datetime
import hashlib
import http.server
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mcspark.runtime import jars as lightgbm_jars
from mcspark.runtime import repository
from mcspark.runtime.features import FEATURES
from mcspark.runtime.jars import NEEDED, UnresolvedError
from mcspark.runtime.repository import RepositoryError, downloaded

CONTENT = {"/org/one/a-b/1.0/a-b-1.0.jar": b"first", "/org/two/c_2.13/2/c_2.13-2.jar": b"second"}
JARS = {
    hashlib.sha256(b"first").hexdigest(): "org.one:a-b:1.0",
    hashlib.sha256(b"second").hexdigest(): "org.two:c_2.13:2",
}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an authority that nobody knows, for this machine; with its key in the same file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.timezone.utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a company")])
    day, here = datetime.timedelta(days=1), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    signed = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - day).not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName([here]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path_factory.mktemp("authority") / "company.pem"
    file.write_bytes(private + signed.public_bytes(serialization.Encoding.PEM))
    return file


@pytest.fixture
def server(certificate: Path) -> Iterator[SimpleNamespace]:
    """A repository by HTTPS; what was asked of it is in ``asked``."""
    asked: list[str] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = content.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None: ...

    content = dict(CONTENT)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as serving:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        serving.socket = context.wrap_socket(serving.socket, server_side=True)
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield SimpleNamespace(
            address=f"https://127.0.0.1:{serving.server_address[1]}", asked=asked, content=content
        )
        serving.shutdown()


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_what_the_machine_trusts_is_trusted(variable, server, certificate, tmp_path, monkeypatch):
    environ = {"REQUESTS_CA_BUNDLE": str(certificate)}
    if variable == "SSL_CERT_FILE":
        monkeypatch.setenv(variable, str(certificate))
        environ = {}
    found = downloaded(JARS, tmp_path / "new", server.address, environ)
    assert [(jar.name, jar.read_bytes()) for jar in found] == [
        ("a-b-1.0.jar", b"first"), ("c_2.13-2.jar", b"second"),
    ]  # fmt: skip
    assert server.asked == list(CONTENT)
    assert downloaded(JARS, tmp_path / "new", server.address, environ) == found
    assert server.asked == list(CONTENT)  # kept
    found[0].write_bytes(b"spoiled")
    assert downloaded(JARS, tmp_path / "new", server.address, environ)[0].read_bytes() == b"first"


def test_a_stranger_is_not_trusted(server, tmp_path, monkeypatch):
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(RepositoryError, match="CERTIFICATE_VERIFY_FAILED"):
        downloaded(JARS, tmp_path, server.address, {})
    assert server.asked == []


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"not the first", "a-b-1.0.jar has the SHA-256 .* and not "), (None, "404|Not Found")],
)
def test_another_content_and_none_are_refused_and_leave_nothing(
    content, words, server, certificate, tmp_path
):
    server.content[next(iter(CONTENT))] = content
    with pytest.raises(RepositoryError, match=words):
        downloaded(JARS, tmp_path, server.address, {"REQUESTS_CA_BUNDLE": str(certificate)})
    assert list(tmp_path.iterdir()) == []


def test_nobody_there_and_a_bundle_that_is_not_there_are_sentences(tmp_path):
    with pytest.raises(RepositoryError, match=r"^URLError: .*refused"):
        downloaded(JARS, tmp_path, "https://127.0.0.1:9", {})
    with pytest.raises(RepositoryError, match="No such file"):
        downloaded(JARS, tmp_path, "https://127.0.0.1:9", {"REQUESTS_CA_BUNDLE": str(tmp_path / "none")})


def test_every_jar_has_a_place_in_a_repository():
    builds = [build.jars for feature in FEATURES.values() for build in feature.builds.values()]
    for digest, name in [pair for jars in [NEEDED, *builds] for pair in jars.items()]:
        assert len(digest) == 64
        assert len(name.split(":")) == 3


@pytest.fixture
def java_cannot(monkeypatch):
    """Spark's resolver fails; settings of the session to be filled in."""
    given: dict[str, str] = {}

    def resolved(*_):
        raise UnresolvedError("SSLHandshakeException: not trusted")

    monkeypatch.setattr(lightgbm_jars, "_resolved", resolved)
    monkeypatch.setattr(lightgbm_jars.jvm, "settings", lambda: given)
    return given


def test_python_fetches_what_java_cannot(java_cannot, server, certificate, tmp_path, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(repository.downloaded, "__defaults__", (server.address, {}))
    for _ in range(2):
        found = lightgbm_jars.fetched("org.one:a-b:1.0", "", JARS)
        assert found == [str(tmp_path / "mcspark/jars" / Path(name).name) for name in CONTENT]
    assert server.asked == list(CONTENT)  # and kept for the next session, which asks nobody


def test_where_an_operator_names_a_repository_no_other_one_is_asked(java_cannot, server, tmp_path):
    java_cannot["spark.jars.repositories"] = "https://ours"
    with pytest.raises(UnresolvedError, match=r"^SSLHandshakeException: not trusted$"):
        lightgbm_jars.fetched("org.one:a-b:1.0", "", JARS)
    assert server.asked == []
