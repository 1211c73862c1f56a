"""Reading a warehouse's own history, beside the compaction of the entries that it becomes: processor time.

``python -m bench history rows=1000000``. The same statements are written in each format. What `show` says
per entry holds on a busy machine too. With ``own=1`` no two texts are equal: each has a literal of its own.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from analytics.history.entries import Choices, write_entries
from analytics.history.rows import Source
from bench.harness import Compared, console, show
from logs.compaction.build import compact_day
from logs.layout import find_days, list_day
from tenantadmin.lib.objectstore import LocalStore
from tests.analytics.history.stream import as_csvlog, as_databricks, as_snowflake, make_stream

if TYPE_CHECKING:
    from tests.analytics.history.stream import Sent

TENANT: Final = UUID(int=1)
#: Statements that are made at a time, all of the same three days.
_PART: Final = 20_000
#: Long after all statements.
_NOW_MS: Final = 2_000_000_000_000
_WRITERS: Final[dict[Source, Callable[[list[Sent]], bytes]]] = {
    Source.SNOWFLAKE: as_snowflake,
    Source.DATABRICKS: as_databricks,
    Source.POSTGRESQL: as_csvlog,
}


def main(directory: Path, *, rows: int = 200_000, own: int = 0) -> None:
    table = []
    for source in Source:
        path, store = directory / f"{source}.history", directory / source
        write_history(path, source, rows=rows, with_own_literals=bool(own))
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            # In a process of its own, whose memory is its own.
            read_ms, peak = pool.apply(read_alone, (path, store, source))
        compact_ms = compact_all(store, directory / "built")
        table.append(Compared(f"read {source}", read_ms, "compaction of its entries", compact_ms, 2))
        console.print(
            f"{source}: {path.stat().st_size / 1e6:,.0f} MB, {1000 * rows / read_ms:,.0f} entries by second "
            f"of the processor, {compact_ms / read_ms:.2f} of compaction's; at most {peak:,.0f} MB of memory"
        )
    show(f"A history of {rows:,} statements: processor time", "ms", table)


def write_history(path: Path, source: Source, *, rows: int, with_own_literals: bool) -> None:
    """Write statements as a warehouse's own history has them."""
    with path.open("wb") as stream:
        for first in range(0, rows, _PART):
            sent = make_stream(min(_PART, rows - first), seed=first)
            if with_own_literals:
                sent = [
                    replace(one, values=(f"{first + number}", *(one.values or ())[1:]))
                    for number, one in enumerate(sent)
                ]
            body = _WRITERS[source](sent)
            if first and source is Source.SNOWFLAKE:
                body = body.partition(b"\n")[2]
            for name in ("q-", "66c0."):
                body = body.replace(name.encode(), f"{name}{first:x}".encode())
            stream.write(body)


def read_alone(path: Path, store: Path, source: Source) -> tuple[float, float]:
    """Write the entries of a history; return milliseconds of the processor, and the most MB of memory."""
    choices = Choices(source=source)
    start = time.process_time()
    for _ in write_entries(
        path, choices, digest=choices.digest(path), directory=store / str(TENANT), now_ms=_NOW_MS
    ):
        pass
    took = time.process_time() - start
    # ru_maxrss would have the memory of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1000 * took, int(status.partition("VmHWM:")[2].split()[0]) / 1000


def compact_all(root: Path, target: Path) -> float:
    """Compact all days of a store; return milliseconds of the processor."""
    store = LocalStore(root)
    target.mkdir(exist_ok=True)
    days = find_days(store, tenant=TENANT)
    start = time.process_time()
    for day in days:
        compact_day(store, list_day(store, tenant=TENANT, day=day), directory=target)
    return 1000 * (time.process_time() - start)
