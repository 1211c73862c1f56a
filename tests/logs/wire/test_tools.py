"""What Grafana and Metabase ask to connect, to find tables, and to draw: written anew in the shape it has.

Seen in their public sources, November 2026. Grafana asks for the version, for TimescaleDB, the tables of the
search path, the columns of a table, and buckets times by seconds since 1970. Metabase asks for the time zone,
privileges, tables with their estimated rows, columns with comments, foreign keys and enumerations, then for
a probe, samples and counts of each table.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.logs.wire.scene import Scene

#: True for tables in a schema of the search path.
_IN_PATH = """
    quote_ident(table_schema) IN (
        SELECT CASE WHEN trim(part[place]) = '"$user"' THEN user ELSE trim(part[place]) END
          FROM generate_series(
                   array_lower(string_to_array(current_setting('search_path'), ','), 1),
                   array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS place,
               string_to_array(current_setting('search_path'), ',') part)
"""
TABLES = f"""
    SELECT CASE WHEN {_IN_PATH} THEN quote_ident(table_name)
                ELSE quote_ident(table_schema) || '.' || quote_ident(table_name) END AS "table"
      FROM information_schema.tables
     WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', '_timescaledb_cache')
     ORDER BY CASE WHEN {_IN_PATH} THEN 0 ELSE 1 END, 1
"""
FIELDS = f"""
    SELECT quote_ident(column_name) AS "column", data_type AS "type"
      FROM information_schema.columns
     WHERE CASE WHEN array_length(parse_ident('proxy_logs_time'), 1) = 2
                THEN quote_ident(table_schema) = (parse_ident('proxy_logs_time'))[1]
                     AND quote_ident(table_name) = (parse_ident('proxy_logs_time'))[2]
                ELSE quote_ident(table_name) = 'proxy_logs_time' AND {_IN_PATH} END
"""
PRIVILEGES = """
    WITH found AS (
        SELECT NULL AS role, t.schemaname AS schema, t.objectname AS table,
               pg_catalog.has_any_column_privilege(current_user, named, 'update') AS update,
               pg_catalog.has_any_column_privilege(current_user, named, 'select') AS select,
               pg_catalog.has_any_column_privilege(current_user, named, 'insert') AS insert,
               pg_catalog.has_table_privilege(current_user, named, 'delete') AS delete
          FROM (SELECT schemaname, tablename AS objectname FROM pg_catalog.pg_tables
                UNION SELECT schemaname, viewname FROM pg_catalog.pg_views
                UNION SELECT schemaname, matviewname FROM pg_catalog.pg_matviews) t,
               LATERAL (SELECT '"' || replace(t.schemaname, '"', '""') || '"."'
                               || replace(t.objectname, '"', '""') || '"' AS named) n
         WHERE t.schemaname !~ '^pg_' AND t.schemaname <> 'information_schema'
           AND pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage'))
    SELECT f.* FROM found f ORDER BY 3
"""
RELATIONS = """
    SELECT "n"."nspname" AS "schema", "c"."relname" AS "name",
           CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE NULL END AS "type",
           "d"."description" AS "description", "stat"."n_live_tup" AS "estimated_row_count"
      FROM "pg_catalog"."pg_class" AS "c"
      INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid"
      LEFT JOIN "pg_catalog"."pg_description" AS "d"
             ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0)
            AND ("d"."classoid" = 'pg_class'::regclass)
      LEFT JOIN "pg_stat_user_tables" AS "stat"
             ON ("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname")
     WHERE ("n"."nspname" !~ '^pg_') AND ("n"."nspname" <> 'information_schema')
       AND c.relkind in ('r', 'p', 'v', 'f', 'm') AND ("n"."nspname" IN ('public'))
     ORDER BY "type" ASC, "schema" ASC, "name" ASC
"""
COLUMNS = """
    SELECT "c"."column_name" AS "name",
           CASE WHEN "c"."udt_schema" IN ('public', 'pg_catalog') THEN format('%s', "c"."udt_name")
                ELSE format('"%s"."%s"', "c"."udt_schema", "c"."udt_name") END AS "database-type",
           "c"."ordinal_position" - 1 AS "database-position",
           "pk"."column_name" IS NOT NULL AS "pk?",
           col_description(CAST(CAST(format('%I.%I', CAST("c"."table_schema" AS TEXT),
               CAST("c"."table_name" AS TEXT)) AS REGCLASS) AS OID),
               "c"."ordinal_position") AS "field-comment",
           (("column_default" IS NULL) OR (lower("column_default") = 'null')) AND ("is_nullable" = 'NO')
               AND NOT ("is_identity" <> 'NO') AS "database-required"
      FROM "information_schema"."columns" AS "c"
      LEFT JOIN (SELECT "tc"."table_schema", "tc"."table_name", "kc"."column_name"
                   FROM "information_schema"."table_constraints" AS "tc"
                   INNER JOIN "information_schema"."key_column_usage" AS "kc"
                           ON ("tc"."constraint_name" = "kc"."constraint_name")
                          AND ("tc"."table_schema" = "kc"."table_schema")
                  WHERE "tc"."constraint_type" = 'PRIMARY KEY') AS "pk"
             ON ("c"."table_schema" = "pk"."table_schema") AND ("c"."table_name" = "pk"."table_name")
            AND ("c"."column_name" = "pk"."column_name")
     WHERE c.table_schema !~ '^information_schema|catalog_history|pg_'
       AND ("c"."table_name" IN ('proxy_logs'))
     UNION ALL
    SELECT "a"."attname", format('%s', "t"."typname"), "a"."attnum" - 1, FALSE, NULL, FALSE
      FROM "pg_catalog"."pg_class" AS "r"
      INNER JOIN "pg_catalog"."pg_attribute" AS "a" ON "a"."attrelid" = "r"."oid"
      INNER JOIN "pg_catalog"."pg_type" AS "t" ON "t"."oid" = "a"."atttypid"
     WHERE "r"."relkind" = 'm' AND "a"."attnum" >= 1
     ORDER BY 3
"""
FOREIGN_KEYS = """
    SELECT "n"."nspname", "f"."relname", "a"."attname"
      FROM "pg_constraint" AS "c"
      INNER JOIN "pg_class" AS "f" ON "c"."conrelid" = "f"."oid"
      INNER JOIN "pg_namespace" AS "n" ON "c"."connamespace" = "n"."oid"
      INNER JOIN "pg_attribute" AS "a" ON "c"."conrelid" = "a"."attrelid"
     WHERE n.nspname !~ '^information_schema|catalog_history|pg_' AND ("c"."contype" = 'f'::char)
       AND ("a"."attnum" = ANY(c.conkey))
"""
INDEXES = """
    SELECT tmp.name, trim(BOTH '"' FROM pg_catalog.pg_get_indexdef(tmp.index, tmp.pos, FALSE))
      FROM (SELECT ct.relname AS name, ci.oid AS index,
                   (information_schema._pg_expandarray(i.indkey)).n AS pos
              FROM pg_catalog.pg_class ct
              JOIN pg_catalog.pg_namespace n ON ct.relnamespace = n.oid
              JOIN pg_catalog.pg_index i ON ct.oid = i.indrelid
              JOIN pg_catalog.pg_class ci ON ci.oid = i.indexrelid
             WHERE pg_catalog.pg_get_expr(i.indpred, i.indrelid) IS NULL AND n.nspname = 'public') tmp
     WHERE tmp.pos = 1
"""
ENUMERATIONS = """
    SELECT nspname, typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
     WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e)
