"""Kills the processes that outlive a killed supervisor. A script: `python -I -S reaper.py [seconds]`.

It reads the ids of their process groups from its input, one per line; the id of a group that has ended is
negative. The input reaches its end when the supervisor ends, by `exit` or by `kill -9`. The kernel then sends
SIGTERM to the supervisor's children, but some do not end: Celery's worker may wait for a broker that is gone
too. Uses the standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

#: How long the processes have to end by themselves.
GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.05


def reap(groups: list[int], *, grace: float = GRACE_SECONDS) -> None:
    """Wait for the process groups to end. After `grace` seconds, kill the rest."""
    deadline = time.monotonic() + grace
    while (groups := [group for group in groups if _is_alive(group)]) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    started = set()
    for number in map(int, sys.stdin):
        # Its number may belong to another group later.
        started.add(number) if number > 0 else started.discard(-number)
    reap(sorted(started), grace=float(sys.argv[1]) if sys.argv[1:] else GRACE_SECONDS)
