"""SQL that finds stale hits in ``proxy_logs``: hits older than a change of a table that they read.

Names of tables are compared once for each distinct list and statement, not for each row.
"""

# Queries consist of constants, days and quoted names.
# ruff: noqa: S608

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from analytics.changed_tables import changed_sql
from analytics.learned_views import defines_sql, view_sql
from logs.definitions import ANSWERED, ENDED_AT, HIT
from logs.quoting import quote_texts
from rules.tables.names import may_be_sql, name_sql, names_sql
from rules.tables.warehouse import ANY_TABLES
from tenantadmin.lib.core.timestamps import days_before

if TYPE_CHECKING:
    from datetime import date

    from rules.tables.warehouse import WarehouseTables

#: Older changes are ignored, because few results live longer.
LOOK_BACK_DAYS: Final = 7
#: ``cacheAgeSeconds`` is rounded down, so the result may be this many milliseconds older.
_ROUNDING_MS: Final = 999
_MAX_FINDINGS: Final = 1_000
MAX_SPELLED: Final = 100
_PLACE: Final = re.compile(r"\{(changed|defines|view|name|names|views|viewed)\}")
_CHANGES: Final = f"""
WITH RECURSIVE changes AS MATERIALIZED (
    SELECT
        {ENDED_AT} AS changedAt,
        matchedRule AS changedBy, coalesce(standardizedSql, '') AS statement, tables
    FROM proxy_logs
    WHERE day BETWEEN $earliest AND $last AND (isDataChange OR isDDL) AND timestamp IS NOT NULL
        AND {ANSWERED}
),
statements AS MATERIALIZED (
    SELECT *, {{changed}} AS changed, {{defines}} AS defines, {{view}} AS defined
    FROM (SELECT DISTINCT statement, tables FROM changes)
),
learned AS (SELECT defined AS view, unnest({{names}}) AS name FROM statements WHERE defined IS NOT NULL),
configured AS (SELECT unnest({{views}}) AS view, unnest({{viewed}}) AS name),
views AS MATERIALIZED (
    FROM configured UNION SELECT view, name FROM learned WHERE view NOT IN (SELECT view FROM configured)
),
"""
_LEARNED: Final = (
    _CHANGES.strip().removesuffix(",") + "\nFROM learned WHERE view <> name ORDER BY ALL LIMIT 1000"
)
#: The tables that the log names in several ways. A name is one way of the longest name that it may be.
_SPELLINGS: Final = f"""
WITH texts AS (
    SELECT DISTINCT unnest(json_extract_string(tables, '$[*]')) AS text
    FROM (SELECT DISTINCT tables FROM proxy_logs WHERE day BETWEEN $first AND $last AND json_valid(tables))
),
named AS MATERIALIZED (SELECT text, {{name}} AS name FROM texts)
SELECT longest.name AS "table", list(DISTINCT named.text ORDER BY named.text) AS spellings
FROM (SELECT DISTINCT name FROM named) AS longest JOIN named ON {may_be_sql("longest.name", "named.name")}
GROUP BY longest.name
HAVING max(length(named.name)) = length(longest.name) AND count(DISTINCT named.text) > 1
ORDER BY len(spellings) DESC, "table" LIMIT {MAX_SPELLED}"""
_STALE: Final = (
    _CHANGES
    + f"""hits AS MATERIALIZED (
    SELECT
        row_number() OVER () AS hit, timestamp AS servedAt,
        timestamp - 1000 * cacheAgeSeconds::BIGINT AS bornAt, matchedRule, logId, tables
    FROM proxy_logs
    WHERE day BETWEEN $first AND $last AND {HIT} AND cacheAgeSeconds IS NOT NULL
        AND timestamp IS NOT NULL
),
lists AS MATERIALIZED (
    SELECT tables, unnest({{names}}) AS name FROM (SELECT DISTINCT tables FROM hits)
),
-- What a name is, or reads if it is a view, also through other views.
reach AS (
    SELECT DISTINCT name, name AS reached
    FROM (SELECT name FROM lists UNION ALL SELECT unnest(changed) FROM statements)
    UNION
    SELECT reach.name, views.name FROM reach JOIN views ON {may_be_sql("reach.reached", "views.view")}
),
-- To write to a view changes its tables.
altered AS MATERIALIZED (
    SELECT DISTINCT statement, tables, if(defines, changedName, reached) AS changedName
    FROM (SELECT *, unnest(changed) AS changedName FROM statements) JOIN reach ON reach.name = changedName
),
pairs AS MATERIALIZED (
    SELECT DISTINCT reach.name, changedName
    FROM reach JOIN (SELECT DISTINCT changedName FROM altered)
        ON {may_be_sql("reached", "changedName")}
    WHERE reach.name IN (SELECT name FROM lists)
),
changed AS (
    SELECT changedAt, changedBy, name
    FROM changes JOIN altered USING (statement, tables) JOIN pairs USING (changedName)
),
served AS (
    SELECT hits.*, name FROM hits JOIN lists USING (tables) WHERE name IN (SELECT name FROM pairs)
),
risky AS (
    SELECT served.*, changed.changedBy, changed.changedAt
    FROM served ASOF JOIN changed ON served.name = changed.name AND served.servedAt >= changed.changedAt
    WHERE changed.changedAt > served.bornAt + {_ROUNDING_MS}
)
"""
)
_FINDINGS: Final = (
    _STALE
    + f"""
SELECT
    matchedRule AS ruleId, name AS "table", changedBy, count(*) AS hits, max(servedAt) AS lastAt,
    arg_max(logId, (servedAt, logId)) AS example, max(servedAt - changedAt) AS longestMs
FROM risky GROUP BY ALL ORDER BY hits DESC, ruleId, "table", changedBy LIMIT {_MAX_FINDINGS}"""
)
_TOTALS: Final = (
    _STALE
    + """
SELECT
    matchedRule AS ruleId, count(*) AS hits,
    count(*) FILTER (hit IN (SELECT hit FROM risky)) AS atRisk
FROM hits GROUP BY matchedRule ORDER BY ruleId"""
)


