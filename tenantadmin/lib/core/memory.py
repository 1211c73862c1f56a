"""Memory of a process: what it shares with those that it forks, and what it gives back to the system.

By default, glibc keeps what was freed: each free of a large block raises, up to 32 MiB, the size from which
it would give blocks back at once, and each of many heaps keeps twice that. The allocator that pyarrow brings
keeps what it once used: a worker that built a growing day 1,800 times kept 120 MiB, although pyarrow
never needed more than 20 MiB at once.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
from typing import Final

import pyarrow as pa


def freeze_objects() -> None:
    """Keep the garbage collector from the objects that exist now: it would write to each, and so copy them.

    They are given back at the end of the process. With Python 3.14, DuckDB 1.5 aborts a process that ends
    while its objects are frozen.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)


#: Parameters of ``mallopt`` (malloc.h).
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENAS: Final = -8


def give_memory_back() -> None:
    """Have glibc and pyarrow give freed memory back from now on. Without glibc, only pyarrow does.

    Blocks of 256 KiB are given back at once, and at most 4 heaps keep at most 4 MiB each.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 256 << 10)
        mallopt(_TRIM_THRESHOLD, 4 << 20)
        mallopt(_ARENAS, 4)
