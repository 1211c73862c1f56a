"""Which statements the guard allows and refuses, and its messages."""

from __future__ import annotations

from contextlib import suppress

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logs.sql import guard
from logs.sql.refusals import Refusal
from tests.logs.sql.statements import ALLOWED, REFUSED

_connection = duckdb.connect(config={"errors_as_json": True})

_BACKQUOTES = """Backquotes are not quotes here. Quote a name that needs it with "…", and text with '…'."""
_PIVOT = "PIVOT needs its values listed: PIVOT … ON column IN ('a', 'b')."

_COLUMNS = (
    "GET /tenants/{tenant}/query/schema lists the columns of proxy_logs; the SQLAlchemy dialect of the"
    " documentation answers what tools ask first."
)
_TABLES = "a query reads proxy_logs, its own subqueries and WITH names defined before their use."
_TABLE_FUNCTIONS = " Allowed: generate_series, json_each, json_tree, range, repeat, repeat_row, unnest."
_FORM = "The statement uses a form of SQL that is not allowed here"
_SYMMETRIC = "BETWEEN SYMMETRIC is not supported. Write BETWEEN least(a, b) AND greatest(a, b)."
_NESTED_ENUM = (
    "A type with values, such as ENUM('a', 'b'), is not supported inside another type. Cast the values alone:"
    " list_transform(x, lambda v: v::ENUM('a', 'b')) or struct_pack(k := x.k::ENUM('a', 'b'));"
    " or use VARCHAR."
)


