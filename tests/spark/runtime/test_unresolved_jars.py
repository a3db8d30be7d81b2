"""Jars that cannot be resolved: the message names the real cause."""

from __future__ import annotations

import ipaddress
import ssl
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mcspark.errors import ConfigurationError
from mcspark.runtime import jars


def certificate(path: Path) -> None:
    """A key and a certificate for this machine that nobody trusts."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(timezone.utc)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    here = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    built = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(1), now + timedelta(1))
    signed = built.add_extension(here, critical=False).sign(key, hashes.SHA256())
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    path.write_bytes(signed.public_bytes(pem) + key.private_bytes(pem, *form))


@pytest.fixture
def untrusted(tmp_path: Path) -> Iterator[str]:
    """An HTTPS server on this machine with such a certificate."""
    certificate(tmp_path / "server.pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


def test_the_cause_is_named(spark, untrusted, tmp_path):
    jvm = spark._jvm
    keys = ("spark.jars.ivySettings", "spark.jars.ivy")
    before = {key: jvm.java.lang.System.getProperty(key) for key in keys}
    causes = {untrusted: "certificate there is not trusted", "http://127.0.0.1:9/": "offline"}
    try:
        for place, (root, mend) in enumerate(causes.items()):
            file, ivy = tmp_path / f"ivysettings-{place}.xml", tmp_path / f"ivy-{place}"
            file.write_text(
                f'<ivysettings><settings defaultResolver="r"/><caches defaultCacheDir="{ivy}"/><resolvers>'
                f'<ibiblio name="r" m2compatible="true" root="{root}"/></resolvers></ivysettings>'
            )
            jvm.java.lang.System.setProperty("spark.jars.ivySettings", str(file))
            jvm.java.lang.System.setProperty("spark.jars.ivy", str(ivy))
            with pytest.raises(ConfigurationError, match="could not be resolved") as refused:
                jars.fetched_jars()
            assert mend in str(refused.value)
            assert root in str(refused.value)
            assert "An error occurred while calling" not in str(refused.value)
    finally:
        for key, value in before.items():
            (jvm.java.lang.System.clearProperty(key) if value is None
             else jvm.java.lang.System.setProperty(key, value))  # fmt: skip
