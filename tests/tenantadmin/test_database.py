"""Tests of the database backend: its health check and its timestamps."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import DataError, connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test.utils import CaptureQueriesContext

pytestmark = pytest.mark.django_db(transaction=True)


def backend_pid() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def test_an_open_connection_is_usable_without_a_query(
    django_assert_num_queries: Callable[[int], CaptureQueriesContext],
) -> None:
    backend_pid()
    with django_assert_num_queries(0):
        assert connection.is_usable()


def test_a_connection_that_the_server_closed_is_replaced() -> None:
    first = backend_pid()
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 10000)", [first])
    assert not connection.is_usable()
    connection.close_if_health_check_failed()
    connection.close()
    second = backend_pid()
    assert second != first
    connection.close()
    assert not connection.is_usable()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50)
@given(moment=st.datetimes(timezones=st.just(dt.UTC)))
def test_every_timestamp_is_read_as_it_was_written(moment: dt.datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [moment])
        row = cursor.fetchone()
    assert row == (moment,)
    assert row[0].tzinfo is dt.UTC


@pytest.mark.parametrize("text", ["12026-11-21T00:00:00Z", "infinity", "0044-03-15 12:00:00+00 BC"])
def test_a_timestamp_that_python_cannot_represent_is_an_error(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        with pytest.raises(DataError):
            cursor.fetchone()