def _refusal(statement: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        guard.check(statement, _connection)
    return caught.value


@pytest.mark.parametrize("statement", ALLOWED)
def test_queries_are_allowed(statement: str) -> None:
    assert guard.check(statement, _connection).text == statement


def test_an_unknown_type_is_left_to_the_engine() -> None:
    assert guard.check("SELECT 1::main.kind", _connection).reads_log is False


@pytest.mark.parametrize("statement", REFUSED)
def test_other_statements_are_refused(statement: str) -> None:
    assert _refusal(statement).message


# The names of these CTEs are in no refused statement. A CTE of the right name could make one allowed.
_NESTINGS = (
    "SELECT * FROM ({}) AS inner_query",
    "WITH outer_a AS ({}) SELECT * FROM outer_a",
    "SELECT 1 WHERE EXISTS ({})",
    "SELECT (SELECT count(*) FROM ({}) q)",
    "SELECT 1 UNION ALL SELECT 2 FROM ({}) q",
    "WITH RECURSIVE outer_r AS (SELECT 1 n UNION ALL SELECT n FROM outer_r, ({}) q WHERE n > 3) FROM outer_r",
    "SELECT list_transform([1], lambda x: (SELECT count(*) FROM ({}) q))",
    "PIVOT ({}) ON 1 IN (1) USING count(*)",
)
_one_line = [s for s in REFUSED if s.strip() and not s.startswith("-") and ";" not in s]


@given(st.sampled_from(_one_line), st.lists(st.sampled_from(_NESTINGS), min_size=1, max_size=3))
def test_refused_statements_are_refused_inside_of_others(statement: str, nestings: list[str]) -> None:
    for nesting in nestings:
        statement = nesting.format(statement)
    _refusal(statement)


@given(st.text(max_size=200))
def test_any_text_is_allowed_or_refused(text: str) -> None:
    with suppress(Refusal):
        assert guard.check(text, _connection).text == text


@pytest.mark.parametrize(
    ("statement", "message", "position"),
    [
        ("SELECT 1; SELECT 2", "Send one statement, not 2.", None),
        ("", "The statement is empty. Send one SELECT over proxy_logs.", None),
        ("SELECT 1 FROM", "The statement cannot be parsed: syntax error at end of input.", 13),
        ("SELECT 'é' FROM FROM", 'The statement cannot be parsed: syntax error at or near "FROM".', 16),
        ("SELECT '\0'", "The statement contains a NUL character. Remove it.", 8),
        (
            "SELECT 'é', lenght(day) FROM proxy_logs",
            'There is no function "lenght" that a query may call. Did you mean "length"?',
            12,
        ),
        (
            "SELECT * FROM read_text('x')",
            """The table function "read_text" reads files and may not be called. Allowed: \
generate_series, json_each, json_tree, range, repeat, repeat_row, unnest.""",
            14,
        ),
        (
            "SELECT current_setting('a')",
            """The function "current_setting" reads settings, the session or the catalog \
and may not be called.""",
            7,
        ),
        (
            "SELECT * FROM proxy_log",
            f'There is no table "proxy_log" here: {_TABLES} Did you mean "proxy_logs"?',
            14,
        ),
        (
            "WITH RECURSIVE ns AS (SELECT 1 UNION ALL SELECT 1 FROM memory.main.ns) FROM ns",
            f'There is no table "memory.main.ns" here: {_TABLES} Did you mean "ns"?',
            55,
        ),
        (
            'WITH RECURSIVE numbers AS (SELECT 1 UNION ALL SELECT 1 FROM "recurring.number") FROM numbers',
            f'There is no table "recurring.number" here: {_TABLES}',
            60,
        ),
        ("SELECT qqqq(1)", 'There is no function "qqqq" that a query may call.', 7),
        # "nullif" is its nearest, but not near enough.
        ("SELECT initcap(1)", 'There is no function "initcap" that a query may call.', 7),
        (
            "SELECT 'é', current_user",
            'The function "current_user" reads settings, the session or the catalog and may not be called.',
            12,
        ),
        ("SELECT 'é' FROM IFNULL(1, 2)", f"{_FORM} (TABLE_FUNCTION).", 16),
        ("SELECT 'é', sum(x) EXPORT_STATE FROM range(3) t(x)", f"{_FORM} (FUNCTION export_state).", 12),
        ("VALUES (DEFAULT)", "DEFAULT has no meaning in a query.", None),
        ("SELECT FROM LIMIT 5", 'The statement cannot be parsed: syntax error at or near "LIMIT".', 12),
        (
            "DESCRIBE proxy_logs",
            f"DESCRIBE, SHOW and SUMMARIZE are not allowed. {_COLUMNS}",
            None,
        ),
        ("SELECT ?", "Parameters are not supported. Write the value into the statement.", None),
        (
            "SELECT 'é`' AS \"`\", `day` FROM proxy_logs -- `",
            _BACKQUOTES,
            20,
        ),
        ("SELECT * FROM `proxy_logs` WHERE", _BACKQUOTES, 14),
        ("SELECT `order` FROM proxy_logs", _BACKQUOTES, 7),
        ("SELECT day=`host` FROM proxy_logs", _BACKQUOTES, 11),
        ("FROM proxy_logs LIMIT 5, 5", "LIMIT a, b is not supported. Write LIMIT b OFFSET a.", None),
        ("SELECT 'é', 1 BETWEEN /* SYMMETRIC */ SYMMETRIC 3 AND 0", _SYMMETRIC, 38),
        ("SELECT 1 not between symmetric 3 AND 0", _SYMMETRIC, 21),
        ("SELECT 'é', ['a']::ENUM('a', 'b')[]", _NESTED_ENUM, 19),
        ("SELECT {'a': 'x'}::STRUCT(a ENUM('x', 'y'))", _NESTED_ENUM, 28),
        ("SELECT 'a'::ENUM('a'), NULL::MAP(VARCHAR, ENUM('a'))", _NESTED_ENUM, None),
        ("SELECT * FROM other.range(3)", 'Call the table function "range" without a schema.', 14),
        ("SELECT NULL::memory.main.x", "Name a type without a schema.", None),
        ("x" * 70_000, "The statement is longer than 65536 bytes. Shorten it.", None),
        ("é" * 40_000, "The statement is longer than 65536 bytes. Shorten it.", None),
    ],
)
def test_a_refusal_has_a_message_and_the_position(statement: str, message: str, position: int | None) -> None:
    refusal = _refusal(statement)
    assert (refusal.message, str(refusal), refusal.position) == (message, message, position)


@pytest.mark.parametrize(
    ("statement", "message", "position"),
    [
        (" \n", "The statement is empty. Send one SELECT over proxy_logs.", None),
        ("\0SELECT '\0'", "The statement contains a NUL character. Remove it.", 0),
        ("SELECT 'é\ud800'", "The statement contains an unpaired surrogate. Remove it.", 9),
        ("é" * 32_769, "The statement is longer than 65536 bytes. Shorten it.", None),
    ],
)
def test_a_text_that_is_no_statement_is_refused_before_it_is_parsed(
    statement: str, message: str, position: int | None
) -> None:
    with pytest.raises(Refusal) as caught:
        guard.check_text(statement)
    assert (caught.value.message, caught.value.position) == (message, position)


def test_a_text_may_have_65536_bytes() -> None:
    assert guard.check_text("é" * 32_768) == ("é" * 32_768).encode()


class _Parser:
    """A connection to a DuckDB whose parser answers as given."""

    def __init__(self, answer: str) -> None:
        self._answer = answer

    def execute(self, query: str, /) -> _Parser:
        return self

    def fetchone(self) -> tuple[str]:
        return (self._answer,)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        # The depth that Python can read depends on its release.
        ("[" * 200_000 + "]" * 200_000, "The statement is nested too deeply. Flatten it."),
        ('{"statements": [{"node": 1}]}', f"{_FORM}."),
        ('{"statements": [{"node": {"type": "NEW_NODE"}}]}', f"{_FORM} (NEW_NODE)."),
    ],
)
def test_a_tree_that_cannot_be_read_is_refused(answer: str, message: str) -> None:
    with pytest.raises(Refusal) as caught:
        guard.check("SELECT 1", _Parser(answer))
    assert caught.value.message == message


