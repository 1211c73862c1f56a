"""``GET /tenants/{tenant}/savings``, its verification, and ``manage.py savings``."""

from __future__ import annotations

import io
import json
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from django.core.cache import cache
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from analytics.models import DayRollup
from analytics.numbers.store import cache_document
from analytics.numbers.tables import ROLLUP_VERSION
from analytics.published.verify import DocumentKey, verify_document
from analytics.reports.savings import find_source, savings_document
from logs.audit import Reader
from logs.layout import day_start_ms
from logs.models import QueryRun
from logs.sources import log_source
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from tests.factories import World

DAY = date(2026, 3, 10)
DAYS = f"from={DAY}&to={DAY}"
MINUTE, HOUR = 60_000, 3_600_000
PRICE = {"from": "2026-01-01", "currency": "USD", "perHour": "3.00", "billing": "suspending"}
READER = Reader("reader@example.org", "192.0.2.1")

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_kept_documents() -> None:
    cache.clear()


def put(world: World, *entries: dict[str, Any], day: date = DAY, name: str = "00/a.json") -> None:
    own = [
        {"standardizedSql": "SELECT 1", **entry, "timestamp": day_start_ms(day) + entry["timestamp"]}
        for entry in entries
    ]
    save_entries(world.tenant.pk, day, own, name=name)
    call_command("rebuild", tenant=world.tenant.pk)


def put_example(world: World) -> None:
    put(
        world,
        {"timestamp": 0, "cacheStatus": "MISS", "warehouseExecutionTimeMs": MINUTE},
        {"timestamp": HOUR, "cacheStatus": "HIT", "matchedRule": "r"},
    )


def client_of(world: World) -> ApiClient:
    return ApiClient(factories.pat_token(world.owner, "analytics:read", tenants=[str(world.tenant.pk)]))


def get(world: World, query: str = DAYS, status: int = 200) -> Any:
    answer = client_of(world).get(f"/tenants/{world.tenant.pk}/savings?{query}")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_a_cache_that_costs_says_how_much_longer_is_billed(world: World) -> None:
    ran = {"cacheStatus": "MISS", "warehouseExecutionTimeMs": 0}
    # The hit would have joined the two sessions, each of which bills an hour.
    put(
        world,
        {"timestamp": 0, **ran},
        {"timestamp": MINUTE, "cacheStatus": "HIT"},
        {"timestamp": 2 * MINUTE, **ran},
    )
    factories.set_prices(world.tenant, {**PRICE, "autoSuspendSeconds": 60, "minimumSeconds": 3_600})
    assert get(world)["text"]["bill"] == (
        "1 h more billed time, 100% of the bill without the cache; about 90.00 USD more a month"
    )


def test_a_month_is_of_days_like_those_since_the_first_with_an_entry(world: World) -> None:
    put_example(world)
    week = f"from={DAY - timedelta(6)}&to={DAY + timedelta(1)}"
    found = get(world, week)
    # Without a price, in time. The six days before the first entry and the one to come do not count.
    assert found["perMonth"]["saved"] == {"billedMs": 180 * MINUTE, "busyMs": 30 * MINUTE, "money": None}
    assert found["text"]["bill"].endswith("; about 3 h less a month")
    # Nothing is said of a month in which nothing is saved.
    empty = get(world, f"from={DAY + timedelta(5)}&to={DAY + timedelta(6)}")
    assert empty["perMonth"]["saved"] == {"billedMs": 0, "busyMs": 0, "money": None}
    assert "a month" not in empty["text"]["bill"]


def test_a_quiet_day_before_the_newest_of_the_log_counts_in_a_month(world: World) -> None:
    put_example(world)
    window = f"from={DAY}&to={DAY + timedelta(1)}"
    assert get(world, window)["perMonth"]["saved"]["billedMs"] == 180 * MINUTE
    put(world, {"timestamp": 0, "cacheStatus": "HIT"}, day=DAY + timedelta(2))
    assert get(world, window)["perMonth"]["saved"]["billedMs"] == 90 * MINUTE


