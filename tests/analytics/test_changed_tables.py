"""The table that a statement changes is the same in Python and in SQL."""

from __future__ import annotations

import json

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.reports.sql import changed_sql, find_changed_tables, read_tables
from rules.tables.names import read_name

TABLES = frozenset(map(read_name, ("s.a", "b", "my table", "ä.ö")))


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("INSERT INTO s.a SELECT * FROM b", {"s.a"}),
        ("insert overwrite table `s`.`a` select 1", {"s.a"}),
        ("INSERT OR REPLACE INTO b VALUES (?)", {"b"}),
        ("REPLACE INTO b VALUES (?)", {"b"}),
        ("UPDATE ONLY s . a SET x = ?", {"s.a"}),
        ('update "My Table" set x = ?', {"my table"}),
        ("DELETE FROM [S].[A] WHERE x = ?", {"s.a"}),
        ("MERGE INTO s.a USING b ON ?", {"s.a"}),
        ("COPY INTO b FROM @stage", {"b"}),
        ("LOAD DATA\nINPATH ? INTO TABLE b", {"b"}),
        ("TRUNCATE b", {"b"}),
        ("CREATE OR REPLACE TEMP TABLE IF NOT EXISTS b AS SELECT * FROM s.a", {"b"}),
        ("DROP VIEW IF EXISTS Ä.Ö", {"ä.ö"}),
        ("/* nightly */ -- load\nWITH x AS (SELECT (1)) INSERT INTO s.a SELECT * FROM x", {"s.a"}),
        ("// load\nWITH x (y) AS (SELECT ?), z AS (SELECT ?) DELETE FROM b USING x, z", {"b"}),
        (
            "MERGE INTO s.a USING b ON ? WHEN MATCHED THEN UPDATE SET x = ?, y = ? WHEN MATCHED THEN DELETE",
            {"s.a"},
        ),
        ("MERGE WITH SCHEMA EVOLUTION INTO b USING s.a ON ?", {"b"}),
        (
            "INSERT INTO b SELECT ';', '/*', '--' FROM s.a ON CONFLICT DO UPDATE SET x = ?, y = ? -- ; DROP;",
            {"b"},
        ),
        ("UPDATE b AS t SET x = ?, y = ? FROM s.a JOIN s.c ON ?; ;", {"b"}),
        ("UPDATE b SET (x, y) = (SELECT ?, ? FROM s.a)", {"b"}),
        ("DELETE FROM b USING s.a, s.c WHERE ?", {"b"}),
        ("TRUNCATE TABLE IF EXISTS b", {"b"}),
        ("ALTER TABLE b ADD COLUMN x INT, ADD COLUMN y INT", {"b"}),
        ("CREATE TEMP TABLE b AS WITH x AS (SELECT * FROM s.a) SELECT * FROM x", {"b"}),
        # A comment in a comment.
        ("/* a /* b */ c */ DELETE FROM b", {"b"}),
        ("/* a /* b /* c */ */ d */ -- e\rDELETE FROM b", {"b"}),
        ("/* a /* b */ DELETE FROM b", {"b"}),
        ("UPDATE s.a/**/SET x = ?", {"s.a"}),
        # A flow whose other statements change nothing, and the operator of JSON.
        ("UPDATE b SET x = ? ->> SELECT * FROM $1", {"b"}),
        ("UPDATE b SET x = j ->> ?", {"b"}),
        # It may change other tables too.
        ("UPDATE s.a SET x = ? ->> DELETE FROM b", TABLES),
        ("UPDATE s.a SET x = ?\n->>\nWITH x AS (SELECT ?) DELETE FROM b", TABLES),
        ("SELECT ? ->> DELETE FROM b", TABLES),
        (
            "WITH x AS (WITH y AS (SELECT ?) DELETE FROM s.a RETURNING *) INSERT INTO b SELECT * FROM x",
            TABLES,
        ),
        (
            "WITH x AS (WITH y AS (SELECT ?), z AS (SELECT ?) UPDATE s.a SET q = ?) DELETE FROM b",
            TABLES,
        ),
        # The name goes on behind a character that the pattern does not know.
        ("DELETE FROM b!c", TABLES),
        ("UPDATE b\u0301 SET x = ?", TABLES),
        ("UPDATE s.a%b SET x = ?", TABLES),
        ("DELETE FROM s.a.b.c.d", TABLES),
        ("ALTER TABLE s.a SWAP WITH b", TABLES),
        ("ALTER TABLE s.a /* now */ RENAME TO b", TABLES),
        ("ALTER TABLE b EXCHANGE PARTITION (x) WITH TABLE s.a", TABLES),
        ("ALTER TABLE b APPEND FROM s.a", TABLES),
        ("ALTER TABLE b INHERIT s.a", TABLES),
        ("ALTER TABLE b SWITCH PARTITION 1 TO s.a", TABLES),
        ("ALTER TABLE b SET SCHEMA s", TABLES),
        ("ALTER TABLE b ATTACH PARTITION s.a FOR VALUES IN (?)", TABLES),
        ("ALTER TABLE b DETACH PARTITION s.a", TABLES),
        ("ALTER TABLE b REPLACE WITH TABLE s.a", TABLES),
        ("ALTER TABLE b, s.a ADD COLUMN x INT", TABLES),
        ("ALTER MATERIALIZED VIEW s.a RENAME TO b", TABLES),
        ("TRUNCATE TABLE b CASCADE", TABLES),
        ("ALTER TABLE b DROP COLUMN x CASCADE", TABLES),
        ("EXCHANGE TABLES b AND s.a", TABLES),
        ("RENAME TABLE b TO s.a", TABLES),
        ("TRUNCATE b, s.a", TABLES),
        ("DROP TABLE IF EXISTS b , s.a CASCADE", TABLES),
        ("UPDATE b, s.a SET x = ?", TABLES),
        ("UPDATE b AS t LEFT JOIN s.a ON ? SET x = ?", TABLES),
        ("UPDATE b STRAIGHT_JOIN s.a SET x = ?", TABLES),
        ("UPDATE b USE INDEX (i, j) JOIN s.a ON ? SET x = ?", TABLES),
        ("UPDATE b t PARTITION (p), s.a SET x = ?", TABLES),
        ("DELETE b, s.a FROM b JOIN s.a", TABLES),
        ("DELETE b.*, s.a.* FROM b JOIN s.a", TABLES),
        ("DELETE FROM b; DELETE FROM s.a", TABLES),
        ("INSERT INTO b SELECT 'it''s'; DROP TABLE s.a", TABLES),
        ("INSERT INTO b SELECT 'it\\'; DROP TABLE s.a; --'", TABLES),
        ("WITH x AS (DELETE FROM s.a RETURNING *) INSERT INTO b SELECT * FROM x", TABLES),
        ("INSERT INTO b WITH x AS ( UPDATE s.a SET y = ?) SELECT ?", TABLES),
        ("INSERT ALL INTO b INTO s.a SELECT ?", TABLES),
        ("INSERT OVERWRITE TABLE b SELECT ? INSERT OVERWRITE TABLE s.a SELECT ?", TABLES),
        ("FROM x INSERT INTO b SELECT ? INSERT INTO s.a SELECT ?", TABLES),
        ("DELETE FROM b OUTPUT deleted.* INTO s.a", TABLES),
        ("MERGE b USING x ON ? WHEN MATCHED THEN DELETE OUTPUT deleted.y INTO s.a", TABLES),
        ("TRUNCATE b /*!50000 , s.a */", TABLES),
        ("DO $$ BEGIN DELETE FROM b; END $$", TABLES),
        # The target is not one of the tables, or there is none.
        ("UPDATE other SET x = ?", TABLES),
        ("CREATE INDEX i ON b (x)", TABLES),
        ("SELECT * FROM b", TABLES),
        ("", TABLES),
    ],
)
def test_the_target_of_a_statement_has_changed(statement: str, changed: set[str]) -> None:
    assert find_changed_tables(statement, TABLES) == changed
    assert in_sql(statement, json.dumps(sorted(TABLES))) == changed