_SEND_ONE_SELECT = "Send one SELECT, or WITH … SELECT, over proxy_logs."


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DROP VIEW proxy_logs", f"DROP is not allowed. {_SEND_ONE_SELECT}"),
        ("/* é; ( */ insert into proxy_logs values (';')", f"INSERT is not allowed. {_SEND_ONE_SELECT}"),
        (
            "WITH x AS (SELECT 1 UNION SELECT 2) DELETE FROM proxy_logs",
            f"DELETE is not allowed. {_SEND_ONE_SELECT}",
        ),
        ("\u200b\u00a0DELETE\u3000FROM proxy_logs", f"DELETE is not allowed. {_SEND_ONE_SELECT}"),
        ("ATTACH 'x.db'", f"ATTACH is not allowed. {_SEND_ONE_SELECT}"),
        ("BEGIN;", f"BEGIN is not allowed. {_SEND_ONE_SELECT}"),
        ("SET threads = 1", f"SET is not allowed. Settings are fixed. {_SEND_ONE_SELECT}"),
        ("EXPLAIN ANALYZE SELECT 1", "EXPLAIN is not allowed. Send the SELECT alone."),
        ("EXECUTE p", "EXECUTE is not allowed. Send the SELECT alone. Write its values into it."),
        (
            "COPY (SELECT 1) TO 'x.csv'",
            """COPY is not allowed. Send the SELECT alone. \
The header Accept chooses CSV, NDJSON, Parquet or Arrow for its result.""",
        ),
        ("SELECT 1; DROP VIEW proxy_logs; SELECT ';'", "Send one statement, not 3."),
        ("PIVOT proxy_logs ON cacheStatus USING count(*)", _PIVOT),
        ("SELECT * FROM (PIVOT proxy_logs ON cacheStatus USING count(*))", _PIVOT),
        ("WITH a AS (FROM proxy_logs) PIVOT a ON day USING count(*)", _PIVOT),
    ],
)
def test_a_refusal_names_the_kind_of_statement(statement: str, message: str) -> None:
    refusal = _refusal(statement)
    assert (refusal.message, refusal.position) == (message, None)


