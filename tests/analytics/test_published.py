"""The published queries, and the comparison of stored documents with them."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import duckdb
import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from msgspec import to_builtins

from analytics.models import Kind, SummaryDocument
from analytics.numbers.documents import month_document
from analytics.numbers.tables import LAST_MS, STATEMENTS
from analytics.numbers.yearly import (
    daily_activity,
    opportunities_document,
    rules_document,
    users_document,
    year_document,
)
from analytics.published import verify
from analytics.published.queries import QUERIES, compare
from analytics.published.verify import (
    BuildMoved,
    DocumentKey,
    Verification,
    savings_keys,
    stored_keys,
    verify_document,
)
from logs import queries
from logs.audit import Reader
from logs.columns import COLUMNS
from logs.layout import day_start_ms
from logs.models import Partition, QueryRun
from logs.pending import mark_periods
from logs.sql import guard
from scripts.queries import queries_file
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.analytics.builds import (
    DAYS,
    TENANT,
    USERS,
    Part,
    day_json,
    merge,
    merge_year,
    opened,
    random_entries,
    roll_day,
    store_files,
)
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from tests.factories import World


DOCUMENTATION = Path(__file__).resolve().parents[2] / "docs"
#: The first day whose activity the year 2026 can show.
FIRST_ACTIVITY = date(2025, 1, 2)


class Log:
    """Random entries of three days, as ``proxy_logs`` and as rollups."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, days: dict[date, Part], directory: Path
    ) -> None:
        self._connection, self.days = connection, days
        first = min(days)
        of_month = [part for day, part in days.items() if (day.year, day.month) == (first.year, first.month)]
        self.month = merge(of_month, directory=directory / "month")
        self.year = merge_year(days, directory=directory / "year")

    def run(self, name: str, first: date, last: date, *, user: str | None = None) -> list[dict[str, Any]]:
        statement = QUERIES[name].over(first, last, user=user)
        guard.check(statement, self._connection)
        result = self._connection.execute(statement)
        names = [column[0] for column in result.description]
        assert names == QUERIES[name].fields
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


@pytest.fixture(scope="module", params=[1, 2, 3])
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    chance = random.Random(request.param)  # noqa: S311  # reproducible, not secret
    entries = {day: random_entries(chance, day) for day in DAYS}
    with make_log(entries, tmp_path_factory.mktemp("log")) as log:
        yield log


@contextmanager
def make_log(entries: Mapping[date, list[dict[str, Any]]], directory: Path) -> Iterator[Log]:
    files = {day: {"00/a.json": json.dumps(own).encode()} for day, own in entries.items()}
    store = store_files(directory / "store", files)
    rolled = {}
    for day in entries:
        _, part = roll_day(store, day, directory=directory / "built")
        assert part is not None
        rolled[day] = part
    with duckdb.connect() as connection:
        columns = ", ".join(f'"{column.name}"' for column in COLUMNS)
        connection.execute(
            f"CREATE VIEW proxy_logs AS SELECT {columns}, day FROM read_parquet("
            f"'{directory}/built/*/day.parquet', hive_partitioning = true, hive_types = {{'day': VARCHAR}})"
        )
        yield Log(connection, rolled, directory)


@pytest.mark.parametrize("user", [None, *USERS])
def test_the_queries_of_a_day(log: Log, user: str | None) -> None:
    day = DAYS[0]
    document = day_json(log.days[day], user=user)
    records, hours = document.pop("queries"), document.pop("hourlyActivity")

    assert log.run("day", day, day, user=user) == [document]
    assert log.run("day.queries", day, day, user=user) == records
    assert log.run("day.hourlyActivity", day, day, user=user) == hours


def test_times_before_1970_count_in_the_hour_of_their_prefix(tmp_path: Path) -> None:
    day = date(1969, 12, 31)
    times = [-86_400_000, -82_800_001, -3_600_001, -1]
    with make_log({day: [{"timestamp": time, "cacheStatus": "HIT"} for time in times]}, tmp_path) as log:
        hours = day_json(log.days[day])["hourlyActivity"]
    assert [hour["totalHits"] for hour in hours] == [4, *[0] * 23]