@pytest.mark.parametrize(
    ("statement", "tables", "changed"),
    [
        ("UPDATE orders SET x = ?", ["prod.public.orders", "b"], {"prod.public.orders"}),
        ("UPDATE prod.public.orders SET x = ?", ["orders", "b"], {"prod.public.orders"}),
        ("UPDATE orders SET x = ?", ["a.orders", "b.orders", "c"], {"a.orders", "b.orders"}),
        ('DELETE FROM "a.orders"', ["a.orders", "b"], {"a.orders", "b"}),
        ("DELETE FROM db..orders", ["db.public.orders", "b"], {"db.public.orders"}),
        ('UPDATE "db" . . orders SET x = ?', ["db..orders", "b"], {"db.public.orders"}),
    ],
)
def test_the_target_may_be_spelled_otherwise_than_in_the_tables(
    statement: str, tables: list[str], changed: set[str]
) -> None:
    text = json.dumps(tables)
    assert find_changed_tables(statement, read_tables(text)) == in_sql(statement, text) == changed


@pytest.mark.parametrize("name", ['"a""b"', "`a``b`", 's."a""b"', '"a"".""b"'])
def test_a_name_may_have_quotes_in_it(name: str) -> None:
    tables = json.dumps([name, "b"])
    changed = read_tables(json.dumps([name]))
    for statement in (
        f"UPDATE {name} SET x = ?",
        f"DELETE FROM {name}",
        f"INSERT INTO {name} SELECT * FROM b",
    ):
        assert find_changed_tables(statement, read_tables(tables)) == changed
        assert in_sql(statement, tables) == changed


