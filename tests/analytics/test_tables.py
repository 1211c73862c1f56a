"""The tables that a statement changes, and how objects spell the names of tables."""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Iterable, Sequence
from itertools import product

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from analytics.replay.count import find_risk
from analytics.reports.sql import (
    changed_sql,
    find_changed_tables,
    leak_findings_sql,
    learned_views_sql,
    read_tables,
    stale_totals_sql,
)
from rules.language import complete_rule
from rules.lint import lint_ruleset
from rules.table_invalidation import find_rules
from rules.tables.names import TableName, read_name
from rules.tables.warehouse import ANY_TABLES, WarehouseTables
from tests.rules.tables import judge

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


def judge_tables(statement: str, dialect: str) -> tuple[frozenset[TableName], frozenset[TableName]] | None:
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
        found = judge_tables(statement, dialect)
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
    # sqlglot must answer, or it is no judge_tables.
    assert len(answered) >= len(SHAPES)


DAY = dt.date(2026, 3, 2)
NAME_WORDS = ("hr", "HR", "Hr", "people", "PEOPLE", "public", "prod", "ÄRA", "ära", "a.b", "")
QUOTES = ("{}", "{}", "{}", '"{}"', "`{}`", "[{}]", " {} ", '"{}')
COLUMNS: dict[str, pa.DataType] = {
    "day": pa.string(),
    "timestamp": pa.int64(),
    "warehouseExecutionTimeMs": pa.int32(),
    "matchedRule": pa.string(),
    "standardizedSql": pa.string(),
    "tables": pa.string(),
    "isDataChange": pa.bool_(),
    "isDDL": pa.bool_(),
    "cacheStatus": pa.string(),
    "cacheAgeSeconds": pa.int32(),
    "logId": pa.string(),
    "cacheKey": pa.string(),
    "userName": pa.string(),
    "hasNonDeterministicFunctions": pa.bool_(),
    "adapterType": pa.string(),
}
SCHEMA = pa.schema(list(COLUMNS.items()))


def spell(chance: random.Random) -> str:
    words = (chance.choice(NAME_WORDS) for _ in range(chance.randint(1, 4)))
    return ".".join(chance.choice(QUOTES).format(word) for word in words)


def make_log(rows: Iterable[tuple[object, ...]]) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(config={"threads": 1})
    columns = [list(column) for column in zip(*rows, strict=True)]
    connection.register("proxy_logs", pa.table(columns, schema=SCHEMA))
    return connection


def hit(rule: str, tables: Sequence[str], user: str = "ann") -> tuple[object, ...]:
    text = json.dumps(tables)
    own = (str(DAY), 60_000, 0, rule, "SELECT", text, False, False)
    return (*own, "HIT", 30, rule, rule, user, False, "duckdb")


def change(statement: str, tables: Sequence[str], *, is_ddl: bool = False) -> tuple[object, ...]:
    text = json.dumps(tables)
    own = (str(DAY), 50_000, 0, "w", statement, text, not is_ddl, is_ddl)
    return (*own, "BYPASS", None, "w", None, "w", False, "duckdb")


def find_stale(rows: Iterable[tuple[object, ...]], warehouse: WarehouseTables = ANY_TABLES) -> set[str]:
    sql = stale_totals_sql(first=DAY, last=DAY, warehouse=warehouse)
    return {rule for rule, _, at_risk in make_log(rows).execute(sql).fetchall() if at_risk}


