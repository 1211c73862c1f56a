"""The moment before which no change of a tenant can still appear. Contract: Tenant manifest."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from accounts.models import Tenant
from accounts.tenants.stamps import newest_settled, settled_before
from tests import factories

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


EARLIER, LATER, LATEST = (dt.datetime(2026, 3, 1, 12, minute, tzinfo=dt.UTC) for minute in (10, 20, 30))
SECOND = dt.timedelta(seconds=1)
NEVER = "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("settled", "since", "expected"),
    [
        pytest.param(LATEST + SECOND, None, "2026-03-01T12:30:00.000Z", id="all settled"),
        pytest.param(LATEST + SECOND, EARLIER, "2026-03-01T12:30:00.000Z", id="all settled, since"),
        pytest.param(LATEST, None, "2026-03-01T12:20:00.000Z", id="before, not at, the horizon"),
        pytest.param(LATER + SECOND, EARLIER, "2026-03-01T12:20:00.000Z", id="newer than since"),
        pytest.param(LATER + SECOND, LATER + SECOND / 2, "2026-03-01T12:20:00.500Z", id="never before since"),
        pytest.param(LATER + SECOND, LATER + SECOND, "2026-03-01T12:20:00.000Z", id="since at the horizon"),
        pytest.param(LATER + SECOND, LATEST, "2026-03-01T12:20:00.000Z", id="since after the horizon"),
        pytest.param(EARLIER, None, NEVER, id="none settled"),
        pytest.param(EARLIER, EARLIER - SECOND, "2026-03-01T12:09:59.000Z", id="none settled, since"),
        pytest.param(EARLIER, LATEST, NEVER, id="none settled, since after the horizon"),
    ],
)
def test_a_safe_since_is_the_newest_settled_stamp(
    settled: dt.datetime, since: dt.datetime | None, expected: str
) -> None:
    account = factories.make_account()
    for name, stamp in (("Second", LATER), ("Third", LATEST), ("First", EARLIER)):
        tenant = factories.make_tenant(account, name)
        Tenant.objects.filter(pk=tenant.pk).update(modified_at=stamp)
    assert newest_settled(Tenant.objects.all(), "modified_at", settled=settled, since=since) == expected


def test_there_is_a_safe_since_without_rows() -> None:
    assert newest_settled(Tenant.objects.all(), "modified_at", settled=LATEST, since=LATER) == NEVER
