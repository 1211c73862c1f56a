"""What an accepted recommendation did, against the truth: the same traffic with and without it."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import duckdb
import msgspec
import pytest

from accounts.models import Revision
from analytics.advice.follow import find_tenants_to_measure, measure_tenant_effects, read_effect
from analytics.advice.measure import PredictedGain, SignedBounds, SignedRisk, measure_effect
from analytics.numbers.days import find_stale_days, rebuild_day
from analytics.replay.load import Job, Ruleset
from logs.layout import DAY_MS
from rules.language import read_rules
from rules.write import write_ruleset
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.advice.logs import Arrival, make_log, office_traffic
from tests.analytics.advice.searching import firing
from tests.analytics.replay.streams import FIRST, write_days
from tests.objects import save_entries

if TYPE_CHECKING:
    from analytics.models import Effect, Recommendation
    from analytics.replay.load import DayFile

OLD: list[dict[str, Any]] = [
    {
        "id": "orders",
        "conditions": {"isReadOnly": True, "tables": {"containsAny": ["s.*"]}},
        "ttlSeconds": 3600,
    },
    firing("s.*", "orders", rule_id="order-changes"),
]
NEW = [
    *OLD,
    {
        "id": "ads",
        "conditions": {"isReadOnly": True, "tables": {"containsAny": ["m.*"]}},
        "ttlSeconds": 43200,
    },
]
#: The change comes on the fifth day, at noon. The days after it are measured.
CHANGED_AT = 4 * DAY_MS + DAY_MS // 2
AFTER = range(5, 9)
GAIN = PredictedGain(
    hits=SignedBounds(low=90, likely=None, high=110),
    saved_ms=SignedBounds(low=90, likely=None, high=110),
    misses=0,
    spent_ms=0,
    hit_bytes=0,
    risk=SignedRisk(low=0, high=0),
)


def make_traffic(seed: int, *, days: int, growth: float = 0.0) -> list[Arrival]:
    return office_traffic(random.Random(seed), days=days, growth=growth)  # noqa: S311


def run_measurement(
    connection: duckdb.DuckDBPyConnection, job: Job, *, before: Sequence[DayFile]
) -> dict[str, Any]:
    """Return the effect as it is stored."""
    effect = measure_effect(connection, job, predicted=GAIN, predicted_days=2, before=before)
    stored: dict[str, Any] = msgspec.to_builtins(effect)
    return stored


def count_hits(rows: Sequence[dict[str, Any]], days: range) -> int:
    wanted = {(FIRST + timedelta(day)).isoformat() for day in days}
    return sum(row["day"] in wanted and row["cacheStatus"] == "HIT" for row in rows)


@pytest.mark.parametrize("seed", range(3))
def test_the_measured_effect_is_nearer_to_the_truth_than_before_and_after(tmp_path: Path, seed: int) -> None:
    """Traffic grows by an eighth each day, so that before and after would be wrong."""
    traffic = make_traffic(seed, days=9, growth=0.125)
    rows = make_log(traffic, (0, OLD), (CHANGED_AT, NEW))
    without = make_log(traffic, (0, OLD), (CHANGED_AT, OLD))
    truth = count_hits(rows, AFTER) - count_hits(without, AFTER)
    files = write_days(rows, tmp_path)
    old, new = read_rules(OLD), read_rules(NEW)
    job = Job(
        files[4:],
        files[5].day,
        files[8].day,
        subject=old,
        current=new,
        in_force=[Ruleset(0, new)],
        changes=[int(rows[0]["timestamp"]) // DAY_MS * DAY_MS + CHANGED_AT],
    )
    with duckdb.connect(config={"threads": 1}) as connection:
        effect = run_measurement(connection, job, before=files[:4])
    hits = effect["hits"]
    assert truth > 300
    assert abs(hits["measured"] - truth) <= 0.01 * truth
    assert abs(hits["measured"] - truth) < abs(hits["beforeAfter"] - truth)
    assert hits["logged"] == count_hits(rows, AFTER)
    assert hits["beforeAfter"] == count_hits(rows, AFTER) - count_hits(rows, range(4))
    assert (hits["predicted"], hits["inconclusive"]) == (200, False)
    # Each of these hits saves 4 or 9 seconds.
    assert 4000 * truth < effect["savedMs"]["measured"] < 9000 * truth


@pytest.fixture
def accepted(world: factories.World) -> Recommendation:
    """A recommendation that was accepted at noon of the first day."""
    found = factories.recommendation(
        world.tenant, state="accepted", accepted_seq=1, decided_by="ada@example.org"
    )
    put(world.tenant.pk, 0, NEW)
    return found


def put(tenant: UUID, day: int, rules: Any) -> None:
    """Store and build the log of one day, which is like every other day."""
    traffic = [arrival for arrival in make_traffic(day, days=day + 1) if arrival.at >= day * DAY_MS]
    save_entries(tenant, FIRST + timedelta(day), make_log(traffic, (0, rules)))
    for stale in find_stale_days(default_store(), tenant=tenant):
        rebuild_day(default_store(), tenant=tenant, day=stale)


def write_at(tenant: UUID, rules: Any, *, day: int) -> None:
    """Write the rules at noon of a day of the log."""
    moment = dt.datetime.combine(FIRST + timedelta(day), dt.time(12), dt.UTC)
    with pytest.MonkeyPatch.context() as patch:  # the tenant is younger than the log
        patch.setattr("rules.write.stamp_tenant", lambda _: moment)
        write_ruleset(tenant_id=tenant, document={"rules": rules}, actor="ada@example.org")


def effect_of(found: Recommendation) -> Effect:
    return read_effect(tenant_id=found.tenant_id, recommendation_id=found.pk)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_effect_waits_for_three_days_is_measured_daily_and_ends_with_the_next_change(
    accepted: Recommendation,
) -> None:
    tenant = accepted.tenant_id
    write_at(tenant, NEW, day=0)
    assert find_tenants_to_measure() == [tenant]
    for day in (1, 2):
        put(tenant, day, NEW)
    measure_tenant_effects(default_store(), tenant_id=tenant)
    effect = effect_of(accepted)
    assert (effect.state, effect.result) == ("waiting", None)
    put(tenant, 3, NEW)
    measure_tenant_effects(default_store(), tenant_id=tenant)
    effect = effect_of(accepted)
    assert (effect.state, effect.first_day, effect.last_day) == (
        "measuring",
        FIRST + timedelta(1),
        FIRST + timedelta(3),
    )
    assert effect.result is not None
    hits = effect.result["hits"]
    assert (hits["measured"], hits["withoutIt"]["low"]) == (hits["logged"], 0)  # there were no rules before
    assert hits["beforeAfter"] is None  # there is no log of three days before
    measured_at = effect.measured_at
    measure_tenant_effects(default_store(), tenant_id=tenant)
    assert effect_of(accepted).measured_at == measured_at
    write_at(tenant, OLD, day=5)
    for day in (4, 5, 6):
        put(tenant, day, NEW)
    measure_tenant_effects(default_store(), tenant_id=tenant)
    effect = effect_of(accepted)
    assert (effect.state, effect.last_day, effect.result and effect.result["closedBy"]) == (
        "closed",
        FIRST + timedelta(4),
        2,
    )
    assert find_tenants_to_measure() == []


@pytest.mark.django_db(transaction=True)
def test_a_change_before_three_days_ends_it_without_a_measurement(
    accepted: Recommendation,
) -> None:
    write_at(accepted.tenant_id, NEW, day=0)
    write_at(accepted.tenant_id, OLD, day=2)
    measure_tenant_effects(default_store(), tenant_id=accepted.tenant_id)
    effect = effect_of(accepted)
    assert (effect.state, effect.result) == ("closed", None)
    assert Revision.objects.filter(kind="rules", tenant_id=accepted.tenant_id).count() == 3


def test_an_error_larger_than_the_effect_is_inconclusive(tmp_path: Path) -> None:
    """The Gateway went on with the rules before the change."""
    files = write_days(make_log(make_traffic(1, days=4), (0, OLD)), tmp_path)
    old, new = read_rules(OLD), read_rules(NEW)
    job = Job(files, files[1].day, files[3].day, subject=old, current=new, in_force=[Ruleset(0, new)])
    with duckdb.connect(config={"threads": 1}) as connection:
        effect = run_measurement(connection, job, before=())
    hits = effect["hits"]
    assert (hits["measured"], hits["error"] > 100, hits["inconclusive"]) == (0, True, True)
    assert "calibration-poor" in effect["caveats"]
