#!/usr/bin/env bash
# DuckDB 1.5.6: five collations of 1.5.5 are gone (West Frisian, Ligurian, Northern and Southern Sotho, Tswana). Most
# would expect that a patch release runs the statements of the release before it. For `fy` the message says that the
# icu extension has it, although icu is loaded; for the others it proposes other languages.
#
# Why it matters here: a saved query with COLLATE fails after an upgrade that promises fixes alone.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for version in 1.5.5 1.5.6; do
    python3 -m venv "$dir/$version"
    "$dir/$version/bin/pip" install --quiet --disable-pip-version-check "duckdb==$version"
    "$dir/$version/bin/python" - <<'PYTHON'
import duckdb

connection = duckdb.connect()
loaded = connection.execute("SELECT loaded FROM duckdb_extensions() WHERE extension_name = 'icu'").fetchone()
assert loaded == (True,), loaded
seen = {}
for name in ("fy", "lij", "nso", "st", "tn", "nl"):
    statement = f"SELECT word FROM (VALUES ('b'), ('a')) AS t(word) ORDER BY word COLLATE {name}"
    try:
        seen[name] = connection.execute(statement).fetchall()
    except duckdb.CatalogException as error:
        seen[name] = str(error).splitlines()[0]
rows = [("a",), ("b",)]
missing = {name: found for name, found in seen.items() if found != rows}
print(f"duckdb {duckdb.__version__}: expected: each collation sorts; seen: missing are {missing or 'none'}")
if duckdb.__version__ == "1.5.5":
    assert not missing, missing
else:
    assert missing == {
        "fy": 'Catalog Error: Collation with name "fy" is not in the catalog, but it exists in the icu extension.',
        "lij": "Catalog Error: Collation with name lij does not exist!",
        "nso": "Catalog Error: Collation with name nso does not exist!",
        "st": "Catalog Error: Collation with name st does not exist!",
        "tn": "Catalog Error: Collation with name tn does not exist!",
    }, missing
PYTHON
done
