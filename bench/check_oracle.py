"""Compare all that is stored of a tenant with the plain Python oracle of the tests: docs/contributing.md.

The oracle reads the raw files itself and shares only the list of columns with the service. Compared are all
rows of each day's file in their order, every field of every document of the tenant, and documents of users.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from sys import intern
from typing import Any
from uuid import UUID

import duckdb

from analytics.models import Kind, SummaryDocument
from analytics.numbers.store import read_document
from analytics.numbers.users import find_user_source, user_document
from bench.harness import console
from logs.columns import COLUMNS
from logs.models import Partition
from logs.sources import local_paths
from tenantadmin.lib.objectstore import default_store
from tests.analytics import oracle

#: The columns that documents are made of, and the columns that the oracle adds.
_NEEDED = (
    *("timestamp", "logId", "userName", "standardizedSql", "matchedRule", "matchedRuleName", "cacheStatus"),
    *("cacheKey", "statusCode", "responseSize", "responseTimeMs", "warehouseExecutionTimeMs"),
    *("hour", "day", "order"),
)


def check(directory: str, *, tenant: str, users: int = 50) -> None:
    """Compare, and print what differs. ``directory`` is the folder above ``logs/YYYY/MM/DD/HH/``."""
    start = time.monotonic()
    report = _Report()
    tenant_id = UUID(tenant)
    rows = list(_compare_rows(Path(directory), report, tenant=tenant_id))
    periods = set()
    for kind, period, content in _tenant_documents(rows, tenant=tenant):
        periods.add((kind, period))
        report.compare(f"{kind} {period}", _tenant_document(tenant_id, kind, period), content)
    stored = SummaryDocument.objects.filter(tenant_id=tenant_id).values_list("kind", "period")
    report.compare("periods of stored documents", set(stored), periods)
    for user, mine in _choose_users(rows, count=users).items():
        for _, period, content in _documents(mine, tenant=tenant):
            report.compare(f"user {user!r} {period}", _user_document(tenant_id, user, period), content)
    console.print(
        f"{len(rows):,} rows: {report.compared:,} documents and days compared, {report.values:,} values "
        f"equal, {report.differences} differ ({time.monotonic() - start:.0f} s)"
    )


class _Report:
    """Counts what was compared, and prints differences."""

    def __init__(self) -> None:
        self.compared = self.values = self.differences = 0

    def compare(self, name: str, seen: Any, expected: Any) -> None:
        self.compared += 1
        if seen == expected:
            self.values += _count(expected)
        else:
            self.differences += 1
            console.print(f"{name}: {_first_difference(seen, expected, '')}", markup=False)


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, list | tuple) else 1


def _first_difference(seen: Any, expected: Any, path: str) -> str:
    members: Sequence[Any] = ()
    if isinstance(seen, dict) and isinstance(expected, dict) and seen.keys() == expected.keys():
        members = list(expected)
    elif isinstance(seen, list) and isinstance(expected, list) and len(seen) == len(expected):
        members = range(len(expected))
    for member in members:
        if seen[member] != expected[member]:
            return _first_difference(seen[member], expected[member], f"{path}/{member}")
    return f"at {path or '/'} is {seen!r:.200}, expected {expected!r:.200}"


# The oracle's ------------------------------------------------------------------------------------


def _compare_rows(directory: Path, report: _Report, *, tenant: UUID) -> Iterator[oracle.Row]:
    """Compare the rows of each day with its file. Yield the columns of all rows that documents need."""
    for folder in sorted(path for path in (directory / "logs").glob("*/*/*") if path.is_dir()):
        day = date(*map(int, folder.parts[-3:]))
        files = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in folder.glob("*/*.json")}
        rows = oracle.read_day(files, day)
        # As in the file: by time; rows of the same time and ``logId`` by object key, backwards.
        ordered = list(reversed(rows))
        ordered.sort(key=lambda row: (row["timestamp"] or 0, (row["logId"] or "").encode()))
        names = [*(column.name for column in COLUMNS), "hour"]
        expected = [tuple(row[name] for name in names) for row in ordered]
        report.compare(f"rows of {day}", _stored_rows(tenant, day), expected)
        for row in rows:
            yield {name: intern(row[name]) if isinstance(row[name], str) else row[name] for name in _NEEDED}


def _documents(rows: list[oracle.Row], *, tenant: str) -> Iterator[tuple[Kind, str, Any]]:
    """Yield kind, period and content of the documents that tenants and users have."""
    for day, of_day in sorted(oracle.by(rows, "day").items()):
        yield Kind.DAY, day, oracle.day_document(of_day)
    for month in sorted({row["day"][:7] for row in rows}):
        of_month = [row for row in rows if row["day"].startswith(month)]
        yield Kind.MONTH, month, oracle.month_document(of_month, int(month[5:]))
    for year in sorted({row["day"][:4] for row in rows}):
        yield Kind.YEAR, year, oracle.year_document(rows, tenant=tenant, year=int(year))


def _tenant_documents(rows: list[oracle.Row], *, tenant: str) -> Iterator[tuple[Kind, str, Any]]:
    yield from _documents(rows, tenant=tenant)
    for year in sorted({row["day"][:4] for row in rows}):
        of_year = [row for row in rows if row["day"].startswith(year)]
        yield Kind.RULES, year, oracle.rules_document(of_year)
        yield Kind.OPPORTUNITIES, year, oracle.opportunities_document(of_year)
    yield Kind.USERS, "", oracle.users_document(rows, tenant=tenant)


def _choose_users(rows: list[oracle.Row], *, count: int) -> dict[str, list[oracle.Row]]:
    """Return the rows of the busiest users and of a sample of others. The sample is always the same."""
    users = oracle.by(rows, "userName")
    ranked = sorted(users, key=lambda user: (-len(users[user]), user))
    busiest, others = ranked[: count // 5], ranked[count // 5 :]
    sample = random.Random(7).sample(others, min(len(others), count - len(busiest)))
    return {user: users[user] for user in (*busiest, *sample)}


# The service's -----------------------------------------------------------------------------------


def _stored_rows(tenant: UUID, day: date) -> list[tuple[Any, ...]]:
    partition = Partition.objects.filter(tenant_id=tenant, day=day).first()
    if partition is None or not partition.file:
        return []
    columns = ", ".join(f'"{column.name}"' for column in COLUMNS)
    files = local_paths(default_store(), partition.files)
    with duckdb.connect() as connection:
        return connection.execute(f"SELECT {columns}, _hour FROM read_parquet(?)", [files]).fetchall()


def _tenant_document(tenant: UUID, kind: Kind, period: str) -> Any:
    """Return a stored document without what the oracle cannot know: its time, and advice in words."""
    stored = read_document(tenant=tenant, kind=kind, period=period)
    if stored is None:
        return None
    if stored.file:
        with default_store().open(stored.file) as file:
            content = json.load(file)
    else:
        content = json.loads(stored.body)
    content.pop("generatedAt", None)
    if kind == Kind.OPPORTUNITIES:
        for entry in (entry for entries in content.values() for entry in entries):
            del entry["suggestedAction"]
    return content


def _user_document(tenant: UUID, user: str, period: str) -> Any:
    source = find_user_source(tenant=tenant, user=user, period=period)
    document = None if source is None else user_document(default_store(), source)
    if document is None or isinstance(document, bytes):
        return document and json.loads(document)
    with document:
        return json.load(document)
