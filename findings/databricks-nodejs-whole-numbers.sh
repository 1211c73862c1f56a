#!/usr/bin/env bash
# @databricks/sql for Node.js gives a BIGINT beyond 2^53 as Infinity where the server sends columns of Thrift, and as a
# rounded number where it sends Arrow. JSON has no Infinity: an id or a time in nanoseconds goes on as null. A DECIMAL
# is a rounded number. A proxy that answers with columns and a warehouse that answers with Arrow thus give programs
# different values for the same row.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
HOME=$dir npm install --silent --no-audit --no-fund --no-package-lock @databricks/sql@2.1.0
cat >seen.cjs <<'JS'
const assert = require("node:assert");
const { version } = require("@databricks/sql/package.json");
const { convertThriftValue } = require("@databricks/sql/dist/result/utils.js");
const { TTypeId } = require("@databricks/sql/thrift/TCLIService_types.js");
const Int64 = require("node-int64");

// As the driver's Thrift reads an i64, and as its Arrow does.
const thrift = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return new Int64(bytes);
};
const id = 9007199254740993n;
const read = (type, value) => convertThriftValue({ type }, value);
const seen = {
  "BIGINT 9007199254740993 in columns": read(TTypeId.BIGINT_TYPE, thrift(id)),
  "BIGINT 9007199254740993 in Arrow": read(TTypeId.BIGINT_TYPE, id),
  "BIGINT -1764374400123456789 in columns": read(TTypeId.BIGINT_TYPE, thrift(-1764374400123456789n)),
  "DECIMAL 12345678901234567.89": read(TTypeId.DECIMAL_TYPE, "12345678901234567.89"),
};
console.log(`@databricks/sql ${version}`);
console.log("expected: all digits, as a BigInt or a text, the same in both formats");
for (const [name, value] of Object.entries(seen)) console.log(`seen: ${name}: ${value}, as JSON ${JSON.stringify(value)}`);
assert.deepStrictEqual(Object.values(seen), [Infinity, 9007199254740992, -Infinity, 12345678901234568]);
JS
node seen.cjs
