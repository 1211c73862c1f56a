"""`days_read` leaves out days that a statement cannot read, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logs.sql import guard
from logs.sql.pruning import days_read

_DAYS = [f"2026-01-{day:02d}" for day in range(1, 11)]
_connection = duckdb.connect(config={"errors_as_json": True})
_connection.execute(
    "CREATE VIEW proxy_logs AS SELECT d AS day, d || '/' || i AS userName, i AS statusCode FROM"
    " (SELECT unnest($1) AS d), range(3) t(i)".replace("$1", str(_DAYS))
)


def _read(statement: str) -> list[str]:
    return days_read(guard.check(statement, _connection).tree, _DAYS)


def _days(*numbers: int) -> list[str]:
    return [f"2026-01-{number:02d}" for number in numbers]


@pytest.mark.parametrize(
    ("statement", "days"),
    [
        ("SELECT 1", []),
        ("SELECT * FROM proxy_logs WHERE day = '2026-01-02'", _days(2)),
        ("SELECT * FROM Proxy_Logs WHERE '2026-01-02' = DAY", _days(2)),
        ("SELECT * FROM proxy_logs p WHERE p.day IN ('2026-01-02', '2026-01-05', 'x')", _days(2, 5)),
        ("SELECT * FROM proxy_logs WHERE day BETWEEN '2026-01-08' AND 'z'", _days(8, 9, 10)),
        ("SELECT * FROM proxy_logs WHERE day BETWEEN '2026-01-08' AND lower('Z')", _days(8, 9, 10)),
        ("SELECT * FROM proxy_logs WHERE day > '2026-01-08' AND userName = 'x'", _days(9, 10)),
        ("SELECT * FROM proxy_logs WHERE '2026-01-02' > day", _days(1)),
        ("SELECT * FROM proxy_logs WHERE day LIKE '2026-01-1%'", _days(10)),
        ("SELECT * FROM proxy_logs WHERE day LIKE '2026-01-_1%'", _DAYS),
        ("SELECT * FROM proxy_logs WHERE starts_with(day, '2026-01-1')", _days(10)),
        ("SELECT * FROM proxy_logs WHERE day ^@ '2026-01-1'", _days(10)),
        ("SELECT * FROM proxy_logs WHERE day = '2026-01-02' OR day = '2026-01-03'", _days(2, 3)),
        ("SELECT * FROM proxy_logs WHERE day = 'x'", []),
        ("WITH a AS (FROM proxy_logs WHERE day = '2026-01-02') SELECT count(*) FROM a", _days(2)),
        (
            """SELECT (SELECT count(*) FROM proxy_logs WHERE day = '2026-01-02')
               FROM proxy_logs WHERE day = '2026-01-03'""",
            _days(2, 3),
        ),
        ("FROM proxy_logs p, json_each('[1]') j WHERE p.day = '2026-01-02'", _days(2)),
        ("FROM proxy_logs a LEFT JOIN proxy_logs b USING (userName) WHERE a.day = '2026-01-02'", _DAYS),
        (
            """FROM proxy_logs a JOIN proxy_logs b USING (userName)
               WHERE a.day = '2026-01-02' AND b.day > '2026-01-09'""",
            _days(2, 10),
        ),
        # No clear condition on the day of all rows: all days.
        ("SELECT * FROM proxy_logs", _DAYS),
        ("SELECT * FROM proxy_logs WHERE userName = 'x'", _DAYS),
        ("SELECT * FROM proxy_logs WHERE day = '2026-01-02' OR userName = 'x'", _DAYS),
        ("SELECT * FROM proxy_logs WHERE NOT day = '2026-01-02'", _DAYS),
        ("SELECT * FROM proxy_logs WHERE day = lower('2026-01-02')", _DAYS),
        ("SELECT * FROM proxy_logs WHERE day IN ('2026-01-02', lower('X'))", _DAYS),
        ("SELECT * FROM proxy_logs WHERE day = DATE '2026-01-02'", _DAYS),
        ("SELECT * FROM proxy_logs WHERE day = NULL", _DAYS),
        ("SELECT count(*) FILTER (WHERE day = '2026-01-02') FROM proxy_logs", _DAYS),
        ("SELECT day FROM proxy_logs GROUP BY day HAVING day = '2026-01-02'", _DAYS),
        ("SELECT * FROM proxy_logs QUALIFY day = '2026-01-02'", _DAYS),
        ("SELECT * FROM proxy_logs TABLESAMPLE 1 ROWS WHERE day = '2026-01-02'", _DAYS),
        ("SELECT * FROM proxy_logs WHERE day = '2026-01-02' USING SAMPLE 1 ROWS", _DAYS),
        ("SELECT * FROM proxy_logs p(a, day) WHERE day = '2026-01-02'", _DAYS),
        ("SELECT * FROM (FROM proxy_logs) WHERE day = '2026-01-02'", _DAYS),
        ("FROM proxy_logs a ASOF JOIN proxy_logs b ON a.statusCode >= b.statusCode WHERE b.day = 'x'", _DAYS),
        (
            "FROM proxy_logs a ANTI JOIN (SELECT 1 AS i) b ON a.statusCode = b.i WHERE a.day = '2026-01-02'",
            _DAYS,
        ),
        ("FROM proxy_logs a POSITIONAL JOIN proxy_logs b WHERE b.day = 'x'", _DAYS),
        ("PIVOT proxy_logs ON statusCode IN (1) USING count(*) GROUP BY day", _DAYS),
        (
            "WITH proxy_logs AS (SELECT 'x' AS day FROM proxy_logs) FROM proxy_logs WHERE day = '2026-01-02'",
            _DAYS,
        ),
    ],
)
def test_the_days_that_a_statement_reads(statement: str, days: list[str]) -> None:
    assert _read(statement) == days


#: Queries that read the table or subquery ``{}`` without a condition on its day.
_QUERIES = (
    "SELECT * FROM {} a",
    "SELECT * FROM {} a CROSS JOIN (SELECT '2026-01-02' AS x) b WHERE b.x = '2026-01-02'",
    "SELECT * FROM (SELECT 1 AS x) b LEFT JOIN {} a ON b.x = a.statusCode",
    "SELECT * FROM {} a SEMI JOIN (SELECT 1 AS x) b ON b.x = a.statusCode",
    "SELECT a.* FROM range(2) r(i), LATERAL (SELECT * FROM {} q WHERE statusCode = r.i) a",
    "SELECT * FROM {} a PIVOT (count(*) FOR statusCode IN (0, 1) GROUP BY day)",
    "SELECT * FROM {} a JOIN (SELECT 1 AS s) v ON statusCode = s PIVOT (count(*) FOR s IN (1) GROUP BY day)",
    "PIVOT {} a JOIN (VALUES (1)) v(s) ON a.statusCode = v.s ON s IN (1) USING count(*) GROUP BY day",
    "SELECT * FROM {} a UNPIVOT (v FOR n IN (day, userName))",
    "SELECT * FROM {} a CROSS JOIN (SELECT 1 AS x) UNPIVOT (v FOR n IN (statusCode, x))",
    "SELECT * FROM {} a JOIN {} b USING (day) PIVOT (count(*) FOR day IN ('2026-01-02'))",
    "SELECT * FROM (SELECT 1 AS x) b UNPIVOT (v FOR n IN (x)) JOIN {} a ON a.statusCode = v",
    "UNPIVOT {} a ON day, userName",
    "WITH c AS (SELECT * FROM {} a) SELECT * FROM c",
    "WITH RECURSIVE c AS (SELECT 1 AS x UNION ALL SELECT x FROM c, {} a WHERE x > 3) SELECT * FROM c",
    "SELECT 1 AS x UNION ALL SELECT 2 FROM {} a",
    "SELECT (SELECT count(*) FROM {} a) AS x",
    "SELECT 1 AS x WHERE 1 IN (SELECT statusCode FROM {} a)",
    "SELECT list_transform([1], lambda y: (SELECT count(*) FROM {} a)) AS x",
    "VALUES ((SELECT count(*) FROM {} a))",
    "SELECT 1 AS x ORDER BY (SELECT count(*) FROM {} a)",
    "SELECT 1 AS x LIMIT (SELECT count(*) FROM {} a)",
    "SELECT * FROM generate_series(1, (SELECT count(*) FROM {} a))",
)


@given(st.lists(st.sampled_from(_QUERIES), min_size=1, max_size=3), st.booleans())
def test_a_reference_without_a_condition_reads_all_days(queries: list[str], is_joined: bool) -> None:
    source = "proxy_logs"
    for query in queries:
        statement = query.replace("{}", source)
        source = f"({statement})"
    if is_joined:
        statement = f"SELECT 1 FROM proxy_logs p, {source} q WHERE p.day = '2026-01-02'"
    assert _read(statement) == _DAYS


_texts = st.sampled_from([*_DAYS[:4], "2026-01", "2026", "", "z"])


def _quoted(text: str) -> str:
    return f"'{text}'"


_leaves = st.one_of(
    st.builds(
        lambda op, text, flip: f"{_quoted(text)} {op} day" if flip else f"day {op} {_quoted(text)}",
        st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]),
        _texts,
        st.booleans(),
    ),
    st.builds(lambda a, b: f"day BETWEEN {_quoted(a)} AND {_quoted(b)}", _texts, _texts),
    st.builds(
        lambda negated, texts: f"day {negated} IN ({', '.join(map(_quoted, texts))})",
        st.sampled_from(["", "NOT"]),
        st.lists(_texts, min_size=1, max_size=3),
    ),
    st.builds(
        lambda text, tail: f"day LIKE {_quoted(text + tail)}", _texts, st.sampled_from(["", "%", "_%", "%2"])
    ),
    st.sampled_from(["statusCode = 1", "userName LIKE '%3/1'", "day IS NULL", "length(day) = 10"]),
)
_conditions = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: f"({a} AND {b})", inner, inner),
        st.builds(lambda a, b: f"({a} OR {b})", inner, inner),
        st.builds(lambda a: f"NOT ({a})", inner),
    ),
    max_leaves=5,
)


@given(_conditions)
def test_days_with_matching_rows_are_never_left_out(condition: str) -> None:
    statement = f"SELECT DISTINCT day FROM proxy_logs WHERE {condition} ORDER BY day"
    found = [day for (day,) in _fetch(statement)]
    assert set(found) <= set(_read(statement))


def _fetch(statement: str) -> Iterable[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = _connection.execute(statement).fetchall()
    return rows
