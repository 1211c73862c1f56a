"""SQL that finds stale hits and leaks in ``proxy_logs``, and what it needs to know of tables.

A hit is stale if it is older than a change of a table that it reads. Names of tables are compared once for
each distinct list and statement, not for each row.
"""

# Queries consist of constants and days.
# ruff: noqa: S608
# Queries consist of constants, days and quoted names.

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import Final

import re2

from logs.definitions import ANSWERED, ENDED_AT, HIT, SHARED, hash_sql
from logs.quoting import quote_text, quote_texts, quote_value
from rules.conditions.evaluate import read_table_names
from rules.dialects.text import TABLE_NAME, names_no_schema_sql, without_text, without_text_sql
from rules.dialects.words import is_certain_sql, word_sql
from rules.tables.names import TableName, compare, counts_sql, may_be_sql, name_sql, names_sql, read_name
from rules.tables.warehouse import ANY_TABLES, Views, WarehouseTables
from tenantadmin.lib.core.timestamps import days_before

#: Group 1 is the name of the view. In the syntax of RE2, for DuckDB.
_VIEW: Final = (
    r"(?is)^\s*(?:create|alter)\s+(?:or\s+(?:replace|alter|refresh)\s+)?"
    r"(?:(?:global|local|temp|temporary|secure|recursive|materialized|live|streaming|force)\s+)*"
    rf"view\s+(?:if\s+not\s+exists\s+)?({TABLE_NAME})\s.*\bas\b"
)
_DEFINES: Final = r"(?i)^\s*(?:create|alter|drop|undrop|refresh|rename)\b"
_COMPILED_DEFINES: Final = re2.compile(_DEFINES)
_COMPILED_VIEW: Final = re2.compile(_VIEW)


def find_view(statement: str, *, database: str = "") -> TableName | None:
    """Return the name of the view that a statement defines. It reads the other tables of the statement."""
    match = _COMPILED_VIEW.match(without_text(statement))
    return read_name(match[1], database=database) if match else None


def view_sql(statement: str, *, database: str = "") -> str:
    """Return SQL for `find_view` of a column."""
    name = name_sql(f"nullif(regexp_extract(text, {quote_text(_VIEW)}, 1), '')", database=database)
    return f"list_transform([{without_text_sql(statement)}], lambda text: {name})[1]"


def defines(statement: str) -> bool:
    """Return True if a statement defines, alters or drops something: no rows of what a view reads change."""
    return _COMPILED_DEFINES.match(without_text(statement)) is not None


def defines_sql(statement: str) -> str:
    """Return SQL for `defines` of a column."""
    return f"regexp_matches({without_text_sql(statement)}, {quote_text(_DEFINES)})"


def learn_views(statements: Iterable[tuple[str, frozenset[TableName]]], warehouse: WarehouseTables) -> Views:
    """Return the configured views, and those that statements with these tables define.

    A view that is in the configuration is as it says there.
    """
    configured = frozenset(warehouse.read(view) for view, _ in warehouse.views)
    pairs = warehouse.view_pairs
    for statement, tables in statements:
        view = find_view(statement, database=warehouse.database)
        if view is not None and view not in configured:
            pairs += [(view, table) for table in tables if table != view]
    return Views(pairs)


