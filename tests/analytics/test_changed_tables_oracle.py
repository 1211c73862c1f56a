"""The tables that a statement changes are those that sqlglot finds; the differences are named here."""

from __future__ import annotations

from itertools import product

import pytest
import sqlglot
from sqlglot import exp

from analytics.reports.sql import find_changed_tables
from rules.tables.names import TableName, read_name

DIALECTS = ("postgres", "snowflake", "databricks")
QUOTE = {"postgres": '"', "snowflake": '"', "databricks": "`"}
#: Statements that change A and may read B.
SHAPES = {
    "insert": "INSERT INTO {A} (x) SELECT x FROM {B}",
    "insert-values": "INSERT INTO {A} VALUES (?, 'it''s; DELETE FROM x')",
    "insert-of-with": "INSERT INTO {A} WITH c AS (SELECT x FROM {B}) SELECT * FROM c",
    "update": "UPDATE {A} SET x = ?, y = (SELECT max(x) FROM {B})",
    "update-of-alias": "UPDATE {A} AS t SET x = ? WHERE t.y IN (SELECT y FROM {B})",
    "delete": "DELETE FROM {A} WHERE x IN (SELECT x FROM {B})",
    "merge": "MERGE INTO {A} AS t USING {B} AS s ON t.x = s.x WHEN MATCHED THEN UPDATE SET y = s.y"
    " WHEN NOT MATCHED THEN INSERT (x) VALUES (s.x)",
    "merge-of-delete": "MERGE INTO {A} AS t USING {B} AS s ON (t.x = s.x) WHEN MATCHED THEN DELETE",
    "create": "CREATE TABLE {A} AS SELECT * FROM {B}",
    "create-view": "CREATE OR REPLACE VIEW {A} AS SELECT * FROM {B} JOIN {B} AS c ON true",
    "truncate": "TRUNCATE TABLE {A}",
    "drop": "DROP TABLE IF EXISTS {A}",
    "alter": "ALTER TABLE {A} ADD COLUMN z INT",
    "select": "SELECT * FROM {A} JOIN {B} ON true",
    "two": "UPDATE {A} SET x = ?; DELETE FROM {B}",
}
#: Shapes of one dialect.
OWN = {
    "postgres": {
        "insert-on-conflict": "INSERT INTO {A} (x) SELECT x FROM {B} ON CONFLICT (x) DO UPDATE SET y = ?",
        "update-from": "UPDATE ONLY {A} SET x = b.x FROM {B} AS b",
        "delete-using": "DELETE FROM {A} AS a USING {B} AS b WHERE a.x = b.x",
        "with-insert": "WITH c AS (SELECT x FROM {B}) INSERT INTO {A} SELECT * FROM c",
        "with-delete": "WITH c AS (SELECT x FROM {B}) DELETE FROM {A} WHERE x IN (SELECT x FROM c)",
        "change-in-with": "WITH c AS (DELETE FROM {B} RETURNING x) INSERT INTO {A} SELECT * FROM c",
        "nested-with": "WITH c AS (WITH d AS (SELECT 1 AS x) DELETE FROM {B} RETURNING x) INSERT INTO {A}"
        " SELECT * FROM c",
        "nested-with-alone": "WITH c AS (WITH d AS (SELECT x FROM {B}) DELETE FROM {A} RETURNING x)"
        " SELECT * FROM c",
        "change-in-with-alone": "WITH c AS (DELETE FROM {A} RETURNING x) SELECT * FROM c, {B}",
        "json": "UPDATE {A} SET x = y ->> 'z' WHERE x IN (SELECT x FROM {B})",
    },
    "snowflake": {
        "insert-overwrite": "INSERT OVERWRITE INTO {A} SELECT * FROM {B}",
        "delete-using": "DELETE FROM {A} USING {B} WHERE {A}.x = {B}.x",
        "swap": "ALTER TABLE {A} SWAP WITH {B}",
    },
    "databricks": {
        "insert-overwrite": "INSERT OVERWRITE TABLE {A} SELECT * FROM {B}",
        "with-insert": "WITH c AS (SELECT x FROM {B}) INSERT INTO {A} SELECT * FROM c",
    },
}
#: Both answer, and the service names more tables than sqlglot: where a second table may change, all do.
DOUBTS = {
    (
        "postgres",
        "change-in-with-alone",
    ): "a change in a WITH: which tables the rest changes is not looked for",
    ("snowflake", "swap"): "sqlglot names the first of two tables that are exchanged",
}


def judge(statement: str, dialect: str) -> tuple[frozenset[TableName], frozenset[TableName]] | None:
    """Return what sqlglot finds: the changed tables, and all; None if it does not read the statement."""
    try:
        trees = [tree for tree in sqlglot.parse(statement, dialect=dialect) if tree is not None]
    except sqlglot.errors.SqlglotError:
        return None
    if any(tree.find(exp.Command) for tree in trees):
        return None
    aliases = {cte.alias for tree in trees for cte in tree.find_all(exp.CTE)}
    tables = frozenset(
        name_of(table) for tree in trees for table in tree.find_all(exp.Table) if table.name not in aliases
    )
    kinds = (exp.Update, exp.Delete, exp.Merge, exp.Drop, exp.Create, exp.Alter, exp.Insert)
    changed = set()
    for tree in trees:
        for node in tree.find_all(*kinds, exp.TruncateTable):
            several = isinstance(node, exp.TruncateTable | exp.Drop)
            targets = node.expressions if several else [node.this]
            # The parts of a MERGE have no table.
            found = (target.find(exp.Table) for target in targets if isinstance(target, exp.Expression))
            changed |= {name_of(table) for table in found if table is not None}
    return frozenset(changed), tables


def name_of(table: exp.Table) -> TableName:
    return read_name(".".join(part.name for part in table.parts))


def written(names: tuple[str, ...], dialect: str) -> dict[str, str]:
    quote = QUOTE[dialect]
    return {
        key: ".".join(f"{quote}{part}{quote}" if " " in part else part for part in name.split("."))
        for key, name in zip("AB", names, strict=True)
    }


#: Texts that change nothing, put before each statement and behind its first word.
COMMENTS = ("", "/* DELETE FROM z */", "-- it's\n", "/* a /* b */ UPDATE z */")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_statement_changes_what_sqlglot_finds(dialect: str) -> None:
    answered, doubted = set(), set()
    names = [("s.a", "t.b"), ("my a", "d.s.b"), ("d.s.a", "b_1")]
    for (shape, text), pair, comment in product(
        {**SHAPES, **OWN[dialect]}.items(), names, COMMENTS if dialect != "snowflake" else COMMENTS[:3]
    ):
        first, _, rest = text.format(**written(pair, dialect)).partition(" ")
        statement = f"{comment}{first} {comment}{rest}"
        found = judge(statement, dialect)
        if found is None:
            continue
        answered.add(shape)
        changed, tables = found
        ours = find_changed_tables(statement, tables)
        if changed == ours or (not changed and ours == tables):
            continue
        assert changed < ours == tables, statement
        doubted.add((dialect, shape))
    assert doubted == {difference for difference in DOUBTS if difference[0] == dialect}
    # sqlglot must answer, or it is no judge.
    assert len(answered) >= len(SHAPES)
