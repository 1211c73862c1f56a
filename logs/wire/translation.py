"""PostgreSQL's SQL as DuckDB's, by sqlglot, in a process that can be ended: sqlglot may take long."""

from __future__ import annotations

import logging
import os
import re
import resource
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import BoundedSemaphore
from typing import Any, Final

#: Of a processor, and of the clock.
_SECONDS: Final = 2
_WAIT_SECONDS: Final = 10
_MEMORY: Final = 1 << 30
#: How many translations run at a time: the process of each takes up to 130 MB.
_places: Final = BoundedSemaphore(8)
#: Formats of times that mean the same. Of others, sqlglot writes what it does not know as text.
_FORMAT: Final = re.compile(r"(%[YymdHIMSjGV]|[-/:., _T])+")


def translate(statement: str) -> str | None:
    """Return a query as DuckDB would write it, or None: it is none, or not known in two processor seconds."""
    if not _places.acquire(timeout=_WAIT_SECONDS):
        return None
    try:
        return _run(statement)
    finally:
        _places.release()


def _run(statement: str) -> str | None:
    answer, tell = _processes().Pipe(duplex=False)
    process = _processes().Process(target=_translate, args=(tell, statement), daemon=True)
    process.start()
    tell.close()
    try:
        found = answer.recv() if answer.poll(_WAIT_SECONDS) else None
    except EOFError:
        found = None
    finally:
        process.kill()
        process.join()
        answer.close()
    return found if isinstance(found, str) else None


@cache
def _processes() -> Any:
    """Return how processes start: as copies of one that has loaded sqlglot."""
    context = get_context("forkserver")
    # A child imports the main module too.
    context.set_forkserver_preload([__name__, "sqlglot", "logs.wire.__main__"])
    return context


def _translate(tell: Connection, statement: str) -> None:
    import sqlglot  # noqa: PLC0415 - the service itself does not load it

    # It would tell of statements that it cannot read.
    logging.disable()
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        tree = sqlglot.parse_one(statement, dialect="postgres")
        formats = tree.find_all(sqlglot.exp.TimeToStr, sqlglot.exp.ToChar)
        is_known = all(_FORMAT.fullmatch(node.text("format")) for node in formats)
        tell.send(tree.sql("duckdb") if is_known and isinstance(tree, sqlglot.exp.Query) else None)
    except (sqlglot.errors.SqlglotError, RecursionError, MemoryError):
        tell.send(None)
