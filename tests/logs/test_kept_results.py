"""A repeated query is answered by the kept result of its tenant, while its days have the same builds."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import date
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from cachetools import TTLCache
from django.core.cache import cache
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from redis import RedisError

from accounts.access import rights
from logs import kept_results, queries
from logs.audit import Reader
from logs.layout import day_start_ms
from logs.models import QueryRun
from logs.queries import run_query
from logs.sources import log_source
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_object

if TYPE_CHECKING:
    from tests.factories import World

FIRST, SECOND, THIRD = (date(2026, 3, day) for day in (1, 2, 3))
COUNT = "SELECT day, count(*) AS n FROM proxy_logs GROUP BY 1 ORDER BY 1"
COUNT_SECOND = "SELECT count(*) AS n FROM proxy_logs WHERE day = '2026-03-02'"
COUNT_SINCE = "SELECT count(*) AS n FROM proxy_logs WHERE day >= '2026-03-02'"
READER = Reader("ana@example.org", "")


def build(tenant: UUID, *days: date, name: str = "a") -> None:
    """Add an entry to each day, and build them."""
    for day in days:
        entry = json.dumps({"timestamp": day_start_ms(day), "logId": f"{day} {name}"}).encode()
        save_object(default_store(), f"{tenant}/logs/{day:%Y/%m/%d}/00/{name}.json", entry)
    call_command("rebuild", tenant=tenant)


@pytest.fixture(autouse=True)
def _every_query_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_results, "MIN_SECONDS", 0.0)


@pytest.fixture
def built(world: World) -> World:
    """A tenant with an entry on each of two days."""
    build(world.tenant.pk, FIRST, SECOND)
    return world


@pytest.fixture
def member(world: World) -> ApiClient:
    return ApiClient(factories.sign_in(world.member))


def ask(
    client: ApiClient, tenant: UUID, statement: str, accept: str = "application/json"
) -> tuple[str, bytes]:
    """Return whether the cache answered, and the body."""
    path = f"/tenants/{tenant}/query"
    answer = client.request("POST", path, {"sql": statement}, headers={"Accept": accept})
    assert answer.status_code == 200, answer.content
    return answer["X-Result-Cache"], b"".join(answer)


def rows(answer: tuple[str, bytes]) -> tuple[str, list[Any]]:
    return answer[0], json.loads(answer[1])["rows"]


def test_a_known_caller_needs_two_database_queries(
    built: World, member: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The days, and the audit when the query has ended. A query only reads, so cached rights are enough."""
    monkeypatch.setattr(rights, "_principal_cache", TTLCache(maxsize=8, ttl=60))
    ask(member, built.tenant.pk, COUNT)
    for statement in (COUNT, COUNT_SECOND):
        with CaptureQueriesContext(connection) as captured:
            ask(member, built.tenant.pk, statement)
        days, audit = (query["sql"] for query in captured)
        assert "FROM logs_partition" in days
        assert "INSERT INTO logs_queryrun" in audit


