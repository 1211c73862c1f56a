"""Statements that Spark must answer as DuckDB does. The order of the rows of each is total."""

from __future__ import annotations

import random

_BY = "FROM proxy_logs ORDER BY logId"

STATEMENTS = (
    "SELECT count(*) FROM proxy_logs",
    f"SELECT * {_BY}",
    "SELECT day, cacheStatus, count(*) n, sum(responseTimeMs) s, min(userName), max(logId) FROM proxy_logs"
    " GROUP BY ALL ORDER BY ALL",
    "SELECT userName, count(*) FROM proxy_logs GROUP BY 1 ORDER BY 2 DESC, 1",
    "SELECT userName u, count(*) n FROM proxy_logs GROUP BY u ORDER BY u NULLS FIRST LIMIT 3 OFFSET 1",
    "SELECT userName FROM proxy_logs GROUP BY userName HAVING count(*) > 8 ORDER BY max(logId) DESC",
    "SELECT sum(responseSize), sum(statusCode), sum(DISTINCT statusCode), min(requestSize), max(requestSize),"
    " count(requestSize), count(DISTINCT userName), count(DISTINCT isReadOnly) FROM proxy_logs",
    "SELECT count(*), sum(statusCode), min(userName), count(userName) FROM proxy_logs WHERE false",
    "SELECT day, sum(statusCode) FROM proxy_logs WHERE logId = 'none' GROUP BY day",
    "SELECT count(*) FILTER (WHERE isReadOnly), sum(tableCount) FILTER (WHERE isReadOnly IS NULL),"
    " max(userName) FILTER (WHERE false) FROM proxy_logs HAVING count(*) > 1",
    f"SELECT timestamp // 7, timestamp % 7, statusCode // 3, statusCode % 7, requestSize // 10, requestSize % 10 {_BY}",
    f"SELECT statusCode / 3, requestSize / 7, responseSize / 1000 {_BY}",
    f"SELECT tableCount + 1, tableCount - 2, tableCount * 3, tableCount + 10000000000, tableCount + responseTimeMs {_BY}",
    f"SELECT userName || standardizedSql, userName || '$x{{y}}\\''\nü' {_BY}",
    f"SELECT length(userName), len(standardizedSql), length('😀ü') {_BY}",
    f"SELECT userName LIKE 'a%', userName LIKE '%$_%', userName LIKE '_', userName LIKE '__', userName LIKE '',"
    f" userName NOT LIKE '%x', userName LIKE '%''s', userName LIKE '%😀_' {_BY}",
    f"SELECT contains(userName, '$'), starts_with(userName, 'a'), ends_with(userName, '\\'), contains(userName, ''),"
    f" userName ^@ 'ü', suffix(standardizedSql, 'x') {_BY}",
    f"SELECT userName IN ('a', 'ü', NULL), userName NOT IN ('a', ''), statusCode IN (200, 404),"
    f" statusCode NOT IN (1, NULL), requestSize IN (1, 10000000000) {_BY}",
    f"SELECT statusCode BETWEEN -7 AND 200, userName BETWEEN 'A' AND 'a', NOT (statusCode > 0) {_BY}",
    f"SELECT userName = standardizedSql, userName <> 'a', userName < standardizedSql, userName >= 'a',"
    f" statusCode = tableCount, statusCode <= requestSize, isReadOnly = (tableCount > 1) {_BY}",
    f"SELECT userName IS DISTINCT FROM standardizedSql, statusCode IS NOT DISTINCT FROM tableCount,"
    f" userName IS NULL, isReadOnly IS NOT NULL {_BY}",
    f"SELECT isReadOnly AND tableCount > 1, isReadOnly OR tableCount > 1, NOT isReadOnly {_BY}",
    f"SELECT CASE WHEN isReadOnly THEN 1 WHEN isReadOnly IS NULL THEN 10000000000 ELSE statusCode END,"
    f" CASE userName WHEN 'a' THEN 'x' WHEN 'ü' THEN NULL ELSE userName END, CASE WHEN tableCount > 1 THEN true END"
    f" {_BY}",
    f"SELECT coalesce(userName, standardizedSql, 'none'), coalesce(statusCode, requestSize, 5),"
    f" coalesce(isReadOnly, false) {_BY}",
    f"SELECT statusCode::VARCHAR, requestSize::VARCHAR, statusCode::BIGINT, tableCount::BIGINT::INTEGER,"
    f" NULL::BIGINT, NULL::VARCHAR {_BY}",
    "SELECT DISTINCT userName, coalesce(isReadOnly, false) b FROM proxy_logs ORDER BY 1, 2",
    "SELECT DISTINCT cacheStatus FROM proxy_logs ORDER BY cacheStatus DESC NULLS FIRST",
    f"SELECT 1 AS a, 'x' AS b, 10000000000 AS c, true AS d, logId AS \"a`b\", logId AS \"a\"\"b\" {_BY}",
    "SELECT count(*) n, count(*) n, count(*) FROM proxy_logs",
    f"SELECT row_number() OVER (ORDER BY timestamp DESC), rank() OVER (PARTITION BY day ORDER BY userName),"
    f" dense_rank() OVER (ORDER BY statusCode DESC, userName NULLS FIRST) {_BY}",
    f"SELECT lag(userName) OVER (ORDER BY logId), lead(statusCode, 3) OVER (PARTITION BY day ORDER BY logId),"
    f" lag(logId, 0) OVER (ORDER BY logId) {_BY}",
    "SELECT u, n FROM (SELECT userName, count(*) FROM proxy_logs GROUP BY userName) t(u, n) WHERE n > 8 ORDER BY u",
    "SELECT day, logId FROM (SELECT *, row_number() OVER (PARTITION BY day ORDER BY timestamp) r FROM proxy_logs)"
    " WHERE r = 1 ORDER BY 1",
    "WITH a AS (SELECT day d, count(*) n FROM proxy_logs GROUP BY 1) SELECT x.d, y.n, y.d k FROM a x"
    " LEFT JOIN a y ON x.d < y.d ORDER BY 1, 3",
    "WITH a(u, n) AS (SELECT userName, count(*) FROM proxy_logs GROUP BY 1), b AS (SELECT u FROM a WHERE n > 8)"
    " SELECT p.logId, b.u FROM proxy_logs p JOIN b ON p.userName = b.u ORDER BY 1",
    "SELECT a.logId, b.logId FROM proxy_logs a, proxy_logs b WHERE a.statusCode = b.tableCount AND a.day < b.day"
    " ORDER BY 1, 2 LIMIT 50",
    "SELECT count(*) FROM proxy_logs a JOIN proxy_logs b ON a.userName = b.userName AND a.isReadOnly",
    f"SELECT day >= '2025-01-20' AND day LIKE '2025-%', day {_BY}",
    "SELECT xRealIp, count(*) FROM proxy_logs GROUP BY 1 ORDER BY 1",
)  # fmt: skip

