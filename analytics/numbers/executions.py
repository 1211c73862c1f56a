"""What a day adds to the bill, kept beside its rollups: savings do not read the log again. No I/O.

Contract: docs/savings.md. One Parquet file for each day, whose rows are of four parts (`Part`). None of them
depends on the prices, the window or other days, so a day that did not change is never read again.
"""

# Queries consist of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from typing import Final

from logs.definitions import ANSWERED_BY_OWN_CACHE, FAILED, MEASURED, MISS, SPARED, Statuses, hash_sql
from logs.layout import DAY_MS
from logs.quoting import quote_texts

#: The key of the file in `DayRollup.files`.
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
    #: All entries of a ``host`` whose time is known (``requests``, ``busy``), and those whose time can never
    #: be known.
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
#: The times of ``ran``, joined. Times that overlap or touch are one time. One that begins after midnight
#: (UTC) may have another price.
_JOIN: Final = f"""\
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
    '{Part.RAN}' AS part, $last AS day, false AS spared, NULL AS rule, host, NULL::UUID AS statement,
    min(starts) AS starts, max(ends) AS ends,
    0::BIGINT AS busy, 0::BIGINT AS requests, 0::BIGINT AS unmeasured
FROM numbered GROUP BY host, began_on, number"""
_ORDER: Final = "ORDER BY part, statement, starts, host, spared"
_KEEP: Final = f"""\
WITH entries AS MATERIALIZED (
    SELECT
        day, started, {hash_sql("statement")}::UUID AS statement, host, spared, rule, failed,
        ms::BIGINT AS ms,
        CASE WHEN {IS_NEAR} THEN started END AS starts,
        CASE WHEN ({IS_NEAR}) IS NOT TRUE OR ms IS NULL AND (failed OR statement IS NULL) THEN NULL
            WHEN ms IS NULL THEN '{Part.WAITS}' ELSE '{Part.RAN}' END AS part
    FROM (
{ENTRIES}
    )
),
ran AS (
    SELECT host, starts // {DAY_MS} AS began_on, starts, max(starts + ms) AS ends
    FROM entries WHERE part = '{Part.RAN}' GROUP BY ALL
),
{_JOIN}
UNION ALL SELECT '{Part.WAITS}', $last, spared, rule, host, statement, starts, NULL, 0, 0, 0
FROM entries WHERE part = '{Part.WAITS}'
UNION ALL SELECT
    '{Part.MEAN}', $last, false, NULL, NULL, statement, NULL, NULL, sum(ms)::BIGINT, count(*), 0
FROM entries WHERE {HAS_MEAN} GROUP BY statement
UNION ALL SELECT
    '{Part.TOTAL}', $last, spared, NULL, host, NULL, NULL, NULL,
    coalesce(sum(ms) FILTER (part = '{Part.RAN}'), 0)::BIGINT, count(*) FILTER (part = '{Part.RAN}'),
    count(*) FILTER (part IS NULL)
FROM entries WHERE started IS NOT NULL GROUP BY spared, host
{_ORDER}"""
_MERGE: Final = f"""\
WITH kept AS (FROM read_parquet($kept)),
ran AS (
    SELECT host, starts // {DAY_MS} AS began_on, starts, max(ends) AS ends
    FROM kept WHERE part = '{Part.RAN}' GROUP BY ALL
),
{_JOIN}
UNION ALL FROM kept WHERE part = '{Part.WAITS}'
UNION ALL SELECT
    part, day, spared, rule, host, statement, starts, ends,
    sum(busy)::BIGINT, sum(requests)::BIGINT, sum(unmeasured)::BIGINT
FROM kept WHERE part IN ('{Part.MEAN}', '{Part.TOTAL}') GROUP BY ALL
{_ORDER}"""


def keep_sql(day: date) -> str:
    """Return the SQL over ``proxy_logs`` for the rows of a day's file, or of a span of the day."""
    return _KEEP.replace("$before", f"'{day}'").replace("$last", f"'{day}'")


def merge_sql(files: Sequence[str], *, day: date) -> str:
    """Return the SQL for the rows of a day's file, from those of its spans."""
    return _MERGE.replace("$kept", quote_texts(files)).replace("$last", f"'{day}'")
