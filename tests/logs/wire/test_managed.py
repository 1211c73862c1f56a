"""A catalog server as providers run it: by TLS alone, with SCRAM."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import hmac
import operator
import queue
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from logs.wire import messages
from logs.wire.catalog import Backend, Catalog, NotPrepared, Unavailable, prepare_catalog
from logs.wire.messages import LOST, Message, ProtocolError, Stream
from tests.gateway.faces.tls import HOST, make_certificate

PASSWORD = "of the superuser"
SALT = b"0123456789abcdef"


class Managed:
    """A server that encrypts, asks for a password, and then lets clients speak to the server of the tests."""

    def __init__(self, tls: ssl.SSLContext, behind: str, passwords: dict[str, str]) -> None:
        self._tls, self._behind, self._passwords = tls, behind, passwords

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stream = Stream(reader, writer)
        # Clients that do not trust it, or have another password, leave.
        with (
            contextlib.suppress(*LOST),
            contextlib.closing(stream),
        ):
            code, _ = await stream.read_startup()
            if code != messages.SSL_REQUEST:
                return
            await stream.start_tls(self._tls)
            code, startup = await stream.read_startup()
            if code != messages.CANCEL_REQUEST:
                user = messages.read_parameters(startup)["user"]
                await prove(stream, self._passwords.get(user, "nobody's"))
            answers, asking = await asyncio.open_unix_connection(self._behind)
            asking.write(messages.pack_request(code, startup))
            await asyncio.gather(pump(reader, asking), pump(answers, writer))


async def prove(stream: Stream, password: str) -> None:
    """Ask by SCRAM-SHA-256 (RFC 5802). libpq names no user in it, which libraries for servers refuse."""
    await stream.send(Message(b"R", struct.pack("!i", 10) + b"SCRAM-SHA-256\0\0"))
    bare = (await stream.read()).body.split(b"\0", 1)[1][4:].split(b",", 2)[2]
    challenge = b"r=" + bare.split(b"r=")[1] + b"more,s=" + base64.b64encode(SALT) + b",i=4096"
    await stream.send(Message(b"R", struct.pack("!i", 11) + challenge))
    final, proof = (await stream.read()).body.split(b",p=")
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), SALT, 4096)
    key, text = hmac.digest(salted, b"Client Key", "sha256"), b",".join((bare, challenge, final))
    signature = hmac.digest(hashlib.sha256(key).digest(), text, "sha256")
    if base64.b64decode(proof) != bytes(map(operator.xor, key, signature)):
        raise ProtocolError("Another password.")
    own = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), text, "sha256")
    await stream.send(Message(b"R", struct.pack("!i", 12) + b"v=" + base64.b64encode(own)))


async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.closing(target):
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()


@pytest.fixture
def server(transactional_db: None, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Settings of a database, as SQL_CATALOG_URL gives them."""
    tls, authority = make_certificate(tmp_path)
    place = connection.settings_dict
    behind = f"{place['HOST']}/.s.PGSQL.{place['PORT'] or 5432}"
    catalog = prepare_catalog({**place, "OPTIONS": {}}, secret=settings.SECRET_KEY, connections=60)
    managed = Managed(tls, behind, {place["USER"]: PASSWORD, catalog.database: catalog.password})
    options = {"sslmode": "verify-full", "sslrootcert": str(authority)}
    ports, loop = queue.SimpleQueue[int](), asyncio.new_event_loop()

    async def serve() -> None:
        listening = await asyncio.start_server(managed.speak, "127.0.0.1", 0)
        ports.put(listening.sockets[0].getsockname()[1])
        await stopped.wait()
        listening.close()

    stopped = asyncio.Event()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        thread = threading.Thread(target=runner.run, args=(serve(),))
        thread.start()
        yield {**place, "HOST": HOST, "PORT": ports.get(timeout=10), "PASSWORD": PASSWORD, "OPTIONS": options}
        loop.call_soon_threadsafe(stopped.set)
        thread.join()


def prepare(server: dict[str, Any]) -> Catalog:
    return prepare_catalog(server, secret=settings.SECRET_KEY, connections=60)


async def ask(catalog: Catalog) -> dict[str, str]:
    backend = await Backend.connect(catalog, {"application_name": "tests"})
    await backend.cancel()
    backend.close()
    return backend.parameters


def test_the_catalog_is_made_and_asked_by_tls(server: dict[str, Any]) -> None:
    catalog = prepare(server)
    assert asyncio.run(ask(catalog))["application_name"] == "tests"
    # Without a file of authorities, `require` trusts any.
    assert asyncio.run(ask(replace(catalog, sslmode="require", sslrootcert="")))["is_superuser"] == "off"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sslrootcert": ""}, "certificate verify failed"),
        ({"password": "another"}, "bytes read|reset"),
        ({"sslmode": "prefer"}, "bytes read|reset"),
        ({"database": "nobody", "password": "nobody's"}, 'role "nobody" does not exist'),
    ],
)
def test_another_server_is_not_asked(server: dict[str, Any], change: dict[str, Any], reason: str) -> None:
    catalog = replace(prepare(server), **change)
    with pytest.raises(Unavailable, match=reason) as raised:
        asyncio.run(ask(catalog))
    assert isinstance(raised.value, NotPrepared) == ("role" in reason)


def test_a_server_without_tls_is_not_asked(server: dict[str, Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as plain:

        def refuse() -> None:
            client, _ = plain.accept()
            with client:
                client.recv(8)
                client.sendall(b"N")
                client.recv(1)

        threading.Thread(target=refuse, daemon=True).start()
        catalog = replace(prepare(server), port=plain.getsockname()[1])
        with pytest.raises(Unavailable, match="has no TLS"):
            asyncio.run(ask(catalog))