def stale_findings_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query for the hits at risk by ``ruleId``, ``table`` and ``changedBy``."""
    return _fill(_FINDINGS, first=first, last=last, warehouse=warehouse)


def stale_totals_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query for ``hits`` and ``atRisk`` by ``ruleId``. Hits without an age are left out."""
    return _fill(_TOTALS, first=first, last=last, warehouse=warehouse)


def learned_views_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query for each ``view`` that the log creates, with each table that it reads (``name``)."""
    return _fill(_LEARNED, first=first, last=last, warehouse=warehouse)


def spellings_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query for each ``table`` that the log names in several ways, with its ``spellings``."""
    return _fill(_SPELLINGS, first=first, last=last, warehouse=warehouse)


def _fill(sql: str, *, first: date, last: date, warehouse: WarehouseTables) -> str:
    earliest = days_before(first, LOOK_BACK_DAYS)
    for name, day in (("earliest", earliest), ("first", first), ("last", last)):
        sql = sql.replace(f"${name}", f"'{day}'")
    # Names of tables are last, because they may contain any text.
    return _with_names(sql, warehouse)


def _with_names(sql: str, warehouse: WarehouseTables) -> str:
    database, pairs = warehouse.database, warehouse.view_pairs
    views, viewed = (f"{quote_texts(pair[at] for pair in pairs)}::VARCHAR[]" for at in (0, 1))
    expressions = {
        "changed": changed_sql("statement", "tables", database=database),
        "defines": defines_sql("statement"),
        "view": view_sql("statement", database=database),
        "name": name_sql("text", database=database),
        "names": names_sql("tables", database=database),
        "views": views,
        "viewed": viewed,
    }
    return _PLACE.sub(lambda place: expressions[place[1]], sql).strip()


#: The query of `stale_totals_sql` of a tenant without a database and views, with ``$first`` and ``$last``.
STALE_TOTALS: Final = _with_names(
    _TOTALS.replace("$earliest", f"($first::DATE - {LOOK_BACK_DAYS})::VARCHAR"), ANY_TABLES
)
