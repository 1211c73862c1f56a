"""The requests of each day with their change, and the statements of a few days."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Revision
from accounts.tenants.lifecycle import delete_tenant
from analytics.models import DayRollup, TenantHealth
from logs.layout import day_start_ms
from tenantadmin.lib.core.timestamps import format_timestamp
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from tests.factories import World


LAST = dt.date(2026, 3, 28)


def add_day(world: World, age: int, hits: int, misses: int, not_cached: int | None = 0) -> None:
    """Store the sums of a day, in which each hit took 2 ms and each miss 10."""
    DayRollup.objects.create(
        tenant_id=world.tenant.pk,
        day=LAST - dt.timedelta(days=age),
        build="b",
        version=1,
        files={},
        bytes=1,
        hits=hits,
        misses=misses,
        not_cached=not_cached,
        warehouse_ms=10 * misses,
        hit_bytes=hits,
        hit_time_sum=2 * hits,
        hit_time_count=hits,
        miss_time_sum=10 * misses,
        miss_time_count=misses,
    )


def put_day(world: World, *entries: dict[str, Any], day: dt.date = LAST) -> None:
    numbered = [
        {"logId": f"{day}-{number}", "timestamp": day_start_ms(day) + number, "responseTimeMs": 5, **entry}
        for number, entry in enumerate(entries)
    ]
    save_entries(world.tenant.pk, day, numbered)


def get(world: World, path: str, status: int = 200) -> Any:
    token = factories.pat_token(world.owner, "analytics:read", tenants=[str(world.tenant.pk)])
    answer = ApiClient(token).get(f"/tenants/{world.tenant.pk}/{path}")
    assert answer.status_code == status, answer.content
    return answer.json()


class TestActivity:
    def test_a_period_is_compared_with_the_one_before_by_its_days_with_requests(self, world: World) -> None:
        for age, *counts in ((0, 60, 40, 30), (6, 0, 0), (7, 90, 10, 10), (13, 0, 100), (14, 1000, 1000)):
            add_day(world, age, *counts)
        answer = get(world, "activity?from=2026-03-22&to=2026-03-28")
        assert (answer["firstDay"], answer["lastDay"]) == ("2026-03-14", "2026-03-28")
        assert answer["days"][1] == {
            "day": "2026-03-28",
            "hits": 60,
            "storedMisses": 10,
            "notCached": 30,
            "warehouseMs": 400,
        }
        assert answer["total"] == {
            "days": 1,
            "hits": 60,
            "storedMisses": 10,
            "notCached": 30,
            "warehouseMs": 400,
            "hitRate": 0.6,
            "hitResponseMs": 2,
            "missResponseMs": 10,
            "cachedBytes": 60.0,
        }
        assert answer["before"] == {
            "from": "2026-03-15",
            "to": "2026-03-21",
            "days": 2,
            "text": "Changes compare the mean day with that of the period before (15 to 21 March). "
            "The page Savings shows what was saved in each. "
            "Days without requests are left out: 1 of this period and 2 of the one before have some.",
        }
        assert {name: round(value, 6) for name, value in answer["change"].items()} == {
            "hits": 15,
            "storedMisses": -40,
            "notCached": 25,
            "requests": 0,
            "warehouseMs": -150,
            "cachedBytes": 15,
            "hitRate": 0.15,
            "hitResponseMs": 0,
            "missResponseMs": 0,
        }

    def test_days_are_counted_for_the_reader_only_if_some_have_no_request(self, world: World) -> None:
        for age in range(14):
            add_day(world, age, 1, 1)
        text = get(world, "activity?from=2026-03-22&to=2026-03-28")["before"]["text"]
        assert text == (
            "Changes compare the mean day with that of the period before (15 to 21 March). "
            "The page Savings shows what was saved in each."
        )

    def test_a_period_with_few_days_is_not_compared(self, world: World) -> None:
        for age in (0, 1, 2, 3, 7):
            add_day(world, age, 1, 1)
        answer = get(world, "activity?from=2026-03-22&to=2026-03-28")
        assert answer["change"] is None
        few = "1 of its days has requests, too few to compare with."
        assert answer["before"]["text"] == f"Not compared with the period before (15 to 21 March): {few}"
        add_day(world, 8, 1, 1)
        assert get(world, "activity?from=2026-03-22&to=2026-03-28")["change"] is not None

    def test_a_day_is_compared_with_the_week_before(self, world: World) -> None:
        add_day(world, 0, 1, 1)
        add_day(world, 7, 1, 3)
        answer = get(world, "activity?from=2026-03-28&to=2026-03-28")
        assert (answer["before"]["from"], answer["before"]["to"]) == ("2026-03-21", "2026-03-27")
        assert answer["change"]["hitRate"] == 0.25

    @pytest.mark.parametrize(
        ("asked", "before"),
        [
            ("from=2026-03-01&to=2026-03-31", ("2026-02-01", "2026-02-28")),
            ("from=2026-01-01&to=2026-01-31", ("2025-12-01", "2025-12-31")),
            ("from=2024-01-01&to=2024-12-31", ("2023-01-01", "2023-12-31")),
            ("from=2026-03-02&to=2026-03-31", ("2026-01-31", "2026-03-01")),
        ],
    )
    def test_a_month_is_compared_with_a_month_and_a_year_with_a_year(
        self, world: World, asked: str, before: tuple[str, str]
    ) -> None:
        answer = get(world, f"activity?{asked}")["before"]
        assert (answer["from"], answer["to"]) == before

    def test_without_days_it_is_of_the_last_28(self, world: World) -> None:
        add_day(world, 1, 0, 0)
        answer = get(world, "activity")
        assert (answer["from"], answer["to"], answer["lastDay"]) == ("2026-02-28", "2026-03-27", "2026-03-27")
        assert (answer["change"], answer["total"]["hitRate"], answer["total"]["missResponseMs"]) == (
            None,
        ) * 3
        DayRollup.objects.all().delete()
        assert get(world, "activity")["lastDay"] is None

    def test_days_that_are_none(self, world: World) -> None:
        for days in ("from=2026-03-28", "from=2026-03-28&to=2026-03-27", "from=2025-03-01&to=2026-03-28"):
            get(world, f"activity?{days}", 400)


class TestRules:
    def test_the_days_of_a_rule_add_up(self, world: World) -> None:
        put_day(
            world,
            {
                "matchedRule": "r",
                "cacheStatus": "MISS",
                "standardizedSql": "a",
                "warehouseExecutionTimeMs": 6,
            },
            {"matchedRule": "r", "cacheStatus": "HIT", "standardizedSql": "a"},
            {"matchedRule": "deny", "cacheStatus": "BLOCKED", "standardizedSql": "b"},
        )
        put_day(
            world,
            {"matchedRule": "r", "cacheStatus": "BYPASS", "standardizedSql": "a"},
            day=LAST - dt.timedelta(days=1),
        )
        put_day(world, {"matchedRule": "r", "cacheStatus": "HIT"}, day=LAST - dt.timedelta(days=28))
        call_command("rebuild")
        answer = get(world, "activity/rules")
        assert (answer["from"], answer["to"]) == ("2026-03-01", "2026-03-28")
        rule, deny = answer["rules"]
        assert rule == {
            "ruleId": "r",
            "ruleName": None,
            "queriesMatched": 1,
            "totalExecutions": 3,
            "cacheHits": 1,
            "cacheMisses": 2,
            "hitRate": 0.3333,
            "warehouseTimeSavedMs": 6,
            "requests": 3,
            "notCached": 1,
        }
        assert (deny["requests"], deny["totalExecutions"]) == (1, 0)
        (rule,) = get(world, "activity/rules?from=2026-03-27&to=2026-03-27")["rules"]
        assert (rule["requests"], rule["cacheHits"]) == (1, 0)
        assert get(world, "activity/rules?from=2026-03-29&to=2026-03-29")["rules"] == []
        get(world, "activity/rules?from=2026-03-28", 400)


class TestStatements:
    def test_the_main_rule_may_be_none(self, world: World, object_store: Path) -> None:
        passed = {"standardizedSql": "SELECT A", "cacheStatus": "PASSTHROUGH"}
        bypassed = {"standardizedSql": "SELECT A", "cacheStatus": "BYPASS", "matchedRule": "r"}
        put_day(world, passed, passed, bypassed)
        call_command("rebuild", tenant=world.tenant.pk)
        (only,) = get(world, "statements?from=2026-03-28&to=2026-03-28&mainRule=none")["statements"]
        assert (only["mainRule"], only["matchedRule"]) == (None, "r")

    def prepare(self, world: World) -> None:
        put_day(
            world,
            {"standardizedSql": "SELECT A", "cacheStatus": "MISS", "warehouseExecutionTimeMs": 30},
            {"standardizedSql": "SELECT A", "cacheStatus": "HIT", "matchedRule": "r", "responseSize": 7},
            {"standardizedSql": "select b", "cacheStatus": "PASSTHROUGH", "warehouseExecutionTimeMs": 50},
        )
        put_day(
            world,
            {"standardizedSql": "SELECT A", "cacheStatus": "BYPASS", "responseTimeMs": 11},
            {"standardizedSql": "<statements>'", "cacheStatus": "ERROR"},
            {"standardizedSql": None, "cacheStatus": "TELEMETRY"},
            day=LAST - dt.timedelta(days=1),
        )
        call_command("rebuild", tenant=world.tenant.pk)

    def test_they_are_summed_over_the_days(self, world: World, object_store: Path) -> None:
        self.prepare(world)
        answer = get(world, "statements?from=2026-03-27&to=2026-03-28&limit=2")
        assert answer["total"] == 3
        assert [one["statement"] for one in answer["statements"]] == ["select b", "SELECT A"]
        first = answer["statements"][1]
        assert len(first.pop("queryHash")) == 32
        assert first == {
            "statement": "SELECT A",
            "lastDay": "2026-03-28",
            "requests": 3,
            "hits": 1,
            "storedMisses": 1,
            "notCached": 1,
            "averageResponseTime": 7,
            "warehouseExecutionTimeMs": 30,
            "matchedRule": "r",
            "mainRule": "r",
            "cacheStatus": "HIT",
            "responseSize": 7,
            "firstRequestTime": "2026-03-27T00:00:00.000Z",
            "lastRequestTime": "2026-03-28T00:00:00.001Z",
        }
        assert get(world, "statements?from=2026-01-01&to=2026-01-02")["statements"] == []
        get(world, "statements?from=2026-01-01&to=2026-03-02", 400)

    def test_they_are_filtered_and_sorted(self, world: World, object_store: Path) -> None:
        self.prepare(world)
        for query, expected in {
            "statement=SELECT%20B": ["select b"],
            # A text that stands for a table elsewhere.
            "statement=%3Cstatements%3E%27": ["<statements>'"],
            "rule=r": ["SELECT A"],
            "rule=none&status=ERROR": ["<statements>'"],
            "mainRule=r": ["SELECT A"],
            "mainRule=none&statement=select": ["select b"],
            "order=requests&limit=1": ["SELECT A"],
            "order=response&limit=1": ["SELECT A"],
            "order=hit-rate": ["select b", "SELECT A", "<statements>'"],
        }.items():
            answer = get(world, f"statements?from=2026-03-27&to=2026-03-28&{query}")
            assert [one["statement"] for one in answer["statements"]] == expected, query
            assert answer["total"] == (3 if query.startswith("order") else 1)


DAY = dt.date(2026, 3, 1)


def test_each_live_tenant_of_the_token_has_its_week(world: World) -> None:
    new = factories.make_tenant(world.account, "New", owner=world.owner)
    unnamed = factories.make_tenant(world.account, "Not named by the token", owner=world.owner)
    gone = factories.make_tenant(world.account, "Deleted", owner=world.owner)
    TenantHealth.objects.create(
        tenant_id=world.tenant.pk, last_day=DAY, rate_7=0.25, requests_7=8, misses_7=6, warehouse_ms_7=500
    )
    ids = [str(item.pk) for item in (world.tenant, new, gone)]
    token = factories.pat_token(world.owner, "analytics:read", tenants=ids)
    delete_tenant(tenant_id=gone.pk, actor=world.owner.email)
    client = ApiClient(token)
    answer = client.get("/tenants/weeks").json()
    none = {"lastDay": None, "requests": 0, "hitRate": None, "warehouseMs": 0}
    full = {"lastDay": "2026-03-01", "requests": 8, "hitRate": 0.25, "warehouseMs": 500}
    found = {week.pop("tenantId"): week for week in answer["weeks"]}
    newest = Revision.objects.filter(tenant_id=new.pk).latest("changed_at").changed_at
    assert {it.pop("changedAt") for id_, it in found.items() if id_ == str(new.pk)} == {
        format_timestamp(newest)
    }
    del found[ids[0]]["changedAt"]
    assert found == {ids[0]: full, ids[1]: none}
    assert str(unnamed.pk) not in found
    assert {(item["name"], item["href"]) for item in answer["_links"]["items"]} == {
        (tenant, f"/config/tenants/{tenant}") for tenant in ids[:2]
    }


def test_pages_follow_each_other_in_as_many_queries_for_each(world: World) -> None:
    made = [
        world.tenant,
        *(factories.make_tenant(world.account, f"T{n}", owner=world.owner) for n in range(4)),
    ]
    client = ApiClient(
        factories.pat_token(world.owner, "analytics:read", tenants=[str(item.pk) for item in made])
    )
    client.get("/tenants/weeks")

    def read(path: str) -> tuple[list[str], str | None, int]:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            body = client.get(path).json()
        ids = [week["tenantId"] for week in body["weeks"]]
        return ids, body["_links"].get("next", {}).get("href"), len(queries)

    first, following, few = read("/tenants/weeks?limit=1")
    rest, end, many = read(following.replace("limit=1", "limit=9") if following else "")
    assert first + rest == sorted(str(item.pk) for item in made)
    assert (end, few) == (None, many)


def test_a_cursor_of_another_list_is_refused(world: World) -> None:
    client = ApiClient(factories.pat_token(world.owner, "analytics:read", tenants=[str(world.tenant.pk)]))
    for cursor in ("WyJ4Il0", "WzFd", "!"):
        answer = client.get(f"/tenants/weeks?cursor={cursor}")
        assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "/cursor")
