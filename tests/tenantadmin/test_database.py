"""The database backend's health check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest
from django.db import connection

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


def test_a_connection_that_stands_is_usable_without_a_query(
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