NAMES = st.sampled_from(["s", "S", '"s"', "`a b`", "[x]", "ä", "a$b", "1", '"', ".", "x.y", "-"])
WORDS = st.sampled_from(
    [
        *(
            "INSERT",
            "INTO",
            "OVERWRITE",
            "TABLE",
            "UPDATE",
            "ONLY",
            "DELETE",
            "FROM",
            "MERGE",
            "COPY",
            "LOAD",
        ),
        *("DATA", "CREATE", "OR", "REPLACE", "VIEW", "IF", "NOT", "EXISTS", "TEMP", "DROP", "SELECT", "\n"),
        *(
            "ALTER",
            "SWAP",
            "WITH",
            "AS",
            "(",
            ")",
            ",",
            ";",
            "--",
            "//",
            "/*",
            "*/",
            "'",
            "\\",
            "JOIN",
            "SET",
            "$$",
        ),
    ]
)
STATEMENTS = st.lists(WORDS | NAMES, max_size=8).map(" ".join) | st.text(max_size=20)


@pytest.mark.slow
@given(statement=STATEMENTS, names=st.lists(NAMES | st.none() | st.integers(), max_size=4))
@settings(max_examples=300, deadline=None)
def test_python_and_sql_agree(statement: str, names: list[str | int | None]) -> None:
    statement = statement.replace("\0", "")
    tables = json.dumps([name for name in names if isinstance(name, str)])
    assert in_sql(statement, tables) == find_changed_tables(statement, read_tables(tables))


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        (None, set()),
        ("[", set()),
        ('{"a": 1}', set()),
        ("[]", set()),
        (json.dumps(["A", '"b".c', "b.c"]), {"a", "b.c"}),
    ],
)
def test_the_tables_that_a_statement_reads(text: str | None, tables: set[str]) -> None:
    assert read_tables(text) == tables


def in_sql(statement: str, tables: str) -> frozenset[str]:
    changed = changed_sql("statement", "tables")
    ((names,),) = CONNECTION.execute(
        f"SELECT {changed} FROM (SELECT ? AS statement, ? AS tables)", [statement, tables]
    ).fetchall()
    return frozenset(names)


CONNECTION = duckdb.connect(config={"threads": 1})
