"""The long queries of a tenant run one after another."""

from __future__ import annotations

from typing import Final

import hypothesis.strategies as st
from hypothesis import given

from logs.sql.engines.pool import LongQueryQueues

_TENANTS: Final = ("one", "other")


class Query:
    """A query that fails if it is paused or resumed twice."""

    def __init__(self) -> None:
        self.is_running = True

    def pause(self) -> None:
        assert self.is_running
        self.is_running = False

    def resume(self) -> None:
        assert not self.is_running
        self.is_running = True


def test_the_next_query_is_resumed_when_one_is_removed() -> None:
    queues = LongQueryQueues(width=1)
    first, second, third = Query(), Query(), Query()
    for query in (first, second, third):
        queues.add("one", query)
    assert [first.is_running, second.is_running, third.is_running] == [True, False, False]
    queues.remove("one", first)
    assert [first.is_running, second.is_running, third.is_running] == [True, True, False]


def test_a_paused_query_that_is_removed_does_not_block_the_next_one() -> None:
    queues = LongQueryQueues(width=1)
    first, second, third = Query(), Query(), Query()
    for query in (first, second, third):
        queues.add("one", query)
    queues.remove("one", second)
    assert [first.is_running, second.is_running, third.is_running] == [True, True, False]
    queues.remove("one", first)
    assert third.is_running


def test_queries_of_other_tenants_have_their_own_queue() -> None:
    queues = LongQueryQueues(width=1)
    mine, others = Query(), Query()
    queues.add("one", mine)
    queues.add("other", others)
    assert [mine.is_running, others.is_running] == [True, True]


def test_removing_a_query_that_was_not_added_changes_nothing() -> None:
    queues = LongQueryQueues(width=1)
    first, second, short = Query(), Query(), Query()
    queues.add("one", first)
    queues.add("one", second)
    queues.remove("one", short)
    queues.remove("unknown", short)
    assert [first.is_running, second.is_running, short.is_running] == [True, False, True]


@given(
    width=st.integers(1, 3),
    moves=st.lists(st.tuples(st.sampled_from(_TENANTS), st.integers(0, 4)), max_size=40),
)
def test_only_the_first_queries_of_each_queue_run(width: int, moves: list[tuple[str, int]]) -> None:
    """Each move adds a query, or removes it if it was added."""
    queues = LongQueryQueues(width=width)
    added: dict[str, list[int]] = {tenant: [] for tenant in _TENANTS}
    queries = {(tenant, number): Query() for tenant in _TENANTS for number in range(5)}
    for tenant, number in moves:
        query = queries[tenant, number]
        if number in added[tenant]:
            queues.remove(tenant, query)
            added[tenant].remove(number)
        else:
            queues.add(tenant, query)
            added[tenant].append(number)
        for (own_tenant, own_number), own_query in queries.items():
            own_queue = added[own_tenant]
            is_first = own_number not in own_queue or own_queue.index(own_number) < width
            assert own_query.is_running == is_first
