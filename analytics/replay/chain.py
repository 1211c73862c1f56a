"""Find the executions of each cache key: the requests that would run in the warehouse and fill the cache.

Section "Cache" of the definition (docs/replay.md). Between two executions of a key, the outcome depends on
time alone, so the loop visits only executions.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from analytics.replay.arrays import as_column, read_numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Later than every request.
NEVER: Final = 2**62

#: The reasons to start an execution: the values of the column ``reason``.
NO_CACHE_ENTRY, TTL_EXPIRED, INVALIDATION_MARKER, REVALIDATION = range(4)


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The lifetime of a rule's results: fresh ms, then stale ms, and the sorted times of its markers."""

    ttl_ms: int
    stale_ms: int
    markers: Sequence[int]


@dataclass(frozen=True, slots=True)
class Chain:
    """The executions, and the execution before each candidate.

    Attributes:
        owners: for each candidate, the index of the last execution of its key up to its time, or -1.
        executions: ``position`` (of the candidate), ``started``, ``born`` (the result is ready),
            ``fresh_until``, ``stale_until``, ``reason``, and ``older``: the index of the execution before it,
            or -1.
    """

    owners: Any
    executions: pa.Table


def find_executions(candidates: pa.Table, lifetimes: Sequence[Lifetime]) -> Chain:
    """Find the executions.

    Args:
        candidates: the cache requests, sorted by ``key`` and then by time. The columns ``key``,
            ``requested_at``, ``work_ms``, ``is_failing`` (0 or 1) and ``rule`` (the index of its lifetime)
            are integers.
    """
    keys, times, works, failing, rules = (
        read_numbers(candidates[name]) for name in ("key", "requested_at", "work_ms", "is_failing", "rule")
    )
    owners = array("q")
    position, born, fresh_until, stale_until, reason, older = (array("q") for _ in range(6))
    start, total = 0, len(keys)
    while start < total:
        end = bisect_right(keys, keys[start], start)
        lifetime = lifetimes[rules[start]]
        execution = -1
        index = covered = start
        while True:
            while index < end and failing[index]:
                index += 1
            owners.extend(repeat(execution, index - covered))
            if index == end:
                break
            covered = index
            at = times[index]
            if execution < 0:
                reason.append(NO_CACHE_ENTRY)
            elif at < stale_until[execution]:
                reason.append(REVALIDATION)
            elif at >= born[execution] + lifetime.ttl_ms:
                reason.append(TTL_EXPIRED)
            else:
                reason.append(INVALIDATION_MARKER)
            older.append(execution)
            execution = len(position)
            ready = at + works[index]
            marked = bisect_right(lifetime.markers, ready)
            invalid_from = lifetime.markers[marked] if marked < len(lifetime.markers) else NEVER
            expires = ready + lifetime.ttl_ms
            position.append(index)
            born.append(ready)
            fresh_until.append(min(expires, invalid_from))
            stale_until.append(min(expires + lifetime.stale_ms, invalid_from))
            index = bisect_left(times, fresh_until[execution], index + 1, end)
        start = end
    positions = as_column(position)
    return Chain(
        owners=as_column(owners),
        executions=pa.table(
            {
                "position": positions,
                "started": candidates["requested_at"].take(positions),
                "born": as_column(born),
                "fresh_until": as_column(fresh_until),
                "stale_until": as_column(stale_until),
                "reason": as_column(reason),
                "older": as_column(older),
            }
        ),
    )
