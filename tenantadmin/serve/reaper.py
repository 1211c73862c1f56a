"""Ends what outlives a killed supervisor. A script: `python -I -S reaper.py [seconds]`, pids on its input.

A child of the supervisor gets SIGTERM from the kernel when it is orphaned; but nobody is left who would
insist. Celery's worker, for one, may wait for ever in its shutdown for a broker that has gone too. The input
ends when the supervisor does, be it by `exit` or by `kill -9`. Uses the standard library alone.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time

#: How long an orphan has to end by itself.
GRACE_SECONDS = 5.0
_POLL_SECONDS = 0.05


def reap(groups: list[int], *, grace: float = GRACE_SECONDS) -> None:
    """Wait for the process groups to end; kill what is left of them after `grace` seconds."""
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
    reap([int(line) for line in sys.stdin], grace=float(sys.argv[1]) if sys.argv[1:] else GRACE_SECONDS)