def replay(names: Sequence[str], changed: str, warehouse: WarehouseTables) -> set[int]:
    """Return the numbers of the names whose hits are at risk."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE statement AS SELECT 1 AS statement, 'CALL p()' AS text")
    lists = [json.dumps([name]) for name in (*names, changed)]
    numbers = list(range(len(lists)))
    connection.execute(
        "CREATE TABLE table_list AS SELECT unnest($1) AS table_list, unnest($2) AS text", [numbers, lists]
    )
    connection.execute(
        f"""
        CREATE TABLE outcome AS SELECT table_list AS n, 1 AS statement, table_list, table_list AS rule,
            table_list = {len(names)} AS is_change, false AS is_failing, true AS is_counted,
            1 AS weight, 0 AS pair, table_list AS entry,
            if(table_list = {len(names)}, 'BYPASS', 'HIT') AS status, 0 AS work_ms,
            if(table_list = {len(names)}, 50, 60) AS requested_at, 10 AS started, 20 AS born
        FROM table_list
        """
    )
    return set(find_risk(connection, "outcome", warehouse=warehouse))


@pytest.mark.parametrize("database", ["", "prod"])
def test_reports_replay_and_invalidation_agree_with_the_judge_on_5000_pairs(database: str) -> None:
    chance = random.Random(51)  # noqa: S311
    pairs = 0
    for _ in range(10):
        configured = spell(chance)
        # Of equal texts, the first rule decides.
        names = list({spelled.lower(): spelled for spelled in (spell(chance) for _ in range(400))}.values())
        names = names[:250]
        while not configured.strip():
            configured = spell(chance)
        known = [judge.parse(name, database) for name in names]
        expected = {
            number
            for number, name in enumerate(known)
            if judge.compare(judge.parse(configured, database), name) != "different"
        }
        warehouse = WarehouseTables(database=database, per_user=(configured,))
        hits = [hit(str(number), [name], user) for number, name in enumerate(names) for user in ("ann", "bo")]
        leaks = leak_findings_sql(first=DAY, last=DAY, warehouse=warehouse)
        assert {int(row[1]) for row in make_log(hits).execute(leaks).fetchall()} == expected
        stale = find_stale([*hits, change("CALL p()", [configured])], warehouse)
        assert {int(rule) for rule in stale} == expected
        assert replay(names, configured, warehouse) == expected
        rules = [
            complete_rule({"id": f"r{number}", "conditions": {"tables": {"in": [name]}}, "varyBy": []})
            for number, name in enumerate(names)
        ]
        ids = {f"r{number}" for number in expected}
        assert {rule["id"] for rule in find_rules(rules, [configured], warehouse)} == ids
        assert {error.rule_id for error in lint_ruleset({"rules": rules}, tables=warehouse).errors} == ids
        pairs += len(names)
    assert pairs == 2_500


@pytest.mark.parametrize(
    "spelled", ['"hr"."people"', "`hr`.`people`", "prod.hr.people", "people", "HR.PEOPLE"]
)
def test_one_result_for_two_users_is_a_leak_in_every_spelling(spelled: str) -> None:
    log = make_log([hit("r", [spelled], user) for user in ("ann", "bo")])
    warehouse = WarehouseTables(per_user=("hr.people",))
    sql = leak_findings_sql(first=DAY, last=DAY, warehouse=warehouse)
    assert [row[0] for row in log.execute(sql).fetchall()] == ["certain"]
    other = leak_findings_sql(first=DAY, last=DAY, warehouse=WarehouseTables(per_user=("pay.people",)))
    assert len(log.execute(other).fetchall()) == (spelled == "people")


@pytest.mark.parametrize(
    ("changed", "read"),
    [("public.orders", "orders"), ("db..orders", "db.public.orders"), ("orders", "a.orders")],
)
def test_a_change_in_another_spelling_makes_a_hit_stale(changed: str, read: str) -> None:
    assert find_stale([change(f"UPDATE {changed} SET x = ?", [changed]), hit("r", [read])]) == {"r"}


def test_a_view_is_stale_with_its_tables() -> None:
    rows = [hit("view", ["v.open"]), hit("again", ["V.Again"]), hit("other", ["v.other"])]
    write = change("UPDATE sales.orders SET x = ?", ["sales.orders"])
    views = {"v.open": ["Sales.Orders"], "v.again": ["v.open", "v.again"], "v.other": ["sales.items"]}
    warehouse = WarehouseTables.of({"warehouse": {"views": views}})
    assert find_stale([*rows, write]) == set()
    assert find_stale([*rows, write], warehouse) == {"view", "again"}
    assert replay(["v.open", "V.Again", "v.other"], "sales.orders", warehouse) == {0, 1}
    # A write to a view changes its tables, and what else reads them.
    assert find_stale([hit("table", ["sales.orders"]), change("CALL p()", ["v.again"])], warehouse) == {
        "table"
    }
    assert find_rules(
        [complete_rule({"id": "r", "conditions": {"tables": "v.again"}})], ["sales.orders"], warehouse
    )


def test_a_view_that_the_log_creates_is_stale_with_its_tables_unless_the_configuration_has_it() -> None:
    create = change("CREATE OR REPLACE VIEW v.open AS SELECT * FROM sales.orders", ["v.open", "sales.orders"])
    create = (create[0], 1_000, *create[2:-7], *create[-7:])
    rows = [create, hit("view", ["v.open"]), change("UPDATE sales.orders SET x = ?", ["sales.orders"])]
    assert find_stale(rows) == {"view"}
    learned = learned_views_sql(first=DAY, last=DAY, warehouse=WarehouseTables())
    assert make_log(rows).execute(learned).fetchall() == [("v.open", "sales.orders")]
    configured = WarehouseTables.of({"warehouse": {"views": {"v.open": ["sales.items"]}}})
    assert find_stale(rows, configured) == set()
    # To create a view changes no table.
    assert find_stale([create, hit("table", ["sales.orders"])]) == set()
