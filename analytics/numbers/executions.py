"""What a day adds to the bill, kept beside its rollups: savings do not read the log again. No I/O.

Contract: docs/savings.md. One Parquet file for each day, whose rows are of four parts (`Part`). None of them
depends on the prices, the window or other days, so a day that did not change is never read again.
"""

# Queries consist of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from logs.definitions import ANSWERED_BY_OWN_CACHE, FAILED, MEASURED, MISS, SPARED, Statuses, hash_sql
from logs.layout import DAY_MS

if TYPE_CHECKING:
    from datetime import date


#: The name of the file among those of a day's rollups.
EXECUTIONS: Final = "executions"


class Part(StrEnum):
    """What a row of the file is."""

    #: A time from ``starts`` to ``ends`` in which ``host`` executed all the time, by the entries' own time.
    RAN = "ran"
    #: An entry that begins at ``starts`` and takes the mean time of its ``statement``, as `MEAN` says of the
    #: days of a window.
    WAITS = "waits"
    #: A ``statement``, and how many of its entries (``requests``) took how long together (``busy``).
    MEAN = "mean"
    #: All entries whose time is known (``requests``, ``busy``), and those whose time can never be known.
    TOTAL = "total"


#: The entries that count, and those whose timestamp is from about their day.
ENTRIES: Final = f"""\
    SELECT
        day, timestamp AS started, standardizedSql AS statement, serverHostname AS host,
        {SPARED} AS spared,
        CASE WHEN {SPARED} THEN matchedRule END AS rule,
        {FAILED} AS failed,
        CASE WHEN {SPARED.not_of("cacheStatus")} AND {MEASURED}
            THEN warehouseExecutionTimeMs END AS ms
    FROM proxy_logs
    WHERE day BETWEEN $before AND $last
        AND ({Statuses(*SPARED, *MISS)}
            OR ({FAILED} AND warehouseExecutionTimeMs IS NOT NULL))
        AND NOT ({ANSWERED_BY_OWN_CACHE})"""
IS_NEAR: Final = f"started - epoch_ms(day::TIMESTAMP) BETWEEN -{2 * DAY_MS} AND {3 * DAY_MS - 1}"
HAS_MEAN: Final = "NOT failed AND ms IS NOT NULL AND statement IS NOT NULL"
#: Times that overlap or touch are one time. One that begins after midnight (UTC) may have another price.
_KEEP: Final = f"""\
WITH entries AS MATERIALIZED (
    SELECT
        day, started, {hash_sql("statement")}::UUID AS statement, host, spared, rule, failed,
        ms::BIGINT AS ms,
        CASE WHEN {IS_NEAR} THEN started END AS starts,
        CASE WHEN ({IS_NEAR}) IS NOT TRUE OR ms IS NULL AND (failed OR statement IS NULL) THEN NULL
            WHEN ms IS NULL THEN 'waits' ELSE 'ran' END AS part
    FROM (
{ENTRIES}
    )
),
ran AS (
    SELECT host, starts // {DAY_MS} AS began_on, starts, max(starts + ms) AS ends
    FROM entries WHERE part = 'ran' GROUP BY ALL
),
reached AS (
    SELECT
        *, max(ends) OVER (
            PARTITION BY host, began_on ORDER BY starts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS earlier
    FROM ran
),
numbered AS (
    SELECT
        *, sum(CASE WHEN starts > earlier THEN 1 END) OVER (
            PARTITION BY host, began_on ORDER BY starts ROWS UNBOUNDED PRECEDING
        ) AS number
    FROM reached
)
SELECT
    'ran' AS part, $last AS day, false AS spared, NULL AS rule, host, NULL::UUID AS statement,
    min(starts) AS starts, max(ends) AS ends,
    0::BIGINT AS busy, 0::BIGINT AS requests, 0::BIGINT AS unmeasured
FROM numbered GROUP BY host, began_on, number
UNION ALL SELECT 'waits', $last, spared, rule, host, statement, starts, NULL, 0, 0, 0
FROM entries WHERE part = 'waits'
UNION ALL SELECT 'mean', $last, false, NULL, NULL, statement, NULL, NULL, sum(ms)::BIGINT, count(*), 0
FROM entries WHERE {HAS_MEAN} GROUP BY statement
UNION ALL SELECT
    'total', $last, spared, NULL, NULL, NULL, NULL, NULL,
    coalesce(sum(ms) FILTER (part = 'ran'), 0)::BIGINT, count(*) FILTER (part = 'ran'),
    count(*) FILTER (part IS NULL)
FROM entries WHERE started IS NOT NULL GROUP BY spared
ORDER BY part, statement, starts"""


def keep_sql(day: date) -> str:
    """Return the SQL over ``proxy_logs`` for the rows of a day's file."""
    return _KEEP.replace("$before", f"'{day}'").replace("$last", f"'{day}'")
