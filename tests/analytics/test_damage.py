"""Lost rollups are found when a build fails, marked as stale, and built again."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from django.core.management import call_command
from django.db.models import F

from analytics import tasks
from analytics.models import DayRollup, Kind, MergedRollup, SummaryDocument, TenantHealth
from analytics.numbers.days import find_stale_days, rebuild_day
from analytics.numbers.periods import find_stale_periods, rebuild_period
from analytics.numbers.state import LostRollups, update_health
from analytics.numbers.tables import NO_VERSION
from analytics.numbers.users import find_user_source, user_document
from logs.models import Partition, PendingBuild
from logs.pending import mark_periods
from tenantadmin.lib.objectstore import LocalStore, StoreError, default_store
from tests.analytics import oracle
from tests.analytics.builds import TENANT, document, entry, put, rebuild_all, rows_of
from tests.objects import save_object

if TYPE_CHECKING:
    from django.core.files import File

    from analytics.numbers.merged import Rollups


pytestmark = pytest.mark.django_db

DAY, NEXT, FEBRUARY = date(2026, 1, 1), date(2026, 1, 2), date(2026, 2, 1)


def remove(file: Path) -> None:
    file.unlink()


def empty(file: Path) -> None:
    file.write_bytes(b"")


def overwrite_pages(file: Path) -> None:
    """Damage the pages but not the footer: the file can be opened, but not read."""
    columns = pq.read_metadata(file).row_group(0)
    body = bytearray(file.read_bytes())
    for number in range(columns.num_columns):
        chunk = columns.column(number)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        body[start : start + 8] = b"\xff" * 8
    file.write_bytes(body)


class BrokenStore(LocalStore):
    """A store that cannot return the objects for which ``is_broken`` is true, also not to DuckDB."""

    def __init__(self, location: Path, is_broken: Callable[[str], object]) -> None:
        super().__init__(location)
        self._is_broken = is_broken

    def uri(self, key: str) -> str:
        return f"/dev/null/{key}" if self._is_broken(key) else super().uri(key)

    def open(self, name: str, mode: str = "rb") -> File[bytes]:
        if self._is_broken(name):
            raise StoreError(f"cannot read {name!r}: Input/output error")
        return super().open(name, mode)


@pytest.fixture
def repairs() -> Callable[[], list[date]]:
    """Build everything. Then return the days for which the task for periods requested a rebuild."""
    for day in (DAY, NEXT):
        put("00/a.json", entry(day), day=day)
    rebuild_all()

    def read() -> list[date]:
        rows = PendingBuild.objects.exclude(day=None)
        assert not rows.filter(due_at__lt=F("marked_at") + tasks.REPAIR_DELAY).exists()
        return [row.day for row in rows if row.day]

    return read


def refresh_periods() -> None:
    mark_periods(tenant=TENANT)
    tasks.refresh_periods(str(TENANT))


def change_a_day() -> None:
    """Change one day of January, and add the first of February."""
    put("01/late.json", entry(NEXT, userName="Bo"), day=NEXT)
    put("00/a.json", entry(FEBRUARY), day=FEBRUARY)
    for day in (NEXT, FEBRUARY):
        assert rebuild_day(default_store(), tenant=TENANT, day=day)


def assert_all_is_current() -> None:
    rows = rows_of(DAY, NEXT, FEBRUARY)
    assert document(Kind.MONTH, "2026-01") == oracle.month_document(rows[:3], 1)
    assert document(Kind.YEAR, "2026") == oracle.year_document(rows, tenant=str(TENANT), year=2026)
    assert document(Kind.USERS, "")["totalUsers"] == 2
    assert (find_stale_days(default_store(), tenant=TENANT), find_stale_periods(tenant=TENANT)) == ([], [])


@pytest.mark.parametrize(
    ("table", "damage"), [("statements", remove), ("users", empty), ("activity", overwrite_pages)]
)
def test_lost_rollups_of_a_day_delay_only_its_periods_and_are_built_again(
    damage: Callable[[Path], None], table: str, object_store: Path, repairs: Callable[[], list[date]]
) -> None:
    lost = DayRollup.objects.get(day=DAY)
    damage(object_store / lost.files[table])
    change_a_day()

    with pytest.raises(LostRollups, match="2026-01-01"):
        refresh_periods()
    assert document(Kind.MONTH, "2026-02")["totalHits"] == 1
    assert repairs() == [DAY]
    assert find_stale_days(default_store(), tenant=TENANT) == [DAY]
    # Periods that wait for the day are not built before.
    assert find_stale_periods(tenant=TENANT) == []
    source = find_user_source(tenant=TENANT, user="Ana", period="2026-01-01")
    assert source is not None
    body = user_document(default_store(), source)
    assert isinstance(body, bytes)
    assert json.loads(body) == oracle.day_document(rows_of(DAY))

    tasks.refresh_day(str(TENANT), repairs()[0].isoformat())
    refresh_periods()
    assert_all_is_current()
    assert repairs() == []


def test_a_months_lost_rollups_are_merged_again(
    object_store: Path, repairs: Callable[[], list[date]]
) -> None:
    remove(object_store / MergedRollup.objects.get(period="2026-01").files["users"])
    put("00/a.json", entry(FEBRUARY, userName="Bo"), day=FEBRUARY)
    rebuild_day(default_store(), tenant=TENANT, day=FEBRUARY)

    with pytest.raises(LostRollups, match=r"2026-01$"):
        refresh_periods()
    assert find_stale_periods(tenant=TENANT) == ["2026-01", "2026", ""]
    assert document(Kind.MONTH, "2026-01")["totalHits"] == 2

    refresh_periods()
    put("01/late.json", entry(NEXT), day=NEXT)
    rebuild_all()
    assert_all_is_current()
    assert repairs() == []


def test_lost_texts_that_a_year_needs_are_built_again(
    object_store: Path, repairs: Callable[[], list[date]], monkeypatch: pytest.MonkeyPatch
) -> None:
    change_a_day()
    rebuild_all()
    # A year is merged from its months. From days, it only reads texts.
    overwrite_pages(object_store / DayRollup.objects.get(day=FEBRUARY).files["statements"])
    SummaryDocument.objects.filter(period="2026", kind=Kind.OPPORTUNITIES).update(source="")

    def show_every_text(own: Rollups, *, text_file: Callable[[date], str]) -> dict[str, Any]:
        statements = [
            row["id"] for row in own.rows("SELECT replace(statement::TEXT, '-', '') AS id FROM <statements>")
        ]
        return own.statement_texts([text_file(day) for day in (DAY, FEBRUARY)], statements)

    with monkeypatch.context() as patch:
        patch.setattr("analytics.numbers.periods.opportunities_document", show_every_text)
        with pytest.raises(LostRollups, match="again: 2026-02-01"):
            refresh_periods()

    tasks.refresh_day(str(TENANT), repairs()[0].isoformat())
    refresh_periods()
    assert_all_is_current()


def test_nothing_is_marked_if_the_store_returns_nothing(
    object_store: Path, repairs: Callable[[], list[date]]
) -> None:
    change_a_day()
    store = BrokenStore(object_store, lambda _: True)
    with pytest.raises(StoreError) as failed:
        rebuild_period(store, tenant=TENANT, period="2026-01")
    assert not isinstance(failed.value, LostRollups)
    assert not DayRollup.objects.filter(version=NO_VERSION).exists()

    rebuild_all()
    assert_all_is_current()
    assert repairs() == []


@pytest.mark.usefixtures("repairs")
@pytest.mark.parametrize("name", ["statements", "activity"], ids=["first", "last"])
def test_a_file_is_lost_if_the_store_returns_others_but_not_this_one(object_store: Path, name: str) -> None:
    change_a_day()
    lost = DayRollup.objects.get(day=DAY).files[name]
    store = BrokenStore(object_store, lambda key: key == lost)
    with pytest.raises(LostRollups, match="again: 2026-01-01") as failed:
        rebuild_period(store, tenant=TENANT, period="2026-01")
    assert failed.value.days == [DAY]
    assert find_stale_days(default_store(), tenant=TENANT) == [DAY]


def test_nothing_is_marked_if_the_folder_of_the_store_is_missing(
    object_store: Path, repairs: Callable[[], list[date]]
) -> None:
    change_a_day()
    away = object_store.rename(object_store.with_name("away"))
    with pytest.raises(StoreError):
        refresh_periods()
    assert not DayRollup.objects.filter(version=NO_VERSION).exists()

    away.rename(object_store)
    refresh_periods()
    assert_all_is_current()
    assert repairs() == []


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


def test_the_sums_of_days_and_the_command_that_computes_health_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    put_day(0, "HIT", "MISS", "BYPASS", warehouse=3)
    put_day(1, "HIT")
    rebuild_all()
    days = DayRollup.objects.order_by("day")
    assert list(days.values_list("hits", "misses", "not_cached", "warehouse_ms")) == [
        (1, 0, 0, 0),
        (1, 2, 1, 9),
    ]
    assert list(days.values_list("hit_bytes", "hit_time_count", "miss_time_sum")) == [(10, 1, 0), (10, 1, 10)]
    for options in ({}, {"tenant": TENANT}):
        TenantHealth.objects.all().delete()
        call_command("update_health", **options)
        assert capsys.readouterr().out == "1 tenants.\n"
        assert (health().rate_1, health().rate_7) == (1 / 3, 2 / 4)
