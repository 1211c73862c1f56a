"""Others at PostgreSQL's port beside slow clients, which have asked for rows and do not read them."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import ssl
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import psycopg
from django.core.management import call_command

from accounts.access.scopes import Scope
from accounts.models import Account, Membership
from bench import raw_logs
from bench.harness import ROOT, Compared, free_port, p95, show, time_of, wait_for
from logs.wire.messages import SSL_REQUEST, Message, pack_request, pack_startup
from tests import factories
from tests.gateway.faces.tls import HOST, make_certificate

_DAY = date(2026, 3, 1)
#: A caller may keep 160 MiB of unread results, and all callers 320 MiB.
_SLOW_PER_CALLER = 10
_WIDE = "SELECT repeat('x', 1000) FROM range(5000) UNION ALL SELECT day FROM proxy_logs LIMIT 5000"
_NUMBERS = itertools.count()


def main(
    directory: Path, *, entries: int = 20_000, clients: int = 50, rounds: int = 5, requests: int = 100
) -> None:
    world = factories.make_world()
    Account.objects.update(plan="enterprise")
    raw_logs.write_ndjson(directory / "objects", tenant=world.tenant.pk, day=_DAY, entries=entries)
    call_command("rebuild", tenant=world.tenant.pk)
    tenants = [str(world.tenant.pk)]
    token = factories.pat_secret(world.member, Scope.LOGS_QUERY, tenants=tenants)
    slow = []
    for number in range(0, clients, _SLOW_PER_CALLER):
        member = factories.make_user(f"slow{number}@example.org")
        Membership.objects.create(user=member, tenant=world.tenant, role="member")
        slow.append(factories.pat_secret(member, Scope.LOGS_QUERY, tenants=tenants))
    with served(directory, connections=10 * clients) as (port, authority):
        address = psycopg.conninfo.make_conninfo(
            host=HOST,
            port=port,
            dbname=tenants[0],
            user="anyone",
            password=token,
            sslmode="verify-full",
            sslrootcert=str(authority),
        )
        with psycopg.connect(address, autocommit=True) as connection:
            works: dict[str, Callable[[], object]] = {
                "a query of the log": lambda: connection.execute(new_query()).fetchall(),
                "a statement of the catalog": lambda: connection.execute("SHOW timezone").fetchall(),
            }
            calm: dict[str, list[float]] = {name: [] for name in works}
            slowed: dict[str, list[float]] = {name: [] for name in works}
            for work in works.values():
                work()
            for _ in range(rounds):
                measure(works, calm, requests)
                with contextlib.ExitStack() as stack:
                    for number in range(clients):
                        password = slow[number // _SLOW_PER_CALLER]
                        stack.enter_context(slow_client(port, authority, tenants[0], password))
                    measure(works, slowed, requests)
    rows = [
        Compared(f"{name}, {clients} slow clients", p95(slowed[name]), "none", p95(calm[name]), 1.5)
        for name in works
    ]
    show("p95 of a client at PostgreSQL's port beside clients that do not read", "ms", rows)


def measure(works: dict[str, Callable[[], object]], times: dict[str, list[float]], requests: int) -> None:
    for name, work in works.items():
        times[name] += [time_of(work) for _ in range(requests)]


def new_query() -> bytes:
    """Return a query that differs from all before, so that no kept result answers it."""
    return b"SELECT %d, cacheStatus, count(*) FROM proxy_logs GROUP BY ALL" % next(_NUMBERS)


@contextlib.contextmanager
def served(directory: Path, *, connections: int) -> Iterator[tuple[int, Path]]:
    """Serve the port as in production. Yield it, and the file of the authority of its certificate."""
    _, authority = make_certificate(directory)
    port = free_port()
    variables = {
        **os.environ,
        "SQL_CATALOG_URL": os.environ["DATABASE_URL"],
        "SQL_TLS_CERTIFICATE": str(directory / "server.pem"),
        "SQL_CONNECTIONS": str(connections),
    }
    command = [sys.executable, "-m", "logs.wire", "--port", str(port)]
    server = subprocess.Popen(command, cwd=ROOT, env=variables, stdout=subprocess.DEVNULL)
    try:
        wait_for(port, server)
        yield port, authority
    finally:
        server.terminate()
        server.wait(20)


@contextlib.contextmanager
def slow_client(port: int, authority: Path, database: str, password: str) -> Iterator[None]:
    """Sign in, ask for 5 MB of rows, and read the first bytes alone."""
    with socket.socket() as connection:
        # The system keeps little for the client.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.sendall(pack_request(SSL_REQUEST))
        if connection.recv(1) != b"S":
            raise RuntimeError("The port has no TLS.")
        context = ssl.create_default_context(cafile=str(authority))
        with context.wrap_socket(connection, server_hostname=HOST) as encrypted:
            encrypted.sendall(pack_startup({"user": "slow", "database": database}))
            encrypted.sendall(Message(b"p", password.encode() + b"\0").pack())
            encrypted.sendall(Message(b"Q", _WIDE.encode() + b"\0").pack())
            while (found := read(encrypted)).kind != b"D":
                if found.kind == b"E":
                    raise RuntimeError(found.body.decode(errors="replace"))
            yield


def read(connection: socket.socket) -> Message:
    kind, length = struct.unpack("!ci", take(connection, 5))
    return Message(kind, take(connection, length - 4))


def take(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise RuntimeError("The port has closed the connection.")
        data += piece
    return data
