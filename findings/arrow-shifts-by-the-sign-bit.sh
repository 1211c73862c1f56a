#!/usr/bin/env bash
# pyarrow 26.0.1: shift_right of a signed integer by its bits less one, which leaves the sign everywhere else, returns
# the number itself. The documentation says that this happens from "the precision" on: a signed type of 64 bits has 63.
#
# Why it matters here: `x >> 63` tells whether a 128-bit decimal fits into 64 bits; here it says so of few numbers.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
python3 -m venv "$dir/venv"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check pyarrow==26.0.1
"$dir/venv/bin/python" - <<'PYTHON'
import pyarrow as pa
import pyarrow.compute as pc

print("pyarrow", pa.__version__)
for bits in (8, 16, 32, 64):
    type_ = getattr(pa, f"int{bits}")()
    numbers = pa.array([5, -5], type_)
    seen = pc.shift_right(numbers, pa.scalar(bits - 1, type_)).to_pylist()
    print(f"int{bits}: [5, -5] >> {bits - 1}: expected: {[n >> bits - 1 for n in (5, -5)]} seen: {seen}")
    assert seen == [5, -5], seen
    assert pc.shift_right(numbers, pa.scalar(bits - 2, type_)).to_pylist() == [0, -1]
PYTHON
