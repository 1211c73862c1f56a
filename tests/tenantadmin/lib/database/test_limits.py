"""The database ends statements that take long, and transactions that wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from select import select
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.backends.signals import connection_created

from tenantadmin.lib.database import connections
from tests import factories
from tests.conftest import ApiClient

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def limited() -> Iterator[None]:
    """Limit this process's connections: statements and waiting transactions to a second."""
    connections.limit_connections(statement_seconds=1, idle_transaction_seconds=1)
    connection.close()
    yield
    connection_created.disconnect(dispatch_uid=connections.__name__)
    connection.execute_wrappers.clear()
    connection.close()


def execute(statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()


@pytest.mark.usefixtures("limited")
def test_a_long_statement_fails_and_the_connection_stays_usable() -> None:
    started = time.monotonic()
    with pytest.raises(OperationalError, match="canceling statement due to statement timeout"):
        execute("SELECT pg_sleep(30)")
    assert 1 <= time.monotonic() - started < 10
    assert execute("SELECT 1") == (1,)


@pytest.mark.usefixtures("limited")
def test_a_server_that_does_not_answer_is_given_up() -> None:
    """Its own limit is of no use then."""
    (backend,) = execute("SELECT pg_backend_pid()")
    os.kill(backend, signal.SIGSTOP)
    started = time.monotonic()
    try:
        with pytest.raises(OperationalError, match="the server did not answer within 3 seconds"):
            execute("SELECT 1")
        assert 3 <= time.monotonic() - started < 10
        connection.close()
        assert execute("SELECT 1") == (1,)
    finally:
        os.kill(backend, signal.SIGCONT)


@pytest.mark.usefixtures("limited")
def test_a_transaction_that_waits_loses_its_connection_and_its_locks() -> None:
    def wait_in_a_transaction() -> None:
        with transaction.atomic():
            execute("SELECT pg_advisory_xact_lock(4711)")
            # Readable when the server has ended the connection.
            assert select([connection.connection], [], [], 10)[0]
            execute("SELECT 1")

    with pytest.raises(DatabaseError, match="idle-in-transaction timeout"):
        wait_in_a_transaction()
    connection.close()
    assert execute("SELECT pg_try_advisory_lock(4711)") == (True,)


@pytest.mark.usefixtures("limited")
def test_a_request_that_waits_for_a_lock_is_a_500_with_its_id() -> None:
    world = factories.make_world()
    client = ApiClient(factories.sign_in(world.owner))
    with psycopg.connect(**connection.get_connection_params()) as other:
        other.execute("LOCK TABLE accounts_revision IN ACCESS EXCLUSIVE MODE")
        started = time.monotonic()
        answer = client.get("/config/history", **{"X-Request-Id": "locked-1"})
        assert 1 <= time.monotonic() - started < 15
        other.rollback()
    assert (answer.status_code, answer.json()) == (
        500,
        {
            "error": "internal_error",
            "message": "The service failed to answer this request.",
            "requestId": "locked-1",
        },
    )
    assert client.get("/config/history").status_code == 200


_SHOW = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT current_setting('statement_timeout'),"
        " current_setting('idle_in_transaction_session_timeout')")
    print(*cursor.fetchone())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "shown"),
    [
        ("import tenantadmin.asgi", "5s 1min"),
        (
            "import tenantadmin.celery; from celery.signals import worker_process_init as s; s.send(None)",
            "10min 1min",
        ),
        ("import django; django.setup()", "0 0"),
    ],
    ids=["web", "worker", "command"],
)
def test_each_kind_of_process_has_its_limits(start: str, shown: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", f"{start}\n{_SHOW}"],
        cwd=Path(__file__).parents[4],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "tenantadmin.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.strip() == shown, ended.stderr
