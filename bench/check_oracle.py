"""Compare everything that was rebuilt from raw logs with the plain Python oracle of the tests.

``python -m bench.check_oracle DIR --tenant ID``, after ``manage.py import_logs DIR --tenant ID`` and
``manage.py rebuild``, with the same environment. Compares all rows of each day's file in their order, every
field of every document of the tenant, and all documents of some users. The oracle reads the raw files in DIR
and shares only the list of columns with the service.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any
from uuid import UUID

from rich.console import Console
from rich.progress import track

from tenantadmin.run import embedded
from tests.analytics import oracle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

console = Console()

#: The columns that summaries need, and those that the oracle adds.
_NEEDED = (
    *("timestamp", "logId", "userName", "standardizedSql", "matchedRule", "matchedRuleName", "cacheStatus"),
    *("cacheKey", "statusCode", "responseSize", "responseTimeMs", "warehouseExecutionTimeMs"),
    *("hour", "day", "order"),
)
#: Differences that are printed.
_MAX_SHOWN = 20


@dataclass
class Report:
    """The numbers of compared documents and equal values, and the differences."""

    compared: int = 0
    fields: int = 0
    differences: list[str] = field(default_factory=list)

    def compare(self, name: str, seen: Any, expected: Any) -> None:
        """Compare one document, or the rows of a day, with the expected value."""
        self.compared += 1
        if seen == expected:
            self.fields += _count(expected)
        else:
            self.differences.append(f"{name}: {_first_difference(seen, expected, '')}")


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_count, value))
    return 1


def _first_difference(seen: Any, expected: Any, path: str) -> str:
    if isinstance(seen, dict) and isinstance(expected, dict) and seen.keys() == expected.keys():
        for name, value in expected.items():
            if seen[name] != value:
                return _first_difference(seen[name], value, f"{path}/{name}")
    both_lists = isinstance(seen, list) and isinstance(expected, list)
    if both_lists and len(seen) == len(expected):
        for index, (one, other) in enumerate(zip(seen, expected, strict=True)):
            if one != other:
                return _first_difference(one, other, f"{path}/{index}")
    return f"at {path or '/'} is {seen!r:.200}, expected {expected!r:.200}"


def read_rows(directory: Path, report: Report, *, tenant: UUID) -> list[oracle.Row]:
    """Return the oracle's rows of all days. Compare the rows of each day with its file."""
    from bench.stored import read_day_file  # noqa: PLC0415  # needs Django

    rows: list[oracle.Row] = []
    folders = sorted(path for path in (directory / "logs").glob("*/*/*") if path.is_dir())
    for folder in track(folders, "Raw files to rows", console=console):
        day = date(*map(int, folder.parts[-3:]))
        files = {f"{path.parent.name}/{path.name}": path.read_bytes() for path in folder.glob("*/*.json")}
        of_day = oracle.read_day(files, day)
        if not of_day:
            continue
        names, stored = read_day_file(tenant=tenant, day=day)
        report.compare(
            f"rows of {day}", stored, [tuple(row[name] for name in names) for row in _ordered(of_day)]
        )
        rows += [{name: _interned(row[name]) for name in _NEEDED} for row in of_day]
    return rows


def _ordered(rows: Sequence[oracle.Row]) -> list[oracle.Row]:
    """Sort as in the file: by time; rows of the same time and ``logId`` by object key, backwards."""
    ordered = list(rows[::-1])
    ordered.sort(key=lambda row: (row["timestamp"] or 0, (row["logId"] or "").encode()))
    return ordered


def _interned(value: Any) -> Any:
    return intern(value) if isinstance(value, str) else value


