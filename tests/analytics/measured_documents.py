"""A process that tells how many bytes making documents of a day took at most: tenant's, then a user's.

Arguments: a directory for each day, in which its rollups lie. Each document is made by a fork of its own.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from analytics.summaries.daytables import DayTables
from analytics.summaries.documents.day import day_document


def main(directories: list[str]) -> None:
    for directory in directories:
        files = {name: Path(directory) / f"{name}.parquet" for name in DayTables.NAMES}
        for user in (None, "Ana"):
            sys.stdout.write(f"{measure(DayTables(files, user=user))}\n")
            sys.stdout.flush()  # or the next fork says it again


def measure(day: DayTables) -> int:
    """The most memory that a process held above what it began with, in bytes."""
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
        found = int(stream.read())
    assert status == 0
    return found


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main(sys.argv[1:])