#: A value does not fit its type.
OVERFLOWS = (
    "SELECT requestSize + 1 FROM proxy_logs",
    "SELECT requestSize * 2 FROM proxy_logs",
    "SELECT statusCode - 2 FROM proxy_logs",
    "SELECT statusCode * 2 FROM proxy_logs",
    "SELECT requestSize::INTEGER FROM proxy_logs",
)

_TEXT = (
    "userName",
    "standardizedSql",
    "cacheStatus",
    "day",
    "'a'",
    "'ü'",
    "''",
    "CAST(statusCode AS VARCHAR)",
)
_NUMBER = ("statusCode", "tableCount", "requestSize", "responseTimeMs", "0", "-7", "200", "10000000000")
_SMALL = ("tableCount", "responseTimeMs", "3", "length(userName)", "length(day)")
_GROUPS = ("day", "userName", "cacheStatus", "isReadOnly", "tableCount", "tableCount % 2", "length(userName)")
_AGGREGATES = (
    "count(*)", "count(userName)", "count(DISTINCT statusCode)", "sum(requestSize)", "sum(DISTINCT tableCount)",
    "min(standardizedSql)", "max(statusCode)", "max(responseSize)", "count(*) // 3",
)  # fmt: skip


def generate(draw: random.Random) -> str:
    """Return a statement: rows with computed columns, or groups, over a condition."""
    where = f" WHERE {_condition(draw, 3)}" if draw.random() < 0.8 else ""
    if draw.random() < 0.5:
        columns = ", ".join(f"{_value(draw, 2)} AS v{i}" for i in range(draw.randint(1, 4)))
        limit = f" LIMIT {draw.randint(0, 30)} OFFSET {draw.randint(0, 9)}" if draw.random() < 0.3 else ""
        return f"SELECT logId, {columns} FROM proxy_logs{where} ORDER BY {_direction(draw, 'logId')}{limit}"
    groups = draw.sample(_GROUPS, draw.randint(1, 3))
    aggregates = draw.sample(_AGGREGATES, draw.randint(1, 3))
    aggregates[0] += f" FILTER (WHERE {_condition(draw, 1)})" if aggregates[0].endswith(")") else ""
    having = f" HAVING count(*) > {draw.randint(0, 4)}" if draw.random() < 0.3 else ""
    order = ", ".join(_direction(draw, str(place + 1)) for place in range(len(groups)))
    return (
        f"SELECT {', '.join([*groups, *aggregates])} FROM proxy_logs{where}"
        f" GROUP BY {', '.join(groups)}{having} ORDER BY {order}"
    )


