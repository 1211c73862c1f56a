"""What is said of a statement, whether or not a statement like it came before."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from analytics.history.rows import Source
from analytics.history.standardize import Standardizer

_PIECES = {
    Source.SNOWFLAKE: ["// 'x'\n", "$$a '1$$", "c[0]:d::int", ":1", '"a 1"', "$x", "'a\\'b'"],
    Source.DATABRICKS: [
        "'a''b'",
        '"x"',
        "`a '1`",
        "1L",
        "2.5BD",
        "x'ff'",
        "c:d.e::int",
        ":p",
        "'a\\'b'",
        "'a\\\\'",
        "r'\\'",
    ],
    Source.POSTGRESQL: ["$tag$a '1$tag$", "E'a\\n'", "a::int", "$1", '"a 1"', "/* a /* b */ 1 */", "1_000"],
}
_COMMON = (
    *("'a'", "'it''s'", "''", "1", "2.50", "1e3", ".5", "-7"),
    *("a1", "t.b2", "-- '1\n", "/* 1 */", "  ", "(", ")"),
)


@pytest.mark.parametrize("source", Source)
def test_what_came_before_makes_no_difference(source: Source) -> None:
    chance = random.Random(7)  # noqa: S311
    experienced = Standardizer(source)
    for _ in range(400):
        pieces = chance.choices([*_COMMON, *_PIECES[source]], k=3)
        text = f"SELECT {', '.join(pieces)} FROM s.t WHERE x = {chance.choice(_COMMON)}"
        assert experienced(text) == Standardizer(source)(text), text


@pytest.mark.parametrize(
    ("source", "text", "standard", "values", "tables"),
    [
        (Source.SNOWFLAKE, "SELECT 1 FROM db..t; ", "SELECT ? FROM db..t", "[1]", ("db..t",)),
        (Source.SNOWFLAKE, "SELECT a FROM t LIMIT 10", "SELECT a FROM t LIMIT ?", "[10]", ("D.S.t",)),
        (Source.SNOWFLAKE, "SELECT a FROM x.t", "SELECT a FROM x.t", "[]", ("D.x.t",)),
        (Source.SNOWFLAKE, 'SELECT "a" FROM "X"."t u"', 'SELECT "a" FROM "X"."t u"', "[]", ("D.X.t u",)),
        (Source.SNOWFLAKE, "SELECT c[0]:d::int FROM t", "SELECT c[?]: d:: int FROM t", "[0]", ("D.S.t",)),
        (Source.SNOWFLAKE, "SELECT a FROM t WHERE b = :1", "SELECT a FROM t WHERE b = :1", "[]", ("D.S.t",)),
        (Source.DATABRICKS, "SELECT 1L, x'ff'", "SELECT ?, ?", "[1, \"x'ff'\"]", ()),
        (Source.DATABRICKS, "SELECT * FROM `a-b`.c", "SELECT * FROM `a-b`.c", "[]", ("D.a-b.c",)),
        # What sqlglot does not understand stays as it is, without the comments that change from run to run.
        (Source.DATABRICKS, '/* {"id": "1"} */\nSHOW SCHEMAS IN `a`', "SHOW SCHEMAS IN `a`", "[]", ()),
        (Source.SNOWFLAKE, "-- a\nOPTIMIZE 'b'\n/* 1 */;", "OPTIMIZE 'b'", "[]", ()),
        (Source.DATABRICKS, "/*+ a */ OPTIMIZE a -- b", "/*+ a */ OPTIMIZE a -- b", "[]", ()),
        (Source.POSTGRESQL, "SELECT 1.50::numeric(9,2)", "SELECT ?:: numeric(?,?)", "[1.50, 9, 2]", ()),
        (
            Source.POSTGRESQL,
            "WITH RECURSIVE r AS (SELECT 1 FROM r, t) SELECT * FROM r",
            "WITH RECURSIVE r AS (SELECT ? FROM r, t) SELECT * FROM r",
            "[1]",
            ("D.S.t",),
        ),
        (
            Source.POSTGRESQL,
            "WITH t AS (SELECT * FROM t) SELECT * FROM t",
            "WITH t AS (SELECT * FROM t) SELECT * FROM t",
            "[]",
            ("D.S.t",),
        ),
    ],
)
def test_text_literals_and_tables(
    source: Source, text: str, standard: str, values: str, tables: tuple[str, ...]
) -> None:
    found = Standardizer(source)(text, database="D", schema="S")
    assert (found.text, found.values, found.facts.tables) == (standard, values, tables)


@pytest.mark.parametrize(
    ("text", "kind", "reads", "changes", "defines", "varies"),
    [
        ("SELECT a FROM t", "SELECT", True, False, False, False),
        ("(SELECT 1) UNION SELECT 2", "SELECT", True, False, False, False),
        ("SELECT a FROM t FOR UPDATE", "SELECT", False, False, False, False),
        ("SELECT a INTO u FROM t", "SELECT", False, False, False, False),
        ("WITH d AS (DELETE FROM t RETURNING *) SELECT * FROM d", "SELECT", False, True, False, False),
        ("DELETE FROM t", "DELETE", False, True, False, False),
        ("TRUNCATE t", "TRUNCATE", False, True, False, False),
        ("CREATE TABLE t AS SELECT 1", "CREATE", False, False, True, False),
        ("DROP TABLE t", "DROP", False, False, True, False),
        ("SHOW search_path", "SHOW", False, False, False, False),
        ("CLOSE c", "CLOSE", False, False, False, False),
        ("/* a */ DISCARD ALL", "DISCARD", False, False, False, False),
        ("ALTER SESSION SET a = 1", "ALTER SESSION", False, False, False, False),
        ("BEGIN; DELETE FROM t; COMMIT", "BEGIN", False, True, False, False),
        ("SELECT pg_advisory_unlock_all(); CLOSE ALL; RESET ALL;", "SELECT", False, False, False, False),
        ("COPY (SELECT a FROM t) TO STDOUT (FORMAT binary)", "COPY", True, False, False, False),
        ("DECLARE c NO SCROLL CURSOR WITH HOLD FOR SELECT a FROM t", "DECLARE", True, False, False, False),
        ("COPY t TO STDOUT", "COPY", True, False, False, False),
        ("COPY t TO '/a'", "COPY", False, True, False, False),
        ("COPY t FROM STDIN", "COPY", False, True, False, False),
        ("SELECT random()", "SELECT", True, False, False, True),
        ("SELECT now(), current_user", "SELECT", True, False, False, True),
        ("SELECT 'random()'", "SELECT", True, False, False, False),
        ("BEGIN", "BEGIN", False, False, False, False),
        ("VACUUM t", "VACUUM", None, None, None, False),
        ("SELEC nonsense (", "SELEC", None, None, None, False),
        ("SELECT 1; DELETE FROM t", "SELECT", False, True, False, False),
    ],
)
def test_what_a_statement_does(
    text: str, kind: str, reads: bool | None, changes: bool | None, defines: bool | None, varies: bool
) -> None:
    facts = Standardizer(Source.POSTGRESQL)(text).facts
    assert facts.kind == kind
    assert (facts.reads, facts.changes, facts.defines) == (reads, changes, defines)
    assert facts.varies == varies


def test_web_processes_never_load_the_library() -> None:
    program = (
        "import sys, django; django.setup(); import tenantadmin.urls, tenantadmin.wsgi, tenantadmin.asgi,"
        " tenantadmin.run.preloaded; sys.exit('sqlglot' in sys.modules or 'analytics.history' in sys.modules)"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "tenantadmin.settings", "DJANGO_DEBUG": "true"}
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("source", "text", "has_parameters"),
    [
        (Source.SNOWFLAKE, "SELECT a:b FROM t WHERE c = ?", True),
        (Source.SNOWFLAKE, "SELECT a FROM t WHERE c = :1", True),
        (Source.SNOWFLAKE, "SELECT $1, a:b, c[0]:d FROM @s/f WHERE e = 5", False),
        (Source.DATABRICKS, "SELECT a FROM t WHERE b = :p", True),
        (Source.DATABRICKS, "SELECT a:b::int FROM t WHERE c = 'x?'", False),
        (Source.POSTGRESQL, "SELECT a FROM t WHERE b = $1", True),
        (Source.POSTGRESQL, "SELECT a ? 'b' FROM t WHERE c[1:2] = '$1'", False),
        (Source.POSTGRESQL, "SELECT 'a", None),
    ],
)
def test_literals_in_the_text_are_no_parameters(
    source: Source,
    text: str,
    has_parameters: bool | None,
) -> None:
    """Every statement with a literal had parameters, and rules that ask for them took these too."""
    standardize = Standardizer(source)
    assert [standardize(text).has_parameters for _ in range(2)] == [has_parameters] * 2