_WITH: Final = r"\s*(?:with\s.*?\)\s*)?"
#: What creates, alters or drops a table or view, up to its name.
_DEFINED: Final = (
    r"\s+(?:or\s+replace\s+)?"
    r"(?:(?:global|local|temp|temporary|transient|dynamic|external|foreign|unlogged|secure|materialized)\s+)*"
    r"(?:table|view)\s+(?:if\s+(?:not\s+)?exists\s+)?(?:only\s+)?"
)
#: The table that a statement without texts and comments names first as changed; group 1 is its name.
#: In the syntax of RE2, for DuckDB.
_TARGET: Final = "".join(
    (
        rf"(?is)^(?:{_WITH}(?:",
        r"insert\s+(?:(?:ignore|overwrite|or\s+\w+)\s+)?(?:into\s+)?(?:table\s+)?",
        r"|update\s+(?:only\s+)?|delete\s+(?:from\s+)?(?:only\s+)?",
        r"|merge\s+(?:with\s+schema\s+evolution\s+)?(?:into\s+)?)",
        r"|\s*(?:replace\s+(?:into\s+)?|copy\s+(?:into\s+)?|load\s+data.*?\sinto\s+table\s+",
        r"|truncate\s+(?:table\s+)?(?:if\s+exists\s+)?(?:only\s+)?",
        rf"|(?:create|alter|drop|undrop|refresh){_DEFINED}))({TABLE_NAME})",
        # Behind another character, the name goes on in a way that is not known here.
        r"(?:[\s(,;]|$)",
    )
)
#: The beginning of a statement that changes data, and of others that may.
_CHANGES: Final = r"(?:insert|update|delete|merge|truncate)\s"
_STATEMENTS: Final = (
    r"(?:create|alter|drop|undrop|replace|copy|load|refresh|rename|with|begin|declare|call|execute)\s"
)
#: Statements that may change another table too: a list of names, another statement, an exchange, an insert
#: into several tables, a change in a WITH, CASCADE, a flow; and texts whose end is unclear.
_SEVERAL: Final = "|".join(
    (
        r"(?is)'|\$\w*\$|/\*|;[\s;]*[^\s;]",
        rf"\(\s*{_CHANGES}",
        # A change in a WITH that has a WITH of its own.
        rf"(?:^|[()])\s*{_CHANGES}.*[()]\s*{_CHANGES}",
        rf"->>\s*(?:{_CHANGES}|{_STATEMENTS})",
        r"\binto\b.*\binto\b|\binsert\s+overwrite\s.*\binsert\s",
        r"^\s*insert\s+(?:overwrite\s+)?(?:all|first)\s",
        r"^\s*(?:drop|undrop|truncate)\s.*(?:,|\scascade\b)|^\s*alter\s.*\scascade\b",
        rf"^{_WITH}delete\s+(?:from\s+)?(?:only\s+)?{TABLE_NAME}\s*(?:,|\.\s*\*)",
        rf"^{_WITH}(?:(?:delete|update)\s|merge\s.*\soutput\s).*\sinto\s",
        # Before SET, MySQL also has hints and partitions in parentheses.
        rf"^{_WITH}update\s+(?:only\s+)?{TABLE_NAME}(?:[^=(]|\b(?:index|key|partition)\s*\([^)]*\))*?(?:,|\s\w*join\s)",
        rf"^\s*alter{_DEFINED}{TABLE_NAME}\s*,",
        r"^\s*alter\s.*\s(?:swap|rename|exchange|append|inherit|move|switch|attach|detach)\b",
        r"^\s*alter\s.*\s(?:replace\s+(?:partition|with)|set\s+schema)\b",
    )
)
_COMPILED_TARGET: Final = re2.compile(_TARGET)
_COMPILED_SEVERAL: Final = re2.compile(_SEVERAL)


def read_tables(text: str | None, *, database: str = "") -> frozenset[TableName]:
    """Return the table names in the JSON text of the column ``tables``."""
    names = None if text is None else read_table_names(text)
    return frozenset(read_name(name, database=database) for name in names or ())


def find_changed_tables(
    statement: str, tables: frozenset[TableName], *, database: str = ""
) -> frozenset[TableName]:
    """Return the tables of a statement that are its target or may be, or all its tables.

    All, if the target is none of them, or if the statement may change other tables too. Of two names of one
    table, the longer one is returned.
    """
    plain = without_text(statement)
    match = None if _COMPILED_SEVERAL.search(plain) else _COMPILED_TARGET.match(plain)
    if match is None:
        return tables
    target = read_name(match[1], database=database)
    return frozenset(max(name, target, key=len) for name in tables if compare(name, target).counts) or tables


def changed_sql(statement: str, tables: str, *, database: str = "") -> str:
    """Return SQL for `find_changed_tables` of the columns ``statement`` and ``tables``, as a list."""
    names = names_sql(tables, database=database)
    target = name_sql(f"nullif(regexp_extract(text, {quote_text(_TARGET)}, 1), '')", database=database)
    single = f"CASE WHEN NOT regexp_matches(text, {quote_text(_SEVERAL)}) THEN {target} END"
    targets = f"list_transform([{without_text_sql(statement)}], lambda text: {single})"
    longer = "CASE WHEN length(name) < length(read.target) THEN read.target ELSE name END"
    chosen = (
        f"list_transform(list_filter(read.names, lambda name: {may_be_sql('name', 'read.target')}), "
        f"lambda name: {longer})"
    )
    changed = f"CASE WHEN len({chosen}) > 0 THEN {chosen} ELSE read.names END"
    return f"list_transform([{{'names': {names}, 'target': {targets}[1]}}], lambda read: {changed})[1]"


