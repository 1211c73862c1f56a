#!/usr/bin/env bash
# DuckDB 1.5.6 takes the minimum and maximum that a Parquet file states for all there is in it. The format leaves NaN
# out of them, and in DuckDB NaN is larger than every number. So of a file that pyarrow or polars wrote, `x > 2` finds
# no NaN, `x <= 2` finds it, and max(x) is a number with pyarrow's file. A table of the same rows, a file that DuckDB
# wrote, and read_parquet with can_have_nan = true, which is not the default, answer as most would expect.
#
# Why it matters here: a ratio that is NaN passes a filter for small ones, and is missing among the large.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check duckdb==1.5.6 pyarrow==26.0.1 polars==2.1.0 2>/dev/null
cd "$dir"
venv/bin/python - <<'PYTHON'
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

print("duckdb", duckdb.__version__, "pyarrow", pa.__version__, "polars", pl.__version__)
values = [1.0, 2.0, float("nan")]
pq.write_table(pa.table({"x": values}), "pyarrow.parquet")
pl.DataFrame({"x": values}).write_parquet("polars.parquet")
duckdb.execute("CREATE TABLE rows AS SELECT unnest([1.0::DOUBLE, 2, 'nan']) AS x")
duckdb.execute("COPY rows TO 'duckdb.parquet'")


def ask(source: str) -> str:
    """Return how many rows are above 2, how many up to 2, and the largest value."""
    return str(
        duckdb.execute(
            f"SELECT (SELECT count(*) FROM {source} WHERE x > 2), (SELECT count(*) FROM {source} WHERE x <= 2), max(x)"
            f" FROM {source}"
        ).fetchone()
    )


sources = ["rows", "'duckdb.parquet'", "'polars.parquet'", "'pyarrow.parquet'"]
sources.append("read_parquet('pyarrow.parquet', can_have_nan = true)")
seen = [ask(source) for source in sources]
for source, answer in zip(sources, seen, strict=True):
    print(f"x > 2, x <= 2, max(x) of {source:<53} expected: (1, 2, nan) seen: {answer}")
assert seen == ["(1, 2, nan)", "(1, 2, nan)", "(0, 3, nan)", "(0, 3, 2.0)", "(1, 2, nan)"], seen
PYTHON
