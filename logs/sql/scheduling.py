"""Have the kernel let others run first, by the one call that says how long a thread runs at a time."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from typing import Final

_libc = ctypes.CDLL(None)
_libc.syscall.restype = ctypes.c_long

#: ``sched_setattr(2)``, which neither Python nor the C library of Debian 12 offers.
_SCHED_SETATTR: Final = {"x86_64": 314, "aarch64": 274}.get(platform.machine())

#: Size, policy, flags, nice value, priority, slice, deadline, period; times in nanoseconds.
_ATTRIBUTES: Final = struct.Struct("=IIQiIQQQ")

#: The longest that the kernel takes. Whoever wakes with a shorter one, as all others do, runs at once instead
#: of at the end of this one's; the shares stay those of the priorities. Without effect before Linux 6.12.
_SLICE_NANOSECONDS: Final = 100_000_000


def yield_processor(thread: int, *, nice: int) -> None:
    """Give a thread a lower priority, and the processor to whatever else wakes.

    Needs no privilege. Raises `OSError` for a thread that is gone, or another user's.
    """
    if _SCHED_SETATTR is not None:
        attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, nice, 0, _SLICE_NANOSECONDS, 0, 0)
        if _libc.syscall(_SCHED_SETATTR, thread, attributes, 0) == 0:
            return
    # Gone, or a sandbox around the service refuses the call.
    os.setpriority(os.PRIO_PROCESS, thread, nice)
