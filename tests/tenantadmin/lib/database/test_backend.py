"""The health check of connections: it asks the server only if the socket says that something has happened."""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.db.backends.postgresql import base

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper

    from tenantadmin.lib.database.postgresql.base import DatabaseWrapper

pytestmark = pytest.mark.django_db


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return what the server was asked, and whether it answered."""
    checks: list[bool] = []
    ask = base.DatabaseWrapper.is_usable

    def count(wrapper: base.DatabaseWrapper) -> bool:
        checks.append(ask(wrapper))
        return checks[-1]

    monkeypatch.setattr(base.DatabaseWrapper, "is_usable", count)
    return checks


def run(wrapper: BaseDatabaseWrapper, statement: str) -> object:
    with wrapper.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone() if cursor.description else None


def wait_until_readable(wrapper: DatabaseWrapper) -> None:
    assert select.select([wrapper.connection.pgconn.socket], [], [], 20)[0]


def test_a_quiet_connection_is_usable_without_a_query(other: DatabaseWrapper, checks: list[bool]) -> None:
    run(other, "SELECT 1")
    assert other.is_usable()
    assert checks == []


def test_a_connection_that_the_server_ended_is_not(other: DatabaseWrapper, checks: list[bool]) -> None:
    other.connect()
    pid = other.connection.info.backend_pid
    run(connection, f"SELECT pg_terminate_backend({pid}, 5000)")
    wait_until_readable(other)
    assert not other.is_usable()
    assert checks == [False]


def test_a_server_that_has_something_to_tell_is_asked(
    connect: Callable[[], DatabaseWrapper], checks: list[bool]
) -> None:
    other, sender = connect(), connect()
    run(other, "LISTEN news")
    run(sender, "NOTIFY news")
    wait_until_readable(other)
    assert other.is_usable()
    assert checks == [True]
    assert other.is_usable()
    assert checks == [True]


def test_a_failed_transaction_is_not_usable(other: DatabaseWrapper, checks: list[bool]) -> None:
    other.connect()
    other.set_autocommit(False)
    with pytest.raises(Exception, match="division by zero"):
        run(other, "SELECT 1 / 0")
    assert not other.is_usable()
    assert checks == [False]
    other.rollback()


def test_a_closed_connection_is_not_usable(other: DatabaseWrapper) -> None:
    other.connect()
    other.close()
    assert not other.is_usable()