def _direction(draw: random.Random, key: str) -> str:
    return key + draw.choice(("", " ASC", " DESC")) + draw.choice(("", " NULLS FIRST", " NULLS LAST"))


def _value(draw: random.Random, depth: int) -> str:
    text, number, small = draw.choice(_TEXT), draw.choice(_NUMBER), draw.choice(_SMALL)
    forms = [
        text, number, f"{text} || {draw.choice(_TEXT)}", f"{small} {draw.choice('+-*')} {draw.choice(_SMALL)}",
        f"{draw.choice(_NUMBER[:4])} // {draw.randint(1, 99)}", f"{draw.choice(_NUMBER[:4])} % {draw.randint(1, 99)}",
        f"{draw.choice(_NUMBER[:4])} / {draw.randint(1, 99)}", f"coalesce({text}, {draw.choice(_TEXT)})",
        f"coalesce({number}, {draw.choice(_NUMBER)})", f"CASE WHEN {_condition(draw, depth)} THEN {text} END",
        f"lag({draw.choice(_TEXT[:4])}) OVER (PARTITION BY {draw.choice(_GROUPS[:5])} ORDER BY logId)",
        _condition(draw, depth),
    ]  # fmt: skip
    return draw.choice(forms)


def _condition(draw: random.Random, depth: int) -> str:
    if depth and draw.random() < 0.5:
        parts = [_condition(draw, depth - 1), _condition(draw, depth - 1)]
        word = draw.choice(("AND", "OR", "NOT"))
        return f"(NOT {parts[0]})" if word == "NOT" else f"({parts[0]} {word} {parts[1]})"
    text, number = draw.choice(_TEXT), draw.choice(_NUMBER)
    comparison = draw.choice(("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
    forms = [
        f"({text} {comparison} {draw.choice(_TEXT)})", f"({number} {comparison} {draw.choice(_NUMBER)})",
        f"({text} IS NULL)", f"({number} IS NOT NULL)", "isReadOnly", f"({number} BETWEEN -7 AND 300)",
        f"({text} IN ('a', 'HIT', '2025-01-20'))", f"({number} NOT IN (0, 200, -2147483648))",
        f"({text} LIKE '{draw.choice(('a%', '%', '_', '%_x', '%$%', 'ü'))}')", f"starts_with({text}, 'a')",
        f"contains({text}, '{draw.choice(('$', '', '2'))}')",
    ]  # fmt: skip
    return draw.choice(forms)
