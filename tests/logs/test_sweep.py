"""Every tenant's logs are listed in turn, spread over the time of a sweep."""

from __future__ import annotations

import datetime as dt
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from logs import notifications
from logs.models import EPOCH, LogSweep
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store
from tests.objects import save_object

pytestmark = pytest.mark.django_db


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[dt.datetime]:
    times = [now()]
    monkeypatch.setattr(notifications, "now", lambda: times[0])
    return times


def test_each_tenant_is_listed_once_in_a_sweep_and_the_work_is_spread(
    clock: list[dt.datetime], settings: Any
) -> None:
    settings.LOG_SWEEP_SECONDS = 600
    tenants = [UUID(int=number) for number in range(40)]
    notifications.add_tenants(tenants)
    runs: list[list[UUID]] = []
    for _ in range(20):
        runs.append(notifications.take_next(default_store(), interval_seconds=60))
        clock[0] += timedelta(seconds=60)
    # 41 rows, a tenth of a sweep each run, and a tenth more: 5. The list of tenants is one of them.
    assert max(map(len, runs)) == 5
    first, second = runs[:10], runs[10:]
    for runs_of_a_sweep in (first, second):
        assert sorted(tenant for run in runs_of_a_sweep for tenant in run) == tenants
    assert first == second


def test_the_longest_unlisted_come_first(clock: list[dt.datetime], settings: Any) -> None:
    settings.LOG_SWEEP_SECONDS = 3600
    for number, age in ((1, 2), (2, 3), (3, 0)):
        LogSweep.objects.create(tenant_id=UUID(int=number), listed_at=clock[0] - timedelta(hours=age))
    LogSweep.objects.create(tenant_id=None, listed_at=clock[0])
    taken = [notifications.take_next(default_store(), interval_seconds=60) for _ in range(3)]
    assert taken == [[UUID(int=2)], [UUID(int=1)], []]


def test_a_clock_that_is_set_back_stops_no_sweep(clock: list[dt.datetime], settings: Any) -> None:
    settings.LOG_SWEEP_SECONDS = 600
    tenants = [UUID(int=number) for number in range(3)]
    notifications.add_tenants(tenants)
    taken: set[UUID] = set()
    for set_back in (timedelta(), timedelta(hours=1)):
        clock[0] -= set_back
        taken = {
            tenant
            for _ in range(4)
            for tenant in notifications.take_next(default_store(), interval_seconds=60)
        }
    assert taken == {*tenants}
    assert notifications.take_next(default_store(), interval_seconds=60) == []


def test_a_tenant_that_is_new_in_the_store_joins() -> None:
    new = UUID("11111111-2222-4333-8444-555555555555")
    save_object(default_store(), f"{new}/logs/2026/01/01/00/a.json", b"{}")
    assert notifications.take_next(default_store(), interval_seconds=60) == [new]
    assert set(LogSweep.objects.values_list("tenant_id", flat=True)) == {None, new}
    assert not LogSweep.objects.filter(listed_at=EPOCH).exists()
