"""Each fact of 60 digests of the demo equals what its SQL gives."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from analytics.demo.logs import LogPlan, read_demo, write_logs
from analytics.watch.facts import DigestPeriod
from tenantadmin.lib.objectstore import default_store
from tests.analytics.digest.support import make, rebuild

if TYPE_CHECKING:
    from tests.factories import World

FIRST = dt.date(2026, 2, 2)
DAYS = 30


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_every_fact_of_sixty_digests_equals_its_sql(world: World, number: int) -> None:
    profile = read_demo().profiles[number]
    plan = LogPlan(profile, world.tenant.pk, FIRST, DAYS, seed=1, entries=12_000)
    assert len(list(write_logs(default_store(), plan))) == DAYS
    rebuild(world)
    periods = [DigestPeriod.of_day(FIRST + dt.timedelta(days=day)) for day in range(4, DAYS)]
    periods += [DigestPeriod.with_day(FIRST + dt.timedelta(weeks=week)) for week in range(4)]
    assert len(periods) == 30
    digests = [make(world, period) for period in periods]
    # There are days with findings, and days without.
    assert {digest.document["quiet"] for digest in digests} == {True, False}
