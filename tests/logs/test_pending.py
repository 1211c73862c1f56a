"""The builds that must be done: marks, retries, and who may delete them."""

from __future__ import annotations

import datetime as dt
from datetime import date, timedelta
from uuid import UUID

import pytest

from logs import pending
from logs.models import PendingBuild
from logs.pending import (
    BUILDS,
    finish_day,
    finish_periods,
    mark_days,
    mark_periods,
    read_mark,
)
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs import queue

pytestmark = pytest.mark.django_db

TENANT = UUID("11111111-2222-4333-8444-555555555555")
DAY, NEXT = date(2026, 1, 1), date(2026, 1, 2)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[dt.datetime]:
    """A clock that stands still: its only item is the time."""
    times = [now()]
    for module in (pending, queue):
        monkeypatch.setattr(module, "now", lambda: times[0])
    return times


def take() -> list[tuple[UUID, date | None]]:
    return [(row.tenant_id, row.day) for row in BUILDS.take(limit=500)]


def test_a_day_that_changes_all_the_time_keeps_its_turn(clock: list[dt.datetime]) -> None:
    PendingBuild.objects.create(tenant_id=TENANT, day=DAY, due_at=clock[0])
    assert take() == [(TENANT, DAY)]
    mark_days(tenant=TENANT, days=[DAY])
    assert take() == []
    clock[0] += timedelta(seconds=60)
    assert take() == [(TENANT, DAY)]


def test_tenants_take_turns_and_each_has_four_places(clock: list[dt.datetime]) -> None:
    """15,000 days of one tenant once held another tenant's day for 161 seconds."""
    many, one = [DAY + timedelta(days=number) for number in range(9)], UUID(int=7)
    for number, day in enumerate(many):
        due_at = clock[0] - timedelta(seconds=20 - number)
        PendingBuild.objects.create(tenant_id=TENANT, day=day, due_at=due_at)
    PendingBuild.objects.create(tenant_id=one, day=NEXT, due_at=clock[0])
    assert take() == [(TENANT, many[0]), (one, NEXT), *((TENANT, day) for day in many[1:4])]
    # Its places are taken until a build is done.
    assert take() == []
    finish_day(tenant=TENANT, day=many[1], mark=read_mark(tenant=TENANT, day=many[1]))
    assert take() == [(TENANT, many[4])]


def test_a_mark_made_while_a_day_is_built_outlives_the_build() -> None:
    mark_days(tenant=TENANT, days=[DAY])
    PendingBuild.objects.update(attempts=4)
    mark = read_mark(tenant=TENANT, day=DAY)
    mark_days(tenant=TENANT, days=[DAY])
    finish_day(tenant=TENANT, day=DAY, mark=mark)
    assert PendingBuild.objects.get(day=DAY).attempts == 0

    finish_day(tenant=TENANT, day=DAY, mark=read_mark(tenant=TENANT, day=DAY))
    assert list(PendingBuild.objects.values_list("day", flat=True)) == [None]


def test_a_build_that_was_not_pending_leaves_nothing() -> None:
    finish_day(tenant=TENANT, day=DAY, mark=read_mark(tenant=TENANT, day=DAY))
    assert not PendingBuild.objects.exists()


def test_periods_that_wait_are_built_soon_after_a_day_ended(clock: list[dt.datetime]) -> None:
    mark_periods(tenant=TENANT)
    PendingBuild.objects.update(due_at=clock[0] + timedelta(minutes=9), attempts=5)
    mark_periods(tenant=TENANT)
    row = PendingBuild.objects.get()
    assert (row.due_at, row.attempts) == (clock[0] + timedelta(seconds=5), 0)

    clock[0] += timedelta(seconds=1)
    mark_periods(tenant=TENANT)
    assert PendingBuild.objects.get().due_at == row.due_at
    mark = read_mark(tenant=TENANT, day=None)
    assert mark is not None
    finish_periods(tenant=TENANT, mark=mark)
    assert not PendingBuild.objects.exists()