def tenant_documents(rows: list[oracle.Row], *, tenant: UUID) -> Iterator[tuple[str, str, Any]]:
    """Yield kind, period and expected content of every document of the tenant."""
    for day, of_day in sorted(oracle.by(rows, "day").items()):
        yield "day", day, oracle.day_document(of_day)
    for month in sorted({row["day"][:7] for row in rows}):
        of_month = [row for row in rows if row["day"].startswith(month)]
        yield "month", month, oracle.month_document(of_month, int(month[5:]))
    for year in sorted({row["day"][:4] for row in rows}):
        of_year = [row for row in rows if row["day"].startswith(year)]
        yield "year", year, oracle.year_document(rows, tenant=str(tenant), year=int(year))
        yield "rules", year, oracle.rules_document(of_year)
        yield "opportunities", year, oracle.opportunities_document(of_year)
    yield "users", "", oracle.users_document(rows, tenant=str(tenant))


def user_documents(mine: list[oracle.Row], *, tenant: UUID) -> Iterator[tuple[str, Any]]:
    """Yield period and expected content of every document of the user whose rows are ``mine``."""
    for day, of_day in sorted(oracle.by(mine, "day").items()):
        yield day, oracle.day_document(of_day)
    for month in sorted({row["day"][:7] for row in mine}):
        of_month = [row for row in mine if row["day"].startswith(month)]
        yield month, oracle.month_document(of_month, int(month[5:]))
    for year in sorted({row["day"][:4] for row in mine}):
        yield year, oracle.year_document(mine, tenant=str(tenant), year=int(year))


def choose_users(rows: list[oracle.Row], *, count: int) -> dict[str, list[oracle.Row]]:
    """Return the rows of the busiest users and of a sample of others. The sample is always the same."""
    users = oracle.by(rows, "userName")
    ranked = sorted(users, key=lambda user: (-len(users[user]), user))
    busiest, others = ranked[: count // 5], ranked[count // 5 :]
    sample = random.Random(7).sample(others, min(len(others), count - len(busiest)))
    return {user: users[user] for user in (*busiest, *sample)}


def check(directory: Path, *, tenant: UUID, users: int) -> Report:
    """Compare everything, and return the report."""
    from bench.stored import read_tenant_document, read_user_document, stored_periods  # noqa: PLC0415

    report = Report()
    rows = read_rows(directory, report, tenant=tenant)
    console.print(f"{len(rows):,} rows")
    expected = set()
    for kind, period, content in track(
        list(tenant_documents(rows, tenant=tenant)), "Documents of the tenant", console=console
    ):
        expected.add((kind, period))
        seen = read_tenant_document(tenant=tenant, kind=kind, period=period)
        report.compare(f"{kind} {period}", seen, content)
    report.compare("periods of stored documents", stored_periods(tenant=tenant), expected)
    for user, mine in track(choose_users(rows, count=users).items(), "Documents of users", console=console):
        for period, content in user_documents(mine, tenant=tenant):
            seen = read_user_document(tenant=tenant, user=user, period=period)
            report.compare(f"user {user!r} {period}", seen, content)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("directory", type=Path, metavar="DIR", help="the folder above logs/YYYY/MM/DD/HH/")
    parser.add_argument("--tenant", type=UUID, required=True, metavar="ID")
    parser.add_argument("--users", type=int, default=50, help="users whose documents are compared (50)")
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tenantadmin.settings")
    var_dir = Path(os.environ.get("VAR_DIR") or "var").resolve()
    needs = embedded.find_needs(os.environ)
    servers = embedded.running(var_dir, database=needs.database, redis=needs.redis)
    with servers if needs.database or needs.redis else nullcontext():
        import django  # noqa: PLC0415  # reads the environment

        django.setup()
        start = time.monotonic()
        report = check(options.directory, tenant=options.tenant, users=options.users)
    for difference in report.differences[:_MAX_SHOWN]:
        console.print(difference, markup=False)
    console.print(
        f"{report.compared:,} documents and days compared, {report.fields:,} values equal, "
        f"{len(report.differences)} differ ({time.monotonic() - start:.0f} s)"
    )
    sys.exit(bool(report.differences))


if __name__ == "__main__":
    main()
