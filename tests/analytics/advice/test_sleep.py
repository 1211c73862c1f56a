"""Recommendations that let the warehouse sleep: what they promise is the judge's bill of the replayed log."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from accounts.tenants.pricing import Pricing
from analytics.advice.follow import measure_tenant_effects, read_effect
from analytics.advice.mine import mine
from analytics.advice.recommend import Decision, NothingToWrite
from analytics.demo.logs import read_demo
from analytics.models import Recommendation
from analytics.replay.load import Gateway, Job
from rules.language import complete_rule, read_rules
from rules.tables.warehouse import ANY_TABLES
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.advice.logs import make_log, read
from tests.analytics.advice.searching import put_log, run, the, times, with_it
from tests.analytics.advice.searching import search as search_stored
from tests.analytics.replay.billing import executions
from tests.analytics.replay.judge import judge
from tests.analytics.replay.streams import FIRST, demo_rows, write_days
from tests.analytics.savings.judge import Bill, Run

if TYPE_CHECKING:
    from tests.analytics.advice.logs import Arrival
    from tests.analytics.replay.streams import Row
    from tests.factories import World

MINUTE, HOUR = 60_000, 3_600_000
DAYS = 4
WINDOW = [FIRST + timedelta(day) for day in range(1, DAYS)]
PRICE: dict[str, Any] = {
    "from": "2026-01-01",
    "currency": "USD",
    "perHour": "3.00",
    "billing": "suspending",
    "autoSuspendSeconds": 300,
}
#: At work, the warehouse is awake from nine to six for results that no cache may serve.
WORK = [
    read("SELECT now(), x FROM o.orders WHERE a = ?", "o.orders", at=at, hasNonDeterministicFunctions=True)
    for at in times(DAYS, 4)
    if 9 <= at // HOUR % 24 < 18
]
#: A board is refreshed each half hour, day and night, and hardly changes.
BOARD = [
    read("SELECT sum(x) FROM m.board WHERE b = ?", "m.board", at=at, ms=2000)
    for at in times(DAYS, 60, offset=30)
]
#: A report of the clock, each hour at minute 50.
CLOCK = [
    read(
        "SELECT now(), y FROM m.clock WHERE c = ?",
        "m.clock",
        at=at,
        ms=2000,
        hasNonDeterministicFunctions=True,
    )
    for at in times(DAYS, 60, offset=50)
]


def bill(rows: Sequence[Row], rules: Sequence[Mapping[str, Any]], **options: Any) -> int:
    """Return what the judge bills for the log replayed under these rules, by the judge of replays."""
    counted = {day.isoformat() for day in WINDOW}
    (runs,) = executions(judge(rows, rules=read_rules(rules), counted=counted), rows)
    return billed_ms(runs, **options)


def billed_ms(runs: Sequence[Run], **options: Any) -> int:
    return sum(Bill([PRICE], WINDOW, **options).of(runs).billed.values())


def search(tmp_path: Path, arrivals: Sequence[Arrival], *prices: Mapping[str, Any]) -> tuple[list[Row], Any]:
    rows = make_log(arrivals, (0, []))
    return rows, run(write_days(rows, tmp_path), [], prices=[dict(price) for price in prices])


def both(value: int) -> dict[str, int]:
    return {"low": value, "high": value}


def test_results_that_alone_wake_the_warehouse_are_kept_over_night(tmp_path: Path) -> None:
    rows, advice = search(tmp_path, [*WORK, *BOARD], PRICE)
    found = the(advice, "let-it-sleep")
    assert found["title"] == "Let the warehouse sleep: cache m.board for 12 hours"
    assert found["why"][0].startswith("They alone woke the warehouse, or kept it awake, for ")
    gain = bill(rows, with_it([], found)) - bill(rows, [])
    # Of 15 starts in each of three nights, the cache needs one every 12 hours.
    assert gain == -41 * 302_000
    assert found["predicted"]["gain"]["billedMs"] == both(gain)
    cents = round(-gain * 3 / HOUR * 100)
    money = f"-{cents // 100}.{cents % 100:02}"
    assert found["predicted"]["gain"]["money"] == {"currency": "USD", "low": money, "high": money}
    # The same results are not recommended to be cached twice.
    assert {row["kind"] for row in advice.recommendations} == {"let-it-sleep", "auto-suspend"}


def test_a_schedule_moves_to_a_minute_at_which_the_warehouse_is_awake(tmp_path: Path) -> None:
    rows, advice = search(tmp_path, [*BOARD, *CLOCK], PRICE)
    sleeping = [row for row in advice.recommendations if row["kind"] == "let-it-sleep"]
    # No rule may cache the report of the clock.
    (found,) = [row for row in sleeping if "m.clock" in row["evidence"][0]["sql"]]
    assert (found["variant"], found["patch"], found["rules"]) == ("schedule", [], [])
    assert found["title"] == "Let the warehouse sleep: run 1 scheduled statements at minute 30 of the hour"
    (before,) = executions(judge(rows, rules=(), counted={day.isoformat() for day in WINDOW}), rows)
    after = [
        Run(one.start - (20 * MINUTE if one.start // MINUTE % 60 == 50 else 0), *one_rest(one))
        for one in before
    ]
    gain = billed_ms(after) - billed_ms(before)
    assert gain < -20 * (DAYS - 1) * 300_000
    assert found["predicted"]["gain"]["billedMs"] == both(gain)
    assert found["predicted"]["gain"]["hits"] == {"low": 0, "likely": None, "high": 0}
    (other,) = [row for row in sleeping if row is not found]
    assert [way["variant"] for way in other["alternatives"]] == ["per-user", "schedule"]


def one_rest(one: Run) -> tuple[Any, ...]:
    return one.took, one.host, one.day, one.rule


def test_another_auto_suspend(tmp_path: Path) -> None:
    rows, advice = search(tmp_path, [*WORK, *BOARD], PRICE)
    found = the(advice, "auto-suspend")
    assert (found["title"], found["patch"]) == ("Let the warehouse suspend after 60 seconds, not 300", [])
    assert found["predicted"]["autoSuspend"] == {"now": 300, "then": 60}
    gain = bill(rows, [], suspend=60) - bill(rows, [])
    assert found["predicted"]["gain"]["billedMs"] == both(gain)
    # The evidence bills the log itself, which has no rules.
    billed = {row["autoSuspendSeconds"]: row["awakeMs"] for row in found["evidence"][0]["rows"]}
    assert billed == {seconds: bill(rows, [], suspend=seconds) for seconds in (60, 120, 300, 600)}


def test_what_saves_most_money_is_first(tmp_path: Path) -> None:
    """Caching the results of a busy day saves much work and no money."""
    busy = [
        read("SELECT z FROM b.busy WHERE d = ?", "b.busy", at=at, ms=30_000)
        for at in times(DAYS, 4, offset=1)
        if 9 <= at // HOUR % 24 < 18
    ]
    _, advice = search(tmp_path, [*WORK, *BOARD, *busy], PRICE)
    costs = [float(row["predicted"]["gain"]["money"]["low"]) for row in advice.recommendations]
    assert costs == sorted(costs)
    kinds = [row["kind"] for row in advice.recommendations]
    assert kinds == ["auto-suspend", "let-it-sleep", "cache"]


def test_without_a_price_or_with_other_billing_nothing_is_said_of_sleep(tmp_path: Path) -> None:
    for number, prices in enumerate(
        [[], [{**PRICE, "billing": "busy"}], [{**PRICE, "billing": "always-on"}]]
    ):
        _, advice = search(tmp_path / str(number), [*WORK, *BOARD], *prices)
        assert {row["kind"] for row in advice.recommendations} == {"cache"}


@pytest.mark.django_db(transaction=True)
class TestTaking:
    """A setting of the warehouse is taken there, and known by the prices."""

    def prepare(self, world: World) -> Recommendation:
        factories.set_prices(world.tenant, PRICE)
        put_log(world.tenant.pk, WORK)
        return next(row for row in search_stored(world.tenant.pk) if row.kind == "auto-suspend")

    def test_there_is_nothing_to_draft_or_accept(self, world: World) -> None:
        found = self.prepare(world)
        assert found.replay is None
        decision = Decision(tenant_id=found.tenant_id, recommendation_id=found.pk, actor="ada@example.org")
        for decide in (decision.accept, decision.draft):
            with pytest.raises(NothingToWrite):
                decide()
        found.refresh_from_db()
        assert found.state == "open"

    def test_a_price_accepts_it_and_its_effect_is_measured(self, world: World) -> None:
        found = self.prepare(world)
        later = {**PRICE, "from": "2026-03-02", "autoSuspendSeconds": 60}
        factories.set_prices(world.tenant, PRICE, later)
        assert "auto-suspend" not in {row.kind for row in search_stored(world.tenant.pk)}
        found.refresh_from_db()
        assert (found.state, found.decided_by, found.accepted_seq) == ("accepted", "system", None)
        # As if it had been taken before the first of the three days.
        Recommendation.objects.filter(pk=found.pk).update(decided_at=dt.datetime(2026, 2, 28, tzinfo=dt.UTC))
        measure_tenant_effects(default_store(), tenant_id=world.tenant.pk)
        effect = read_effect(tenant_id=world.tenant.pk, recommendation_id=found.pk)
        assert effect.result is not None
        billed = effect.result["billedMs"]
        # Each of three days has a session of nine hours, less four minutes. From the second day on it has 135
        # starts. A start bills its second and a minute, in place of the four minutes to the next.
        assert billed["withoutIt"]["low"] == 3 * (536 * MINUTE + 301_000)
        assert billed["measured"] == -2 * (536 * MINUTE + 301_000 - 135 * 61_000)
        assert "hits" not in effect.result


@pytest.mark.slow
def test_the_demo_has_one_of_each_kind(tmp_path: Path) -> None:
    profile = read_demo().profiles[0]
    rows = demo_rows(profile, tenant_id="demo", days=DAYS, entries=5_000)
    rules = [complete_rule(rule) for rule in profile.rules]
    files = write_days(rows, tmp_path)
    gateway = Gateway(nocache=True, non_deterministic=True, keys_per_user=False)
    parsed = read_rules(rules)
    prices = profile.config["warehouse"]["pricing"]
    job = Job(files, WINDOW[0], WINDOW[-1], parsed, parsed, gateway=gateway, pricing=Pricing.of(prices))
    with duckdb.connect(config={"threads": 1}) as connection:
        advice = mine(connection, job, rules, tables=ANY_TABLES, dismissed={})
    counted = {day.isoformat() for day in WINDOW}

    def bills(changed: Sequence[Mapping[str, Any]], **options: Any) -> list[int]:
        judged = judge(rows, rules=read_rules(changed), counted=counted, with_risk=False)
        found = [
            sum(Bill(prices, WINDOW, **options).of(runs).billed.values()) for runs in executions(judged, rows)
        ]
        return [min(found), max(found)]

    now = bills(rules)
    sleeping = [row for row in advice.recommendations if row["kind"] == "let-it-sleep" and row["patch"]]
    suspend = the(advice, "auto-suspend")
    changes = [(row, bills(with_it(rules, row))) for row in sleeping]
    changes.append((suspend, bills(rules, suspend=suspend["predicted"]["autoSuspend"]["then"])))
    assert len(changes) > 1
    for row, then in changes:
        low, high = sorted(after - before for after, before in zip(then, now, strict=True))
        assert row["predicted"]["gain"]["billedMs"] == {"low": low, "high": high}