@pytest.mark.parametrize("user", [None, *USERS])
def test_the_queries_of_a_month(log: Log, user: str | None) -> None:
    first, last = date(2026, 3, 1), date(2026, 3, 31)
    with opened(log.month, user=user) as rollups:
        document = to_builtins(month_document(rollups, month=3))
    hours = document.pop("hourlyActivity")

    assert document.pop("month") == 3
    assert log.run("month", first, last, user=user) == [document]
    assert log.run("month.hourlyActivity", first, last, user=user) == hours


@pytest.mark.parametrize("user", USERS)
def test_the_queries_of_a_users_year(log: Log, user: str) -> None:
    first, last = date(2026, 1, 1), date(2026, 12, 31)
    with opened(log.year, user=user) as rollups:
        document = to_builtins(
            year_document(rollups, tenant=TENANT, year=2026, activity=daily_activity(rollups))
        )
    for name in ("tenantSummaryReportID", "tenantId", "reportyears"):
        document.pop(name)

    assert log.run("year.last365daysQueryActivity", FIRST_ACTIVITY, last, user=user) == document.pop(
        "last365daysQueryActivity"
    )
    assert log.run("year", first, last, user=user) == [document]


def test_negative_warehouse_times_are_rounded_half_up(log: Log) -> None:
    (rule,) = (rule for rule in log.run("rules.rules", DAYS[0], DAYS[-1]) if rule["ruleId"] == "r3")

    assert rule["warehouseTimeSavedMs"] == -3
    with opened(log.year) as rollups:
        assert rule in to_builtins(rules_document(rollups).rules)


def test_times_outside_of_the_years_1970_to_9999_are_null(tmp_path: Path) -> None:
    day = DAYS[0]
    times: list[list[int | None]] = [
        [2**62],
        [-(2**62)],
        [0],
        [-1],
        [LAST_MS],
        [LAST_MS + 1],
        [None],
        [2**62, 5, None],
    ]
    entries = [
        {"timestamp": time, "standardizedSql": f"SELECT {number}", "userName": "Ana"}
        for number, several in enumerate(times)
        for time in several
    ]
    with make_log(dict.fromkeys(DAYS, entries), tmp_path) as log:
        for user in (None, "Ana"):
            records = day_json(log.days[day], user=user)["queries"]
            assert log.run("day.queries", day, day, user=user) == records
    shown = {
        record["statement"]: (record["firstRequestTime"], record["lastRequestTime"]) for record in records
    }
    assert [shown[f"SELECT {number}"] for number in range(len(times))] == [
        (None, None),
        (None, None),
        ("1970-01-01T00:00:00.000Z",) * 2,
        (None, None),
        ("9999-12-31T23:59:59.999Z",) * 2,
        (None, None),
        (None, None),
        ("1970-01-01T00:00:00.005Z",) * 2,
    ]


def test_the_queries_of_a_year(log: Log) -> None:
    first, last = date(2026, 1, 1), date(2026, 12, 31)
    with opened(log.year) as rollups:
        document = to_builtins(
            year_document(rollups, tenant=TENANT, year=2026, activity=daily_activity(rollups))
        )
        rules = to_builtins(rules_document(rollups))
        opportunities = to_builtins(
            opportunities_document(rollups, text_file=lambda day: log.days[day][STATEMENTS])
        )
    for name in ("tenantSummaryReportID", "tenantId", "reportyears"):
        document.pop(name)

    assert log.run("year.last365daysQueryActivity", FIRST_ACTIVITY, last) == document.pop(
        "last365daysQueryActivity"
    )
    assert log.run("year", first, last) == [document]
    assert log.run("rules.rules", first, last) == rules.pop("rules")
    assert log.run("rules", first, last) == [rules]
    for name, entries in opportunities.items():
        assert entries, f"no entry shows {name}"
        assert log.run(f"opportunities.{name}", first, last) == entries


def test_the_query_of_all_users(log: Log) -> None:
    with opened(log.year) as rollups:
        document = to_builtins(
            users_document(rollups, tenant=TENANT, generated_at=datetime(2026, 5, 3, tzinfo=UTC))
        )

    assert log.run("users", DAYS[0], DAYS[-1]) == [{"totalUsers": document["totalUsers"]}]
    assert log.run("users.users", DAYS[0], DAYS[-1]) == document["users"]
    for user in document["users"]:
        assert log.run("users.users", DAYS[0], DAYS[-1], user=user["userId"]) == [user]