def test_a_repeated_query_needs_no_engine_and_is_audited(
    built: World, member: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ask(member, built.tenant.pk, COUNT)
    assert rows(first) == ("miss", [{"day": "2026-03-01", "n": 1}, {"day": "2026-03-02", "n": 1}])

    class Engine:
        def execute(self, **_: Any) -> Any:
            pytest.fail("The engine is asked again.")

    monkeypatch.setattr(queries, "get_engine", Engine)
    assert ask(member, built.tenant.pk, COUNT) == ("hit", first[1])
    # The rows are kept, not the format.
    assert ask(member, built.tenant.pk, COUNT, "text/csv") == (
        "hit",
        b"day,n\r\n2026-03-01,1\r\n2026-03-02,1\r\n",
    )
    assert ask(member, built.tenant.pk, COUNT, "application/vnd.apache.parquet")[0] == "hit"
    runs = QueryRun.objects.order_by("pk")
    assert [(run.email, run.statement, run.outcome, run.rows, run.from_kept_result) for run in runs] == [
        ("member@example.org", COUNT, "ok", 2, is_kept) for is_kept in (False, True, True, True)
    ]
    assert len({run.bytes for run in runs}) == 1
    assert all(run.duration_ms is not None for run in runs)
    monkeypatch.setattr(queries, "time", SimpleNamespace(monotonic=iter([1.0, 5.2]).__next__))
    reader = Reader("member@example.org", "192.0.2.1")
    result = run_query(default_store(), tenant=built.tenant.pk, statement=COUNT, reader=reader)
    # Pages show what the audit shows.
    assert (result.elapsed_ms, runs.reverse()[0].duration_ms) == (4200, 4200)


def test_every_type_is_the_same_from_a_kept_result(world: World, member: ApiClient) -> None:
    statement = """SELECT 1::HUGEINT AS a, 1.50::DECIMAL(9, 2) AS b, 'x'::BLOB AS c, true AS d,
        [NULL, 2] AS e, {'k': DATE '2026-03-01'} AS f, MAP {1: 'y'} AS g, 'b'::ENUM('a', 'b') AS h,
        NULL AS i, 'z' AS "i", '00000000-0000-4000-8000-000000000000'::UUID AS j,
        '{"a": 1}'::JSON AS k, INTERVAL 1 DAY AS l, union_value(u := 1) AS m,
        '101'::BIT AS n, TIMESTAMPTZ '2026-03-01 00:00:00+00' AS o"""
    first = ask(member, world.tenant.pk, statement)
    assert ask(member, world.tenant.pk, statement) == ("hit", first[1])


@pytest.mark.slow
def test_a_build_ends_the_results_that_read_its_day(built: World, member: ApiClient) -> None:
    tenant = built.tenant.pk
    for statement in (COUNT, COUNT_SECOND, COUNT_SINCE):
        assert ask(member, tenant, statement)[0] == "miss"

    build(tenant, FIRST, name="b")
    assert rows(ask(member, tenant, COUNT)) == (
        "miss",
        [{"day": "2026-03-01", "n": 2}, {"day": "2026-03-02", "n": 1}],
    )
    assert rows(ask(member, tenant, COUNT_SECOND)) == ("hit", [{"n": 1}])
    assert rows(ask(member, tenant, COUNT_SINCE)) == ("hit", [{"n": 1}])

    # A day that was not there when the results were kept.
    build(tenant, THIRD)
    assert rows(ask(member, tenant, COUNT_SINCE)) == ("miss", [{"n": 2}])
    assert rows(ask(member, tenant, COUNT_SINCE)) == ("hit", [{"n": 2}])

    build(tenant, SECOND, name="b")
    assert rows(ask(member, tenant, COUNT_SECOND)) == ("miss", [{"n": 2}])


def test_a_day_without_logs_is_in_no_kept_result(built: World, member: ApiClient) -> None:
    assert rows(ask(member, built.tenant.pk, COUNT_SINCE)) == ("miss", [{"n": 1}])
    default_store().delete(f"{built.tenant.pk}/logs/2026/03/02/00/a.json")
    call_command("rebuild", tenant=built.tenant.pk)
    assert rows(ask(member, built.tenant.pk, COUNT_SINCE)) == ("miss", [{"n": 0}])


def test_a_result_is_its_tenants_alone(built: World, member: ApiClient) -> None:
    build(built.stranger_tenant.pk, SECOND)
    build(built.stranger_tenant.pk, SECOND, name="b")
    stranger = ApiClient(factories.sign_in(built.stranger))
    assert rows(ask(member, built.tenant.pk, COUNT_SECOND)) == ("miss", [{"n": 1}])
    assert rows(ask(stranger, built.stranger_tenant.pk, COUNT_SECOND)) == ("miss", [{"n": 2}])

    answer = stranger.post(f"/tenants/{built.tenant.pk}/query", {"sql": COUNT_SECOND})
    assert answer.status_code == 403
    assert "X-Result-Cache" not in answer


@pytest.mark.parametrize("statement", ["SELECT random() AS n", "SELECT current_timestamp::VARCHAR AS n"])
def test_statements_with_time_or_chance_are_run_again(
    world: World, member: ApiClient, statement: str
) -> None:
    answers = [ask(member, world.tenant.pk, statement) for _ in range(2)]
    assert [kept for kept, _ in answers] == ["miss", "miss"]
    assert answers[0] != answers[1]


def test_a_statement_that_failed_runs_again(world: World, member: ApiClient) -> None:
    for _ in range(2):
        answer = member.post(f"/tenants/{world.tenant.pk}/query", {"sql": "SELECT 'x'::INTEGER"})
        assert answer.status_code == 400
    assert not QueryRun.objects.filter(from_kept_result=True).exists()


def test_other_limits_have_other_results(world: World, member: ApiClient, settings: Any) -> None:
    statement = "SELECT i FROM range(3) AS r(i)"
    ask(member, world.tenant.pk, statement)
    for limits, rows_left in (({"max_rows": 2}, 2), ({"max_bytes": 20}, 1)):
        options = settings.SQL_OPTIONS
        settings.SQL_OPTIONS = replace(options, limits=replace(options.limits, **limits))
        for kept in ("miss", "hit"):
            assert rows(ask(member, world.tenant.pk, statement)) == (
                kept,
                [{"i": number} for number in range(rows_left)],
            )


def test_a_query_that_took_no_time_runs_again(
    world: World, member: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_results, "MIN_SECONDS", 60.0)
    assert [ask(member, world.tenant.pk, COUNT)[0] for _ in range(2)] == ["miss", "miss"]


@pytest.mark.parametrize(
    ("text", "kept"), [("repeat('x', 200_000)", "hit"), ("repeat('x', 300_000)", "miss")]
)
def test_a_large_result_is_not_kept(world: World, member: ApiClient, text: str, kept: str) -> None:
    assert ask(member, world.tenant.pk, f"SELECT {text} AS t")[0] == "miss"
    assert ask(member, world.tenant.pk, f"SELECT {text} AS t")[0] == kept


def test_a_tenant_keeps_so_many_bytes_and_takes_no_room_from_others(
    world: World, member: ApiClient, settings: Any
) -> None:
    settings.SQL_OPTIONS = replace(settings.SQL_OPTIONS, kept_bytes=150_000)
    statements = [f"SELECT repeat('x', 100_000) AS t{number}" for number in range(2)]
    for kept in (["miss", "miss"], ["hit", "miss"]):
        assert [ask(member, world.tenant.pk, statement)[0] for statement in statements] == kept

    stranger = ApiClient(factories.sign_in(world.stranger))
    for kept_one in ("miss", "hit"):
        assert ask(stranger, world.stranger_tenant.pk, statements[0])[0] == kept_one


def test_a_result_is_kept_for_the_time_of_the_setting(world: World, member: ApiClient, settings: Any) -> None:
    settings.SQL_OPTIONS = replace(settings.SQL_OPTIONS, kept_seconds=1)
    ask(member, world.tenant.pk, COUNT)
    deadline = time.monotonic() + 10
    while (kept := ask(member, world.tenant.pk, COUNT)[0]) == "hit" and time.monotonic() < deadline:
        time.sleep(0.05)
    assert kept == "miss"


def test_nothing_is_kept_if_the_setting_is_0(world: World, member: ApiClient, settings: Any) -> None:
    ask(member, world.tenant.pk, COUNT)
    settings.SQL_OPTIONS = replace(settings.SQL_OPTIONS, kept_seconds=0)
    assert ask(member, world.tenant.pk, COUNT)[0] == "miss"


def test_another_version_of_the_code_has_its_own_results(
    world: World, member: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(member, world.tenant.pk, COUNT)
    monkeypatch.setattr(kept_results, "_version", lambda: "next")
    assert ask(member, world.tenant.pk, COUNT)[0] == "miss"


def test_without_redis_the_query_runs(
    built: World, member: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def fail(key: str, *_: Any, **__: Any) -> None:
        asked.append(key)
        raise RedisError("gone")

    for verb, calls in (("set", 2), ("get", 2)):
        asked.clear()
        with monkeypatch.context() as patch:
            patch.setattr(cache, verb, fail)
            for _ in range(2):
                assert rows(ask(member, built.tenant.pk, COUNT_SECOND)) == ("miss", [{"n": 1}])
        assert len(asked) == calls
    # Redis that did not answer was not asked to keep the result either.
    assert ask(member, built.tenant.pk, COUNT_SECOND)[0] == "miss"
    assert ask(member, built.tenant.pk, COUNT_SECOND)[0] == "hit"


def test_a_query_over_given_files_is_not_kept(built: World) -> None:
    """Verification compares documents with what the engine says now."""
    store, tenant = default_store(), built.tenant.pk
    source = log_source(store, tenant=tenant)
    for given in (source, None, None, source):
        run_query(store, tenant=tenant, statement=COUNT, reader=READER, source=given)
    runs = QueryRun.objects.order_by("pk")
    assert [run.from_kept_result for run in runs] == [False, False, True, False]


def test_the_command_says_that_a_result_was_kept(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for _ in range(2):
        call_command("sql", "SELECT 1", tenant=world.tenant.pk)
        printed.append(capsys.readouterr().out.splitlines()[-1])
    assert [line.endswith(" ms, kept from an earlier run") for line in printed] == [False, True]
