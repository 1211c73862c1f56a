"""What a query's process yields as it uses processor time."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, cast

from logs.sql.lanes import Lanes
from logs.sql.yielding import Yielding

if TYPE_CHECKING:
    from logs.sql.pool import QueryProcess


class Process:
    """Has used what it is told, and notes what is asked of it."""

    def __init__(self) -> None:
        self.used = 0.0
        self.asked: list[object] = []

    def used_seconds(self) -> float:
        return self.used

    def lower_priority(self, nice: int | None) -> None:
        self.asked.append(nice)

    def pause(self) -> None:
        self.asked.append("pause")

    def resume(self) -> None:
        self.asked.append("resume")


def _yielding(process: Process, lanes: Lanes) -> Yielding:
    return Yielding(cast("QueryProcess", process), tenant="one", threads=2, lanes=lanes)


def test_a_query_yields_by_the_time_it_has_used() -> None:
    process, lanes = Process(), Lanes(width=1)
    yielding = _yielding(process, lanes)
    process.used = 0.1
    yielding.look()
    assert process.asked == []
    process.used = 0.2
    yielding.look()
    assert process.asked == [10]
    process.used = 6.0
    yielding.look()
    assert process.asked == [10, None]
    assert yielding.look_at == math.inf


def test_long_queries_take_turns_and_sink_after_theirs() -> None:
    lanes = Lanes(width=1)
    bomb, long = Process(), Process()
    of_bomb, of_long = _yielding(bomb, lanes), _yielding(long, lanes)
    bomb.used = long.used = 0.5
    of_bomb.look()
    of_long.look()
    assert (bomb.asked, long.asked) == ([10], [10, "pause"])
    bomb.used = 6.0
    of_bomb.look()
    assert (bomb.asked, long.asked) == ([10, None], [10, "pause", "resume"])
    of_long.end()
    of_bomb.end()
    assert (bomb.asked, long.asked) == ([10, None], [10, "pause", "resume"])


def test_a_look_is_not_due_before_a_step_can_be() -> None:
    process = Process()
    process.used = 1.0
    before = time.monotonic()
    yielding = _yielding(process, Lanes(width=1))
    # Five seconds of two processors are left.
    assert before + 2.5 <= yielding.look_at <= time.monotonic() + 2.5
