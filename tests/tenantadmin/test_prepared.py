"""A `PreparedQuery` gives the same rows and errors as Django's cursor."""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import DataError, OperationalError, ProgrammingError, connection, transaction

from tenantadmin.lib.database.prepared import PreparedQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db(transaction=True)

QUERY = PreparedQuery("SELECT name, born, %s || '!' FROM prepared_people WHERE name = %s")
BORN = dt.datetime(1815, 12, 10, 1, 2, 3, 450, tzinfo=dt.UTC)
ADA = ("Ada", BORN, "hi!")


def execute(sql: str, parameters: list[Any] | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)


@pytest.fixture(autouse=True)
def people() -> Iterator[None]:
    execute("CREATE TABLE prepared_people (name text PRIMARY KEY, born timestamptz)")
    execute("INSERT INTO prepared_people VALUES ('Ada', %s)", [BORN])
    yield
    connection.close()
    execute("DROP TABLE prepared_people")


def test_repeated_calls_return_the_row() -> None:
    assert [QUERY.fetch_one("hi", "Ada") for _ in range(3)] == [ADA] * 3
    assert QUERY.fetch_one("hi", "Grace") is None


@pytest.mark.parametrize("is_atomic", [False, True])
def test_none_is_null(is_atomic: bool) -> None:
    with transaction.atomic() if is_atomic else nullcontext():
        assert QUERY.fetch_one(None, "Ada") == ("Ada", BORN, None)
        assert QUERY.fetch_one("hi", None) is None


def test_a_transaction_sees_its_own_writes() -> None:
    assert QUERY.fetch_one("hi", "Grace") is None
    with transaction.atomic():
        execute("INSERT INTO prepared_people VALUES ('Grace', %s)", [BORN])
        assert QUERY.fetch_one("hi", "Grace") == ("Grace", BORN, "hi!")
        transaction.set_rollback(True)
    assert QUERY.fetch_one("hi", "Grace") is None


def test_query_counters_see_it(
    django_assert_num_queries: Callable[[int], CaptureQueriesContext],
) -> None:
    with django_assert_num_queries(1):
        assert QUERY.fetch_one("hi", "Ada") == ADA


def test_a_value_with_a_nul_character_is_refused() -> None:
    with pytest.raises(DataError):
        QUERY.fetch_one("hi", "Ada\0")


def test_a_deallocated_statement_is_prepared_again() -> None:
    assert QUERY.fetch_one("hi", "Ada") == ADA
    execute("DEALLOCATE ALL")
    assert [QUERY.fetch_one("hi", "Ada") for _ in range(2)] == [ADA] * 2


def test_a_changed_column_type_is_read_correctly() -> None:
    assert QUERY.fetch_one("hi", "Ada") == ADA
    execute("ALTER TABLE prepared_people ALTER COLUMN born TYPE text USING 'long ago'")
    assert [QUERY.fetch_one("hi", "Ada") for _ in range(2)] == [("Ada", "long ago", "hi!")] * 2


def test_a_query_that_takes_too_long_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    execute("SET statement_timeout = 50")
    slow = PreparedQuery("SELECT pg_sleep(20) WHERE %s = 'x'")
    monkeypatch.setattr(connection, "cursor", lambda: pytest.fail("Django's cursor repeats it."))
    with pytest.raises(OperationalError, match="statement timeout"):
        slow.fetch_one("x")
    monkeypatch.undo()
    assert QUERY.fetch_one("hi", "Ada") == ADA


def test_wrong_sql_raises_djangos_error_and_the_connection_stays_usable() -> None:
    wrong = PreparedQuery("SELECT nothing FROM prepared_people WHERE name = %s")
    for _ in range(2):
        with pytest.raises(ProgrammingError, match="nothing"):
            wrong.fetch_one("Ada")
    assert QUERY.fetch_one("hi", "Ada") == ADA


def test_a_lost_connection_raises_djangos_error() -> None:
    assert QUERY.fetch_one("hi", "Ada") == ADA
    backend = connection.connection.info.backend_pid
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])
    with pytest.raises(OperationalError):
        QUERY.fetch_one("hi", "Ada")
    connection.close()
    assert QUERY.fetch_one("hi", "Ada") == ADA
