"""A month's savings beside scans of its columns, and the same savings asked again beside one row."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
from django.core.cache import cache

from accounts.tenants.pricing import Pricing
from analytics.demo.logs import LogPlan, compact_days, read_demo, write_logs
from analytics.reports.savings import find_source, read_savings
from analytics.reports.savings_sql import SAVINGS_SQL, fill_savings
from bench.harness import Compared, medians_in_turn, show
from logs.audit import Reader
from logs.models import Partition
from logs.quoting import quote_name, quote_texts
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import LocalStore, default_store

_TENANT = UUID(int=1)
_BEFORE = date(2026, 2, 28)
_FIRST, _LAST = date(2026, 3, 1), date(2026, 3, 31)
_COLUMNS = (
    *("timestamp", "standardizedSql", "serverHostname", "cacheStatus", "matchedRule"),
    "warehouseExecutionTimeMs",
)


def main(directory: Path, *, entries: int = 400_000, runs: int = 3) -> None:
    files = _write(directory, entries=entries)
    computed, scanned = medians_in_turn(
        lambda: _run(
            files, fill_savings(SAVINGS_SQL, first=_FIRST, before=_BEFORE, last=_LAST, pricing=Pricing.of([]))
        ),
        lambda: _run(
            files, f"SELECT {', '.join(f'max({quote_name(name)})' for name in _COLUMNS)} FROM proxy_logs"
        ),
        runs=runs,
        clock=time.process_time,
    )
    rows = [Compared("savings of a month", computed, "scan of their columns", scanned, 3)]
    show(f"Savings of {entries:,} entries of 31 days: processor time", "ms", rows)
    _ask_again(runs=runs)


def _write(directory: Path, *, entries: int) -> Sequence[str]:
    """Write and compact the demo's log of the month and of the day before."""
    store = LocalStore(directory / "objects")
    plan = LogPlan(read_demo().profiles[0], _TENANT, _BEFORE, 32, entries)
    for _ in write_logs(store, plan):
        pass
    days = [_BEFORE + timedelta(number) for number in range(32)]
    return [file.file for file in compact_days(store, _TENANT, days, directory=directory)]


def _run(files: Sequence[str], sql: str) -> None:
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.execute(
            f"CREATE VIEW proxy_logs AS FROM read_parquet({quote_texts(files)}, hive_partitioning = true,"
            " hive_types = {'day': VARCHAR})"
        )
        connection.execute(sql).fetchall()


def _ask_again(*, runs: int) -> None:
    """Measure what a kept answer costs: the builds of 32 days, the prices, and the answer."""
    common: dict[str, Any] = {"tenant_id": _TENANT, "file": "x", "rows": 1, "bytes": 1, "objects_read": 1}
    common |= {"duplicates": 0, "quarantined": 0}
    for number in range(32):
        Partition.objects.create(
            day=_BEFORE + timedelta(number), build=f"b{number}", built_at=now(), **common
        )
    reader = Reader("bench@example.org", "")

    def ask() -> None:
        source = find_source(tenant=_TENANT, first=_FIRST, last=_LAST, step="day")
        read_savings(default_store(), source, reader=reader)

    source = find_source(tenant=_TENANT, first=_FIRST, last=_LAST, step="day")
    cache.set(source.cache_key, b"x" * 20_000, 3600)
    again, one = medians_in_turn(
        ask, lambda: Partition.objects.filter(tenant_id=_TENANT, day=_FIRST).first(), runs=100 * runs
    )
    show("Asked again", "ms", [Compared("savings of a month", again, "one row", one)])
