"""Data of an earlier version of the service can be read, and is rebuilt."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from analytics.models import DayRollup, Kind, SummaryDocument
from analytics.numbers.days import find_stale_days
from analytics.numbers.merged import MERGE_VERSION
from analytics.numbers.periods import find_stale_periods, rebuild_period
from analytics.numbers.state import GONE_SECONDS, mark_outdated_days
from analytics.numbers.tables import NO_VERSION, ROLLUP_VERSION
from analytics.numbers.users import find_user_source, user_document
from analytics.published.verify import DocumentKey, MadeByAnotherRelease, verify_document
from analytics.tasks import refresh_day, refresh_outdated_days, refresh_periods
from logs.audit import Reader
from logs.listing import LAYOUT_VERSION
from logs.models import PendingBuild
from logs.pending import mark_days
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics import oracle
from tests.analytics.builds import DAY, LATER, TENANT, document, entry, put, rebuild_all, rows_of
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from django.db.migrations.state import StateApps

    from tests.factories import World

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_release_was_seen() -> None:
    cache.clear()


FIRST = [("analytics", "0001_initial"), ("logs", "0001_initial")]

#: A document as the first version stored it, without later fields.
OLD = {"queries": [], "uniqueUsers": 3, "hourlyActivity": []}


@pytest.fixture
def apps(transactional_db: None) -> Iterator[StateApps]:
    """Migrate back to the first tables; return their models. Some migrations refuse a transaction."""
    executor = MigrationExecutor(connection)
    executor.migrate(FIRST)
    yield executor.loader.project_state(FIRST).apps
    migrate_to_now()


def migrate_to_now() -> None:
    executor = MigrationExecutor(connection)
    executor.migrate([node for node in executor.loader.graph.leaf_nodes() if node[0] in dict(FIRST)])


def write_as_before(apps: StateApps, *, tenant: UUID) -> None:
    """Write rows as the first version did."""
    for day in (DAY, LATER):
        apps.get_model("logs", "Partition").objects.create(
            tenant_id=tenant,
            day=day,
            listing_digest="of another layout",
            build="b",
            file=f"{tenant}/compacted/day={day}/b.parquet",
            rows=1,
            bytes=1,
            objects_read=1,
            duplicates=0,
            quarantined=0,
        )
        apps.get_model("analytics", "DayRollup").objects.create(
            tenant_id=tenant,
            day=day,
            build="b",
            version=1,
            files={"groups": f"{tenant}/rollups/day={day}/b.groups.parquet"},
            activity={"users": {}},
            bytes=1,
        )
    kinds = {
        "day": "2025-12-31",
        "month": "2025-12",
        "year": "2025",
        "rules": "2025",
        "opportunities": "2025",
        "users": "",
    }
    for kind, period in kinds.items():
        apps.get_model("analytics", "SummaryDocument").objects.create(
            tenant_id=tenant,
            kind=kind,
            period=period,
            body=json.dumps(OLD).encode(),
            etag='"old"',
            source="b",
        )


@pytest.mark.slow
def test_documents_stay_readable_after_an_upgrade_until_they_are_rebuilt(
    world: World, apps: StateApps
) -> None:
    tenant = world.tenant.pk
    for day in (DAY, LATER):
        put("00/a.json", entry(day), day=day)
    for holder in (tenant, TENANT):
        write_as_before(apps, tenant=holder)
    migrate_to_now()
    reader = ApiClient(
        factories.pat_token(world.owner, "analytics:read", "analytics:users", tenants=[str(tenant)])
    )
    for path in (
        "summaries/2025",
        "summaries/2025/12",
        "summaries/2025/12/31",
        "summaries/2025/rules",
        "summaries/2025/opportunities",
        "users",
    ):
        answer = reader.get(f"/tenants/{tenant}/{path}")
        assert (answer.status_code, answer["ETag"], answer.json()) == (200, '"old"', OLD), path
    for period in ("2025", "2025/12", "2025/12/31"):
        answer = reader.get(f"/tenants/{tenant}/users/Ana/{period}")
        assert (answer.status_code, answer["Retry-After"]) == (500, "60"), period
        assert "upgraded" in answer.json()["message"]

    # Months and years wait for their days.
    store = default_store()
    assert find_stale_periods(tenant=TENANT) == []
    assert not rebuild_period(store, tenant=TENANT, period="2025")
    assert find_stale_days(store, tenant=TENANT) == [DAY, LATER]
    assert find_stale_days(store, tenant=TENANT, first=LATER) == [LATER]
    assert rebuild_all() == ([DAY, LATER], ["2025-12", "2026-03", "2025", "2026", ""])

    rows = rows_of(DAY, LATER)
    assert document(Kind.DAY, "2025-12-31") == oracle.day_document(rows[:1])
    assert document(Kind.MONTH, "2025-12") == oracle.month_document(rows[:1], 12)
    assert document(Kind.YEAR, "2026") == oracle.year_document(rows, tenant=str(TENANT), year=2026)
    assert document(Kind.USERS, "")["totalUsers"] == 1


def user_json(period: str) -> Any:
    source = find_user_source(tenant=TENANT, user="Ana", period=period)
    assert source is not None
    body = user_document(default_store(), source)
    assert isinstance(body, bytes)
    return json.loads(body)


def test_rollups_of_an_earlier_version_are_rebuilt_although_no_object_changed() -> None:
    for day in (DAY, LATER):
        put("00/a.json", entry(day), day=day)
    rebuild_all()
    # Rollups of the previous version, whose files this version cannot read.
    files = {"groups": f"{TENANT}/rollups/day={DAY}/b.groups.parquet"}
    DayRollup.objects.filter(day=DAY).update(version=ROLLUP_VERSION - 1, files=files)
    rows = rows_of(DAY, LATER)
    mine = oracle.for_user(rows, "Ana")
    assert user_json("2025-12-31") == oracle.day_document(mine[:1])
    assert user_json("2025-12") == oracle.month_document(mine[:1], 12)
    assert user_json("2026") == oracle.year_document(mine, tenant=str(TENANT), year=2026)

    # The activity of the year after includes the day.
    assert find_stale_periods(tenant=TENANT) == []
    assert rebuild_all() == ([DAY], ["2025-12", "2025", "2026", ""])
    assert user_json("2025-12-31") == oracle.day_document(mine[:1])
    assert document(Kind.YEAR, "2026") == oracle.year_document(rows, tenant=str(TENANT), year=2026)


def test_months_and_years_of_a_user_wait_for_columns_that_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    monkeypatch.setattr("analytics.numbers.users.FIRST_MERGED_VERSION", ROLLUP_VERSION)
    assert user_json("2025-12")["totalHits"] == 1
    monkeypatch.setattr("analytics.numbers.users.FIRST_MERGED_VERSION", ROLLUP_VERSION + 1)
    for period in ("2025-12", "2025"):
        with pytest.raises(ApiError, match="The service was upgraded") as raised:
            find_user_source(tenant=TENANT, user="Ana", period=period)
        assert raised.value.headers == {"Retry-After": "60"}
    assert user_json("2025-12-31")["totalHits"] == 1


def read_marked() -> set[date | None]:
    """Return what is pending, and forget it."""
    marked = set(PendingBuild.objects.values_list("day", flat=True))
    PendingBuild.objects.all().delete()
    return marked


def test_a_release_builds_again_what_a_later_one_made_when_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A rollback. While both run, as in a rolling update, they would replace each other's days for ever."""
    for day in (DAY, LATER):
        put("00/a.json", entry(day), day=day)
    rebuild_all()
    clock = [1_000_000.0]
    monkeypatch.setattr("analytics.numbers.state.time.time", lambda: clock[0])

    def run_release(version: int) -> set[date | None]:
        """Return what the job of this version marks."""
        monkeypatch.setattr("analytics.numbers.state.ROLLUP_VERSION", version)
        refresh_outdated_days()
        return read_marked()

    # The first run cannot know which release ran before.
    assert run_release(ROLLUP_VERSION) == {None}
    assert run_release(ROLLUP_VERSION) == set()
    # A later release takes over at once; the earlier one waits until it is gone.
    assert run_release(ROLLUP_VERSION + 1) == {DAY, LATER, None}
    DayRollup.objects.filter(day=DAY).update(version=ROLLUP_VERSION + 1)
    clock[0] += GONE_SECONDS - 1
    assert run_release(ROLLUP_VERSION) == set()
    clock[0] += 1
    assert run_release(ROLLUP_VERSION) == {DAY, None}
    assert run_release(ROLLUP_VERSION) == {DAY}
    # And forward again.
    assert run_release(ROLLUP_VERSION + 1) == {LATER, None}