def test_the_documentation_has_every_query() -> None:
    page = (DOCUMENTATION / "queries.sql").read_text()
    assert page == queries_file(), "run 'make contract'"


def test_a_users_name_is_a_literal() -> None:
    sql = QUERIES["rules"].over(DAYS[0], DAYS[0], user="$first' OR WHERE day\0x")
    assert sql.endswith(
        "FROM proxy_logs WHERE userName = ('$first'' OR WHERE day' || chr(0) || 'x') AND "
        "day BETWEEN '2026-03-01' AND '2026-03-01'"
    )


READER = Reader("reader@example.org", "192.0.2.1")
ODD_USER = "a'b\0 $first"


@pytest.fixture
def tenant(world: World) -> UUID:
    """Logs of two days with late, undated and anonymous entries, rebuilt; the tenant's id."""
    cache.clear()
    chance = random.Random(7)  # noqa: S311  # reproducible, not secret
    for day in (date(2025, 6, 30), DAYS[0]):
        put(world.tenant.pk, day, [*random_entries(chance, day), *hidden_entries(day)])
    call_command("rebuild", tenant=world.tenant.pk)
    return world.tenant.pk


def hidden_entries(day: date) -> list[dict[str, Any]]:
    """Entries whose hour and order ``proxy_logs`` does not show."""
    start = day_start_ms(day)
    return [
        {"timestamp": start - 3_600_000, "cacheStatus": "HIT", "userName": ODD_USER, "responseTimeMs": 9},
        {"timestamp": None, "cacheStatus": "MISS", "standardizedSql": "SELECT ?", "responseTimeMs": 7},
        *(
            {
                "timestamp": start + 5,
                "standardizedSql": "SELECT tie",
                "cacheStatus": "MISS",
                "cacheKey": "tie",
                "matchedRule": f"r{number}",
                "responseSize": number,
                "statusCode": 200 + number,
            }
            for number in (3, 9, 1)
        ),
    ]


def put(tenant: UUID, day: date, entries: list[dict[str, Any]]) -> None:
    save_entries(tenant, day, entries, name="13/a.json")


def check(key: DocumentKey) -> Verification:
    return verify_document(default_store(), key=key, reader=READER)


@pytest.mark.slow
def test_every_document_is_equal(tenant: UUID, subtests: Any) -> None:
    keys = stored_keys(tenant)
    assert {key.kind for key in keys} == set(Kind)
    keys += [
        DocumentKey(tenant, kind, period, user)
        for kind, period in ((Kind.DAY, "2026-03-01"), (Kind.MONTH, "2026-03"), (Kind.YEAR, "2026"))
        for user in (USERS[0], ODD_USER)
    ]
    for key in keys:
        with subtests.test(str(key)):
            verification = check(key)
            assert verification.unequal == []
            assert verification.equal
            assert verification.fields > 5
            assert [run.name.partition(".")[0] for run in verification.queries] == [key.kind] * len(
                verification.queries
            )


#: A document of each kind.
PERIODS = {
    Kind.DAY: "2026-03-01",
    Kind.MONTH: "2026-03",
    Kind.YEAR: "2026",
    Kind.RULES: "2026",
    Kind.OPPORTUNITIES: "2026",
    Kind.USERS: "",
}


def test_a_wrong_value_in_any_field_is_named(tenant: UUID, subtests: Any) -> None:
    assert PERIODS.keys() == set(Kind)
    for kind, period in PERIODS.items():
        with subtests.test(kind.value):
            check_wrong_values(tenant, kind, period)


