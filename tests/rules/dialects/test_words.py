"""The table of words has what engines and other libraries know."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from sqlglot.dialects.databricks import Databricks
from sqlglot.dialects.snowflake import Snowflake

from rules.dialects.words import WORDS, Dialect, Form, On, find_chance, find_time, find_word


@pytest.fixture
def sessions() -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    """Two sessions of PostgreSQL that differ in all that a session can have."""
    settings = connection.get_connection_params()
    connect = {
        name: settings[name] for name in ("dbname", "user", "password", "host", "port") if name in settings
    }
    with (
        psycopg.connect(**connect, autocommit=True) as one,
        psycopg.connect(**connect, autocommit=True) as other,
    ):
        other.execute("SET SESSION AUTHORIZATION pg_monitor")
        other.execute("SET search_path = information_schema")
        other.execute("SET default_text_search_config = 'pg_catalog.german'")
        other.execute("SET client_encoding = 'LATIN1'")
        other.execute("LISTEN other")
        yield one, other


def value_of(session: psycopg.Connection[Any], expression: str) -> str | None:
    """Return the value of an expression, or None if it has none here."""
    try:
        return repr(session.execute(f"SELECT {expression}").fetchall())
    except psycopg.Error:
        return None


@pytest.mark.django_db
def test_whatever_differs_between_two_sessions_of_postgresql_is_a_word(
    sessions: tuple[psycopg.Connection[Any], psycopg.Connection[Any]],
) -> None:
    one, other = sessions
    functions = one.execute(
        "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
        " AND provolatile <> 'v' AND prokind = 'f' AND pronargs = 0 AND prorettype <> 'trigger'::regtype"
    ).fetchall()
    keywords = one.execute("SELECT word FROM pg_get_keywords() WHERE catcode IN ('R', 'T')").fetchall()
    # In quotes, the functions behind words can be called too.
    expressions = [f'"{name}"()' for (name,) in functions] + [word for (word,) in keywords]
    values = ((text, value_of(one, text), value_of(other, text)) for text in expressions)
    differing = {text for text, first, second in values if first and second and first != second}
    assert {"current_user", "user", "current_schema", '"current_user"()', '"pg_backend_pid"()'} <= differing
    unknown = {
        text for text in differing if not find_word(f"SELECT {text}") and not find_time(f"SELECT {text}")
    }
    assert not unknown


@pytest.mark.django_db
def test_every_function_of_privileges_and_visibility_is_a_word() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
            r" AND (proname ~ '^(has_.*_privilege|.*_is_visible|to_reg.*)$' OR proname IN"
            " ('pg_has_role', 'row_security_active', 'current_setting', 'set_config', 'currval'))"
        )
        names = [name for (name,) in cursor.fetchall()]
    assert len(names) > 30
    assert [name for name in names if not find_word(f"SELECT {name}(?)")] == []


#: Names that give the same to all, and names of dialects for which there is no adapter.
OTHERS = {
    *("CURRENT_REGION", "CURRENT_VERSION"),
    *("CURRENT_DATETIME", "CURRENT_USER_ID", "CURRENT_TIMESTAMP_L_T_Z"),
}


@pytest.mark.parametrize("dialect", [Snowflake, Databricks])
def test_every_function_of_the_session_that_sqlglot_knows_is_a_word(dialect: Any) -> None:
    names = {
        name
        for name in dialect.Parser.FUNCTIONS
        if name.startswith(("CURRENT_", "SESSION_", "INVOKER_", "IS_MEMBER"))
        or name.endswith(("_IN_SESSION", "_ROLE", "_USER", "GROUP_MEMBER"))
    } - OTHERS
    assert {"CURRENT_USER", "CURRENT_DATABASE"} <= names
    unknown = [
        name
        for name in sorted(names)
        if not find_word(f"SELECT {name}()") and not find_time(f"SELECT {name}()")
    ]
    assert unknown == []


def test_every_dialect_has_words_of_each_kind_and_each_row_a_source() -> None:
    kinds = {(row.dialect, row.on) for row in WORDS if row.dialect is not Dialect.OTHER}
    assert kinds == {(dialect, on) for dialect in Dialect if dialect is not Dialect.OTHER for on in On}
    assert all(row.source and row.names for row in WORDS)


@pytest.mark.parametrize("row", WORDS, ids=lambda row: f"{row.dialect}-{row.on}-{row.form}-{row.names[:12]}")
def test_each_name_of_the_table_is_found_as_it_is_written(row: Any) -> None:
    written = {
        Form.CALL: "SELECT {}(?)",
        Form.EMPTY: "SELECT {}()",
        Form.WORD: "SELECT {}",
        Form.COLUMN: "SELECT {}",
        Form.SCHEMA: "SELECT * FROM {}.x",
        Form.TABLE: "SELECT * FROM {}",
        Form.FIRST: "{} TABLES",
        Form.MARK: "SELECT {}",
    }
    find = {On.TIME: find_time, On.CHANCE: find_chance}.get(row.on, find_word)
    for name in row.names.split():
        if not set(name) & set("[(\\"):
            assert find(written[row.form].format(name)), name
