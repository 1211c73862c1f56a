"""A query's priority falls as its process uses processor time."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, cast

from logs.sql.engines.pool import LongQueryQueues, QueryPriority

if TYPE_CHECKING:
    from logs.sql.engines.pool import QueryProcess


class Process:
    """A process that has used ``used`` seconds, and records the calls of its methods."""

    def __init__(self) -> None:
        self.used = 0.0
        self.calls: list[object] = []

    def used_seconds(self) -> float:
        return self.used

    def lower_priority(self, nice: int) -> None:
        self.calls.append(nice)

    def pause(self) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")


def _priority(process: Process, queues: LongQueryQueues) -> QueryPriority:
    return QueryPriority(cast("QueryProcess", process), tenant="one", threads=2, long_queries=queues)


def test_the_priority_falls_in_steps_by_the_time_used() -> None:
    process, queues = Process(), LongQueryQueues(width=1)
    priority = _priority(process, queues)
    process.used = 0.1
    priority.update()
    assert process.calls == []
    process.used = 0.2
    priority.update()
    assert process.calls == [10]
    process.used = 6.0
    priority.update()
    assert process.calls == [10, 19]
    assert priority.next_update_at == math.inf


def test_the_time_of_earlier_queries_does_not_count() -> None:
    process = Process()
    process.used = 5.0
    priority = _priority(process, LongQueryQueues(width=1))
    process.used = 5.1
    priority.update()
    assert (process.calls, priority.is_lowered) == ([], False)
    process.used = 5.2
    priority.update()
    assert (process.calls, priority.is_lowered) == ([10], True)


def test_long_queries_run_one_after_another_and_then_at_the_lowest_priority() -> None:
    queues = LongQueryQueues(width=1)
    endless, long = Process(), Process()
    of_endless, of_long = _priority(endless, queues), _priority(long, queues)
    endless.used = long.used = 0.5
    of_endless.update()
    of_long.update()
    assert (endless.calls, long.calls) == ([10], [10, "pause"])
    endless.used = 6.0
    of_endless.update()
    assert (endless.calls, long.calls) == ([10, 19], [10, "pause", "resume"])
    of_long.end()
    of_endless.end()
    assert (endless.calls, long.calls) == ([10, 19], [10, "pause", "resume"])


def test_the_next_update_is_due_when_a_step_may_be() -> None:
    process = Process()
    priority = _priority(process, LongQueryQueues(width=1))
    process.used = 1.0
    before = time.monotonic()
    priority.update()
    # The next step is 5 processor seconds away: 2.5 seconds with two threads.
    assert before + 2.5 <= priority.next_update_at <= time.monotonic() + 2.5
