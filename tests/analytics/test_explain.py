"""Explanations of logged requests: by which rules, disagreement, and why a miss was one."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Revision
from logs.layout import day_start_ms
from logs.models import QueryRun
from rules.models import Marker
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import format_timestamp
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from tests.factories import World

#: Tomorrow, so that the rules are older than the log.
DAY = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=1)
START = day_start_ms(DAY)
TTL = 3600
RULES = [
    {
        "id": "sales",
        "name": "Sales",
        "conditions": {"tables": {"containsAny": ["sales.*"]}},
        "ttlSeconds": TTL,
    }
]
KEY = {
    "queryHash": "own",
    "standardizedSql": "SELECT ?",
    "parameterValues": "[1]",
    "tables": '["sales.orders"]',
}


def moment(milliseconds: int) -> str:
    return format_timestamp(dt.datetime.fromtimestamp((START + milliseconds) / 1000, dt.UTC))


def entry(log_id: str, at: int, status: str = "MISS", **fields: Any) -> dict[str, Any]:
    return {
        "logId": log_id,
        "timestamp": START + at,
        "cacheStatus": status,
        "matchedRule": "sales",
        "warehouseExecutionTimeMs": 100 if status == "MISS" else None,
        "cacheTtlSeconds": TTL,
        "cacheKeyVersion": 2,
        **KEY,
        **fields,
    }


@pytest.fixture
def explain(world: World) -> Callable[..., Any]:
    """Store entries, and return the answer for the one with the id ``x``."""
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": RULES}, actor=world.owner.email)
    client = ApiClient(factories.sign_in(world.member))

    def run(*entries: dict[str, Any], log_id: str = "x", status: int = 200, **body: Any) -> Any:
        save_entries(world.tenant.pk, DAY, entries)
        call_command("rebuild", tenant=world.tenant.pk)
        asked = {"logId": log_id, "day": DAY.isoformat(), **body}
        asked = {name: value for name, value in asked.items() if value is not None}
        answer = client.post(f"/tenants/{world.tenant.pk}/explain", asked)
        assert answer.status_code == status, answer.content
        return answer.json()

    return run


def test_the_rules_in_force_decide(world: World, explain: Callable[..., Any]) -> None:
    body = explain(entry("x", 0, "HIT"))
    assert (body["decision"]["ruleId"], body["disagreement"], body["miss"]) == ("sales", None, None)
    assert body["ruleset"]["seq"] == 1
    assert body["ruleset"]["inForce"] is True
    assert body["logged"]["cacheStatus"] == "HIT"
    assert [run.outcome for run in QueryRun.objects.filter(email=world.member.email)] == ["ok"]


def test_another_revision_may_decide(explain: Callable[..., Any]) -> None:
    body = explain(entry("x", 0, "HIT"), seq=0)
    assert body["decision"]["statuses"] == ["PASSTHROUGH"]
    assert body["disagreement"] == {"logged": "sales", "traced": None}


def test_a_status_that_no_rule_decides_is_no_disagreement(explain: Callable[..., Any]) -> None:
    assert explain(entry("x", 0, "TELEMETRY", matchedRule=None))["disagreement"] is None
    body = explain(entry("x", 0, "PASSTHROUGH", matchedRule=None))
    assert body["disagreement"] == {"logged": None, "traced": "sales"}


def test_the_ttl_expired(explain: Callable[..., Any]) -> None:
    # Born at 100 ms, so it expires at 3,600,100 ms.
    late = 100 + 1000 * TTL
    body = explain(entry("s", 0), entry("x", late, missReason="ttl-expired"))
    assert body["miss"] == {
        "reason": "ttl-expired",
        "reconstructed": False,
        "lastStore": {"logId": "s", "at": moment(0)},
        "storedAt": moment(100),
        "expiredAt": moment(late),
        "ttlSeconds": TTL,
        "ttlNeeded": TTL + 1,
        "text": "The stored result had expired: it was fresh for 1 h. "
        "It would have been a hit if the result had stayed fresh for 1.0 h.",
    }


def test_a_reason_that_the_log_lacks_is_reconstructed(explain: Callable[..., Any]) -> None:
    late = 100 + 1000 * TTL
    miss = explain(entry("s", 0), entry("x", late))["miss"]
    assert (miss["reason"], miss["reconstructed"]) == ("ttl-expired", True)
    miss = explain(entry("s", 0), entry("x", late - 1))["miss"]
    assert (miss["reason"], miss["reconstructed"]) == ("no-cache-entry", True)


def test_a_marker_ended_the_entry(world: World, explain: Callable[..., Any]) -> None:
    def mark(name: str, at: int) -> None:
        made = dt.datetime.fromtimestamp((START + at) / 1000, dt.UTC)
        Marker.objects.create(
            tenant=world.tenant,
            marker_id=name,
            target_rule_id="sales",
            ttl_seconds=TTL,
            invalidated_at=made,
            expires_at=made + dt.timedelta(seconds=TTL),
            created_at=made,
            invalidated_by={"ruleId": "written", "statement": "UPDATE t"},
        )

    mark("at-birth", 100)
    mark("after", 2001)
    entries = (entry("s", 0), entry("x", 2000, missReason=None))
    assert explain(*entries)["miss"]["reason"] == "no-cache-entry"
    mark("between", 2000)
    assert explain(*entries)["miss"] == {
        "reason": "invalidation-marker",
        "reconstructed": True,
        "marker": {
            "markerId": "between",
            "invalidatedAt": moment(2000),
            "invalidatedBy": {"ruleId": "written", "statement": "UPDATE t"},
        },
        "text": "An invalidation had ended the stored result.",
    }


def test_a_write_of_the_rules_left_the_cache_behind(world: World, explain: Callable[..., Any]) -> None:
    latest = Revision.objects.filter(tenant_id=world.tenant.pk, kind="rules").order_by("-seq")[0]
    latest.pk, latest.seq = None, 2
    latest.changed_at = dt.datetime.fromtimestamp((START + 1000) / 1000, dt.UTC)
    latest.save(force_insert=True)
    miss = explain(entry("s", 0), entry("x", 1000, missReason="no-cache-entry"))["miss"]
    assert miss == {
        "reason": "restart",
        "reconstructed": False,
        "revision": {"seq": 2, "changedAt": moment(1000)},
        "lastStore": {"logId": "s", "at": moment(0)},
        "storedAt": moment(100),
        "text": "The cache was emptied after the result was stored, for example when rules were published.",
    }
    assert explain(entry("s", 1000), entry("x", 1500))["miss"]["reason"] == "no-cache-entry"


def test_a_new_key_version_left_the_cache_behind(explain: Callable[..., Any]) -> None:
    miss = explain(entry("s", 0), entry("x", 1000, cacheKeyVersion=3))["miss"]
    assert (miss["reason"], miss["cacheKeyVersion"]) == ("restart", 3)


def test_the_last_execution_failed(explain: Callable[..., Any]) -> None:
    miss = explain(entry("e", 5, "ERROR"), entry("x", 1000, missReason="no-cache-entry"))["miss"]
    assert (miss["reason"], miss["lastExecution"]["logId"]) == ("not-stored", "e")


def test_the_nearest_entry_of_the_same_statement_is_named(explain: Callable[..., Any]) -> None:
    other = {"queryHash": "other", "parameterValues": "[2]"}
    body = explain(
        entry("o1", 1, **other),
        entry("o2", 2, **other),
        entry("elsewhere", 3, **other, matchedRule="r2"),
        entry("x", 1000, missReason="no-cache-entry"),
        entry("later", 2000, **other),
    )
    assert body["miss"] == {
        "reason": "no-cache-entry",
        "reconstructed": False,
        "firstInDays": 7,
        "nearest": {"logId": "o2", "at": moment(2), "parameterValues": "[2]"},
        "text": "The cache had no result for this request.",
    }


@pytest.mark.parametrize(
    "statement", [None, "", "SELECT 'it''s' \\ \0 ?", "SELECT " + "é" * 9_000, "SELECT " + "a" * 70_000]
)
def test_the_statement_may_be_any_text(explain: Callable[..., Any], statement: str | None) -> None:
    """It may be absent, hold quotes and NUL, or be longer than a query may be."""
    entries = [
        entry("s", 1, queryHash="same", standardizedSql=statement),
        entry("o", 2, queryHash="other", standardizedSql="SELECT other"),
        entry("x", 1000, missReason="no-cache-entry", standardizedSql=statement),
    ]
    miss = explain(*entries)["miss"]
    assert (miss["reason"], miss["nearest"]["logId"]) == ("no-cache-entry", "s")


def test_an_unknown_entry_is_a_404_and_audited(world: World, explain: Callable[..., Any]) -> None:
    assert (
        explain(entry("y", 0), status=404)["message"] == "The log has no entry with this logId on this day."
    )
    assert QueryRun.objects.filter(email=world.member.email).count() == 1


@pytest.mark.slow
def test_without_a_day_the_newest_entry_is_explained(world: World, explain: Callable[..., Any]) -> None:
    """It is searched in the newest 31 days with a log."""
    for age in range(1, 31):
        day = DAY - dt.timedelta(days=40 + age)
        save_entries(world.tenant.pk, day, [{"logId": f"{age}", "cacheStatus": "BYPASS"}])
    save_entries(world.tenant.pk, DAY - dt.timedelta(days=40 + 31), [{"logId": "31"}, {"logId": "x"}])
    client = ApiClient(factories.sign_in(world.member))

    def find(log_id: str) -> Any:
        return client.post(f"/tenants/{world.tenant.pk}/explain", {"logId": log_id})

    assert explain(entry("x", 0, "HIT"), day=None)["logged"]["cacheStatus"] == "HIT"
    assert find("30").json()["logged"]["cacheStatus"] == "BYPASS"
    assert find("31").status_code == 404


@pytest.mark.parametrize(
    ("body", "path"),
    [({"day": "2026-3-1"}, "/day"), ({"day": "2026-02-30"}, "/day"), ({"seq": 77}, "/seq")],
)
def test_a_wrong_body_is_a_400(explain: Callable[..., Any], body: dict[str, Any], path: str) -> None:
    answer = explain(entry("x", 0), status=400, **body)
    assert [detail["path"] for detail in answer["details"]] == [path]


def test_the_number_of_database_queries_does_not_grow(world: World, explain: Callable[..., Any]) -> None:
    def count(*entries: dict[str, Any]) -> int:
        explain(*entries)
        token = factories.sign_in(world.member)
        with CaptureQueriesContext(connection) as captured:
            ApiClient(token).post(
                f"/tenants/{world.tenant.pk}/explain", {"logId": "x", "day": DAY.isoformat()}
            )
        return len(captured)

    last = entry("x", 10 * 1000 * TTL, missReason="ttl-expired")
    assert count(entry("s", 0), last) == count(*(entry(f"s{n}", n) for n in range(20)), last)


def test_the_command_prints_the_same(world: World, explain: Callable[..., Any]) -> None:
    explain(entry("x", 0, tables='["hr.people"]', missReason="no-cache-entry", matchedRuleName="Daily sales"))
    out = io.StringIO()
    call_command("explain", "x", tenant=world.tenant.pk, day=DAY, stdout=out)
    assert out.getvalue().splitlines() == [
        "Logged:   MISS, rule “Daily sales” (sales)",
        "Decides:  rule (none): PASSTHROUGH",
        "Revision: 1",
        "The log names another rule than the one that decides.",
        (
            'Miss:     {"reason": "no-cache-entry", "reconstructed": false, "firstInDays": 7, "nearest": '
            'null, "text": "The cache had no result for this request."}'
        ),
        "not-matched    “Sales” (sales) (distance 1)",
        '    /tables/containsAny: containsAny ["sales.*"], and the value is ["hr.people"]',
    ]
    with pytest.raises(CommandError, match="no entry with this logId"):
        call_command("explain", "y", tenant=world.tenant.pk, day=DAY)
