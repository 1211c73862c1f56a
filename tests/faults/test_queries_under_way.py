"""A SQL query under way when its caller goes, or when the web server is told to stop."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable

import pytest
from django.db import connection

from logs.models import QueryRun
from tenantadmin.run.serve import web
from tests import factories
from tests.faults.web_server import Server, read_all

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def start_server(*, seconds: int) -> Server:
    """Start a web server with the database of this test, whose queries may take so many seconds."""
    database = re.sub(
        r"/[^/?]*(?=\?|$)", f"/{connection.settings_dict['NAME']}", os.environ["DATABASE_URL"], count=0
    )
    return Server(DATABASE_URL=database, SQL_TIMEOUT_SECONDS=str(seconds))


def ask_endlessly(server: Server) -> socket.socket:
    """Send a query that takes all of its time, and return the connection when the query runs."""
    world = factories.make_world()
    body = json.dumps({"sql": "SELECT sum(hash(i)) FROM range(1000000000000) t(i)"})
    caller = server.connect(
        f"POST /tenants/{world.tenant.pk}/query HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {factories.sign_in(world.owner)}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
    )
    wait_until(lambda: QueryRun.objects.filter(outcome="running").exists())
    time.sleep(0.5)
    return caller


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.nginx
def test_a_query_ends_when_its_caller_hangs_up() -> None:
    server = start_server(seconds=60)
    try:
        ask_endlessly(server).close()
        wait_until(lambda: QueryRun.objects.get().outcome != "running")
    finally:
        server.kill()
    run = QueryRun.objects.get()
    assert run.outcome == "query_cancelled"
    assert run.duration_ms is not None
    # Sooner than a proxy gives up by itself, and than the query ends.
    assert 500 <= run.duration_ms < 25_000


def test_a_query_is_answered_before_a_server_that_was_told_to_stop_ends() -> None:
    server = start_server(seconds=5)
    try:
        caller = ask_endlessly(server)
        server.process.send_signal(signal.SIGTERM)
        answer = read_all(caller)
        assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert b'"error":"query_timeout"' in answer
        assert server.process.wait(web.STOP_SECONDS) == 0
    finally:
        server.kill()
    assert QueryRun.objects.get().outcome == "query_timeout"
