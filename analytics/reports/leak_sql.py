"""SQL that finds leaks in ``proxy_logs``."""

# Queries consist of constants and days.
# ruff: noqa: S608

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.reports.per_user import reads_tables_sql
from logs.definitions import SHARED, hash_sql
from logs.quoting import quote_value
from rules.dialects.text import names_no_schema_sql
from rules.dialects.words import is_certain_sql, word_sql
from rules.tables.warehouse import ANY_TABLES

if TYPE_CHECKING:
    from datetime import date

    from rules.tables.warehouse import WarehouseTables

_MAX_FINDINGS: Final = 1_000
#: More than there can be. Without a limit, DuckDB would read the lists of all rows before it drops repeats.
_MAX_LISTS: Final = 2**62
_ROWS: Final = f"""day BETWEEN $first AND $last AND cacheKey IS NOT NULL AND userName IS NOT NULL
        AND {SHARED}"""
#: The lists of tables of which one differs per user.
_PERSONAL: Final = f"""personal AS (
    SELECT tables FROM (SELECT DISTINCT tables FROM proxy_logs WHERE {_ROWS} LIMIT {_MAX_LISTS})
    WHERE {{reads}}
),
"""
_DIFFERS: Final = "tables IN (FROM personal)"
_SERVED: Final = f"""
WITH {{personal}}served AS (
    SELECT cacheKey, matchedRule, standardizedSql, count(*) AS served, count(DISTINCT userName) AS users,
        list(DISTINCT userName) AS names, bool_or(hasNonDeterministicFunctions) AS nonDeterministic,
        bool_or({{differs}}) AS differs, any_value(adapterType) AS adapterType, any_value(tables) AS tables
    FROM proxy_logs
    WHERE {_ROWS}
    GROUP BY cacheKey, matchedRule, standardizedSql
)
"""
_TOTALS: Final = (
    _SERVED
    + f"""
SELECT
    count(*) AS keys, count(*) FILTER (users > 1) AS sharedKeys,
    count(*) FILTER (users > 1 AND {names_no_schema_sql("tables")}) AS withoutSchema
FROM served"""
)
_FINDINGS: Final = (
    _SERVED
    + f"""
, depending AS (
    SELECT standardizedSql, {word_sql("standardizedSql")} AS word
    FROM (SELECT DISTINCT standardizedSql FROM served WHERE users > 1)
), graded AS (
    SELECT *, CASE WHEN differs OR word IS NOT NULL AND {is_certain_sql("word", "adapterType")} THEN 'certain'
        WHEN word IS NOT NULL OR nonDeterministic THEN 'likely' END AS grade
    FROM served LEFT JOIN depending USING (standardizedSql) WHERE users > 1
)
SELECT
    grade, matchedRule AS ruleId, standardizedSql AS statement, any_value(word) AS word, count(*) AS keys,
    sum(served) AS served, list_sort(list_distinct(flatten(list(names)))) AS users
FROM graded WHERE grade IS NOT NULL
GROUP BY grade, matchedRule, standardizedSql
ORDER BY grade, served DESC, ruleId, statement LIMIT {_MAX_FINDINGS}"""
)
_COUNTS: Final = (
    _SERVED
    + """
SELECT
    count(*) AS keys, sum(served) AS served, len(list_distinct(flatten(list(names)))) AS users
FROM served WHERE users > 1 AND"""
)
#: The query of `leak_findings_sql` of a tenant without ``perUserTables``, with ``$first`` and ``$last``.
LEAK_FINDINGS: Final = _FINDINGS.replace("{personal}", "").replace("{differs}", "false").strip()


def leak_findings_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query of the report's findings, with all ``users``."""
    return _fill(_FINDINGS, first=first, last=last, warehouse=warehouse)


def leak_totals_sql(*, first: date, last: date) -> str:
    """Return the query of ``keys``, ``sharedKeys`` and ``withoutSchema``."""
    return _fill(_TOTALS, first=first, last=last)


def leak_counts_sql(*, first: date, last: date, rule_id: str | None, statement_hash: str) -> str:
    """Return the query of ``keys``, ``served`` and ``users``, a count, of a statement with this MD5."""
    counts = _fill(_COUNTS, first=first, last=last)
    rule = f"matchedRule IS NOT DISTINCT FROM {quote_value(rule_id)}"
    return f"{counts} {rule} AND {hash_sql()} = '{statement_hash}'"


def _fill(sql: str, *, first: date, last: date, warehouse: WarehouseTables = ANY_TABLES) -> str:
    personal = warehouse.personal
    # Lists of tables repeat, so each is read once.
    lists = _PERSONAL if personal else ""
    filled = sql.replace("{personal}", lists).replace("{differs}", _DIFFERS if personal else "false")
    filled = filled.replace("$first", f"'{first}'").replace("$last", f"'{last}'")
    # Names of tables are last, because they may contain any text.
    return filled.replace("{reads}", reads_tables_sql(personal, warehouse)).strip()
