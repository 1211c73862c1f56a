"""A tenant's long queries take turns."""

from __future__ import annotations

from typing import Final

import hypothesis.strategies as st
from hypothesis import given

from logs.sql.lanes import Lanes

_OWNERS: Final = ("one", "other")


class Runner:
    """Runs unless it was paused, and fails what is asked of it twice."""

    def __init__(self) -> None:
        self.runs = True

    def pause(self) -> None:
        assert self.runs
        self.runs = False

    def resume(self) -> None:
        assert not self.runs
        self.runs = True


def test_the_next_in_order_takes_over_from_the_one_that_leaves() -> None:
    lanes = Lanes(width=1)
    first, second, third = Runner(), Runner(), Runner()
    for runner in (first, second, third):
        lanes.join("one", runner)
    assert [first.runs, second.runs, third.runs] == [True, False, False]
    lanes.leave("one", first)
    assert [first.runs, second.runs, third.runs] == [True, True, False]


def test_one_that_gives_up_while_it_waits_keeps_nobody() -> None:
    lanes = Lanes(width=1)
    first, second, third = Runner(), Runner(), Runner()
    for runner in (first, second, third):
        lanes.join("one", runner)
    lanes.leave("one", second)
    assert [first.runs, second.runs, third.runs] == [True, True, False]
    lanes.leave("one", first)
    assert third.runs


def test_others_queries_do_not_count() -> None:
    lanes = Lanes(width=1)
    mine, others = Runner(), Runner()
    lanes.join("one", mine)
    lanes.join("other", others)
    assert [mine.runs, others.runs] == [True, True]


def test_leaving_without_having_joined_changes_nothing() -> None:
    lanes = Lanes(width=1)
    first, second, short = Runner(), Runner(), Runner()
    lanes.join("one", first)
    lanes.join("one", second)
    lanes.leave("one", short)
    lanes.leave("nobody", short)
    assert [first.runs, second.runs, short.runs] == [True, False, True]


@given(
    width=st.integers(1, 3),
    moves=st.lists(st.tuples(st.sampled_from(_OWNERS), st.integers(0, 4)), max_size=40),
)
def test_the_first_to_join_run_and_no_others(width: int, moves: list[tuple[str, int]]) -> None:
    """Each move has a runner join, or leave where it has joined."""
    lanes = Lanes(width=width)
    joined: dict[str, list[int]] = {owner: [] for owner in _OWNERS}
    runners = {(owner, number): Runner() for owner in _OWNERS for number in range(5)}
    for owner, number in moves:
        runner = runners[owner, number]
        if number in joined[owner]:
            lanes.leave(owner, runner)
            joined[owner].remove(number)
        else:
            lanes.join(owner, runner)
            joined[owner].append(number)
        for (of, which), each in runners.items():
            assert each.runs == (which not in joined[of] or joined[of].index(which) < width)
