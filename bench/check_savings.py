"""Compare savings with the judge of the tests for a real log: docs/contributing.md.

It reads raw entries as NDJSON, perhaps with gzip, and takes the day of an entry from its timestamp. It prints
a table of busy and billed time for several times until the warehouse suspends.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
from rich.table import Table

from bench.harness import console
from tests.analytics.savings.judge import judge
from tests.analytics.savings.logs import answer

_NAMES = (
    *("timestamp", "standardizedSql", "serverHostname", "cacheStatus", "matchedRule"),
    "warehouseExecutionTimeMs",
)
_SUSPENDS = (60, 300, 600)


def check(name: str) -> bool:
    """Print the savings of a log. Return True if all numbers are the judge's."""
    path = Path(name)
    rows = list(read_entries(path, _NAMES))
    days = [date.fromisoformat(row["day"]) for row in rows]
    first, last = min(days), max(days)
    table = Table(
        title=f"{path}: {len(rows):,} entries, {first} to {last}; hours with the cache, without, spared"
    )
    for name in ("suspend, s", "busy", "", "", "billed", "", "", "the judge"):
        table.add_column(name, justify="right")
    is_equal = True
    with duckdb.connect() as connection:
        for suspend in _SUSPENDS:
            prices = [price_of(suspend)]
            found = answer(connection, rows, prices, first, last)
            same = found == judge(rows, prices, first, last)
            is_equal &= same
            table.add_row(str(suspend), *_cells(found["total"]), "equal" if same else "DIFFERENT")
    console.print(table)
    return is_equal


def price_of(suspend: int, *, per_hour: str = "3.00") -> dict[str, Any]:
    """Return the price of a warehouse that suspends after these seconds."""
    return {
        "from": "2020-01-01",
        "currency": "USD",
        "perHour": per_hour,
        "billing": "suspending",
        "autoSuspendSeconds": suspend,
        "minimumSeconds": 60,
    }


def read_entries(path: Path, names: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield the day and these fields of each entry, each once. Entries without a time are left out."""
    seen = set()
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry.get("logId") in seen or entry.get("timestamp") is None:
                continue
            seen.add(entry.get("logId"))
            day = datetime.fromtimestamp(entry["timestamp"] / 1000, UTC).date()
            yield {**{name: entry.get(name) for name in names}, "day": day.isoformat()}


def _cells(total: dict[str, Any]) -> Iterator[str]:
    for name in ("busyMs", "billedMs"):
        for part in ("withCache", "without"):
            yield f"{total[part][name] / 3_600_000:.1f}"
        yield f"{total['saved'][name] / total['without'][name]:.1%}"
