"""Lower a thread's priority, and let threads that wake up interrupt it.

Uses ``sched_setattr(2)``, the only call that also sets a thread's time slice.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import Final

_libc = ctypes.CDLL(None)
_libc.syscall.restype = ctypes.c_long

#: The number of ``sched_setattr``. Neither Python nor the C library of Debian 12 has a function for it.
_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}.get(platform.machine())

#: Size, policy, flags, nice value, priority, slice, deadline, period; times in nanoseconds.
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")

#: The longest slice that the kernel accepts. A thread with a shorter slice, as all others have, runs as soon
#: as it wakes up and does not wait for the end of this thread's slice. Each thread's share of the processor
#: still follows from its priority. Kernels before Linux 6.12 ignore the slice.
_SLICE_NANOSECONDS: Final = 100_000_000


def lower_thread_priority(thread: int, *, nice: int) -> None:
    """Set a thread's ``nice`` value, and the longest time slice. Needs no privilege.

    Raises:
        OSError: the thread has ended, or belongs to another user.
    """
    if _SCHED_SETATTR is not None:
        attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, _SLICE_NANOSECONDS, 0, 0)
        if _libc.syscall(_SCHED_SETATTR, thread, attributes, 0) == 0:
            return
    # The thread has ended, or a sandbox around the service forbids the call.
    os.setpriority(os.PRIO_PROCESS, thread, nice)
