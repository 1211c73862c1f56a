"""A word counts where a statement depends on it, in Python as in SQL."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.dialects.words import find_time, find_word, is_certain_sql, word_sql

CONNECTION = duckdb.connect(config={"threads": 1})


def in_sql(statement: str, adapter_type: str | None = None) -> tuple[str | None, bool | None]:
    """Return the word in a statement, and whether it is certain."""
    ((word, is_certain),) = CONNECTION.execute(
        f"SELECT word, {is_certain_sql('word', 'adapter')}"
        f" FROM (SELECT {word_sql('statement')} AS word, adapter"
        " FROM (SELECT $statement AS statement, $adapter::VARCHAR AS adapter))",
        {"statement": statement, "adapter": adapter_type},
    ).fetchall()
    return word, is_certain


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        # Words without parentheses
        ("SELECT current_user", "current_user"),
        ("SELECT CURRENT_USER, x FROM t", "CURRENT_USER"),
        ("SELECT x FROM t WHERE owner=current_user AND y", "current_user"),
        ("SELECT current_user\n\tFROM t", "current_user"),
        ("SELECT x FROM t WHERE (owner = session_user)", "session_user"),
        ("SELECT x FROM t WHERE owner = USER", "USER"),
        ("SELECT current_user::text, (system_user)", "current_user"),
        ("SELECT x FROM t JOIN u ON t.who=current_role", "current_role"),
        ("SELECT current_schema, current_catalog", "current_schema"),
        # Functions
        ("SELECT current_user()", "current_user()"),
        ("SELECT current_role /* who */ ()", "current_role()"),
        ("SELECT pg_catalog.current_setting(?)", "current_setting()"),
        ("SELECT system.builtin.session_user( )", "session_user()"),
        ("SELECT user_name (?)", "user_name()"),
        ("SELECT x, user() FROM t", "user()"),
        ("SELECT 'it''s' || suser_sname()", "suser_sname()"),
        ("SELECT rows[current_user()]", "current_user()"),
        ("SELECT is_member(?) FROM app.accounts", "is_member()"),
        ("SELECT x FROM t WHERE pg_has_role(?, ?) OR has_any_column_privilege (?, ?)", "pg_has_role()"),
        ("SELECT IS_DATABASE_ROLE_IN_SESSION(?), sys_context(?, ?)", "IS_DATABASE_ROLE_IN_SESSION()"),
        (
            "SELECT CASE WHEN IS_APPLICATION_ROLE_IN_SESSION(?) THEN x END FROM t",
            "IS_APPLICATION_ROLE_IN_SESSION()",
        ),
        ("SELECT CURRENT_ROLE_TYPE()", "CURRENT_ROLE_TYPE()"),
        ("SELECT * FROM t WHERE recipient = current_recipient(?)", "current_recipient()"),
        ("SELECT current_schema()", "current_schema()"),
        ("SELECT current_schemas(true)", "current_schemas()"),
        ("SELECT * FROM TABLE(RESULT_SCAN(LAST_QUERY_ID()))", "RESULT_SCAN()"),
        ("SELECT inet_client_addr(), pg_backend_pid()", "inet_client_addr()"),
        ("SELECT to_regclass(?)", "to_regclass()"),
        # Quoted functions
        ("SELECT `current_user`()", "current_user()"),
        ('SELECT "current_user" ()', "current_user()"),
        ('SELECT "pg_catalog"."current_setting"(?)', "current_setting()"),
        # Variables and stages
        ("SELECT * FROM sales WHERE region = $region", "$region"),
        ("SELECT * FROM IDENTIFIER($my_table)", "$my_table"),
        ("SELECT * FROM sales WHERE region = ${region}", "${region}"),
        ("SELECT system.session.region", "system.session"),
        ("SELECT $1 FROM @~/uploads", "@~"),
        # Catalogues
        ("SELECT * FROM information_schema.tables", "information_schema"),
        ("SELECT * FROM prod.INFORMATION_SCHEMA . COLUMNS", "INFORMATION_SCHEMA"),
        ('SELECT * FROM "information_schema"."tables"', "information_schema"),
        ("SELECT * FROM `prod`.`information_schema`.`tables`", "information_schema"),
        ("SELECT query FROM pg_stat_activity WHERE x", "pg_stat_activity"),
        ("SELECT * FROM a JOIN pg_settings s ON true", "pg_settings"),
        ("SELECT oid FROM pg_catalog.pg_class", "pg_class"),
        ('SELECT oid FROM "pg_catalog"."pg_class" c', "pg_class"),
        ("SHOW TABLES IN SCHEMA hr", "SHOW"),
        ("/* who */ show roles ->> SELECT $1 FROM $2", "show"),
    ],
)
def test_a_word_counts(statement: str, word: str) -> None:
    assert find_word(statement) == word
    assert in_sql(statement)[0] == word


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT user_name, plan FROM app.accounts",
        "SELECT a.user_name, count(DISTINCT user_name) FROM app.accounts a GROUP BY user_name",
        "SELECT x FROM t WHERE user_name IN (?) AND is_member = ?",
        "SELECT is_member, current_account, context_info, has_delete_privilege FROM t",
        "SELECT t.current_user, t.user FROM t",
        "SELECT payload:current_user FROM t",
        "SELECT name AS current_user, name AS user FROM t",
        "SELECT current_user.id FROM users AS current_user",
        'SELECT "current_user", "my user" FROM t',
        "SELECT `current_user` FROM t",
        "SELECT [current_user] FROM t",
        "SELECT x FROM t -- current_user()",
        "SELECT /* current_user() */ x FROM t",
        "SELECT /* a /* current_user() */ current_user() */ x FROM t",
        "SELECT ' current_user() ' FROM t",
        "SELECT my_user_name(?), current_users, écurrent_user FROM t",
        "SELECT @current_user, :current_user, $1, %(user)s",
        "SELECT x, $tag$ text $tag$, $$ text $$",
        # A table with an alias
        "SELECT count(*) FROM app.user (x)",
        "SELECT count(*) FROM user u JOIN user ON true",
        "INSERT INTO user (a, b) VALUES (?, ?)",
        # Functions of people
        "SELECT app.current_setting(?)",
        "SELECT pg_catalog.count(x), y::pg_catalog.int4 FROM t",
        "SELECT show FROM t",
        "SELECT * FROM app.information_schema_copy",
    ],
)
def test_a_column_an_alias_a_table_and_a_text_do_not_count(statement: str) -> None:
    assert find_word(statement) is None
    assert in_sql(statement) == (None, None)


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("SELECT now()", "now()"),
        ("SELECT x FROM t WHERE d >= CURRENT_DATE - 7", "CURRENT_DATE"),
        ("SELECT x FROM t WHERE d >= localtime(2)", "localtime()"),
        ("SELECT unix_timestamp()", "unix_timestamp()"),
        ("SELECT GETDATE()", "GETDATE()"),
        ("SELECT unix_timestamp(x), t.now, now FROM t", None),
        ("SELECT current_user", None),
        ("SELECT x AS current_date FROM t", None),
    ],
)
def test_a_word_of_the_time(statement: str, word: str | None) -> None:
    assert find_time(statement) == word


@pytest.mark.parametrize(
    ("statement", "certain_in"),
    [
        ("SELECT x FROM t WHERE owner = USER", {"postgresql"}),
        ("SELECT user() FROM t", {None, "postgresql", "snowflake", "databricks"}),
        ("SELECT current_user FROM t", {None, "postgresql", "snowflake", "databricks"}),
        ("SELECT * FROM pg_stat_activity", set()),
        ("SELECT * FROM information_schema.tables", {None, "postgresql", "snowflake", "databricks"}),
    ],
)
def test_a_word_that_may_be_a_column_or_a_table_for_all_is_a_doubt(
    statement: str, certain_in: set[str | None]
) -> None:
    adapters = [None, "postgresql", "snowflake", "databricks"]
    assert {adapter for adapter in adapters if in_sql(statement, adapter)[1]} == certain_in


PARTS = st.sampled_from(
    [
        *("current_user", "user_name", "user", "SESSION_USER", "pg_class", "information_schema", "SHOW"),
        *("x", "ä", "AS", "FROM", "(", ")", ".", ":", " ", "$x", "${", "}", "@~", "1"),
        *("'", '"', "`", "[", "]", "--", "\n", "\r", "/*", "*/", "//", "\\", ",", "?"),
    ]
)


@pytest.mark.slow
@given(statement=st.lists(PARTS, max_size=12).map("".join) | st.text(max_size=20))
@settings(max_examples=200, deadline=None)
def test_python_and_sql_agree(statement: str) -> None:
    statement = statement.replace("\0", "")
    assert in_sql(statement)[0] == find_word(statement)