def test_a_release_that_merges_differently_builds_all_periods_again(monkeypatch: pytest.MonkeyPatch) -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    refresh_outdated_days()
    read_marked()
    for module in ("state", "merged"):
        monkeypatch.setattr(f"analytics.numbers.{module}.MERGE_VERSION", MERGE_VERSION + 1)
    refresh_outdated_days()
    assert set(PendingBuild.objects.values_list("day", flat=True)) == {None}
    refresh_periods(str(TENANT))
    assert find_stale_periods(tenant=TENANT) == []
    assert not PendingBuild.objects.exists()


def test_verify_says_what_to_do_about_documents_of_another_release() -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    refresh_outdated_days()
    read_marked()
    DayRollup.objects.update(version=ROLLUP_VERSION + 1)
    for kind, period in ((Kind.DAY, "2025-12-31"), (Kind.MONTH, "2025-12"), (Kind.USERS, "")):
        with pytest.raises(MadeByAnotherRelease, match=f"`manage.py rebuild --tenant {TENANT}` makes it now"):
            verify_document(
                default_store(), key=DocumentKey(TENANT, kind, period), reader=Reader(email="a", address="")
            )
    assert rebuild_all() == ([DAY], ["2025-12", "2025", ""])
    # Of the same days, but merged in another way.
    SummaryDocument.objects.filter(kind=Kind.MONTH).update(source="other")
    with pytest.raises(MadeByAnotherRelease):
        verify_document(
            default_store(),
            key=DocumentKey(TENANT, Kind.MONTH, "2025-12"),
            reader=Reader(email="a", address=""),
        )


