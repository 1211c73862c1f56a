"""Give memory back to the system after large answers.

By default, glibc keeps what was freed: each free of a large block raises, up to 32 MiB, the size from which
it would give blocks back at once, and each of many heaps keeps twice that.
"""

from __future__ import annotations

import ctypes
from typing import Final

#: Parameters of ``mallopt`` (malloc.h).
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENAS: Final = -8


def give_memory_back() -> None:
    """Have glibc give freed memory back from now on. Without glibc, do nothing.

    Blocks of 256 KiB are given back at once, and at most 4 heaps keep at most 4 MiB each.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 256 << 10)
        mallopt(_TRIM_THRESHOLD, 4 << 20)
        mallopt(_ARENAS, 4)
