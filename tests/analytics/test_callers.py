"""Which programs and users ask, what they cost, and what is saved for each."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command

from accounts.access.scopes import Scope
from logs.layout import day_start_ms
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from tests.factories import World

pytestmark = pytest.mark.django_db(transaction=True)
DAY = dt.date(2026, 3, 1)
TABLEAU, PYTHON = "Tableau/2024.2 ODBC/3.3.2", "PythonConnector/4.8.1 (Linux) CPython/3.11.7"


def entry(at: int, status: str, agent: str | None, ms: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        "timestamp": day_start_ms(DAY) + at * 60_000,
        "cacheStatus": status,
        "userAgent": agent,
        "standardizedSql": "SELECT 1",
        "userName": "ana",
        "warehouseExecutionTimeMs": ms,
        "responseTimeMs": 5,
        "responseSize": 1,
        **more,
    }


@pytest.fixture
def client(world: World) -> ApiClient:
    factories.set_prices(
        world.tenant, {"from": "2026-01-01", "perHour": "36", "currency": "USD", "billing": "busy"}
    )
    entries = [
        entry(0, "MISS", TABLEAU, 30_000),
        entry(10, "MISS", "Tableau/2023.1", 10_000),
        entry(20, "PASSTHROUGH", PYTHON, 20_000, standardizedSql="SELECT 2", userName="bo"),
        entry(30, "HIT", TABLEAU),
        entry(40, "HIT", None, userName=None),
        entry(50, "BLOCKED", "Metabase v0.50.10 [1]", standardizedSql="SELECT 3"),
    ]
    save_entries(world.tenant.pk, DAY, entries, name="00/a.json")
    call_command("rebuild", tenant=world.tenant.pk)
    scopes = (Scope.ANALYTICS_READ, Scope.ANALYTICS_USERS, Scope.LOGS_QUERY)
    return ApiClient(factories.pat_token(world.owner, *scopes, tenants=[str(world.tenant.pk)]))


def get(client: ApiClient, world: World, path: str) -> Any:
    days = f"from={DAY}&to={DAY}"
    answer = client.get(f"/tenants/{world.tenant.pk}/{path}{'&' if '?' in path else '?'}{days}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_programs_have_their_shares_of_the_bill(world: World, client: ApiClient) -> None:
    found = get(client, world, "activity/programs")
    rows = [
        (
            row["name"],
            row["requests"],
            row["hits"],
            row["warehouseMs"],
            row["cost"],
            row["sparedMs"],
            row["saved"],
        )
        for row in found["callers"]
    ]
    # 60 s at a cent a second; what was spared is twice the mean of 20 s.
    assert rows == [
        ("Tableau", 3, 1, 40_000, "0.40", 20_000, "0.20"),
        ("Snowflake Connector for Python", 1, 0, 20_000, "0.20", 0, "0.00"),
        (None, 1, 1, 0, "0.00", 20_000, "0.20"),
    ]
    assert (found["currency"], found["rest"]) == ("USD", None)


def test_users_are_named_to_members(world: World, client: ApiClient) -> None:
    found = get(client, world, "activity/users")
    assert [(row["name"], row["requests"], row["cost"]) for row in found["callers"]] == [
        ("ana", 3, "0.40"),
        ("bo", 1, "0.20"),
        (None, 1, "0.00"),
    ]


@pytest.mark.parametrize(
    ("program", "count"),
    [("Tableau", 3), ("none", 1), ("Metabase", 1), ("Snowflake Connector for Python", 1)],
)
def test_requests_are_those_of_a_program(world: World, client: ApiClient, program: str, count: int) -> None:
    assert len(get(client, world, f"requests?program={program}")["requests"]) == count
    histogram = get(client, world, f"requests/histogram?program={program}")
    assert sum(bucket["entries"] for bucket in histogram["buckets"]) == count


def test_statements_are_those_that_a_program_sent(world: World, client: ApiClient) -> None:
    def sent(program: str) -> list[str]:
        return [one["statement"] for one in get(client, world, f"statements?program={program}")["statements"]]

    assert sent("Tableau") == ["SELECT 1"]
    assert sent("Metabase") == ["SELECT 3"]
    assert sent("Superset") == []


def test_the_headline_of_savings_says_what_people_felt(world: World, client: ApiClient) -> None:
    # Two hits in 5 ms, whose statement takes 20 s.
    assert get(client, world, "savings")["text"]["headline"] == (
        "5 answers; 2 in 5 ms instead of 20 s: 40.0 s of waiting spared; 0.40 USD."
    )
