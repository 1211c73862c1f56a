"""What keeps the warehouse awake under the current rules, and what it would bill with other executions."""

# Queries consist of constants and numbers.
# ruff: noqa: S608

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from analytics.replay.arrays import registered
from analytics.replay.billed import APART, KEPT, bill_executions
from analytics.replay.chain import find_executions
from analytics.replay.placing import NUMBER_OF
from analytics.reports.savings_sql import fill_savings, join_overlaps
from logs.layout import HOUR_MS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from accounts.tenants.pricing import Pricing
    from analytics.replay.chain import Lifetime
    from analytics.replay.job import Job

_MINUTE_MS: Final = 60_000
#: Sessions of more statements are not the fault of a few.
_MAX_STATEMENTS: Final = 8


@dataclass(frozen=True, slots=True)
class Session:
    """A time awake: how long it bills, and the numbers of all statements that ran in it."""

    ms: int
    statements: frozenset[int]


@dataclass(frozen=True, slots=True)
class Group:
    """The executions of some statements (by number) that the rule with this index decides.

    Without an index they are all executions of the statements, however they are decided.
    """

    statements: frozenset[int]
    rule: int | None = None

    @property
    def numbers(self) -> str:
        """SQL for the numbers of these executions in the table of the current outcome."""
        rule = (
            ""
            if self.rule is None
            else f" AND rule = {self.rule} AND NOT is_change AND (is_cached OR rule < 0)"
        )
        return (
            "SELECT n FROM current JOIN statement_shape USING (statement, shape)"
            f" WHERE list_contains({sorted(self.statements)}::BIGINT[], number){rule}"
        )


@dataclass(frozen=True, slots=True)
class Move:
    """Run the executions of a group in this minute of their hour."""

    group: Group
    minute: int

    def apply(self, table: str) -> str:
        """Return SQL for the executions of a table, with the moved ones at their other time."""
        moved = f"starts - starts % {HOUR_MS} + {self.minute * _MINUTE_MS} + starts % {_MINUTE_MS}"
        return f"SELECT * REPLACE (if(n IN ({self.group.numbers}), {moved}, starts) AS starts) FROM {table}"


class Awake:
    """Bills the current executions with changes. Needs the table `KEPT` and ``statement_shape``."""

    def __init__(self, connection: DuckDBPyConnection, job: Job) -> None:
        self._connection, self._job = connection, job
        self._scopes = [
            row[0]
            for row in connection.execute(f"SELECT DISTINCT scope FROM {KEPT} ORDER BY scope").fetchall()
        ]
        self.ms = self._bill(f"FROM {KEPT}")

    def sessions(self) -> list[Session]:
        """Return the sessions of few statements."""
        rows = self._connection.execute(self._fill(_SESSIONS)).fetchall()
        return [Session(ms, frozenset(numbers)) for ms, numbers in rows]

    def isolate(self, group: Group) -> None:
        """Take the executions of a group out, for `cached` and `moved`."""
        self._connection.execute(
            f"CREATE OR REPLACE TEMP TABLE own_execution AS FROM {KEPT} WHERE n IN ({group.numbers})"
        )
        self._connection.execute(self._fill(_OTHERS))

    def moved(self, move: Move) -> int:
        """Return the time that is billed if the isolated executions run in another minute."""
        own = move.apply("own_execution")
        return self._bill(
            f"FROM other_execution UNION ALL SELECT scope, host, day, starts, took FROM ({own})"
        )

    def cached(self, group: Group, lifetime: Lifetime) -> int:
        """Return the time that is billed if the results of the isolated group had this lifetime."""
        parts = []
        for scope in self._scopes:
            # Requests that differ in hidden literals have keys of their own, or one.
            hidden = "-played.n" if scope == APART else "pair"
            candidates = self._connection.execute(
                _CANDIDATES.format(numbers=group.numbers, hidden=hidden)
            ).to_arrow_table()
            chain = find_executions(candidates, [lifetime])
            executed = candidates.take(chain.executions["position"]).select(["n"])
            name = f"cached_{scope}"
            with registered(self._connection, executed=executed):
                self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM executed")
            parts.append(
                f"SELECT '{scope}' AS scope, {NUMBER_OF['serverHostname']} AS host, day,"
                f" requested_at AS starts, took_ms AS took FROM {name} JOIN request USING (n)"
                " WHERE took_ms IS NOT NULL"
            )
        return self._bill(" UNION ALL ".join(["FROM other_execution", *parts]))

    def minutes(self) -> dict[int, int]:
        """Return how many isolated executions began in each minute of an hour."""
        return dict(
            self._connection.execute(
                f"SELECT starts % {HOUR_MS} // {_MINUTE_MS}, count(*) FROM own_execution"
                f" WHERE scope = '{APART}' GROUP BY ALL"
            ).fetchall()
        )

    def suspending(self, seconds: int) -> int:
        """Return the time that is billed if the warehouse suspended after these seconds."""
        return self._bill(f"FROM {KEPT}", self._job.pricing.suspending_after(seconds))

    def _bill(self, executions: str, pricing: Pricing | None = None) -> int:
        """Return the milliseconds, the mean of the bounds."""
        bills = bill_executions(self._connection, executions, self._job, pricing=pricing).values()
        return sum(bill.ms for bill in bills) // max(len(bills), 1)

    def _fill(self, text: str) -> str:
        job = self._job
        return fill_savings(
            text, first=job.first_day, before=job.first_day, last=job.last_day, pricing=job.pricing
        )


