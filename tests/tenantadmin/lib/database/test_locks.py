"""Build locks exclude other database sessions, and end with their own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from uuid import UUID

import pytest
from django.db import connection

from tenantadmin.lib.database.connections import Busy, build_lock

TENANT = UUID("11111111-2222-4333-8444-555555555555")

pytestmark = pytest.mark.django_db(transaction=True)


def hold_lock(locked: Event, release: Event, *, loses_connection: bool) -> None:
    """Hold the lock in another session until `release` is set; then unlock it or close the connection."""
    try:
        with build_lock(tenant=TENANT, period="2026-03-01", wait=False):
            locked.set()
            assert release.wait(10)
            if loses_connection:
                connection.close()
    finally:
        connection.close()


@pytest.mark.parametrize("loses_connection", [False, True])
def test_only_one_session_at_a_time_builds_a_period(loses_connection: bool) -> None:
    locked, release = Event(), Event()
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(hold_lock, locked, release, loses_connection=loses_connection)
        assert locked.wait(10)
        with (
            pytest.raises(Busy, match="2026-03-01"),
            build_lock(tenant=TENANT, period="2026-03-01", wait=False),
        ):
            pass
        with build_lock(tenant=TENANT, period="2026-03", wait=False):
            pass
        release.set()
        with build_lock(tenant=TENANT, period="2026-03-01", wait=True):
            pass
        other.result(10)


def test_a_failed_build_releases_its_lock() -> None:
    with pytest.raises(RuntimeError), build_lock(tenant=TENANT, period="2026", wait=False):
        raise RuntimeError
    with build_lock(tenant=TENANT, period="2026", wait=False), connection.cursor() as cursor:
        # Other test processes hold locks in databases of their own.
        cursor.execute(
            "SELECT count(*) FROM pg_locks JOIN pg_database d ON d.oid = database "
            "WHERE locktype = 'advisory' AND datname = current_database()"
        )
        assert cursor.fetchone() == (1,)
