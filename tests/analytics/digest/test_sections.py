"""What each section finds, in the words of the digest. Every fact is compared with its SQL on the way."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from django.db import connection

from accounts.models import Revision
from accounts.models.history import RevisionKind
from analytics.jobs.digests import make_digest
from analytics.models import Recommendation, TenantHealth
from analytics.reports.leaks import Closing
from analytics.watch.facts import DigestPeriod
from analytics.watch.reading import DigestLog
from analytics.watch.traffic_sections import statements_section, z_score
from analytics.words.digests import digest_document
from logs.columns import MAX_TIMESTAMP
from rules.models import Marker
from rules.write import write_ruleset
from tenantadmin.lib.core.formats import exact_minute
from tenantadmin.lib.core.timestamps import from_epoch_ms
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.digest.support import (
    DAY,
    HOUR,
    at,
    earlier,
    entries,
    headings,
    lines,
    make,
    put,
    rebuild,
    served,
)

if TYPE_CHECKING:
    from tests.factories import World


def moment(milliseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC)


class TestTotals:
    def test_a_quiet_day_is_one_sentence(self, world: World) -> None:
        for day in (DAY, *earlier()):
            put(world, day, served(day, hits=60, misses=40))
        rebuild(world)
        digest = make(world)
        assert digest.document["quiet"] is True
        assert headings(digest) == ["Totals"]
        assert lines(digest, "Totals") == [
            "A quiet day without anything unusual; requests: 100, hits: 60.0%."
        ]

    @pytest.mark.parametrize(("requests", "is_quiet"), [(130, True), (131, False), (70, True), (69, False)])
    def test_another_number_of_requests_is_unusual(self, world: World, requests: int, is_quiet: bool) -> None:
        for day in earlier():
            put(world, day, entries(100, at=at(day), cacheStatus="PASSTHROUGH"))
        put(world, DAY, entries(requests, at=at(DAY), cacheStatus="PASSTHROUGH"))
        rebuild(world)
        assert make(world).document["quiet"] is is_quiet

    @pytest.mark.slow
    def test_the_median_is_of_the_same_weekdays(self, world: World) -> None:
        for day, requests in zip(earlier(), (50, 60, 80, 1_000), strict=True):
            put(world, day, served(day, hits=requests, misses=0, warehouseExecutionTimeMs=100))
            # Another weekday, which does not count.
            other = day + dt.timedelta(days=1)
            put(world, other, entries(999, at=at(other), cacheStatus="HIT"))
        put(
            world,
            DAY,
            served(DAY, hits=150, misses=49, warehouseExecutionTimeMs=1_000),
            entries(1, at=at(DAY), cacheStatus="ERROR"),
        )
        rebuild(world)
        assert lines(make(world), "Totals") == [
            "Requests: 199, more than usual (70).",
            "Hits: 75.4% of them, less than usual (100%).",
            "Warehouse time: 199 s, more than usual (7 s).",
            "Mean response time: 10 ms, within what is usual (10 ms).",
            "Failures: 1, more than usual (0).",
        ]

    def test_without_an_earlier_day_there_is_nothing_to_compare_with(self, world: World) -> None:
        put(world, DAY, entries(3, at=at(DAY), cacheStatus="AUTH_ERROR"))
        rebuild(world)
        digest = make(world)
        # No request counts, so there is no rate either.
        assert lines(digest, "Totals") == ["A quiet day without anything unusual; requests: 0."]
        assert (
            make_digest(
                default_store(),
                tenant=world.tenant.pk,
                period=DigestPeriod.of_day(DAY - dt.timedelta(days=1)),
            )
            is None
        )

    def test_a_hit_rate_that_fell_leads_with_the_rules_that_were_published(self, world: World) -> None:
        TestMovedRules().write(world, "old", "r", at=at(DAY) - 48 * HOUR)
        seq = TestMovedRules().write(world, "r", "new", at=at(DAY), ttl=60)
        for day in earlier():
            put(world, day, served(day, hits=60, misses=40))
        put(
            world,
            DAY,
            entries(100, at=at(DAY), cacheStatus="PASSTHROUGH"),
            entries(10, at=at(DAY), cacheStatus="ERROR"),
        )
        rebuild(world)
        digest = make(world)
        assert headings(digest) == ["The hit rate fell", "Bursts of errors", "Published rules", "Totals"]
        assert lines(digest, "The hit rate fell") == [
            "The hit rate fell to 0%; usual: 60.0%.",
            (
                f"Coincides with the rules of revision {seq} (2026-03-31 12:00 UTC): "
                "it added new, removed Figures of last year, changed r."
            ),
        ]
        health = TenantHealth.objects.get()
        assert (health.tenant_id, health.has_findings) == (world.tenant.pk, True)

    @pytest.mark.slow
    def test_a_week_is_compared_with_the_weeks_before(self, world: World) -> None:
        week = DigestPeriod.with_day(DAY)
        assert (week.first, week.last, week.name) == (dt.date(2026, 3, 30), dt.date(2026, 4, 5), "2026-W14")
        for number, requests in enumerate((100, 200, 300, 400, 50)):
            for day in (week.first - dt.timedelta(weeks=number), week.last - dt.timedelta(weeks=number)):
                put(world, day, entries(requests, at=at(day), cacheStatus="HIT"))
        rebuild(world)
        assert lines(make(world, week), "Totals")[0] == "Requests: 200, less than usual (500)."


class TestMovedRules:
    def prepare(self, world: World, *, before: tuple[int, int], now: tuple[int, int], **fields: Any) -> None:
        for day in earlier():
            put(world, day, served(day, hits=before[0] // 4, misses=before[1] // 4))
        put(world, DAY, served(DAY, hits=now[0], misses=now[1], **fields))
        rebuild(world)

    @pytest.mark.slow
    def test_a_rate_that_fell(self, world: World) -> None:
        self.prepare(world, before=(320, 80), now=(50, 50), matchedRuleName="Sales figures")
        digest = make(world)
        assert lines(digest, "Hit rates that moved") == [
            "The hit rate of Sales figures fell from 80.0% to 50.0%, over 100 requests."
        ]
        (name,) = digest.document["names"]
        rule = {"id": "moved-1-rule", "kind": "rule", "value": "sales", "href": None}
        assert name == {**rule, "label": "Sales figures"}

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("before", "now"),
        [
            ((320, 80), (25, 24)),  # too few requests
            ((24, 24), (0, 100)),  # too few before
            ((320, 80), (70, 30)),  # z = 2.2
            ((300_00, 100_00), (777_0, 222_9)),  # 2.7 points
        ],
    )
    def test_small_changes_are_no_move(
        self, world: World, before: tuple[int, int], now: tuple[int, int]
    ) -> None:
        if max(before) > 1_000:
            assert abs(z_score(now[0], sum(now), before[0], sum(before))) > 4
            before = (before[0] // 10, before[1] // 10)
            now = (now[0] // 10, now[1] // 10)
        self.prepare(world, before=before, now=now)
        assert "Hit rates that moved" not in headings(make(world))

    def test_the_z_score(self) -> None:
        assert z_score(50, 100, 320, 400) == pytest.approx(-6.1173, abs=0.0001)
        assert z_score(320, 400, 50, 100) == pytest.approx(6.1173, abs=0.0001)
        assert z_score(100, 100, 400, 400) == 0.0

    def write(self, world: World, *rules: str, at: int, ttl: int = 3600) -> int:
        named = {"old": "Figures of last year"}
        document = {
            "rules": [
                {
                    "id": rule,
                    "name": named.get(rule, rule),
                    "conditions": {"userName": rule},
                    "ttlSeconds": ttl,
                }
                for rule in rules
            ]
        }
        write_ruleset(tenant_id=world.tenant.pk, document=document, actor="x@example.org")
        revision = Revision.objects.filter(kind="rules", tenant_id=world.tenant.pk).latest("seq")
        # The history is append-only for everybody but a test.
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
            Revision.objects.filter(pk=revision.pk).update(changed_at=moment(at))
            cursor.execute("SET LOCAL session_replication_role = DEFAULT")
        return revision.seq

    @pytest.mark.slow
    @pytest.mark.parametrize(("hours", "coincides"), [(-6, True), (-7, False), (0, True), (1, False)])
    def test_it_coincides_with_a_write_of_at_most_six_hours_before(
        self, world: World, hours: int, coincides: bool
    ) -> None:
        seq = self.write(world, "other", at=at(DAY, hour=12 + hours))
        self.prepare(world, before=(320, 80), now=(50, 50))
        digest = make(world)
        time = exact_minute(from_epoch_ms(at(DAY, hour=12 + hours)))
        mechanism = "publishing rules empties the cache"
        expected = f"Coincides with the rules of revision {seq} ({time}): {mechanism}."
        assert (expected in lines(digest, "Hit rates that moved")) is coincides
        assert "caus" not in str(digest.document["sections"])

    @pytest.mark.slow
    def test_a_rate_that_rose_coincides_with_a_change_of_the_rule_alone(self, world: World) -> None:
        self.write(world, "other", at=at(DAY, hour=11))
        self.prepare(world, before=(200, 200), now=(90, 10))
        assert lines(make(world), "Hit rates that moved") == [
            "The hit rate of sales rose from 50.0% to 90.0%, over 100 requests."
        ]

    @pytest.mark.slow
    def test_a_change_of_the_rule_itself_is_the_mechanism(self, world: World) -> None:
        self.write(world, "sales", "other", at=at(DAY, hour=10))
        self.write(world, "sales", "other", at=at(DAY, hour=11), ttl=7200)
        self.prepare(world, before=(200, 200), now=(90, 10))
        digest = make(world)
        assert lines(digest, "Hit rates that moved")[1] == (
            "Coincides with the rules of revision 2 (2026-03-31 11:00 UTC): it changed this rule."
        )
        (write,) = [name for name in digest.document["names"] if name["id"] == "moved-1-write"]
        assert write["href"] == f"/config/tenants/{world.tenant.pk}/rules/history/2"

    @pytest.mark.slow
    def test_a_change_of_the_rule_is_told_on_its_day_and_the_next_and_is_usual_later(
        self, world: World
    ) -> None:
        days = [DAY + dt.timedelta(days=number) for number in range(3)]
        seq = self.write(world, "sales", at=at(DAY, hour=11))
        for day in days:
            put(world, day - dt.timedelta(weeks=1), served(day - dt.timedelta(weeks=1), hits=80, misses=20))
            put(world, day, served(day, hits=20, misses=80))
        later = days[1] + dt.timedelta(weeks=1)
        put(world, later, served(later, hits=60, misses=40))
        rebuild(world)
        fell = "The hit rate of sales fell from 80.0% to 20.0%, over 100 requests."
        rules = f"revision {seq} (2026-03-31 11:00 UTC)"
        assert lines(make(world, days[0]), "Hit rates that moved") == [
            fell,
            f"Coincides with the rules of {rules}: it added this rule.",
        ]
        assert lines(make(world, days[1]), "Hit rates that moved") == [
            fell,
            f"Before, this rule was last changed with {rules}.",
        ]
        assert "Hit rates that moved" not in headings(make(world, days[2]))
        # It is compared with the first whole day after the change, and not with the day before the change.
        assert lines(make(world, later), "Hit rates that moved") == [
            "The hit rate of sales rose from 20.0% to 60.0%, over 100 requests."
        ]

    @pytest.mark.slow
    def test_a_change_of_more_rules_than_a_summary_names_may_be_of_any(self, world: World) -> None:
        self.write(world, *map(str, range(50)), at=at(DAY - dt.timedelta(days=2)))
        for days in (1, 7):
            day = DAY - dt.timedelta(days=days)
            put(world, day, served(day, hits=80, misses=20))
        put(world, DAY, served(DAY, hits=20, misses=80))
        rebuild(world)
        assert "Hit rates that moved" not in headings(make(world))

    @pytest.mark.slow
    def test_a_marker_made_by_hand(self, world: World) -> None:
        for number, target in ((None, "sales"), (3, "sales"), (None, "other")):
            Marker.objects.create(
                tenant=world.tenant,
                marker_id=f"{target}-{number}",
                target_rule_id=target,
                number=number,
                ttl_seconds=60,
                invalidated_at=moment(at(DAY, hour=11) + (60_000 if number else 0)),
                expires_at=moment(at(DAY, hour=13)),
                created_at=moment(at(DAY, hour=11)),
            )
        self.prepare(world, before=(320, 80), now=(50, 50))
        assert lines(make(world), "Hit rates that moved")[1] == (
            "Coincides with an invalidation marker made by hand at 2026-03-31 11:00 UTC: "
            "a marker ends all older results of its rule."
        )


class TestNewStatements:
    def prepare(self, world: World, *, history: int = 7) -> None:
        old = DAY - dt.timedelta(days=history)
        known = {"standardizedSql": "SELECT old", "cacheStatus": "MISS"}
        put(world, old, entries(60, at=at(old), warehouseExecutionTimeMs=1_000, **known))
        put(
            world,
            DAY,
            entries(59, at=at(DAY), warehouseExecutionTimeMs=1_000, **known),
            entries(
                3,
                at=at(DAY),
                standardizedSql="SELECT 'new'",
                cacheStatus="MISS",
                warehouseExecutionTimeMs=250,
            ),
            # 1 % of 60,000 ms and a little less.
            entries(
                1,
                at=at(DAY),
                standardizedSql="SELECT light",
                cacheStatus="MISS",
                warehouseExecutionTimeMs=250,
            ),
        )
        rebuild(world)

    def test_a_statement_with_one_percent_of_the_time(self, world: World) -> None:
        self.prepare(world)
        assert lines(make(world), "New heavy statements") == [
            (
                "A statement that is new in the log took 800 ms of the warehouse, 1.3% of its time; "
                "requests: 3. SELECT 'new'"
            )
        ]

    def test_in_a_young_log_nothing_is_new(self, world: World) -> None:
        self.prepare(world, history=6)
        assert headings(make(world)) == ["Totals"]


class TestErrors:
    def test_a_burst(self, world: World) -> None:
        base = DAY - dt.timedelta(days=1)
        put(world, base, entries(96, at=at(base), cacheStatus="ERROR"))
        put(
            world,
            DAY,
            # The usual is 4 in an hour.
            entries(12, at=at(DAY, hour=1), cacheStatus="ERROR"),
            entries(13, at=at(DAY, hour=5), cacheStatus="ERROR"),
            entries(16, at=at(DAY, hour=6), cacheStatus="INVALIDATION_ERROR"),
            entries(20, at=at(DAY, hour=6), cacheStatus="HIT"),
            entries(15, at=at(DAY, hour=9), cacheStatus="ERROR"),
            entries(50, at=at(DAY, hour=10), cacheStatus="AUTH_ERROR"),
        )
        rebuild(world)
        assert lines(make(world), "Bursts of errors") == [
            "Failed between 2026-03-31 05:00 UTC and 2026-03-31 07:00 UTC: 29, beside 20 requests.",
            "Failed between 2026-03-31 09:00 UTC and 2026-03-31 10:00 UTC: 15, beside 0 requests.",
            "Usual in an hour of the week before: 4.",
        ]

    def test_a_burst_in_the_last_hour_of_the_calendar(self, world: World) -> None:
        put(world, DAY, entries(10, at=MAX_TIMESTAMP - 9_000, cacheStatus="ERROR"))
        rebuild(world)
        sentence = "Failed between 9999-12-31 23:00 UTC and 9999-12-31 23:59 UTC: 10, beside 0 requests."
        assert sentence in lines(make(world), "Bursts of errors")

    @pytest.mark.parametrize(
        ("errors", "others", "is_burst"), [(9, 0, False), (10, 0, True), (10, 190, True), (10, 191, False)]
    )
    def test_ten_errors_that_are_five_percent_are_a_burst_where_there_are_none(
        self, world: World, errors: int, others: int, is_burst: bool
    ) -> None:
        put(
            world,
            DAY,
            entries(errors, at=at(DAY), cacheStatus="ERROR"),
            entries(others, at=at(DAY), cacheStatus="HIT"),
            # These are no requests of users.
            entries(99, at=at(DAY), cacheStatus="EXECUTOR"),
        )
        rebuild(world)
        assert ("Bursts of errors" in headings(make(world))) is is_burst


def test_stale_risk_above_one_percent(world: World) -> None:
    change = {"cacheStatus": "BYPASS", "isDataChange": True, "tables": '["s.a"]'}
    hit = {"cacheStatus": "HIT", "tables": '["s.a"]', "cacheAgeSeconds": 3_600}
    put(
        world,
        DAY,
        entries(1, at=at(DAY), standardizedSql="UPDATE s.a SET x = ?", **change),
        entries(2, at=at(DAY) + 60_000, matchedRule="it's", **hit),
        entries(98, at=at(DAY, hour=1), matchedRule="it's", **hit),
        # One in a hundred is not more than one percent.
        entries(1, at=at(DAY) + 60_000, matchedRule="calm", **hit),
        entries(99, at=at(DAY, hour=1), matchedRule="calm", **hit),
    )
    rebuild(world)
    older = "older than a change of a table that they read"
    assert lines(make(world), "Stale risk") == [
        f"Hits of it's that were {older}: 2 of 100.",
        "Hits without an age in the log are not counted.",
        "A write that does not pass the Gateway is not in the log, so the true risk may be higher.",
    ]


def test_a_leak_names_no_user(world: World) -> None:
    shared = {
        "standardizedSql": "SELECT current_user",
        "statementType": "SELECT",
        "cacheKey": "k",
        "cacheStatus": "HIT",
    }
    put(
        world,
        DAY,
        entries(2, at=at(DAY), userName="Ana Maria", matchedRule="r", operationType="SYNC", **shared),
        entries(1, at=at(DAY), userName="Bo", matchedRule="r", operationType="EXECUTE_STATEMENT", **shared),
    )
    rebuild(world)
    digest = make(world)
    assert lines(digest, "Leaks") == [
        (
            "Several users shared results of a statement that depends on the user, by r: 1 cached result was "
            "served to 2 users, 3 times. SELECT current_user"
        )
    ]
    assert "Ana" not in str(digest.document)
    (leaking,) = digest.document["leaking"]
    assert (leaking["standardizedSql"], leaking["statementType"], leaking["cacheOverride"]) == (
        "SELECT current_user",
        "SELECT",
        None,
    )
    assert not {"userName", "clientIp", "userAgent", "operationType"} & leaking.keys()
    for closing in (None, Closing(RevisionKind.RULES, 4), Closing(RevisionKind.CONFIG, 5)):
        sections = {item.id: item for item in digest_document(digest, closing).sections}
        told = [(sections[name].closed_by, sections[name].closed_by_config) for name in ("totals", "leaks")]
        assert told == [(None, None), (closing and closing.rules, closing and closing.config)]


@pytest.mark.parametrize(("names", "is_kept"), [(1_000, True), (10_000, False)])
def test_a_digest_keeps_no_large_statements_that_leaked(world: World, names: int, is_kept: bool) -> None:
    sql = f"SELECT current_user, {', '.join(f'c{number}' for number in range(names))}"
    shared = {"standardizedSql": sql, "cacheKey": "k", "cacheStatus": "HIT", "matchedRule": "r"}
    put(world, DAY, *(entries(1, at=at(DAY), userName=name, **shared) for name in ("Ana", "Bo")))
    rebuild(world)
    assert [item["standardizedSql"] for item in make(world).document.get("leaking", [])] == [sql] * is_kept


class TestPublishes:
    def test_the_cost_of_a_write(self, world: World) -> None:
        written = at(DAY, hour=12)
        seq = TestMovedRules().write(world, "r", at=written)
        stored = {"cacheStatus": "MISS", "matchedRule": "r", "cacheKey": "k"}

        def store(key: str, time: int, *, expires: int | None = None) -> list[dict[str, Any]]:
            fields = {**stored, "queryHash": key, "warehouseExecutionTimeMs": 1_500}
            return entries(1, at=time, cacheExpiresAt=expires, **fields)

        put(
            world,
            DAY,
            store("again", written - HOUR, expires=written + HOUR),
            store("again", written + 1_000),
            store("again", written + 2_000),
            # Expired before it was asked for, expired before the write, and never stored before.
            store("later", written - HOUR, expires=written + HOUR),
            store("later", written + HOUR),
            store("old", written - HOUR, expires=written - 1),
            store("old", written),
            store("new", written),
        )
        rebuild(world)
        assert lines(make(world), "Published rules") == [
            (
                f"Rules were published with revision {seq} (2026-03-31 12:00 UTC): it added r, "
                "and emptied the cache. "
                "That cost 1.5 s of warehouse time, because 1 result that was still valid had to be made "
                "again."
            )
        ]

    def test_a_write_outside_of_the_day_is_not_its_own(self, world: World) -> None:
        TestMovedRules().write(world, "r", at=at(DAY, hour=0) - 1)
        put(world, DAY, entries(1, at=at(DAY), cacheStatus="HIT"))
        rebuild(world)
        assert headings(make(world)) == ["Totals"]


class TestRecommendations:
    @pytest.mark.slow
    def test_the_first_three_open_ones_are_named(self, world: World) -> None:
        put(world, DAY, served(DAY, hits=60, misses=40))
        for day in earlier():
            put(world, day, served(day, hits=6, misses=4))
        rebuild(world)
        for rank, state in enumerate(["open", "dismissed", "drafted", "open", "open"], start=1):
            factories.recommendation(
                world.tenant, title=f"Cache table {rank}", fingerprint=str(rank), rank=rank, state=state
            )
        digest = make(world)
        assert lines(digest, "Open recommendations") == [
            "It would help: Cache table 1.",
            "It would help: Cache table 3.",
            "It would help: Cache table 4.",
            "There are more open recommendations.",
        ]
        names = [name for name in digest.document["names"] if name["kind"] == "recommendation"]
        pk = Recommendation.objects.get(rank=1).pk
        assert names[0]["href"] == f"/tenants/{world.tenant.pk}/recommendations/{pk}"

    def test_they_make_no_day_remarkable(self, world: World) -> None:
        for day in (DAY, *earlier()):
            put(world, day, served(day, hits=60, misses=40))
        rebuild(world)
        factories.recommendation(world.tenant)
        assert headings(make(world)) == ["Totals"]


class TestSavings:
    """One execution at noon, and a hit at three that would have woken the warehouse again."""

    def prepare(
        self,
        world: World,
        *prices: dict[str, Any],
        hit_at: int = at(DAY, hour=15),
        again_at: int | None = None,
    ) -> list[str]:
        factories.set_prices(world.tenant, *prices)
        fields = {"standardizedSql": "SELECT 1", "serverHostname": "h"}
        executions = [item for item in (at(DAY), again_at) if item is not None]
        put(
            world,
            DAY,
            *(
                entries(1, at=item, cacheStatus="MISS", warehouseExecutionTimeMs=60_000, **fields)
                for item in executions
            ),
            entries(1, at=hit_at, cacheStatus="HIT", matchedRule="r", **fields),
            # It makes the day remarkable.
            entries(10, at=at(DAY, hour=9), cacheStatus="ERROR"),
        )
        put(
            world,
            DAY - dt.timedelta(days=1),
            entries(1, at=at(DAY - dt.timedelta(days=1)), cacheStatus="HIT"),
        )
        rebuild(world)
        digest = make(world)
        assert headings(digest) == ["Bursts of errors", "Totals", "Saved on the bill"]
        return lines(digest, "Saved on the bill")

    def test_money_and_hours_come_after_what_was_unusual(self, world: World) -> None:
        price = {"from": "2026-01-01", "currency": "USD", "perHour": "3.00", "billing": "suspending"}
        assert self.prepare(world, price) == [
            "Saved on the bill: 0.30 USD, 50.0% of the bill without the cache.",
            "The warehouse was awake for 0.1 h, 6 min less than without the cache.",
        ]

    def test_a_host_costs_its_own_price(self, world: World) -> None:
        price = {"from": "2026-01-01", "currency": "USD", "perHour": "3.00", "billing": "suspending"}
        prices = ({**price, "host": "other"}, {**price, "host": "h", "perHour": "9.00"})
        assert self.prepare(world, *prices)[0] == (
            "Saved on the bill: 0.90 USD, 50.0% of the bill without the cache."
        )

    def test_little_time_is_told_exactly(self, world: World) -> None:
        price = {"from": "2026-01-01", "currency": "USD", "perHour": "3.00", "billing": "suspending"}
        assert self.prepare(world, price, hit_at=at(DAY) + 1) == [
            "Saved on the bill: 0 USD, <0.1% of the bill without the cache.",
            "The warehouse was awake for 0.1 h, 1 ms less than without the cache.",
        ]

    def test_without_a_price_there_are_hours_alone(self, world: World) -> None:
        told = "The warehouse was awake for 0.1 h, 6 min less than without the cache."
        assert self.prepare(world) == [told]

    def test_a_cost_is_no_saving_with_a_minus(self, world: World) -> None:
        """Run, the hit would have joined both executions, and a second start would not have been billed."""
        price = {"from": "2026-01-01", "currency": "USD", "perHour": "3.00", "billing": "suspending"}
        short = {**price, "autoSuspendSeconds": 60, "minimumSeconds": 600}
        assert self.prepare(world, short, hit_at=at(DAY) + 90_000, again_at=at(DAY) + 180_000) == [
            "The cache cost 0.50 USD, 100% of the bill without the cache.",
            "The warehouse was awake for 0.3 h, 10 min more than without the cache.",
        ]

    def test_halves_are_rounded_up_and_yen_have_no_digits(self, world: World) -> None:
        """Six minutes at 5 an hour are 0.5."""
        price = {"from": "2026-01-01", "currency": "JPY", "perHour": "5", "billing": "suspending"}
        amount = "1 JPY, 50.0% of the bill without the cache"
        assert self.prepare(world, price)[0] == f"Saved on the bill: {amount}."


@pytest.mark.slow
def test_new_statements_are_found_in_less_memory_than_the_earlier_ones_take(tmp_path: Path) -> None:
    file = tmp_path / "log.parquet"
    with duckdb.connect() as engine:
        # 134 MB of earlier statements, all different.
        engine.execute(
            f"""
            COPY (
                SELECT '2026-03-' || lpad((1 + i % 28)::VARCHAR, 2, '0') AS day, 'MISS' AS cacheStatus,
                    repeat(md5(i::VARCHAR), 7) AS standardizedSql, 5 AS warehouseExecutionTimeMs
                FROM range(600_000) AS earlier (i)
                UNION ALL SELECT '2026-03-29', 'MISS', 'new', 1000
                UNION ALL SELECT '2026-03-29', 'MISS', repeat(md5('7'), 7), 1000
            ) TO '{file}'"""
        )
    with duckdb.connect(config={"memory_limit": "80MB", "threads": 1}) as engine:
        engine.execute(f"CREATE VIEW proxy_logs AS FROM '{file}'")
        log = DigestLog(engine, [dt.date(2026, 3, day) for day in range(1, 30)])
        section = statements_section(log, DigestPeriod.of_day(dt.date(2026, 3, 29)))
    assert section is not None
    assert [name.value for name in section.names] == ["new"]
