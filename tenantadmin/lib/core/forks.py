"""Memory that a process shares with those that it forks."""

from __future__ import annotations

import atexit
import gc


def freeze_objects() -> None:
    """Keep the garbage collector from the objects that exist now: it would write to each, and so copy them.

    They are given back at the end of the process. With Python 3.14, DuckDB 1.5 aborts a process that ends
    while its objects are frozen.
    """
    gc.collect()
    gc.freeze()
    atexit.register(gc.unfreeze)
