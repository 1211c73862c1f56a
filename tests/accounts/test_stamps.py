"""The moment before which no change of a tenant can still appear. Contract: Tenant manifest."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from accounts.tenants.stamps import settled_before

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db


def test_nothing_is_settled_that_happens_while_the_locks_are_read() -> None:
    def run_slowly(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        return execute(f"SELECT ({sql}) FROM pg_sleep(0.1)", *rest)

    with connection.execute_wrapper(run_slowly):
        settled = settled_before()
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (ended,) = cursor.fetchone()
    assert settled <= ended - dt.timedelta(seconds=0.1)
