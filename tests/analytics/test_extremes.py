"""Values at the ends of their types stop no report: every operation on such a log succeeds."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

import pytest
from django.core.management import call_command

from analytics.advice.recommend import queue_mining
from analytics.advice.search import run_mining
from analytics.jobs.digests import make_digest
from analytics.published.verify import stored_keys, verify_document
from analytics.replay.execution import run_next
from analytics.replay.runs import queue_replay
from analytics.watch.facts import DigestPeriod
from logs.audit import Reader
from logs.columns import CACHE_STATUSES, COLUMNS, SqlType
from logs.layout import day_start_ms
from rules.write import write_ruleset
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from tests.factories import World

pytestmark = pytest.mark.slow

#: A week, Monday to Sunday.
DAYS = [dt.date(2026, 3, 2) + dt.timedelta(days=number) for number in range(7)]
LAST = DAYS[-1]
WINDOW = f"from={DAYS[0]}&to={LAST}"
BOUNDS: dict[SqlType, list[Any]] = {
    SqlType.BIGINT: [2**63 - 1, -(2**63), 0, -1, None],
    SqlType.INTEGER: [2**31 - 1, -(2**31), 0, -1, None],
    SqlType.BOOLEAN: [True, False, None],
    SqlType.VARCHAR: ["", "\0", "'", "{{from}}", "İ ß 😀", "a/b", "{", "[1,", "9" * 5000, None],
}
MOMENTS = [0, 1, 253_402_300_799_999, None]
RULES = [
    {"id": "writes", "conditions": {"isDataChange": True}, "invalidateRules": ["reads"]},
    {"id": "reads", "conditions": {"isReadOnly": True}, "ttlSeconds": 31_536_000, "varyBy": ["userName"]},
]


def entries(day: dt.date) -> list[dict[str, Any]]:
    """Return an entry for each value of each column, with each status that counts."""
    numbers = itertools.count()
    found = []
    for column in COLUMNS:
        values = MOMENTS if column.name == "timestamp" else BOUNDS[column.type]
        if column.name == "logId":
            continue
        for value, status in itertools.product(values, ("HIT", "MISS")):
            number = next(numbers)
            found.append(
                {
                    "timestamp": day_start_ms(day) + 1000 * number,
                    "logId": f"{day}-{number}",
                    "userName": f"user {number % 3}",
                    "standardizedSql": f"SELECT {number % 5} FROM s.a",
                    "tables": ["s.a"],
                    "isReadOnly": number % 7 > 0,
                    "isDataChange": number % 7 == 0,
                    "statementType": "SELECT",
                    "cacheStatus": status,
                    "matchedRule": "reads",
                    "cacheKey": f"key {number % 5}",
                    "cacheAgeSeconds": 60 if status == "HIT" else None,
                    "cacheTtlSeconds": 3600,
                    "responseSize": 10,
                    "responseTimeMs": 5,
                    "warehouseExecutionTimeMs": 2**31 - 1 if status == "MISS" else None,
                    column.name: value,
                }
            )
    return [*found, *({"cacheStatus": status} for status in CACHE_STATUSES), {}]


@pytest.fixture
def tenant(world: World) -> UUID:
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": RULES}, actor="a@example.org")
    for day in DAYS:
        save_entries(world.tenant.pk, day, entries(day))
    call_command("rebuild", tenant=world.tenant.pk)
    return world.tenant.pk


class Caller:
    """Calls operations on a tenant, and notes which fail."""

    def __init__(self, world: World) -> None:
        self._base = f"/tenants/{world.tenant.pk}"
        scopes = ("analytics:read", "analytics:users", "logs:read", "logs:query", "config:read")
        self._client = ApiClient(factories.pat_token(world.owner, *scopes, tenants=[str(world.tenant.pk)]))
        self.failed: list[tuple[str, int, bytes]] = []

    def get(self, path: str, **body: Any) -> Any:
        path = path if path.startswith("/") else f"{self._base}/{path}"
        answer = self._client.post(path, body) if body else self._client.get(path)
        if answer.status_code != 200:
            self.failed.append((f"{path} {body}", answer.status_code, answer.content[:300]))
        return answer.json()


@pytest.mark.django_db(transaction=True)
def test_no_operation_fails(world: World, tenant: UUID) -> None:
    caller = Caller(world)
    for path in (
        f"reports/stale?{WINDOW}",
        f"reports/leaks?{WINDOW}",
        f"timeline?{WINDOW}&step=day",
        f"timeline?{WINDOW}&step=hour",
        "setup",
        "summaries/2026",
        "summaries/2026/rules",
        "summaries/2026/opportunities",
        "summaries/2026/03",
        "summaries/2026/03/02",
    ):
        caller.get(path)
    for user in caller.get("users")["users"]:
        # No address of the API has a NUL.
        if "\0" not in user["userId"]:
            for period in ("2026", "2026/03", "2026/03/02"):
                caller.get(f"users/{quote(user['userId'], safe='')}/{period}")
    path, seen = f"requests?{WINDOW}&limit=100", 0
    while path:
        page = caller.get(path)
        seen += len(page["requests"])
        path = page["_links"].get("next", {}).get("href")
    for entry in entries(DAYS[1]):
        if entry.get("logId") and entry["cacheStatus"] == "MISS":
            caller.get("explain", day=str(DAYS[1]), logId=entry["logId"])
    assert caller.failed == []
    # The empty entry of each day is set aside.
    assert seen == len(DAYS) * (len(entries(DAYS[0])) - 1)


@pytest.mark.django_db(transaction=True)
def test_no_job_fails(tenant: UUID) -> None:
    for name in ("2026-03-08", "2026-W10"):
        assert make_digest(default_store(), tenant=tenant, period=DigestPeriod.named(name))
    run = queue_replay(
        tenant_id=tenant,
        rules=RULES,
        actor="a@example.org",
        first_day=DAYS[1],
        last_day=LAST,
        warmup_days=1,
        gateway={},
    )
    while run_next(default_store(), tenant_id=tenant):
        pass
    run.refresh_from_db()
    assert (run.state, run.error) == ("done", "")
    queue_mining(tenant_id=tenant, actor="system")
    found = run_mining(default_store(), tenant_id=tenant)
    assert found is not None
    assert (found.state, found.error) == ("done", "")
    for key in stored_keys(tenant):
        result = verify_document(default_store(), key=key, reader=Reader("r@example.org", "192.0.2.1"))
        assert result.equal, (key, result)


@pytest.mark.django_db
@pytest.mark.parametrize(("first", "last"), [("0001-01-01", "0001-01-05"), ("9999-12-27", "9999-12-31")])
def test_the_calendar_ends_without_a_failure(world: World, first: str, last: str) -> None:
    scopes = ("analytics:read", "logs:query", "config:read", "config:write")
    client = ApiClient(factories.pat_token(world.owner, *scopes, tenants=[str(world.tenant.pk)]))
    base = f"/tenants/{world.tenant.pk}"
    hours = client.get(f"{base}/timeline?from={first}&to={last}&step=hour").json()["buckets"]
    assert (len(hours), hours[-1]["at"]) == (120, f"{last}T23:00:00.000Z")
    assert client.get(f"{base}/requests?to={last}").json()["requests"] == []
    assert client.post(f"{base}/replays", {"rules": [], "from": first, "to": last}).status_code == 202