def check_wrong_values(tenant: UUID, kind: Kind, period: str) -> None:
    stored = SummaryDocument.objects.get(kind=kind, period=period)
    right = json.loads(bytes(stored.body))
    wrong = json.loads(bytes(stored.body))
    paths = plant(wrong)
    SummaryDocument.objects.filter(pk=stored.pk).update(body=json.dumps(wrong).encode())

    comparison = check(DocumentKey(tenant, kind, period))

    named = {item.path: (item.document, item.query) for item in comparison.unequal}
    assert named.keys() == paths.keys()
    assert {path: document for path, (document, _) in named.items()} == paths
    if kind is Kind.USERS:
        # Its true value is not in the log: any time between the builds and the storing may be right.
        assert named.pop("/generatedAt")[0] == "1"
    assert all(value == look_up(right, path) for path, (_, value) in named.items())


def plant(document: Any) -> dict[str, Any]:
    """Make one value of each field wrong, and return the wrong values by path."""
    places: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for path in leaves(document, ()):
        # In the last element that has the field.
        places[tuple("*" if isinstance(name, int) else name for name in path)] = path
    planted = {}
    for path in places.values():
        *above, name = path
        holder = document
        for step in above:
            holder = holder[step]
        value = holder[name]
        holder[name] = value + 1 if isinstance(value, int | float) else "1" if value != "1" else "2"
        planted["".join(f"/{step}" for step in path)] = holder[name]
    return planted


def leaves(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    items = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    )
    if items is None:
        yield path
        return
    for name, part in items:
        yield from leaves(part, (*path, name))


def look_up(document: Any, path: str) -> Any:
    for name in path.split("/")[1:]:
        document = document[int(name) if isinstance(document, list) else name]
    return document


@pytest.mark.parametrize(
    ("document", "expected", "paths"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.5}, ["/a"]),
        ({"a": True}, {"a": 1}, ["/a"]),
        ({"a": 0}, {"a": None}, ["/a"]),
        ({}, {"a": None}, [""]),
        ({"a": 1, "b/": 2}, {"a": 1}, ["/b~1"]),
        ({"a": [1]}, {"a": [1, {"b": 2}]}, ["/a/1"]),
        ({"a": [1, None]}, {"a": [1]}, ["/a"]),
        ([], {}, [""]),
    ],
)
def test_shapes_are_compared_too(document: Any, expected: Any, paths: list[str]) -> None:
    assert [item.path for item in compare(document, expected).unequal] == paths


def test_a_wrong_users_document_of_the_cache_is_found(tenant: UUID) -> None:
    key = DocumentKey(tenant, Kind.MONTH, "2026-03", "Ana")
    assert check(key).equal
    (name,) = [name for name in redis_keys() if "user-document" in name]
    document = json.loads(cache.get(name))
    cache.set(name, json.dumps({**document, "totalHits": 12345}).encode())

    assert [(item.path, item.document) for item in check(key).unequal] == [("/totalHits", 12345)]


@pytest.mark.parametrize(
    ("kind", "period"), [(Kind.DAY, "2026-03-01"), (Kind.MONTH, "2026-03"), (Kind.USERS, "")]
)
def test_a_rebuild_mends_a_stored_document_that_verify_found_wrong(
    tenant: UUID, kind: Kind, period: str
) -> None:
    stored = SummaryDocument.objects.get(tenant_id=tenant, kind=kind, period=period)
    right = bytes(stored.body)
    wrong = json.loads(right)
    leaf = next(iter(leaves(wrong, ())))
    stored.body = json.dumps({**wrong, leaf[0]: 12345}).encode()
    stored.save()
    key = DocumentKey(tenant, kind, period)
    assert not check(key).equal
    call_command("rebuild", tenant=tenant)
    assert check(key).equal
    stored.refresh_from_db()
    assert json.loads(stored.body) | {"generatedAt": None} == json.loads(right) | {"generatedAt": None}


def redis_keys() -> list[str]:
    client = cache._cache.get_client()  # type: ignore[attr-defined]
    return [key.decode().split(":", 2)[-1] for key in client.keys("*")]


