"""The nine summaries over HTTP: the documents of the oracle, 304, 404, who may read."""

from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from django.core.cache import cache
from django.core.management import call_command

from logs.layout import day_start_ms
from tenantadmin.objectstore import default_store
from tests import factories
from tests.analytics import oracle
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from tests.factories import World

DAYS = (date(2025, 6, 30), date(2026, 3, 1), date(2026, 3, 31))
USERS = ("Ana", "a/b%2F c", "Zoë 2026/03", "")


@pytest.fixture
def rows(world: World) -> list[oracle.Row]:
    """Logs of four users on three days, imported and rebuilt; their rows."""
    cache.clear()
    rows: list[oracle.Row] = []
    for day in DAYS:
        entries = [
            {
                "timestamp": day_start_ms(day) + 3_600_000 * number,
                "userName": user,
                "standardizedSql": f"SELECT {number % 3}",
                "cacheStatus": ("HIT", "MISS", "PASSTHROUGH", "BYPASS", "ERROR")[number % 5],
                "cacheKey": f"k{number % 4}",
                "matchedRule": "r1" if number % 2 else None,
                "responseSize": 100 + number,
                "responseTimeMs": 7 * number,
                "warehouseExecutionTimeMs": 11 * number,
            }
            for number, user in enumerate(USERS * 5)
        ]
        body = json.dumps(entries).encode()
        key = f"{world.tenant.pk}/logs/{day:%Y/%m/%d}/00/a.json"
        default_store().write(key, body)
        rows += oracle.read_day({key: body}, day)
    call_command("rebuild", tenant=world.tenant.pk)
    return rows


@pytest.fixture
def reader(world: World) -> ApiClient:
    return ApiClient(
        factories.pat_token(world.owner, "analytics:read", "analytics:users", tenants=[str(world.tenant.pk)])
    )


def read(reader: ApiClient, world: World, path: str) -> Any:
    answer = reader.get(f"/tenants/{world.tenant.pk}/{path}")
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == "application/json"
    return answer.json()


def test_tenant_documents(world: World, reader: ApiClient, rows: list[oracle.Row]) -> None:
    tenant = str(world.tenant.pk)
    of_year = [row for row in rows if row["day"] >= "2026"]
    of_day = [row for row in rows if row["day"] == "2026-03-01"]

    assert read(reader, world, "summaries/2026") == oracle.year_document(rows, tenant=tenant, year=2026)
    assert read(reader, world, "summaries/2026/03") == oracle.month_document(of_year, 3)
    assert read(reader, world, "summaries/2026/03/01") == oracle.day_document(of_day)
    assert read(reader, world, "summaries/2026/rules") == oracle.rules_document(of_year)
    opportunities = read(reader, world, "summaries/2026/opportunities")
    for entry in [entry for entries in opportunities.values() for entry in entries]:
        assert entry.pop("suggestedAction")
    assert opportunities == oracle.opportunities_document(of_year)
    users = read(reader, world, "users")
    assert users.pop("generatedAt").endswith("Z")
    assert users == oracle.users_document(rows, tenant=tenant)


@pytest.mark.parametrize("user", USERS)
def test_user_documents(world: World, reader: ApiClient, rows: list[oracle.Row], user: str) -> None:
    base = f"users/{quote(user, safe='')}"
    mine = oracle.for_user(rows, user)

    assert read(reader, world, f"{base}/2026") == oracle.year_document(
        mine, tenant=str(world.tenant.pk), year=2026
    )
    of_month = [row for row in mine if row["day"] >= "2026"]
    assert read(reader, world, f"{base}/2026/03") == oracle.month_document(of_month, 3)
    of_day = [row for row in mine if row["day"] == "2026-03-31"]
    assert read(reader, world, f"{base}/2026/03/31") == oracle.day_document(of_day)
    # The second time from the cache.
    assert read(reader, world, f"{base}/2026/03/31") == oracle.day_document(of_day)


@pytest.mark.parametrize(
    "path",
    [
        "summaries/2024",
        "summaries/2024/rules",
        "summaries/2024/opportunities",
        "summaries/2026/04",
        "summaries/2026/03/02",
        "summaries/2026/02/30",
        "summaries/2026/3",
        "summaries/2026/13",
        "summaries/26",
        "summaries/2026/03/1",
        "users/Ana/2024",
        "users/Ana/2026/04",
        "users/Ana/2026/03/02",
        "users/Ana/2026/02/30",
        "users/nobody/2026",
        "users/ana/2026",
    ],
)
@pytest.mark.usefixtures("rows")
def test_a_period_without_data_is_not_found(world: World, reader: ApiClient, path: str) -> None:
    answer = reader.get(f"/tenants/{world.tenant.pk}/{path}")
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["summaries/2026", "summaries/2026/03/01", "users", "users/Ana/2026/03"])
@pytest.mark.usefixtures("rows")
def test_an_unchanged_document_is_not_sent_again(world: World, reader: ApiClient, path: str) -> None:
    address = f"/tenants/{world.tenant.pk}/{path}"
    etag = reader.get(address)["ETag"]
    assert etag.startswith('"')

    again = reader.get(address, **{"If-None-Match": etag})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)
    assert reader.get(address, **{"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.usefixtures("rows")
def test_summaries_need_a_personal_access_token_with_their_scope(world: World, anonymous: ApiClient) -> None:
    tenant = str(world.tenant.pk)

    def status(token: str, path: str) -> int:
        return ApiClient(token).get(f"/tenants/{tenant}/{path}").status_code

    read_only = factories.pat_token(world.member, "analytics:read", tenants=[tenant])
    per_user = factories.pat_token(world.owner, "analytics:users", tenants=[tenant])
    elsewhere = factories.pat_token(
        world.stranger, "analytics:read", "analytics:users", tenants=[str(world.stranger_tenant.pk)]
    )
    for path in ("summaries/2026", "summaries/2026/rules", "summaries/2026/03/01"):
        assert anonymous.get(f"/tenants/{tenant}/{path}").status_code == 401
        assert status(read_only, path) == 200
        assert status(per_user, path) == 403
        assert status(elsewhere, path) == 403
        assert status(factories.sign_in(world.owner), path) == 403
    for path in ("users", "users/Ana/2026", "users/Ana/2026/03/01"):
        assert status(per_user, path) == 200
        assert status(read_only, path) == 403
        assert status(elsewhere, path) == 403


@pytest.mark.usefixtures("rows")
def test_an_unknown_parameter_is_refused(world: World, reader: ApiClient) -> None:
    assert reader.get(f"/tenants/{world.tenant.pk}/summaries/2026?month=3").status_code == 400