def test_a_month_of_a_warehouse_that_is_always_on_has_no_more_than_its_days(world: World) -> None:
    put_example(world)
    factories.set_prices(world.tenant, {**PRICE, "billing": "always-on"})
    found = get(world, f"from={DAY - timedelta(6)}&to={DAY + timedelta(20)}")
    assert found["perMonth"]["withCache"]["billedMs"] == 30 * 24 * HOUR


def test_the_money_of_a_month_is_that_of_the_days_with_a_price(world: World) -> None:
    for day in (DAY - timedelta(1), DAY):
        put(
            world,
            {"timestamp": HOUR, "cacheStatus": "MISS", "warehouseExecutionTimeMs": MINUTE},
            {"timestamp": 2 * HOUR, "cacheStatus": "HIT"},
            day=day,
        )
    window, per_month = f"from={DAY - timedelta(1)}&to={DAY}", []
    for first in (DAY - timedelta(1), DAY, DAY + timedelta(1)):
        factories.set_prices(world.tenant, {**PRICE, "from": str(first)})
        per_month.append(get(world, window)["perMonth"]["saved"])
    # The last price begins after the window.
    assert [month["money"] for month in per_month] == ["9.00", "9.00", None]
    assert {month["billedMs"] for month in per_month} == {180 * MINUTE}


def test_the_document(world: World) -> None:
    put_example(world)
    factories.set_prices(world.tenant, PRICE)
    body = get(world, f"from={DAY}&to={DAY + timedelta(1)}&step=month")
    (query,) = body.pop("queries")
    assert (
        body["text"]
        .pop("explanation")
        .endswith("would have been asleep without it. The price is 3.00 USD an hour.")
    )
    assert body["text"].pop("limits").endswith("count with the mean time of their statement.")
    assert "until it suspends (5 min), so a rule can save more billed time" in body["text"].pop("rules")
    figures = {
        "withCache": {"billedMs": 6 * MINUTE, "busyMs": MINUTE, "money": "0.30"},
        "without": {"billedMs": 12 * MINUTE, "busyMs": 2 * MINUTE, "money": "0.60"},
        "saved": {"billedMs": 6 * MINUTE, "busyMs": MINUTE, "money": "0.30"},
    }
    assert body == {
        "currency": "USD",
        "pricing": [PRICE],
        "window": {"from": "2026-03-10", "to": "2026-03-11", "daysWithoutData": ["2026-03-11"]},
        "total": figures,
        # A month has 30 times the one day of the log; the other is to come.
        "perMonth": {
            "withCache": {"billedMs": 180 * MINUTE, "busyMs": 30 * MINUTE, "money": "9.00"},
            "without": {"billedMs": 360 * MINUTE, "busyMs": 60 * MINUTE, "money": "18.00"},
            "saved": {"billedMs": 180 * MINUTE, "busyMs": 30 * MINUTE, "money": "9.00"},
        },
        "text": {
            "bill": "6 min less billed time, 50.0% of the bill without the cache; "
            "about 9.00 USD less a month",
            "time": "of statements that did not run, about 30 min a month; billed only where the warehouse "
            "would have slept",
            "chart": "How long the warehouse was awake, which is what is billed; all days together",
            "suspends": "It suspends when no statement ran for so long. That is set in the warehouse.",
        },
        "months": [{"month": "2026-03", **figures}],
        "hours": [
            {"hour": hour, "awakeMs": 6 * MINUTE * (hour == 0), "awakeWithoutMs": 6 * MINUTE * (hour < 2)}
            for hour in range(24)
        ],
        "autoSuspend": [
            {"autoSuspendSeconds": 60, "billedMs": 2 * MINUTE, "money": "0.10"},
            {"autoSuspendSeconds": 120, "billedMs": 3 * MINUTE, "money": "0.15"},
            {"autoSuspendSeconds": 300, "billedMs": 6 * MINUTE, "money": "0.30"},
            {"autoSuspendSeconds": 600, "billedMs": 11 * MINUTE, "money": "0.55"},
        ],
        "rules": [{"ruleId": "r", "hits": 1, "busyMs": MINUTE, "marginalMs": 6 * MINUTE, "money": "0.30"}],
        "unmeasured": 0,
        "unmeasuredShare": 0.0,
        "caveats": ["others-keep-it-awake", "one-size", "unmeasured"],
    }
    assert query["name"] == "savings"
    assert "$" not in query["sql"]
    # What is kept of the days was read, not the log.
    assert not QueryRun.objects.exists()
    # A member may run the statement.
    member = ApiClient(factories.sign_in(world.member))
    answer = member.post(f"/tenants/{world.tenant.pk}/query", {"sql": query["sql"]})
    assert answer.status_code == 200, answer.content
    awake = {
        (row["scope"], row["day"]): row["awakeMs"]
        for row in json.loads(b"".join(cast("Any", answer).streaming_content))["rows"]
    }
    assert awake["without", "2026-03-10"] == 12 * MINUTE


