"""The queue of all work, with mails as its rows: turns, leases, attempts, and workers that are killed."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import Q
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from accounts.models import Mail
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs import queue as queue_module
from tenantadmin.lib.jobs.queue import Queue
from tests.racing import all_at_once

SECOND = dt.timedelta(seconds=1)
START = now()
QUEUE = Queue(
    name="rows",
    model=Mail,
    waiting=Q(state="queued"),
    lease=60 * SECOND,
    longest=300 * SECOND,
    places=2,
)


class Clock:
    def __init__(self) -> None:
        self.now = START


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(queue_module, "now", lambda: clock.now)
    return clock


def add(tenant: int, *names: str, due_at: dt.datetime = START - SECOND) -> None:
    for number, name in enumerate(names):
        when = due_at + number * dt.timedelta(milliseconds=1)
        Mail.objects.create(tenant_id=UUID(int=tenant), subject=name, due_at=when)


def take(limit: int = 100) -> list[str]:
    return [row.subject for row in QUEUE.take(limit=limit)]


def finish(*names: str) -> None:
    Mail.objects.filter(subject__in=names).update(state="delivered")


@pytest.mark.django_db
class TestTurns:
    def test_tenants_take_turns_and_each_has_its_places(self, clock: Clock) -> None:
        add(1, *(f"a{number}" for number in range(50)), due_at=START - 9 * SECOND)
        add(2, "b0", "b1", due_at=START - 2 * SECOND)
        add(3, "c0", due_at=START - SECOND)
        assert take(limit=4) == ["a0", "b0", "c0", "a1"]
        assert take() == ["b1"]
        assert take() == []
        finish("a0", "b0")
        assert take() == ["a2"]

    def test_a_row_that_failed_holds_no_place(self, clock: Clock) -> None:
        add(1, "a0", "a1", "a2")
        assert take() == ["a0", "a1"]
        clock.now += 60 * SECOND
        first, second = take()
        assert first == "a2"
        assert sorted([second, *take()]) == ["a0", "a1"]

    def test_places_that_the_caller_counts(self, clock: Clock) -> None:
        add(1, "a0", "a1")
        add(2, "b0", "b1")
        rows = QUEUE.take(limit=9, under_way={UUID(int=1): 1, UUID(int=2): 2})
        assert [row.subject for row in rows] == ["a0"]

    def test_none_is_taken_without_room_or_before_its_time(self, clock: Clock) -> None:
        add(1, "a0")
        add(2, "later", due_at=START + SECOND)
        assert take(limit=0) == take(limit=-3) == []
        assert take() == ["a0"]
        finish("later")
        clock.now += SECOND
        assert take() == []


@pytest.mark.django_db
class TestTimes:
    def test_a_row_that_is_not_finished_is_due_again_after_growing_times(self, clock: Clock) -> None:
        add(1, "a0")
        taken = []
        while clock.now < START + 1_800 * SECOND:
            if take():
                taken.append((clock.now - START) // SECOND)
            clock.now += 10 * SECOND
        assert taken == [0, 60, 180, 420, 720, 1020, 1320, 1620]
        assert QUEUE.count_failing() == 1
        finish("a0")
        assert QUEUE.count_failing() == 0

    @pytest.mark.parametrize(("minutes", "is_due"), [(6, False), (8, True), (60, True)])
    def test_a_clock_that_was_set_back_delays_no_row(self, clock: Clock, minutes: int, is_due: bool) -> None:
        """A time further away than any pause, and the difference of two clocks, is of another clock."""
        add(1, "a0", due_at=START + minutes * 60 * SECOND)
        assert take() == ["a0"] * is_due

    def test_a_row_may_be_postponed_unless_it_got_another_time(self, clock: Clock) -> None:
        add(1, "a0", "a1")
        first, second = QUEUE.take(limit=9)
        Mail.objects.filter(pk=second.pk).update(due_at=START)
        assert QUEUE.postpone(first, until=START + 5 * SECOND)
        assert not QUEUE.postpone(second)
        assert take() == ["a1"]
        clock.now += 5 * SECOND
        assert take() == ["a0"]
        assert Mail.objects.get(subject="a0").attempts == 1


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_take_each_row_once() -> None:
    for tenant in range(12):
        add(tenant, f"{tenant}", due_at=now() - SECOND)
    taken: list[str] = []

    def work() -> None:
        taken.extend(take(limit=5))

    all_at_once([work] * 4)
    taken += take()
    assert sorted(taken, key=int) == [str(tenant) for tenant in range(12)]


@pytest.mark.django_db(transaction=True)
def test_a_row_that_another_worker_is_changing_is_left_to_it() -> None:
    add(1, "a0", due_at=now() - SECOND)
    with ThreadPoolExecutor(1) as pool:

        def elsewhere() -> Sequence[str]:
            try:
                return take()
            finally:
                connection.close()

        from django.db import transaction

        with transaction.atomic():
            Mail.objects.select_for_update().get()
            assert pool.submit(elsewhere).result(20) == []
    assert take() == ["a0"]


class TestHistories(TestCase):
    """Nothing is lost, and nothing is taken twice within a lease, whatever workers do."""

    @given(seed=st.integers(0, 2**32))
    def test_each_row_is_done(self, seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311
        moment = START
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(queue_module, "now", lambda: moment)
            waiting = set()
            for number in range(chance.randrange(1, 12)):
                add(chance.randrange(3), str(number), due_at=moment - number * SECOND)
                waiting.add(str(number))
            leases: dict[str, dt.datetime] = {}
            for _ in range(400):
                for row in QUEUE.take(limit=chance.randrange(1, 5)):
                    assert leases.get(row.subject, moment) <= moment
                    leases[row.subject] = row.due_at
                    fate = chance.random()
                    if fate < 0.6:
                        finish(row.subject)
                        waiting.discard(row.subject)
                    elif fate < 0.7:
                        QUEUE.postpone(row)
                        leases[row.subject] = moment + QUEUE.lease
                if not waiting:
                    break
                moment += chance.randrange(1, 120) * SECOND
            assert not waiting
