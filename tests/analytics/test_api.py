"""The nine summaries over HTTP: the documents of the oracle, 304, 404, who may read."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable, Iterable
from datetime import date
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.http import StreamingHttpResponse

from analytics.models import Kind, SummaryDocument
from logs.layout import day_start_ms
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics import oracle
from tests.conftest import ApiClient
from tests.objects import save_object

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
        save_object(default_store(), key, body)
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


def test_user_documents(world: World, reader: ApiClient, rows: list[oracle.Row], subtests: Any) -> None:
    for user in USERS:
        with subtests.test(user=user):
            check_user_documents(world, reader, rows, user)


def test_user_documents_without_the_cache(
    world: World,
    reader: ApiClient,
    rows: list[oracle.Row],
    settings: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    mine = oracle.for_user(rows, "Ana")
    month = oracle.month_document([row for row in mine if row["day"] >= "2026"], 3)
    present = settings.CACHES
    for outages in (1, 2):
        # Nothing listens there.
        settings.CACHES = {"default": present["default"] | {"LOCATION": "redis://127.0.0.1:1/0"}}
        for _ in range(2):
            assert read(reader, world, "users/Ana/2026/03") == month
        assert caplog.text.count("The cache does not answer") == outages
        settings.CACHES = present
        assert read(reader, world, "users/Ana/2026/03") == month


def check_user_documents(world: World, reader: ApiClient, rows: list[oracle.Row], user: str) -> None:
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


WITHOUT_DATA = (
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
    "users/unknown/2026",
    "users/ana/2026",
)


@pytest.mark.usefixtures("rows")
def test_a_period_without_data_is_not_found(world: World, reader: ApiClient, subtests: Any) -> None:
    for path in WITHOUT_DATA:
        with subtests.test(path):
            answer = reader.get(f"/tenants/{world.tenant.pk}/{path}")
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


@pytest.mark.usefixtures("rows")
def test_an_unchanged_document_is_not_sent_again(world: World, reader: ApiClient, subtests: Any) -> None:
    for path in ("summaries/2026", "summaries/2026/03/01", "users", "users/Ana/2026/03"):
        with subtests.test(path):
            address = f"/tenants/{world.tenant.pk}/{path}"
            etag = reader.get(address)["ETag"]
            assert etag.startswith('"')

            again = reader.get(address, **{"If-None-Match": etag})
            assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)
            assert reader.get(address, **{"If-None-Match": '"other"'}).status_code == 200


class TestManyStatements:
    """A day of many statements goes out in pieces, and comes from the store as it was written."""

    DAY = date(2026, 4, 1)
    STATEMENTS = 5_000
    #: Far below the document's size, far above a piece's.
    LIMIT = 1 << 20

    @pytest.fixture
    def rows(self, world: World) -> list[oracle.Row]:
        cache.clear()
        entries = (
            {
                "timestamp": day_start_ms(self.DAY) + number,
                "userName": "Ana" if number % 3 else "Bo",
                "standardizedSql": f"SELECT {number} -- {'ü' * 150}",
                "cacheStatus": "MISS",
                "responseTimeMs": number,
            }
            for number in range(self.STATEMENTS)
        )
        body = b"\n".join(json.dumps(entry).encode() for entry in entries)
        key = f"{world.tenant.pk}/logs/{self.DAY:%Y/%m/%d}/00/a.json"
        save_object(default_store(), key, body)
        call_command("rebuild", tenant=world.tenant.pk)
        return oracle.read_day({key: body}, self.DAY)

    def test_the_tenants_is_an_object_sent_in_chunks(
        self, world: World, reader: ApiClient, rows: list[oracle.Row]
    ) -> None:
        address = f"/tenants/{world.tenant.pk}/summaries/2026/04/01"
        stored = SummaryDocument.objects.get(kind=Kind.DAY)
        assert bytes(stored.body) == b""
        assert stored.bytes == default_store().size(stored.file) > 2 * self.LIMIT

        answer = reader.get(address)
        chunks = list(chunks_of(answer))
        assert max(map(len, chunks)) <= 1 << 16
        assert answer["Content-Length"] == str(stored.bytes)
        assert answer["Content-Type"] == "application/json"
        assert json.loads(b"".join(chunks)) == oracle.day_document(rows)

        again = reader.get(address, **{"If-None-Match": answer["ETag"]})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", answer["ETag"])

    def test_user_documents_have_an_etag_too(
        self, world: World, reader: ApiClient, rows: list[oracle.Row]
    ) -> None:
        address = f"/tenants/{world.tenant.pk}/users/Ana/2026/04/01"
        answer = reader.get(address)
        chunks = list(chunks_of(answer))
        assert max(map(len, chunks)) <= 1 << 16
        assert answer["Content-Length"] == str(sum(map(len, chunks)))
        assert json.loads(b"".join(chunks)) == oracle.day_document(oracle.for_user(rows, "Ana"))
        assert reader.get(address, **{"If-None-Match": answer["ETag"]}).status_code == 304

    @pytest.mark.usefixtures("rows")
    def test_sending_does_not_hold_it_whole(self, world: World, reader: ApiClient) -> None:
        def send() -> None:
            answer = reader.get(f"/tenants/{world.tenant.pk}/summaries/2026/04/01")
            for _ in chunks_of(answer):
                pass

        send()  # modules that a first request imports
        assert peak_of(send) < self.LIMIT


def chunks_of(answer: Any) -> Iterable[bytes]:
    assert isinstance(answer, StreamingHttpResponse)
    return cast("Iterable[bytes]", answer.streaming_content)


def peak_of(action: Callable[[], None]) -> int:
    """The most bytes that Python held during ``action``, above those before it."""
    gc.collect()
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