def test_a_tenant_without_a_log_and_prices(world: World) -> None:
    body = get(world)
    assert body["total"]["withCache"] == {"billedMs": 0, "busyMs": 0, "money": None}
    assert (body["currency"], body["pricing"], body["rules"]) == (None, [], [])
    assert body["text"]["bill"].startswith("less billed time, ")
    assert body["window"]["daysWithoutData"] == ["2026-03-10"]


@pytest.mark.slow
def test_it_is_kept_until_a_build_or_the_prices_change(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    put_example(world)
    client, path = client_of(world), f"/tenants/{world.tenant.pk}/savings?{DAYS}"
    computed: list[Any] = []

    def compute(rows: Any, **arguments: Any) -> Any:
        computed.append(arguments)
        return savings_document(rows, **arguments)

    monkeypatch.setattr("analytics.reports.savings.savings_document", compute)

    def ask(etag: str = "") -> tuple[int, str, int]:
        before = len(computed)
        answer = client.get(path, **({"If-None-Match": etag} if etag else {}))
        return answer.status_code, answer["ETag"], len(computed) - before

    status, first, queries = ask()
    assert (status, queries) == (200, 1)
    assert ask() == (200, first, 0)
    assert ask(first) == (304, first, 0)
    factories.set_prices(world.tenant, PRICE)
    _, priced, queries = ask(first)
    assert (priced != first, queries) == (True, 1)
    # The day before the window is read too.
    put(world, {"timestamp": 0, "cacheStatus": "HIT"}, day=DAY - timedelta(1))
    _, built, queries = ask(priced)
    assert (built != priced, queries) == (True, 1)
    put(world, {"timestamp": 0, "cacheStatus": "HIT"}, day=DAY + timedelta(1))
    assert ask(built) == (304, built, 0)


def test_the_number_of_database_queries_is_constant(world: World) -> None:
    client = client_of(world)

    def count(days: int) -> int:
        path = f"/tenants/{world.tenant.pk}/savings?from={DAY - timedelta(days)}&to={DAY}"
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        return len(captured)

    before = count(1)
    for number in range(3):
        put(world, {"timestamp": 0, "cacheStatus": "HIT"}, day=DAY - timedelta(number))
    assert count(20) == before
    # Asked again, it is the days and the prices alone, without the answers of these days.
    assert count(20) == before - 2


@pytest.mark.parametrize(
    ("query", "path"),
    [
        (f"from={DAY}&to={DAY - timedelta(1)}", "/from"),
        ("from=2025-01-01&to=2026-01-02", "/from"),
        (f"from={DAY}", "/to"),
        (f"{DAYS}&step=hour", "/step"),
        (f"{DAYS}&price=3", "/price"),
    ],
)
def test_wrong_parameters_are_a_400(world: World, query: str, path: str) -> None:
    assert [detail["path"] for detail in get(world, query, status=400)["details"]] == [path]


def test_a_year_is_allowed_however_many_entries_it_has(world: World, settings: Any) -> None:
    get(world, "from=2025-01-01&to=2026-01-01")
    put_example(world)
    settings.REPLAY_MAX_ROWS = 1
    assert get(world)["total"]["saved"]["billedMs"] == 6 * MINUTE


def test_days_of_an_earlier_release_are_read_from_the_log(world: World, settings: Any) -> None:
    put_example(world)
    expected = get(world)
    DayRollup.objects.update(version=ROLLUP_VERSION - 1)
    cache.clear()
    assert get(world) == expected
    run = QueryRun.objects.get(email=world.owner.email)
    assert (run.statement, run.outcome) == (expected["queries"][0]["sql"], "ok")
    cache.clear()
    settings.REPLAY_MAX_ROWS = 1
    body = get(world, status=400)
    assert body["message"].startswith("These days have 2 log entries; at most 1 can be read. ")
    settings.REPLAY_MAX_ROWS = 0
    assert "No window that ends on " in get(world, status=400)["message"]


def test_a_computation_that_takes_too_long_is_a_400(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    put_example(world)
    monkeypatch.setattr(
        "analytics.reports.savings.KEPT_SAVINGS_SQL",
        "SELECT sum(a.range) FROM range(1000000) a, range(1000000) b",
    )
    monkeypatch.setattr("analytics.reports.savings._SECONDS", 0.2)
    assert "take too long" in get(world, status=400)["message"]


def test_days_that_are_built_meanwhile_are_read_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file that the request has found is deleted before it is read."""
    put_example(world)
    store, tenant = default_store(), world.tenant.pk
    old = log_source(store, tenant=tenant).keys[0]

    def find_then_build(**arguments: Any) -> Any:
        source = find_source(**arguments)
        monkeypatch.undo()
        put(world, {"timestamp": 0, "cacheStatus": "MISS", "warehouseExecutionTimeMs": 0}, name="00/b.json")
        store.delete_many([old])
        return source

    monkeypatch.setattr("analytics.api.reports.find_source", find_then_build)
    assert get(world)["total"]["withCache"]["busyMs"] == MINUTE


class TestVerification:
    def key(self, world: World, period: str) -> DocumentKey:
        return DocumentKey(world.tenant.pk, "savings", period)

    def test_equal(self, world: World) -> None:
        put_example(world)
        for period in ("2026-03-10", "2026-03", "2026"):
            verified = verify_document(default_store(), key=self.key(world, period), reader=READER)
            assert (verified.equal, verified.unequal) == (True, [])
            assert verified.fields > 30
            assert [query.name for query in verified.queries] == ["savings"]

    def test_a_wrong_kept_document_is_named_and_computed_again(self, world: World) -> None:
        put_example(world)
        body = get(world)
        body["total"]["saved"]["billedMs"] += 1
        source = find_source(tenant=world.tenant.pk, first=DAY, last=DAY, step="day")
        cache_document(source.cache_key, json.dumps(body).encode())
        verified = verify_document(default_store(), key=self.key(world, "2026-03-10"), reader=READER)
        assert [item.path for item in verified.unequal] == ["/total/saved/billedMs"]
        assert get(world)["total"]["saved"]["billedMs"] == 6 * MINUTE

    def test_the_command(self, world: World) -> None:
        put_example(world)
        out = io.StringIO()
        call_command("verify", tenant=world.tenant.pk, document="savings", stdout=out)
        assert out.getvalue().startswith("savings 2026-03: ")
        with pytest.raises(CommandError, match="Give a period like 2026-03"):
            call_command("verify", tenant=world.tenant.pk, document="savings", period="2026-3")


class TestCommand:
    def run(self, world: World, **options: Any) -> str:
        out = io.StringIO()
        call_command("savings", tenant=world.tenant.pk, first=DAY, last=DAY, stdout=out, **options)
        return out.getvalue()

    def test_it_prints_a_table_and_the_answer_of_the_api(self, world: World) -> None:
        put_example(world)
        factories.set_prices(world.tenant, PRICE)
        text = self.run(world)
        assert "0.30" in text
        assert "others-keep-it-awake" in text
        assert json.loads(self.run(world, as_json=True)) == get(world)

    def test_errors(self, world: World) -> None:
        with pytest.raises(CommandError, match="'from' is later than 'to'"):
            call_command("savings", tenant=world.tenant.pk, first=DAY, last=DAY - timedelta(1))
