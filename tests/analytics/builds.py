"""Store raw logs of one tenant, build them, and compare the documents with the oracle's."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

from analytics.models import DayRollup, Kind, MergedRollup, SummaryDocument
from analytics.numbers.days import find_stale_days, rebuild_day
from analytics.numbers.periods import find_stale_periods, rebuild_period
from analytics.numbers.store import read_document
from logs.layout import day_prefix, day_start_ms
from logs.models import Partition, SupersededFile
from tenantadmin.lib.objectstore import default_store
from tests.analytics import oracle
from tests.analytics.pipeline import TENANT
from tests.objects import read_object, save_entries

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import ObjectStore

DAY, NEXT, LATER = date(2025, 12, 31), date(2026, 1, 1), date(2026, 3, 5)

COMPARED_DOCUMENTS = (
    (Kind.DAY, "2025-12-31"),
    (Kind.MONTH, "2025-12"),
    (Kind.YEAR, "2025"),
    (Kind.RULES, "2025"),
    (Kind.YEAR, "2026"),
    (Kind.USERS, ""),
)


def entry(day: date, **fields: Any) -> dict[str, Any]:
    return {
        "timestamp": day_start_ms(day) + 1000,
        "userName": "Ana",
        "standardizedSql": "SELECT ?",
        "cacheStatus": "MISS",
        "cacheKey": "k",
        "responseSize": 10,
        "responseTimeMs": 5,
        **fields,
    }


def put(name: str, *entries: Any, day: date = DAY) -> None:
    save_entries(TENANT, day, entries, name=name)


def put_days() -> None:
    for day in (DAY, NEXT, LATER):
        put("00/a.json", entry(day, matchedRule="r"), day=day)


def rebuild_all() -> tuple[list[date], list[str]]:
    store = default_store()
    days = find_stale_days(store, tenant=TENANT)
    for day in days:
        assert rebuild_day(store, tenant=TENANT, day=day)
    periods = find_stale_periods(tenant=TENANT)
    for period in periods:
        assert rebuild_period(store, tenant=TENANT, period=period)
    return days, periods


def refresh(store: ObjectStore, *, wait: bool = False) -> None:
    for day in find_stale_days(store, tenant=TENANT):
        rebuild_day(store, tenant=TENANT, day=day, wait=wait)
    for period in find_stale_periods(tenant=TENANT):
        rebuild_period(store, tenant=TENANT, period=period, wait=wait)


def find_stale() -> tuple[list[date], list[str]]:
    return find_stale_days(default_store(), tenant=TENANT), find_stale_periods(tenant=TENANT)


def document(kind: Kind, period: str) -> Any:
    stored = read_document(tenant=TENANT, kind=kind, period=period)
    if stored is None:
        return None
    return json.loads(read_object(default_store(), stored.file) if stored.file else stored.body)


def rows_of(*days: date) -> list[oracle.Row]:
    store = default_store()
    rows: list[oracle.Row] = []
    for day in days:
        files = {item.key: read_object(store, item.key) for item in store.list(day_prefix(TENANT, day))}
        rows += oracle.read_day(files, day)
    return rows


def expected(rows: list[oracle.Row]) -> dict[tuple[Kind, str], Any]:
    tenant = str(TENANT)
    of_day = [row for row in rows if row["day"] == "2025-12-31"]
    return {
        (Kind.DAY, "2025-12-31"): oracle.day_document(of_day),
        (Kind.MONTH, "2025-12"): oracle.month_document(of_day, 12),
        (Kind.YEAR, "2025"): oracle.year_document(rows, tenant=tenant, year=2025),
        (Kind.RULES, "2025"): oracle.rules_document(of_day),
        (Kind.YEAR, "2026"): oracle.year_document(rows, tenant=tenant, year=2026),
        (Kind.USERS, ""): oracle.users_document(rows, tenant=tenant)["users"],
    }


def stored_documents() -> dict[tuple[Kind, str], Any]:
    documents = {(kind, period): document(kind, period) for kind, period in COMPARED_DOCUMENTS}
    documents[Kind.USERS, ""] = documents[Kind.USERS, ""]["users"]
    return documents


def assert_no_orphans() -> None:
    """Assert that the database names every object under the prefixes of builds."""
    named = set(Partition.objects.values_list("file", flat=True))
    named |= set(SupersededFile.objects.values_list("key", flat=True))
    named |= set(SummaryDocument.objects.exclude(file="").values_list("file", flat=True))
    for model in (DayRollup, MergedRollup):
        for files in model.objects.values_list("files", flat=True):
            named |= set(files.values())
    stored = {
        item.key
        for prefix in ("compacted", "rollups")
        for item in default_store().list(f"{TENANT}/{prefix}/")
    }
    assert stored == named