@pytest.mark.parametrize(
    ("statement", "reads_log", "names_day"),
    [
        ("SELECT 1", False, False),
        ("SELECT count(*) FROM proxy_logs", True, False),
        ("SELECT count(*) FROM proxy_logs p WHERE p.DAY = 'x'", True, True),
        ("WITH a AS (FROM proxy_logs) SELECT count(*) FROM a", True, False),
    ],
)
def test_a_checked_statement_says_whether_it_reads_the_log_and_names_the_day(
    statement: str, reads_log: bool, names_day: bool
) -> None:
    checked = guard.check(statement, _connection)
    assert (checked.reads_log, checked.names_day) == (reads_log, names_day)
    assert checked.tree["node"]["type"] == "SELECT_NODE"


@pytest.mark.parametrize(
    ("statement", "is_repeatable"),
    [
        ("SELECT day, count(*) FROM proxy_logs GROUP BY 1 LIMIT 1", True),
        (
            "SELECT p.now, p.current_date, 'random()' AS random FROM (SELECT 1 AS now, 2 AS current_date) p",
            True,
        ),
        ("SELECT list_transform([1], lambda x: x + 1), sum(1) OVER ()", True),
        ("SELECT Random()", False),
        ("SELECT main.now()", False),
        ("SELECT CURRENT_DATE", False),
        ("SELECT localtime", False),
        ("SELECT 1 ORDER BY uuid()", False),
        ("SELECT list_transform([1], lambda x: x + random())", False),
        ("SELECT sum(random()) OVER ()", False),
        ("WITH a AS (SELECT today() AS d) SELECT 1 FROM a", False),
        ("SELECT (SELECT current_timestamp)", False),
        ("SELECT * FROM range(CAST(random() AS BIGINT))", False),
        ("SELECT 1 LIMIT random() * 10", False),
        ("SELECT reservoir_quantile(i, 0.5) FROM range(9) r(i)", False),
        ("SELECT reservoir_quantile(i, 0.5) OVER () FROM range(9) r(i)", False),
        ("SELECT '12:00:00+00'::TIMESTAMPTZ", True),
        ("SELECT timezone('America/New_York', TIMETZ '12:00:00+00')", False),
        ("SELECT NULL::STRUCT(a TIME WITH TIME ZONE[])", False),
        ("SELECT * FROM proxy_logs TABLESAMPLE 1 ROWS", False),
        ("SELECT * FROM proxy_logs USING SAMPLE reservoir(10 ROWS) REPEATABLE (42)", False),
    ],
)
def test_a_checked_statement_says_whether_its_answer_lasts(statement: str, is_repeatable: bool) -> None:
    assert guard.check(statement, _connection).is_repeatable is is_repeatable


def test_deep_nesting_is_refused_without_advice_about_settings() -> None:
    statement = "SELECT " + "abs(" * 3_000 + "1" + ")" * 3_000
    assert "SET" not in _refusal(statement).message


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT version()",
        "SELECT current_schema()",
        "SELECT current_database()",
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'proxy_logs'",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM pg_catalog.pg_class",
        "SELECT typname FROM pg_type",
        "SHOW TABLES",
        "DESCRIBE proxy_logs",
        "SELECT * FROM duckdb_columns()",
    ],
)
def test_what_tools_ask_first_is_refused_with_the_way(statement: str) -> None:
    assert _refusal(statement).message.removesuffix(_TABLE_FUNCTIONS).endswith(_COLUMNS)


@pytest.mark.parametrize(
    ("function", "instead"),
    [
        ("to_date", "CAST(text AS DATE)"),
        ("to_char", "strftime("),
        ("nvl", "coalesce("),
        ("getdate", "now()"),
        ("from_unixtime", "to_timestamp("),
        ("iif", "if(condition"),
        ("locate", "strpos("),
        ("try_to_number", "TRY_CAST("),
    ],
)
def test_a_function_of_another_engine_names_ours(function: str, instead: str) -> None:
    message = _refusal(f"SELECT {function}(day) FROM proxy_logs").message
    assert message.startswith(f'There is no function "{function}" that a query may call. Write {instead}')
    assert "Did you mean" not in message
