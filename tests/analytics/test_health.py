"""The health of a tenant: written by every build of a day, and by the command for days from before."""

from __future__ import annotations

import datetime as dt

import pytest
from django.core.management import call_command

from analytics.models import DayRollup, TenantHealth
from analytics.numbers.days import rebuild_day
from analytics.numbers.state import update_health
from logs.models import Partition
from tenantadmin.lib.objectstore import default_store
from tests.analytics.builds import entry, put, rebuild_all
from tests.analytics.pipeline import TENANT
from tests.objects import save_object

pytestmark = pytest.mark.django_db
LAST = dt.date(2026, 3, 28)


def put_day(age: int, *statuses: str, warehouse: int = 0) -> dt.date:
    """Store a day ``age`` days before `LAST`, with an entry for each status."""
    day = LAST - dt.timedelta(days=age)
    entries = [entry(day, cacheStatus=status, warehouseExecutionTimeMs=warehouse) for status in statuses]
    put("00/a.json", *entries, day=day)
    return day


def health() -> TenantHealth:
    return TenantHealth.objects.get(tenant_id=TENANT)


def test_windows_end_with_the_last_day() -> None:
    put_day(0, "HIT", "MISS", "BYPASS", "PASSTHROUGH", warehouse=5)
    put_day(6, "HIT", "HIT", warehouse=7)
    put_day(7, "HIT", "HIT", "MISS", "MISS")
    put_day(27, "HIT")
    put_day(28, "MISS", "MISS", "MISS", "MISS", "MISS")
    rebuild_all()
    row = health()
    assert row.last_day == LAST
    assert (row.rate_1, row.rate_7, row.rate_28) == (1 / 4, 3 / 6, 6 / 11)
    assert row.drop == 6 / 11 - 3 / 6
    assert (row.requests_7, row.misses_7, row.warehouse_ms_7) == (6, 3, 4 * 5 + 2 * 7)
    assert (row.stale_days, row.quarantined) == (0, 0)


def test_a_day_that_goes_is_counted_no_more() -> None:
    put_day(1, "HIT")
    day = put_day(0, "MISS")
    rebuild_all()
    assert health().last_day == LAST
    default_store().delete(f"{TENANT}/logs/{day:%Y/%m/%d}/00/a.json")
    assert rebuild_day(default_store(), tenant=TENANT, day=day)
    row = health()
    assert (row.last_day, row.rate_1, row.drop) == (LAST - dt.timedelta(days=1), 1.0, 0.0)


def test_quarantined_entries_and_stale_days_are_counted() -> None:
    day = put_day(0, "HIT")
    save_object(default_store(), f"{TENANT}/logs/{day:%Y/%m/%d}/01/bad.json", b'{"cacheStatus": 5}')
    put_day(1, "HIT")
    rebuild_all()
    assert (health().quarantined, health().stale_days) == (1, 0)
    DayRollup.objects.filter(day=day).update(version=0)
    update_health(TENANT)
    assert health().stale_days == 1


def test_a_day_without_valid_entries_leaves_a_row_without_rates() -> None:
    save_object(default_store(), f"{TENANT}/logs/{LAST:%Y/%m/%d}/01/bad.json", b'{"cacheStatus": 5}')
    rebuild_all()
    row = health()
    assert (row.last_day, row.rate_1, row.rate_7, row.rate_28, row.drop) == (None, None, None, None, None)
    assert (row.quarantined, Partition.objects.get().quarantined) == (1, 1)


def test_a_day_of_the_year_1() -> None:
    put("00/a.json", entry(dt.date.min), day=dt.date.min)
    rebuild_all()
    assert (health().last_day, health().rate_28) == (dt.date.min, 0.0)


def test_the_command_fills_days_from_before(capsys: pytest.CaptureFixture[str]) -> None:
    put_day(0, "HIT", "MISS", "BYPASS", warehouse=3)
    put_day(1, "HIT")
    rebuild_all()
    sums = {field.name: field for field in DayRollup._meta.get_fields() if field.null}
    wanted = list(DayRollup.objects.order_by("day").values(*sums))
    assert [(one["hits"], one["misses"], one["not_cached"], one["warehouse_ms"]) for one in wanted] == [
        (1, 0, 0, 0),
        (1, 2, 1, 9),
    ]
    assert [(one["hit_bytes"], one["hit_time_count"], one["miss_time_sum"]) for one in wanted] == [
        (10, 1, 0),
        (10, 1, 10),
    ]
    DayRollup.objects.update(**dict.fromkeys(sums))
    TenantHealth.objects.all().delete()
    call_command("update_health")
    assert capsys.readouterr().out == "1 tenants, 2 days filled.\n"
    assert list(DayRollup.objects.order_by("day").values(*sums)) == wanted
    assert (health().rate_1, health().rate_7) == (1 / 3, 2 / 4)
    call_command("update_health", tenant=TENANT)
    assert capsys.readouterr().out == "1 tenants, 0 days filled.\n"
