"""Bill the executions of an outcome. Section "Billed time" of the definition (docs/replay.md)."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta

from analytics.replay.outcome import OPEN_MERGED
from analytics.replay.placing import NUMBER_OF
from analytics.reports.savings_sql import Bill, bill_days, days_between, fill_savings, join_overlaps, split_by
from logs.definitions import EXECUTED
from logs.layout import DAY_MS
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duckdb import DuckDBPyConnection

    from accounts.tenants.pricing import Pricing
    from analytics.replay.job import Job

_EPOCH: Final = date(1970, 1, 1)
#: The scopes of `execution_sql`: hidden literals all differ, or are all equal.
APART, MERGED = "apart", "merged"
#: The table of executions of an outcome that other outcomes are compared with.
KEPT: Final = "kept_execution"


class BilledRange(JsonStruct):
    """Two values: if hidden literals all differ, and if they are equal. The lower one is first."""

    low: int
    high: int


class MoneyRange(JsonStruct):
    """What the billed time costs, with all digits of the currency, as `12.30`."""

    currency: str
    low: str
    high: str


class Billed(JsonStruct):
    """What the warehouse bills for the days of the window."""

    billed_ms: BilledRange
    money: Annotated[MoneyRange | None, Meta(description="Null without a price.")]


class ReplayBilled(JsonStruct):
    """Billed time and money of the replayed ruleset, of the current one, and the first less the second."""

    total: Billed
    against: Billed
    gain: Billed


def execution_sql(table: str, *, is_exact: bool) -> str:
    """Return SQL for the executions of ``table``, the outcomes of the last call of `play`.

    Columns: ``scope``, ``n``, ``host``, ``day``, ``starts``, ``took``. If the log hides literals, each
    execution is there for each scope that has it.
    """
    scopes = [APART] if is_exact else [APART, MERGED]
    executes = f"({EXECUTED.of('{0}.status')} OR {{0}}.is_revalidation)".format
    return f"""
        SELECT scope, n, {NUMBER_OF["serverHostname"]} AS host, day, requested_at AS starts, took_ms AS took
        FROM (
            SELECT request.*, {executes("outcome")} AS apart, coalesce({executes("merged")}, apart) AS merged
            FROM {table} AS outcome JOIN request USING (n)
            LEFT JOIN (FROM played WHERE lane = {OPEN_MERGED}) AS merged USING (n)
            WHERE took_ms IS NOT NULL
        ), (SELECT unnest({scopes}) AS scope)
        WHERE if(scope = '{APART}', apart, merged)
        UNION ALL
        SELECT scope, NULL, host, day, starts, took FROM outside_execution, (SELECT unnest({scopes}) AS scope)
    """  # noqa: S608


def bill_executions(
    connection: DuckDBPyConnection, executions: str, job: Job, *, pricing: Pricing | None = None
) -> dict[str, Bill]:
    """Return the bill of each scope.

    Args:
        executions: SQL with the columns of `execution_sql`, except ``n``.
        pricing: prices in place of the prices of the job.
    """
    pricing = pricing or job.pricing
    sql = _BILLED.format(executions=executions)
    sql = fill_savings(sql, first=job.first_day, before=job.first_day, last=job.last_day, pricing=pricing)
    awake: dict[str, dict[date, int]] = {}
    busy: dict[str, dict[date, int]] = {}
    for scope, number, awake_ms, busy_ms in connection.execute(sql).fetchall():
        day = _EPOCH + timedelta(number)
        awake.setdefault(scope, {})[day], busy.setdefault(scope, {})[day] = awake_ms, busy_ms
    days = days_between(job.first_day, job.last_day)
    return {scope: bill_days(days, pricing, awake=awake[scope], busy=busy[scope]) for scope in awake}


def bill_outcome(connection: DuckDBPyConnection, table: str, job: Job, *, is_exact: bool) -> Sequence[Bill]:
    """Return one bill, or two if the log hides literals. ``table`` is of the last call of `play`."""
    bills = bill_executions(connection, execution_sql(table, is_exact=is_exact), job)
    nothing = bill_days(days_between(job.first_day, job.last_day), job.pricing, awake={}, busy={})
    return [bills.get(scope, nothing) for scope in ([APART] if is_exact else [APART, MERGED])]


def compare_bills(total: Sequence[Bill], against: Sequence[Bill], pricing: Pricing) -> ReplayBilled:
    """Return what all possible bills of a ruleset come to, beside the bills of the current ruleset."""
    own, other = _Range.of(total, pricing), _Range.of(against, pricing)
    return ReplayBilled(
        total=own.render(pricing), against=other.render(pricing), gain=(own - other).render(pricing)
    )


class _Range:
    """The least and the most milliseconds, and amounts for `Pricing.money`."""

    def __init__(self, ms: Iterator[int], amounts: Sequence[int]) -> None:
        self.ms, self.amounts = sorted(ms), sorted(amounts)

    @classmethod
    def of(cls, bills: Sequence[Bill], pricing: Pricing) -> _Range:
        amounts = [bill.amount(bill.billed, pricing) for bill in bills]
        return cls((bill.ms for bill in bills), [amount for amount in amounts if amount is not None])

    def __sub__(self, other: _Range) -> _Range:
        """Return the difference of the lowest and of the highest values."""
        ends = (0, -1)
        return _Range(
            (self.ms[end] - other.ms[end] for end in ends),
            [self.amounts[end] - other.amounts[end] for end in ends] if self.amounts else [],
        )

    def render(self, pricing: Pricing) -> Billed:
        money = None
        if self.amounts:
            low, high = (pricing.money(self.amounts[end]) for end in (0, -1))
            money = MoneyRange(currency=pricing.currency or "", low=low, high=high)
        return Billed(billed_ms=BilledRange(low=self.ms[0], high=self.ms[-1]), money=money)


#: Executions on one host within ``$bucket`` milliseconds are one session (`analytics.reports.savings_sql`).
_BILLED: Final = f"""
    WITH execution AS ({{executions}}),
    bucket AS MATERIALIZED (
        SELECT scope, host, day, min(starts) AS starts, max(reach) AS reach, sum(took) AS busy
        FROM (
            SELECT scope, host, day, starts, took, starts // $bucket AS bucket,
                starts + took + $suspend AS reach
            FROM execution
        ) GROUP BY scope, host, day, bucket
    ),
    joined AS (
    {join_overlaps(keys="scope, host", table="bucket")}
    ),
    session AS (SELECT scope, starts, greatest(reach, starts + $minimum) AS until FROM joined),
    awake AS (
    {split_by(DAY_MS, keys="scope", table="session")}
    )
    SELECT scope, number::INTEGER, sum(awake)::BIGINT, sum(busy)::BIGINT FROM (
        SELECT scope, number, awake, 0 AS busy FROM awake
        UNION ALL SELECT scope, day - DATE '1970-01-01', 0, busy FROM bucket
    ) GROUP BY ALL
"""  # noqa: S608