def reads_tables_sql(patterns: Sequence[str], warehouse: WarehouseTables) -> str:
    """Return SQL for rows of ``proxy_logs`` that read one of the tables, or may, however it is spelled."""
    if not patterns:
        return "false"
    counts = counts_sql(map(warehouse.pattern, patterns), "name")
    names = names_sql('"tables"', database=warehouse.database)
    return f"coalesce(len(list_filter({names}, lambda name: {counts})) > 0, false)"


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
_LEAK_TOTALS: Final = (
    _SERVED
    + f"""
SELECT
    count(*) AS keys, count(*) FILTER (users > 1) AS sharedKeys,
    count(*) FILTER (users > 1 AND {names_no_schema_sql("tables")}) AS withoutSchema
FROM served"""
)
_LEAK_FINDINGS: Final = (
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
LEAK_FINDINGS: Final = _LEAK_FINDINGS.replace("{personal}", "").replace("{differs}", "false").strip()


def leak_findings_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query of the report's findings, with all ``users``."""
    return _fill_leaks(_LEAK_FINDINGS, first=first, last=last, warehouse=warehouse)


def leak_totals_sql(*, first: date, last: date) -> str:
    """Return the query of ``keys``, ``sharedKeys`` and ``withoutSchema``."""
    return _fill_leaks(_LEAK_TOTALS, first=first, last=last)


def leak_counts_sql(*, first: date, last: date, rule_id: str | None, statement_hash: str) -> str:
    """Return the query of ``keys``, ``served`` and ``users``, a count, of a statement with this MD5."""
    counts = _fill_leaks(_COUNTS, first=first, last=last)
    rule = f"matchedRule IS NOT DISTINCT FROM {quote_value(rule_id)}"
    return f"{counts} {rule} AND {hash_sql()} = '{statement_hash}'"


def _fill_leaks(sql: str, *, first: date, last: date, warehouse: WarehouseTables = ANY_TABLES) -> str:
    personal = warehouse.personal
    # Lists of tables repeat, so each is read once.
    lists = _PERSONAL if personal else ""
    filled = sql.replace("{personal}", lists).replace("{differs}", _DIFFERS if personal else "false")
    filled = filled.replace("$first", f"'{first}'").replace("$last", f"'{last}'")
    # Names of tables are last, because they may contain any text.
    return filled.replace("{reads}", reads_tables_sql(personal, warehouse)).strip()


#: Older changes are ignored, because few results live longer.
LOOK_BACK_DAYS: Final = 7
#: ``cacheAgeSeconds`` is rounded down, so the result may be this many milliseconds older.
_ROUNDING_MS: Final = 999
MAX_SPELLED: Final = 100
_PLACE: Final = re.compile(r"\{(changed|defines|view|name|names|views|viewed)\}")
_STALE_CHANGES: Final = f"""
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
    _STALE_CHANGES.strip().removesuffix(",") + "\nFROM learned WHERE view <> name ORDER BY ALL LIMIT 1000"
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
    _STALE_CHANGES
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
_STALE_FINDINGS: Final = (
    _STALE
    + f"""
SELECT
    matchedRule AS ruleId, name AS "table", changedBy, count(*) AS hits, max(servedAt) AS lastAt,
    arg_max(logId, (servedAt, logId)) AS example, max(servedAt - changedAt) AS longestMs
FROM risky GROUP BY ALL ORDER BY hits DESC, ruleId, "table", changedBy LIMIT {_MAX_FINDINGS}"""
)
_STALE_TOTALS: Final = (
    _STALE
    + """
SELECT
    matchedRule AS ruleId, count(*) AS hits,
    count(*) FILTER (hit IN (SELECT hit FROM risky)) AS atRisk
FROM hits GROUP BY matchedRule ORDER BY ruleId"""
)


def stale_findings_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query for the hits at risk by ``ruleId``, ``table`` and ``changedBy``."""
    return _fill_stale(_STALE_FINDINGS, first=first, last=last, warehouse=warehouse)


def stale_totals_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query for ``hits`` and ``atRisk`` by ``ruleId``. Hits without an age are left out."""
    return _fill_stale(_STALE_TOTALS, first=first, last=last, warehouse=warehouse)


def learned_views_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query for each ``view`` that the log creates, with each table that it reads (``name``)."""
    return _fill_stale(_LEARNED, first=first, last=last, warehouse=warehouse)


def spellings_sql(*, first: date, last: date, warehouse: WarehouseTables) -> str:
    """Return the query for each ``table`` that the log names in several ways, with its ``spellings``."""
    return _fill_stale(_SPELLINGS, first=first, last=last, warehouse=warehouse)


def _fill_stale(sql: str, *, first: date, last: date, warehouse: WarehouseTables) -> str:
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
    _STALE_TOTALS.replace("$earliest", f"($first::DATE - {LOOK_BACK_DAYS})::VARCHAR"), ANY_TABLES
)
