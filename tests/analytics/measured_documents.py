"""Print the peak memory in bytes of computing daily documents: for each day the tenant's, then a user's.

Arguments: directories, each with the rollups of a day. Each document is computed in a forked process.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from analytics.numbers.documents import day_document
from analytics.numbers.tables import DayTables


def main(directories: list[str]) -> None:
    for directory in directories:
        files = {name: Path(directory) / f"{name}.parquet" for name in DayTables.NAMES}
        for user in (None, "Ana"):
            sys.stdout.write(f"{measure(DayTables(files, user=user))}\n")
            sys.stdout.flush()  # a fork would inherit the buffer and print it again


def measure(day: DayTables) -> int:
    """Return by how many bytes the memory of a process grew at most."""
    receiver, sender = os.pipe()
    if not (child := os.fork()):
        before = resident()
        for _ in day_document(day):
            pass
        os.write(sender, b"%d" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before))
        os._exit(0)
    os.close(sender)
    _, status = os.waitpid(child, 0)
    with os.fdopen(receiver, "rb") as stream:
        size = int(stream.read())
    assert status == 0
    return size


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main(sys.argv[1:])
