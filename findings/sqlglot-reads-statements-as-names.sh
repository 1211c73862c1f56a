#!/usr/bin/env bash
# sqlglot 30.30 parses PostgreSQL's CLOSE, SAVEPOINT, DISCARD and DEALLOCATE without an error, and as something else:
# a column of that name with an alias. It warns of other statements that it does not know, and makes them a Command.
#
# Why it matters here: a proxy or a lineage tool that asks for the type of a statement is told of an expression. One
# that tells reads by "no table is written" keeps the result of CLOSE c.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check sqlglot==30.30.0
"$dir/venv/bin/python" - <<'PYTHON' 2>&1
import logging

import sqlglot

logging.disable()
print("sqlglot", sqlglot.__version__)


def read(statement):
    tree = sqlglot.parse_one(statement, dialect="postgres")
    return type(tree).__name__, tree.this.name if isinstance(tree.this, sqlglot.exp.Expression) else tree.this


statements = ["CLOSE c", "SAVEPOINT a", "DISCARD ALL", "DEALLOCATE ALL", "FETCH 10 FROM c", "VACUUM t"]
seen = {statement: read(statement)[0] for statement in statements}
print("expected: Command for each, or a class of its own")
for statement, kind in seen.items():
    print(f"seen: {statement:<16} {kind}")
print("seen: CLOSE c is the column", *read("CLOSE c")[1:], "with the alias", sqlglot.parse_one("CLOSE c").alias)
assert seen == {
    "CLOSE c": "Alias",
    "SAVEPOINT a": "Alias",
    "DISCARD ALL": "Alias",
    "DEALLOCATE ALL": "Alias",
    "FETCH 10 FROM c": "Command",
    "VACUUM t": "Command",
}, seen
PYTHON
