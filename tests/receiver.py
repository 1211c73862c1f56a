"""A stub receiver of webhooks: a real https server that answers what a test tells it to."""

from __future__ import annotations

import datetime as dt
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

#: A name of the certificate that no name server knows.
HOST: Final = "hook.example.org"


class Receiver:
    """The messages that arrived, and how the stub answers them: `respond` writes the whole answer."""

    def __init__(self) -> None:
        self.messages: list[tuple[dict[str, str], bytes]] = []
        self.status = 204
        self.respond: Callable[[BaseHTTPRequestHandler], None] | None = None
        self.port = 0
        #: Tells handlers that wait that the test is over.
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}/hook?a=b"

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _ in self.messages]

    def bodies(self) -> list[Any]:
        return [json.loads(body) for _, body in self.messages]


@contextmanager
def running_receiver(directory: Path) -> Iterator[Receiver]:
    """Run the stub on 127.0.0.1 until the block ends. ``directory`` gets ``cert.pem``."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.messages.append(({key.lower(): value for key, value in self.headers.items()}, body))
            try:
                if receiver.respond is not None:
                    receiver.respond(self)
                else:
                    self.send_response(receiver.status)
                    self.send_header("Location", receiver.url)
                    self.end_headers()
            except OSError:
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Say nothing of a client that hung up."""

    write_certificate(directory)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory / "cert.pem", directory / "key.pem")
    server = Server(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    receiver.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        receiver.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def write_certificate(directory: Path) -> None:
    """Write a certificate for 127.0.0.1 and `HOST`, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "stub")])
    names = x509.SubjectAlternativeName(
        [x509.DNSName(HOST), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    moment = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - dt.timedelta(days=1))
        .not_valid_after(moment + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (directory / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (directory / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )


@pytest.fixture
def receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Iterator[Receiver]:
    """Run a receiver that the settings allow."""
    settings.WEBHOOK_EXCEPTIONS = ["127.0.0.0/8"]
    with running_receiver(tmp_path) as stub:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        yield stub