def test_a_build_that_moves_once_is_read_again(tenant: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    key = DocumentKey(tenant, Kind.DAY, "2026-03-01")
    moved = move_builds(tenant, monkeypatch, times=1)
    verification = check(key)
    assert moved == [1]
    assert verification.equal
    # The second attempt read the new build.
    assert verification.queries[0].name == "day"
    assert QueryRun.objects.count() == 6


@pytest.mark.slow
def test_a_build_that_moves_twice_is_a_conflict(tenant: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    move_builds(tenant, monkeypatch, times=2)
    with pytest.raises(BuildMoved) as caught:
        check(DocumentKey(tenant, Kind.DAY, "2026-03-01"))
    assert (caught.value.status, caught.value.code) == (409, "concurrent_change")


def test_a_file_that_is_deleted_after_a_build_is_not_missed(
    tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [Partition.objects.get(tenant_id=tenant, day=DAYS[0]).file]

    def lose_file_and_run(*arguments: Any, **options: Any) -> Any:
        while files:
            put(tenant, DAYS[0], [{"timestamp": day_start_ms(DAYS[0])}])
            call_command("rebuild", tenant=tenant)
            default_store().delete(files.pop())
        return queries.run_query(*arguments, **options)

    monkeypatch.setattr(verify, "run_query", lose_file_and_run)
    assert check(DocumentKey(tenant, Kind.DAY, "2026-03-01")).equal
    assert [run.outcome for run in QueryRun.objects.order_by("pk")] == ["internal_error", "ok", "ok", "ok"]


def move_builds(tenant: UUID, monkeypatch: pytest.MonkeyPatch, *, times: int) -> list[int]:
    """Rebuild the first day while its last query runs."""
    moved: list[int] = []
    run_query = queries.run_query

    def run_and_rebuild(*arguments: Any, **options: Any) -> Any:
        result = run_query(*arguments, **options)
        if "hours(hour)" in options["statement"] and len(moved) < times:
            moved.append(len(moved) + 1)
            put(tenant, DAYS[0], [{"timestamp": day_start_ms(DAYS[0]), "userName": f"u{len(moved)}"}])
            call_command("rebuild", tenant=tenant)
        return result

    monkeypatch.setattr(verify, "run_query", run_and_rebuild)
    return moved


def test_a_document_that_is_not_current_is_a_conflict(tenant: UUID) -> None:
    SummaryDocument.objects.filter(kind=Kind.YEAR).update(source="old")
    mark_periods(tenant=tenant)
    with pytest.raises(BuildMoved):
        check(DocumentKey(tenant, Kind.YEAR, "2026"))
    assert not QueryRun.objects.exists()


class TestOperation:
    def post(self, world: World, body: dict[str, Any], *scopes: str) -> Any:
        scopes = scopes or ("analytics:read", "logs:query")
        token = factories.pat_token(world.owner, *scopes, tenants=[str(world.tenant.pk)])
        return ApiClient(token).post(f"/tenants/{world.tenant.pk}/verifications", body)

    def test_it_answers_with_the_comparison(self, world: World, tenant: UUID) -> None:
        answer = self.post(world, {"document": "rules", "period": "2026"})
        body = answer.json()
        assert answer.status_code == 200
        assert (body["equal"], body["unequalCount"], body["unequal"]) == (True, 0, [])
        document = json.loads(bytes(SummaryDocument.objects.get(kind=Kind.RULES, period="2026").body))
        assert body["fields"] == sum(1 for _ in leaves(document, ()))
        assert [query["name"] for query in body["queries"]] == ["rules", "rules.rules"]
        assert "_row" not in body["queries"][1]["sql"]
        runs = QueryRun.objects.filter(email=world.owner.email, outcome="ok")
        assert runs.count() == 2
        self.check_statements(world, tenant)

    def check_statements(self, world: World, tenant: UUID) -> None:
        """A reader of the log may run the statements of an answer."""
        body = self.post(world, {"document": "day", "period": "2026-03-01"}).json()
        member = ApiClient(factories.sign_in(world.member))
        for query in body["queries"]:
            answer = member.post(f"/tenants/{tenant}/query", {"sql": query["sql"]})
            assert answer.status_code == 200, answer.content

    @pytest.mark.parametrize(
        ("body", "path"),
        [
            ({"document": "day", "period": "2026-02-30"}, "/period"),
            ({"document": "month", "period": "2026"}, "/period"),
            ({"document": "year"}, "/period"),
            ({"document": "users", "period": "2026"}, "/period"),
            ({"document": "rules", "period": "2026", "userId": "Ana"}, "/userId"),
            ({"document": "week", "period": "2026"}, "/document"),
        ],
    )
    def test_a_document_that_cannot_be_is_a_400(self, world: World, body: dict[str, Any], path: str) -> None:
        answer = self.post(world, body, "analytics:read", "logs:query", "analytics:users")
        assert answer.status_code == 400
        assert [detail["path"] for detail in answer.json()["details"]] == [path]

    @pytest.mark.usefixtures("tenant")
    def test_a_period_without_entries_is_a_404(self, world: World) -> None:
        everything = ("analytics:read", "logs:query", "analytics:users")
        for body in (
            {"document": "day", "period": "2026-03-02"},
            {"document": "day", "period": "2026-03-01", "userId": "unknown"},
        ):
            assert self.post(world, body, *everything).status_code == 404

    @pytest.mark.parametrize(
        ("scopes", "body"),
        [
            (["analytics:read"], {"document": "year", "period": "2026"}),
            (["logs:query"], {"document": "year", "period": "2026"}),
            (["analytics:read", "logs:query"], {"document": "users"}),
            (["analytics:read", "logs:query"], {"document": "year", "period": "2026", "userId": "Ana"}),
        ],
    )
    def test_it_needs_every_scope(self, world: World, scopes: list[str], body: dict[str, Any]) -> None:
        assert self.post(world, body, *scopes).status_code == 403

    @pytest.mark.usefixtures("tenant")
    def test_a_too_large_document_is_a_400(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        everything = ("analytics:read", "logs:query", "analytics:users")
        assert self.post(world, {"document": "users"}, *everything).status_code == 200
        monkeypatch.setattr(verify, "MAX_DOCUMENT_BYTES", 10)
        answer = self.post(world, {"document": "year", "period": "2026"})
        assert answer.status_code == 400
        assert "at most 10 can be verified" in answer.json()["message"]

    @pytest.mark.usefixtures("tenant")
    def test_the_number_of_database_queries_is_constant(self, world: World) -> None:
        def count(period: str) -> int:
            with CaptureQueriesContext(connection) as captured:
                assert self.post(world, {"document": "year", "period": period}).status_code == 200
            return len(captured)

        assert count("2025") == count("2026")


def test_the_published_queries_are_listed(world: World) -> None:
    answer = ApiClient(factories.sign_in(world.stranger)).get("/analytics/queries")
    assert answer.status_code == 200
    queries = {query["name"]: query for query in answer.json()["queries"]}
    assert queries["rules"]["parameters"] == ["first", "last"]
    assert queries["rules"]["fields"] == ["totalQueries", "uncachedQueries", "bypassedQueries"]
    assert queries["rules"]["text"].startswith("SELECT\n    count(DISTINCT standardizedSql) AS totalQueries")


class TestCommand:
    @pytest.mark.slow
    def test_all_documents_are_verified(self, tenant: UUID) -> None:
        out = io.StringIO()
        call_command("verify", tenant=tenant, stdout=out)
        keys = [*stored_keys(tenant), *savings_keys(tenant)]
        assert out.getvalue().splitlines()[-1] == f"{len(keys)} documents are equal to the log."
        assert len(out.getvalue().splitlines()) == len(keys) + 1

    def test_it_fails_if_one_differs(self, tenant: UUID) -> None:
        stored = SummaryDocument.objects.get(kind=Kind.RULES, period="2026")
        document = {**json.loads(bytes(stored.body)), "totalQueries": 99}
        SummaryDocument.objects.filter(pk=stored.pk).update(body=json.dumps(document).encode())
        out = io.StringIO()
        with pytest.raises(CommandError, match="1 of 2 documents differ or cannot be compared"):
            call_command("verify", tenant=tenant, document="rules", stdout=out)
        assert "  /totalQueries: 99, and the log says 14" in out.getvalue().splitlines()

    def test_one_document_of_a_user(self, tenant: UUID) -> None:
        out = io.StringIO()
        options = {"document": "year", "period": "2026", "user": "Ana", "stdout": out}
        call_command("verify", tenant=tenant, **options)
        assert out.getvalue().splitlines()[-1] == "The document is equal to the log."
        with pytest.raises(CommandError, match="Give a period like 2026-03"):
            call_command("verify", tenant=tenant, **{**options, "document": "month"})
