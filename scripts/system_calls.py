"""Which system calls query processes make after they have restricted themselves, counted by strace.

    python -m scripts.system_calls [PYTEST ARGUMENTS]

It runs the tests of SQL (or those that the arguments name) and prints each call with how often it was made
and which error it got, if any. `ALLOWED` in `logs/sql/sandbox.py` has what a query needs of them. Run it
after an update of DuckDB, PyArrow, Python or the C library.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

_TESTS = (
    *("tests/logs/sql/test_engine_results.py", "tests/logs/sql/test_functions.py"),
    *("tests/logs/sql/test_local.py", "tests/logs/sql/test_leases.py", "tests/logs/sql/test_results.py"),
)
#: ``1234  openat(AT_FDCWD, "x", O_RDONLY) = -1 ENOENT (…)``, or the end of a call that was cut in two.
_LINE = re.compile(r"(\d+)\s+(?:<\.\.\. )?(\w+)(?:\(| resumed)(.*?)(?:=\s+(-?\w+)(?: (E\w+))?.*)?$")


def count_calls(lines: Iterable[str]) -> Counter[str]:
    """Count the calls of threads that run under seccomp. ``lines`` are strace's, of all threads."""
    restricted: set[str] = set()
    counts: Counter[str] = Counter()
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        thread, call, arguments, result, error = match.groups()
        if call == "prctl" and "PR_SET_SECCOMP" in arguments:
            restricted.add(thread)
        elif thread in restricted:
            if call in {"clone", "clone3"} and result and result.isdigit():
                restricted.add(result)
            if result is not None:
                counts[f"{call} {error or ''}".strip()] += 1
    return counts


def main(arguments: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        command = ["strace", "-f", "-qq", "-o", str(trace), sys.executable, "-m", "pytest", "-q"]
        subprocess.run([*command, *(arguments or _TESTS)], check=False)
        with trace.open(errors="replace") as lines:
            for call, count in count_calls(lines).most_common():
                print(f"{count:9}  {call}")  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