#: The sessions of few statements, clipped to the window.
_SESSIONS: Final = f"""
    WITH execution AS (
        SELECT n, host, starts, starts + took AS ended, starts + took + $suspend AS reach FROM {KEPT}
        WHERE scope = '{APART}'
    ),
    placed AS (
        SELECT *, starts > coalesce(max(reach) OVER (
                PARTITION BY host ORDER BY starts, ended ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), starts - 1) AS opens
        FROM execution
    ),
    numbered AS (
        SELECT *, count(*) FILTER (opens) OVER (
                PARTITION BY host ORDER BY starts, ended ROWS UNBOUNDED PRECEDING
            ) AS session
        FROM placed
    ),
    session AS (
        SELECT min(numbered.starts) AS starts, max(reach) AS reach, list(DISTINCT number) AS numbers
        FROM numbered LEFT JOIN current USING (n) LEFT JOIN statement_shape USING (statement, shape)
        GROUP BY host, session
        HAVING count(DISTINCT number) <= {_MAX_STATEMENTS} AND bool_and(number IS NOT NULL)
    )
    SELECT least(greatest(reach, starts + $minimum), epoch_ms($last::TIMESTAMP) + 86400000)
            - greatest(starts, epoch_ms($first::TIMESTAMP)) AS ms, numbers
    FROM session WHERE ms > 0
"""
#: The other executions, joined to few, so that each bill reads few rows.
_OTHERS: Final = f"""
    CREATE OR REPLACE TEMP TABLE other_execution AS
    WITH bucket AS (
        SELECT scope, host, min(starts) AS starts, max(reach) AS reach FROM (
            SELECT scope, host, starts, starts // $bucket AS bucket, starts + took + $suspend AS reach
            FROM {KEPT} ANTI JOIN own_execution USING (scope, n)
        ) GROUP BY scope, host, bucket
    ),
    joined AS (
    {join_overlaps(keys="scope, host", table="bucket")}
    )
    SELECT scope, host, DATE '1970-01-01' AS day, starts, reach - starts - $suspend AS took FROM joined
"""
_CANDIDATES: Final = """
    SELECT played.n, played.requested_at, played.work_ms::BIGINT AS work_ms,
        played.is_failing::BIGINT AS is_failing, 0::BIGINT AS rule,
        dense_rank() OVER (
            ORDER BY restart, vary, statement, if(kind = 'open', {hidden}, identity), kind = 'open'
        )::BIGINT AS key
    FROM current AS played
    WHERE played.n IN ({numbers})
    ORDER BY key, played.n
"""
