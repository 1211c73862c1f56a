"""Queries that go past Django's cursor answer, and fail, as those that do not."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import DataError, OperationalError, ProgrammingError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenantadmin.database.prepared import PreparedQuery

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


def test_a_row_is_found_again_and_again() -> None:
    assert [QUERY.fetch_one("hi", "Ada") for _ in range(3)] == [ADA] * 3
    assert QUERY.fetch_one("hi", "Grace") is None


def test_inside_a_transaction_its_own_writes_are_seen() -> None:
    assert QUERY.fetch_one("hi", "Grace") is None
    with transaction.atomic():
        execute("INSERT INTO prepared_people VALUES ('Grace', %s)", [BORN])
        assert QUERY.fetch_one("hi", "Grace") == ("Grace", BORN, "hi!")
        transaction.set_rollback(True)
    assert QUERY.fetch_one("hi", "Grace") is None


def test_who_counts_queries_counts_it(
    django_assert_num_queries: Callable[[int], CaptureQueriesContext],
) -> None:
    with django_assert_num_queries(1):
        assert QUERY.fetch_one("hi", "Ada") == ADA


def test_a_value_with_a_nul_is_refused_and_not_cut_off() -> None:
    with pytest.raises(DataError):
        QUERY.fetch_one("hi", "Ada\0")


def test_a_statement_that_the_server_forgot_is_prepared_again() -> None:
    assert QUERY.fetch_one("hi", "Ada") == ADA
    execute("DEALLOCATE ALL")
    assert [QUERY.fetch_one("hi", "Ada") for _ in range(2)] == [ADA] * 2


def test_a_changed_table_is_read_anew() -> None:
    assert QUERY.fetch_one("hi", "Ada") == ADA
    execute("ALTER TABLE prepared_people ALTER COLUMN born TYPE text USING 'long ago'")
    assert [QUERY.fetch_one("hi", "Ada") for _ in range(2)] == [("Ada", "long ago", "hi!")] * 2


def test_bad_sql_raises_what_django_raises_and_leaves_the_connection_good() -> None:
    wrong = PreparedQuery("SELECT nothing FROM prepared_people WHERE name = %s")
    for _ in range(2):
        with pytest.raises(ProgrammingError, match="nothing"):
            wrong.fetch_one("Ada")
    assert QUERY.fetch_one("hi", "Ada") == ADA


def test_a_connection_lost_in_between_raises_what_django_raises() -> None:
    assert QUERY.fetch_one("hi", "Ada") == ADA
    backend = connection.connection.info.backend_pid
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [backend])
    with pytest.raises(OperationalError):
        QUERY.fetch_one("hi", "Ada")
    connection.close()
    assert QUERY.fetch_one("hi", "Ada") == ADA


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(moment=st.datetimes(timezones=st.just(dt.UTC)))
def test_every_moment_is_read_as_it_was_written(moment: dt.datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [moment])
        row = cursor.fetchone()
    assert row == (moment,)
    assert row[0].tzinfo is dt.UTC


@pytest.mark.parametrize("text", ["12026-11-21T00:00:00Z", "infinity", "0044-03-15 12:00:00+00 BC"])
def test_a_moment_that_python_has_not_is_an_error(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        with pytest.raises(DataError):
            cursor.fetchone()
