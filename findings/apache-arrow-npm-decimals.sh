#!/usr/bin/env bash
# apache-arrow (npm) 21.2.0: a decimal has the digits of its value and not its scale: 1.10 is "110" as text, as a number and
# as JSON. A negative decimal of 64 bits is a number of 20 digits as text, and another one as a number. Nothing is raised.
# Most would expect "1.10" and "-1.10", which pyarrow gives for the same stream, or an error.
#
# Why it matters here: money and averages of a result that a page reads as Arrow are a hundred times too large.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check pyarrow==26.0.1 2>/dev/null
npm install --silent --no-audit --no-fund --no-package-lock apache-arrow@21.2.0 >/dev/null
venv/bin/python - <<'PYTHON'
from decimal import Decimal

import pyarrow as pa

values = [Decimal("1.10"), Decimal("-1.10")]
table = pa.table({"wide": pa.array(values, pa.decimal128(38, 2)), "narrow": pa.array(values, pa.decimal64(10, 2))})
with pa.ipc.new_stream("decimals.arrows", table.schema) as stream:
    stream.write_table(table)
with pa.ipc.open_stream("decimals.arrows") as stream:
    assert stream.read_all()["narrow"].to_pylist() == values
PYTHON
cat > read.mjs <<'JAVASCRIPT'
import assert from "node:assert";
import { readFileSync } from "node:fs";
import { tableFromIPC } from "apache-arrow";

const { version } = JSON.parse(readFileSync("node_modules/apache-arrow/package.json"));
console.log("apache-arrow", version);
const table = tableFromIPC(readFileSync("decimals.arrows"));
const seen = {};
for (const name of ["wide", "narrow"]) {
  const column = table.getChild(name);
  seen[name] = [0, 1].map((row) => [String(column.get(row)), Number(column.get(row))]);
  console.log(`${name}, scale ${column.type.scale}: expected: 1.10, -1.10 seen: ${JSON.stringify(seen[name])}`);
}
assert.deepStrictEqual(seen, {
  wide: [["110", 110], ["-110", -110]],
  narrow: [["110", 110], ["18446744073709551506", -110]],
});
JAVASCRIPT
node read.mjs