"""


def ask(scene: Scene, statement: str, *, binary: bool = False) -> list[Any]:
    with scene.connect() as connection, connection.cursor(binary=binary) as cursor:
        return cursor.execute(statement.encode()).fetchall()


def test_grafana_connects_and_finds_tables(scene: Scene) -> None:
    ((version,),) = ask(scene, "SELECT current_setting('server_version_num')::int/100 AS version")
    assert version >= 1400
    assert ask(scene, "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'") == []
    assert ask(scene, "SELECT 1") == [(1,)]
    assert ask(scene, TABLES) == [("proxy_logs",), ("proxy_logs_time",)]
    fields = dict(ask(scene, FIELDS))
    assert len(fields) == 54
    assert (fields['"time"'], fields['"userName"']) == ("timestamp without time zone", "text")


GRAFANA: list[tuple[str, list[Any]]] = [
    (
        """SELECT floor(extract(epoch from time)/3600)*3600 AS "time", avg("responseTimeMs") AS value
             FROM proxy_logs_time WHERE time BETWEEN '2026-03-03T00:00:00Z' AND '2026-03-03T23:59:59.999Z'
            GROUP BY 1 ORDER BY 1""",
        [(1772496000.0, 0.0), (1772499600.0, 10.0), (1772503200.0, 20.0)],
    ),
    (
        """SELECT extract(epoch from time) as "time", "userName" AS metric, "responseTimeMs" AS value
             FROM public.proxy_logs_time WHERE time >= '2026-03-03T01:00:00.5Z' ORDER BY time""",
        [(1772503200.0, "u2", 20)],
    ),
    (
        """SELECT floor((timestamp/1000)/86400)*86400 AS "time", count(*) FROM proxy_logs
            WHERE timestamp >= 1772409600000 GROUP BY 1 ORDER BY 1 LIMIT 50""",
        [(1772409600.0, 2), (1772496000.0, 3)],
    ),
    ('SELECT time AS "time", day FROM proxy_logs_time LIMIT 1', [(datetime(2026, 3, 1), "2026-03-01")]),  # noqa: DTZ001
]


@pytest.mark.parametrize(("statement", "expected"), GRAFANA)
def test_grafana_draws(filled: Scene, statement: str, expected: list[Any]) -> None:
    assert ask(filled, statement) == expected


def test_metabase_connects_and_finds_tables(scene: Scene) -> None:
    with scene.connect() as connection:
        for statement in (
            "SET SESSION TIMEZONE TO 'UTC';",
            "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
            "SET extra_float_digits = 3",
            "SET application_name = 'Metabase v1.57 [a-b-c]'",
            "BEGIN READ ONLY",
        ):
            connection.execute(statement.encode())
        assert connection.execute("show timezone;").fetchone() == ("UTC",)
    can = (False, True, False, False)
    assert ask(scene, PRIVILEGES) == [
        (None, "public", "proxy_logs", *can),
        (None, "public", "proxy_logs_time", *can),
    ]
    assert ask(scene, RELATIONS) == [
        ("public", "proxy_logs", "TABLE", None, 0),
        ("public", "proxy_logs_time", "VIEW", None, None),
    ]
    columns = ask(scene, COLUMNS)
    assert columns[0] == ("timestamp", "int8", 0, False, "request time, epoch ms", False)
    assert len(columns) == 52
    assert [ask(scene, one) for one in (FOREIGN_KEYS, INDEXES, ENUMERATIONS)] == [[], [], []]


_TABLE = '"public"."proxy_logs_time"'
_USER, _MS = f'{_TABLE}."userName"', f'{_TABLE}."responseTimeMs"'
_TIME = f'CAST({_TABLE}."time" AS timestamp)'
_WEEK, _HOUR = f"DATE_TRUNC('week', {_TIME})", f"CAST(EXTRACT(hour FROM {_TIME}) AS INTEGER)"
_DATE = f'CAST({_TABLE}."time" AS date)'
METABASE: list[tuple[str, list[Any]]] = [
    (f'SELECT TRUE AS "_" FROM {_TABLE} WHERE 1 <> 1 LIMIT 0', []),
    (f'SELECT COUNT(*) AS "count" FROM {_TABLE}', [(6,)]),
    (
        f'SELECT {_USER} AS "userName" FROM {_TABLE} GROUP BY {_USER} ORDER BY {_USER} ASC LIMIT 1000',
        [("u0",), ("u1",), ("u2",)],
    ),
    (
        f'SELECT SUBSTRING({_USER}, 1, 1234) AS "substring1", {_TABLE}."isReadOnly" FROM {_TABLE} LIMIT 1',
        [("u0", True)],
    ),
    (
        f"""SELECT {_DATE} AS "time", SUM({_MS}) AS "sum" FROM {_TABLE}
             WHERE ({_TABLE}."time" >= timestamp with time zone '2026-03-02 00:00:00.000Z')
               AND ({_USER} = 'u1') GROUP BY {_DATE} ORDER BY {_DATE} ASC""",
        [(date(2026, 3, 2), Decimal(10)), (date(2026, 3, 3), Decimal(10))],
    ),
    (
        f'SELECT {_WEEK} AS "time", COUNT(*) AS "count" FROM {_TABLE} GROUP BY {_WEEK} ORDER BY {_WEEK} ASC',
        [(datetime(2026, 2, 23), 1), (datetime(2026, 3, 2), 5)],  # noqa: DTZ001
    ),
    (
        f"SELECT {_HOUR} AS h, COUNT(DISTINCT {_USER}) FROM {_TABLE} GROUP BY {_HOUR} ORDER BY {_HOUR} ASC",
        [(0, 1), (1, 1), (2, 1)],
    ),
    (
        f"""SELECT PERCENTILE_CONT(0.5) within group (order by {_MS}) AS "median", STDDEV_POP({_MS}) > 7,
                   CAST({_TABLE}."day" AS TEXT) FROM {_TABLE} GROUP BY 3 HAVING COUNT(*) > 2""",
        [(10.0, True, "2026-03-03")],
    ),
    (
        f"""SELECT "source"."userName", "source"."n"
              FROM (SELECT {_USER} AS "userName", COUNT(*) AS "n" FROM {_TABLE} GROUP BY {_USER}) AS "source"
             WHERE (lower("source"."userName") LIKE '%1%') AND ("source"."n" > 1) LIMIT 1048575""",
        [("u1", 2)],
    ),
    (
        f"""SELECT COUNT(*) > 0 FROM {_TABLE}
             WHERE {_TABLE}."time" > CAST((NOW() + INTERVAL '-30000 day') AS date)""",
        [(True,)],
    ),
]


@pytest.mark.parametrize(("statement", "expected"), METABASE)
@pytest.mark.parametrize("binary", [False, True])
def test_metabase_draws(filled: Scene, statement: str, expected: list[Any], binary: bool) -> None:
    found = ask(filled, f"-- Metabase:: userID: 1 queryType: MBQL queryHash: 5f\n{statement}", binary=binary)
    assert found == expected