def test_beat_has_days_of_an_earlier_version_built_again() -> None:
    days = [DAY, LATER, date(2026, 3, 3)]
    for day in days:
        put("00/a.json", entry(day), day=day)
    rebuild_all()
    assert mark_outdated_days(limit=10) == 0
    DayRollup.objects.filter(day__in=days[:2]).update(version=ROLLUP_VERSION - 1)
    # Lost rollups are pending by themselves, after a while.
    DayRollup.objects.filter(day=days[2]).update(version=NO_VERSION)

    assert mark_outdated_days(limit=1) == 1
    (first,) = PendingBuild.objects.values_list("day", "mark")
    refresh_outdated_days()
    assert set(PendingBuild.objects.values_list("day", flat=True)) == {DAY, LATER, None}
    # What is pending is not marked again, which would build it twice.
    assert first in PendingBuild.objects.values_list("day", "mark")

    for day in days[:2]:
        refresh_day(str(TENANT), day.isoformat())
    refresh_periods(str(TENANT))
    refresh_outdated_days()
    assert not PendingBuild.objects.exists()
    assert DayRollup.objects.filter(version=ROLLUP_VERSION).count() == 2


def test_an_upgrade_adds_no_days_while_many_are_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    DayRollup.objects.update(version=ROLLUP_VERSION - 1)
    monkeypatch.setattr("analytics.tasks.MAX_OUTDATED", 1)
    mark_days(tenant=TENANT, days=[LATER])
    refresh_outdated_days()
    assert [pending.day for pending in PendingBuild.objects.exclude(day=None)] == [LATER]


def test_another_version_of_merges_rebuilds_months_and_years(monkeypatch: pytest.MonkeyPatch) -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    monkeypatch.setattr("analytics.numbers.merged.MERGE_VERSION", MERGE_VERSION + 1)
    assert rebuild_all() == ([], ["2025-12", "2025", ""])
    assert rebuild_all() == ([], [])


def test_another_layout_rebuilds_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    put("00/a.json", entry(DAY))
    rebuild_all()
    monkeypatch.setattr("logs.listing.LAYOUT_VERSION", LAYOUT_VERSION + 1)
    assert rebuild_all() == ([DAY], ["2025-12", "2025", ""])
    assert rebuild_all() == ([], [])
