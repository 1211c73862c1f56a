"""Compare what `let-it-sleep` and `auto-suspend` promise with the judges of the tests: docs/contributing.md.

It reads raw entries as NDJSON, perhaps with gzip, and takes the day of an entry from its timestamp.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import duckdb
from rich.table import Table

from accounts.tenants.pricing import Pricing
from analytics.advice.estimate import STATEMENT_COLUMNS
from analytics.advice.mine import mine
from analytics.advice.proposal import apply_edits, read_edits
from analytics.replay.load import Gateway, Job
from bench.check_savings import price_of, read_entries
from bench.harness import console
from logs.columns import COLUMNS
from rules.language import complete_rule, read_rules
from rules.tables.warehouse import ANY_TABLES
from tests.analytics.replay.billing import executions
from tests.analytics.replay.judge import judge
from tests.analytics.replay.streams import write_days
from tests.analytics.savings.judge import Bill

if TYPE_CHECKING:
    from tests.analytics.replay.judge import Row

_KINDS = ("let-it-sleep", "auto-suspend")


def check(name: str, *, rules: str | None = None, suspend: int = 300, per_hour: str = "3.00") -> bool:
    """Print what is recommended for a log, and what the judges bill. Return True if all are equal.

    Args:
        rules: a file with the current ruleset, as the body of ``PUT /config/tenants/{tenant}/rules``.
        suspend: the seconds after which the warehouse suspends now.
    """
    rows = [
        row
        for _, of_day in groupby(_read(Path(name)), key=itemgetter("day"))
        for row in _unless_left_out(list(of_day))
    ]
    current = (
        [] if rules is None else [complete_rule(one) for one in json.loads(Path(rules).read_text())["rules"]]
    )
    price = price_of(suspend, per_hour=per_hour)
    with TemporaryDirectory() as place, duckdb.connect(config={"threads": 1}) as connection:
        files = write_days(rows, Path(place))
        parsed = read_rules(current)
        gateway = Gateway(nocache=True, non_deterministic=True, keys_per_user=False)
        job = Job(
            files, files[1].day, files[-1].day, parsed, parsed, gateway=gateway, pricing=Pricing.of([price])
        )
        advice = mine(connection, job, current, tables=ANY_TABLES, dismissed={})
    window = [file.day for file in files[1:]]
    now = _bill(rows, current, [price], window)
    table = Table(
        title=f"{name}: {len(rows):,} entries, {window[0]} to {window[-1]}; hours billed: {_hours(now)}"
    )
    for column in ("kind", "what", "hours less, predicted", "the judges"):
        table.add_column(column)
    is_equal = True
    for found in [row for row in advice.recommendations if row["kind"] in _KINDS]:
        for way in [found, *found["alternatives"]]:
            predicted = [-way["predicted"]["gain"]["billedMs"][end] for end in ("high", "low")]
            if "autoSuspend" in way["predicted"]:
                then = way["predicted"]["autoSuspend"]["then"]
                judged = _less(now, _bill(rows, current, [price], window, suspend=then))
            elif way["patch"]:
                changed = apply_edits(current, read_edits(way["patch"]))
                judged = _less(now, _bill(rows, changed, [price], window))
            else:
                continue  # the minute of a schedule: tests/analytics/advice/test_sleep.py
            is_equal &= predicted == judged
            table.add_row(found["kind"], way["title"], _hours(predicted), _hours(judged))
    console.print(table)
    return is_equal


def _bill(
    rows: Sequence[Row], rules: Sequence[Mapping[str, Any]], prices: Any, window: Any, **options: Any
) -> list[int]:
    """Return the least and the most milliseconds."""
    counted = {day.isoformat() for day in window}
    judgement = judge(rows, rules=read_rules(rules), counted=counted, with_risk=False)
    bill = Bill(prices, window, **options)
    found = [sum(bill.of(runs).billed.values()) for runs in executions(judgement, rows)]
    return [min(found), max(found)]


def _unless_left_out(of_day: list[Row]) -> list[Row]:
    """Return the rows of a day; none if a replay leaves the day out, because a column is null in all."""
    is_filled = all(any(row[column] is not None for row in of_day) for column in STATEMENT_COLUMNS)
    return of_day if is_filled else []


def _less(now: Sequence[int], then: Sequence[int]) -> list[int]:
    return sorted(before - after for before, after in zip(now, then, strict=True))


def _hours(values: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys(f"{value / 3_600_000:.2f}" for value in values))


def _read(path: Path) -> list[Row]:
    rows = read_entries(path, [column.name for column in COLUMNS])
    return sorted(rows, key=lambda row: (row["day"], row["timestamp"], row["logId"] or ""))
