"""Functions of the user count where a statement calls them, in Python as in SQL."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.reports.per_user import is_per_user, is_per_user_sql

CONNECTION = duckdb.connect(config={"threads": 1})


def in_sql(statement: str) -> bool:
    ((found,),) = CONNECTION.execute(
        f"SELECT {is_per_user_sql('statement')} FROM (SELECT ? AS statement)", [statement]
    ).fetchall()
    return bool(found)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT current_user",
        "SELECT CURRENT_USER, x FROM t",
        "SELECT x FROM t WHERE owner=current_user AND y",
        "SELECT current_user\n\tFROM t",
        "SELECT x FROM t WHERE (owner = session_user)",
        "SELECT current_user()",
        "SELECT current_role /* who */ ()",
        "SELECT pg_catalog.current_setting(?)",
        "SELECT user_name (?)",
        "SELECT user()",
        "SELECT 'it''s' || suser_sname()",
        "SELECT rows[current_user()]",
        "SELECT is_member(?) FROM app.accounts",
        "SELECT x FROM t WHERE pg_has_role(?, ?) OR has_any_column_privilege (?, ?)",
        "SELECT IS_DATABASE_ROLE_IN_SESSION(?), sys_context(?, ?)",
    ],
)
def test_a_call_counts(statement: str) -> None:
    assert is_per_user(statement)
    assert in_sql(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT user_name, plan FROM app.accounts",
        "SELECT a.user_name, count(DISTINCT user_name) FROM app.accounts a GROUP BY user_name",
        "SELECT x FROM t WHERE user_name IN (?) AND is_member = ?",
        "SELECT is_member, current_account, context_info, has_delete_privilege FROM t",
        "SELECT t.current_user FROM t",
        "SELECT payload:current_user FROM t",
        "SELECT name AS current_user FROM t",
        "SELECT current_user.id FROM users AS current_user",
        'SELECT "current_user", "user_name" (?) FROM t',
        "SELECT `current_user` FROM t",
        "SELECT [current_user] FROM t",
        "SELECT x FROM t -- current_user()",
        "SELECT /* current_user() */ x FROM t",
        "SELECT ' current_user() ' FROM t",
        "SELECT my_user_name(?), current_users, écurrent_user FROM t",
        "SELECT @current_user, $current_user, :current_user",
        "SELECT user FROM t",
    ],
)
def test_a_column_an_alias_and_a_text_do_not_count(statement: str) -> None:
    assert not is_per_user(statement)
    assert not in_sql(statement)


PARTS = st.sampled_from(
    [
        *(
            "current_user",
            "user_name",
            "user",
            "SESSION_USER",
            "x",
            "ä",
            "AS",
            "FROM",
            "(",
            ")",
            ".",
            ":",
            " ",
        ),
        *("'", '"', "`", "[", "]", "--", "\n", "/*", "*/", "//", "\\", ",", "?"),
    ]
)


@pytest.mark.slow
@given(statement=st.lists(PARTS, max_size=12).map("".join) | st.text(max_size=20))
@settings(max_examples=500, deadline=None)
def test_python_and_sql_agree(statement: str) -> None:
    statement = statement.replace("\0", "")
    assert in_sql(statement) == is_per_user(statement)
