"""The list of requests: order, filters, pages, and the statement that gives the same rows."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Final
from unittest import mock
from urllib.parse import parse_qs, urlencode, urlsplit
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analytics.reports import traffic
from analytics.reports.reading import LogReader, Span, Window
from analytics.reports.traffic import SORTS, TrafficFilter, list_traffic
from logs.audit import Reader
from logs.layout import day_start_ms
from logs.models import QueryRun
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_entries
from tests.streams import body_of

if TYPE_CHECKING:
    from tests.factories import World

DAYS = (dt.date(2026, 3, 1), dt.date(2026, 3, 2))
WINDOW = Window(*DAYS)
START = day_start_ms(DAYS[0])


def get(world: World, code: int = 200, /, **query: object) -> Any:
    client = ApiClient(factories.sign_in(world.member))
    asked = urlencode({"from": DAYS[0], "to": DAYS[1], **query})
    answer = client.get(f"/tenants/{world.tenant.pk}/requests?{asked}")
    assert answer.status_code == code, answer.content
    return answer.json()


def put(world: World, *entries: dict[str, Any], day: dt.date = DAYS[0], name: str = "00/a.json") -> None:
    save_entries(world.tenant.pk, day, entries, name=name)
    call_command("rebuild", tenant=world.tenant.pk)


def test_a_request_has_the_columns_of_its_entry(world: World) -> None:
    put(
        world,
        {
            "logId": "x",
            "timestamp": START + 5,
            "userName": "zoe",
            "cacheStatus": "MISS",
            "missReason": "no-cache-entry",
            "matchedRule": "sales",
            "standardizedSql": "SELECT ?",
            "queryHash": "h",
            "responseTimeMs": 12,
            "warehouseExecutionTimeMs": 10,
            "responseSize": 7,
        },
    )
    assert get(world)["requests"] == [
        {
            "logId": "x",
            "at": "2026-03-01T00:00:00.005Z",
            "day": "2026-03-01",
            "userName": "zoe",
            "cacheStatus": "MISS",
            "missReason": "no-cache-entry",
            "matchedRule": "sales",
            "statement": "SELECT ?",
            "queryHash": "h",
            "responseTimeMs": 12,
            "warehouseExecutionTimeMs": 10,
            "responseSize": 7,
        }
    ]


def test_misses_come_with_their_reasons(world: World) -> None:
    miss = {"cacheStatus": "MISS", "matchedRule": "sales", "cacheTtlSeconds": 1800}
    put(
        world,
        {**miss, "missReason": "ttl-expired"},
        {**miss, "missReason": "ttl-expired", "cacheTtlSeconds": 3600},
        {**miss, "missReason": "no-cache-entry"},
        {**miss, "missReason": "ttl-expired", "matchedRule": "other"},
        {"cacheStatus": "HIT", "matchedRule": "sales"},
    )
    assert get(world, status="MISS", rule="sales", limit=1)["missReasons"] == [
        {
            "reason": "ttl-expired",
            "requests": 2,
            "text": "The stored result had expired: it was fresh for 30 min to 1 h. "
            "A longer lifetime makes more of these hits, with results that are less fresh.",
        },
        {
            "reason": "no-cache-entry",
            "requests": 1,
            "text": "The cache had no result for this request. It was the first with its values, or the "
            "cache was emptied since, as publishing does. A longer lifetime changes nothing here.",
        },
    ]
    assert "missReasons" not in get(world, rule="sales")
    assert "missReasons" not in get(world, status="MISS", rule="none")


def test_the_newest_comes_first_and_nulls_last(world: World) -> None:
    put(
        world,
        {"logId": "untimed"},
        {"logId": "a", "timestamp": START + 1},
        {"timestamp": START + 1, "userName": "nameless"},
        {"logId": "b", "timestamp": START + 1},
        {"logId": "late", "timestamp": START + 2},
        {"userName": "untimed"},
    )
    assert [row["logId"] for row in get(world)["requests"]] == ["late", "b", "a", None, "untimed", None]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"status": "HIT"}, "a"),
        ({"rule": "none"}, "bc"),
        ({"rule": "r1"}, "a"),
        ({"user": "o'hara"}, "b"),
        ({"statement": "Ü_5%"}, "c"),
        ({"statement": "ü"}, "ac"),
        ({"queryHash": "h"}, "b"),
        ({"minMs": 20}, "bc"),
        ({"minMs": 20, "user": "o'hara"}, "b"),
        ({"user": "' OR true --"}, ""),
    ],
)
def test_filters(world: World, query: dict[str, object], found: str) -> None:
    put(
        world,
        {
            "logId": "a",
            "cacheStatus": "HIT",
            "matchedRule": "r1",
            "standardizedSql": "x Ü y",
            "responseTimeMs": 19,
        },
        {"logId": "b", "userName": "o'hara", "queryHash": "h", "responseTimeMs": 20},
        {"logId": "c", "standardizedSql": "a ü_5% b", "responseTimeMs": 21},
    )
    assert sorted(row["logId"] for row in get(world, **query)["requests"]) == list(found)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"status": "hit"}, "/status"),
        ({"limit": 201}, "/limit"),
        ({"limit": 0}, "/limit"),
        ({"minMs": -1}, "/minMs"),
        ({"cursor": "x"}, "/cursor"),
        ({"from": "2026-03-04"}, "/from"),
        ({"from": "2026-01-01"}, "/from"),
        ({"users": "zoe"}, "/users"),
    ],
)
def test_a_bad_parameter_is_a_400_that_names_it(world: World, query: dict[str, object], path: str) -> None:
    assert get(world, 400, **query)["details"][0]["path"] == path


def test_without_days_it_lists_the_last_seven(world: World) -> None:
    today = now().date()
    for age in (0, 6, 7):
        day = today - dt.timedelta(days=age)
        put(world, {"logId": f"{age}", "timestamp": day_start_ms(day)}, day=day)
    answer = ApiClient(factories.sign_in(world.member)).get(f"/tenants/{world.tenant.pk}/requests")
    assert [row["logId"] for row in answer.json()["requests"]] == ["0", "6"]


def test_from_and_to_take_a_time(world: World) -> None:
    day = day_start_ms(DAYS[1])
    put(
        world,
        *({"logId": f"{ms}", "timestamp": day + ms} for ms in (0, 1, 2, 3)),
        {"logId": "none"},
        day=DAYS[1],
    )

    def ids(**query: str) -> list[str]:
        return [row["logId"] for row in get(world, **query)["requests"]]

    at = "2026-03-02T00:00:00.00"
    assert ids(**{"from": f"{at}1Z", "to": f"{at}3Z"}) == ["2", "1"]
    assert ids(**{"from": f"{at}2Z"}) == ["3", "2"]
    assert ids(to=f"{at}2Z") == ["1", "0"]
    assert ids(to="2026-03-02T00:00:00Z") == []
    assert ids(**{"from": "2026-03-02T02:00:00.003+02:00", "to": "2026-03-02"}) == ["3"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT key FROM logs_logread ORDER BY id DESC LIMIT 1")
        assert cursor.fetchone()[0] == "requests 2026-03-02T00:00:00.003Z to 2026-03-02"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"from": "2026-03-02T10:00:00", "to": "2026-03-03"}, "Give a date-time with its zone"),
        ({"from": "2026-03-02T10:00:00Z", "to": "2026-03-02T10:00:00Z"}, "'from' is not before 'to'."),
        ({"from": "2026-03-02", "to": "2026-03-02T00:00:00Z"}, "'from' is later than 'to'."),
        ({"from": "2026-02-01T00:00:00Z", "to": "2026-03-05T00:00:00Z"}, "at most 31 days"),
        ({"to": "0001-01-01T00:00:00Z", "from": "0001-01-01"}, None),
    ],
)
def test_a_span_that_cannot_be_is_refused(world: World, asked: dict[str, str], message: str | None) -> None:
    if message is None:
        assert get(world, **asked)["requests"] == []
    else:
        assert message in get(world, 400, **asked)["details"][0]["message"]


def test_a_cursor_belongs_to_its_order(world: World) -> None:
    put(world, *({"logId": f"{number}", "timestamp": START, "responseTimeMs": number} for number in range(3)))
    page = get(world, sort="responseTimeMs", limit=1)
    assert [row["logId"] for row in page["requests"]] == ["0"]
    cursor = parse_qs(urlsplit(page["_links"]["next"]["href"]).query)["cursor"][0]
    assert [row["logId"] for row in get(world, sort="responseTimeMs", cursor=cursor)["requests"]] == [
        "1",
        "2",
    ]
    assert "cursor" in get(world, 400, sort="-responseTimeMs", cursor=cursor)["message"]
    assert "-responseSize" in str(get(world, 400, sort="userName"))


def histogram(world: World, **query: object) -> Any:
    client = ApiClient(factories.sign_in(world.member))
    answer = client.get(f"/tenants/{world.tenant.pk}/requests/histogram?{urlencode(query)}")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_histogram_counts_and_measures_the_requests_of_each_bucket(world: World) -> None:
    hour = START + 9 * 3_600_000
    put(
        world,
        *(
            {"timestamp": hour + 60_000 + ms, "cacheStatus": "HIT", "responseTimeMs": ms, "userName": "zoe"}
            for ms in range(1, 21)
        ),
        {
            "timestamp": hour + 60_500,
            "cacheStatus": "BYPASS",
            "responseTimeMs": 0,
            "warehouseExecutionTimeMs": 7,
        },
        {"timestamp": hour + 3_599_999, "cacheStatus": "ERROR", "responseTimeMs": 90_000},
        {"timestamp": hour + 3_600_000, "cacheStatus": "HIT"},
        {"timestamp": None, "cacheStatus": "HIT"},
    )
    found = histogram(world, **{"from": "2026-03-01T09:00:00Z", "to": "2026-03-01T10:00:00Z"})
    assert (found["stepSeconds"], len(found["buckets"]), found["outside"]) == (60, 60, 0)
    assert found["buckets"][1] == {
        "at": "2026-03-01T09:01:00.000Z",
        "entries": 21,
        "hits": 20,
        "misses": 1,
        "notCached": 1,
        "errors": 0,
        "medianMs": 10.5,
        "p95Ms": pytest.approx(19.05),
        "warehouseMs": 7,
    }
    assert found["buckets"][59]["errors"] == 1
    assert found["buckets"][59]["medianMs"] is None
    assert sum(bucket["entries"] for bucket in found["buckets"]) == 22
    zoe = histogram(world, **{"from": DAYS[0], "to": DAYS[0], "user": "zoe"})
    assert (zoe["stepSeconds"], len(zoe["buckets"])) == (900, 96)
    assert sum(bucket["entries"] for bucket in zoe["buckets"]) == 20
    whole = histogram(world, **{"from": DAYS[0], "to": DAYS[0]})
    assert whole["outside"] == 1
    assert sum(bucket["entries"] for bucket in whole["buckets"]) == 23


@pytest.mark.parametrize(
    ("seconds", "step"),
    [(0.001, 1), (100, 1), (101, 5), (86_400, 900), (7 * 86_400, 3 * 3_600), (31 * 86_400, 12 * 3_600)],
)
def test_a_histogram_has_at_most_a_hundred_buckets(world: World, seconds: float, step: int) -> None:
    begins = dt.datetime.combine(DAYS[0], dt.time(), dt.UTC)
    ends = begins + dt.timedelta(seconds=seconds)
    found = histogram(world, **{"from": begins.isoformat(), "to": ends.isoformat()})
    assert found["stepSeconds"] == step
    assert len(found["buckets"]) == math.ceil(seconds / step)


def test_a_page_links_to_the_next_and_its_statement_gives_the_same_rows(world: World) -> None:
    put(world, *({"logId": f"{number}", "timestamp": START + number} for number in range(5)))
    client = ApiClient(factories.sign_in(world.member))
    href = f"/tenants/{world.tenant.pk}/requests?from={DAYS[0]}&to={DAYS[1]}&limit=2"
    pages = []
    while href:
        page = client.get(href).json()
        rows = body_of(client.post(f"/tenants/{world.tenant.pk}/query", {"sql": page["sql"]}))["rows"]
        pages.append([row["logId"] for row in rows])
        assert pages[-1] == [row["logId"] for row in page["requests"]]
        href = page["_links"].get("next", {}).get("href")
    assert pages == [["4", "3"], ["2", "1"], ["0"]]


def test_the_read_is_audited_before_it_happens_and_takes_the_same_number_of_queries(world: World) -> None:
    put(world, {"logId": "x"})
    client = ApiClient(factories.sign_in(world.member))

    def count(limit: int) -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(f"/tenants/{world.tenant.pk}/requests?from={DAYS[0]}&to={DAYS[1]}&limit={limit}")
        return len(captured)

    count(1)
    assert QueryRun.objects.filter(email=world.member.email, outcome="ok").count() == 1
    put(world, *({"logId": f"{number}"} for number in range(30)), name="01/b.json")
    # The first query after a build looks up the files.
    count(1)
    assert count(2) == count(30)


_ENTRIES = st.lists(
    st.fixed_dictionaries(
        {
            "timestamp": st.sampled_from([START, START + 1, START + 90_000_000, None]),
            "logId": st.sampled_from([None, "a", "b", "c", ""]),
            "userName": st.sampled_from([None, "u", "v'"]),
            "matchedRule": st.sampled_from([None, "r"]),
            "standardizedSql": st.sampled_from([None, "SELECT 1", "select %", "x\0y"]),
            "responseTimeMs": st.integers(0, 3),
            "warehouseExecutionTimeMs": st.sampled_from([None, 0, 1, 2]),
            "responseSize": st.integers(0, 2),
        }
    ),
    max_size=6,
)
_FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "rule": st.sampled_from(["r", "none"]),
        "user": st.sampled_from(["u", "v'"]),
        "statement": st.sampled_from(["SELECT", "%", "\0"]),
        "min_ms": st.integers(0, 3),
    },
)


def _fits(row: dict[str, Any], asked: dict[str, Any]) -> bool:
    text = row["standardizedSql"]
    return (
        ("rule" not in asked or row["matchedRule"] == (None if asked["rule"] == "none" else asked["rule"]))
        and ("user" not in asked or row["userName"] == asked["user"])
        and ("statement" not in asked or (text is not None and asked["statement"].lower() in text.lower()))
        and row["responseTimeMs"] >= asked.get("min_ms", 0)
    )


def _deduplicated(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    seen: set[str] = set()
    kept = []
    for entry in entries:
        if entry["logId"] is None or entry["logId"] not in seen:
            kept.append(entry)
        if entry["logId"] is not None:
            seen.add(entry["logId"])
    return kept


#: How many logs and filters are tried. ``REQUEST_EXAMPLES=500`` takes some minutes.
EXAMPLES: Final = int(os.environ.get("REQUEST_EXAMPLES", "12"))


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=_ENTRIES,
    second=_ENTRIES,
    late=_ENTRIES,
    asked=_FILTERS,
    limit=st.integers(1, 3),
    many=st.sampled_from([-1, 1, 50_000]),
    sort=st.sampled_from(SORTS),
)
def test_pages_hold_each_row_once_while_a_day_is_built_again(
    world: World,
    first: list[dict[str, Any]],
    second: list[dict[str, Any]],
    late: list[dict[str, Any]],
    asked: dict[str, Any],
    limit: int,
    many: int,
    sort: str,
) -> None:
    """Each row that was there at the first page is on one page, wherever the late rows fall.

    The statement of each page gives the same rows, also of a log so large that times are read first.
    """
    tenant = factories.make_tenant(factories.make_account(f"A{uuid4()}"), member=world.member)
    log = LogReader(default_store(), tenant.pk, Reader(world.member.email, "203.0.113.5"))
    client = ApiClient(factories.sign_in(world.member))
    objects = {(DAYS[0], "00/a.json"): first, (DAYS[1], "01/a.json"): second}
    for (day, name), entries in objects.items():
        save_entries(tenant.pk, day, entries, name=name)
    save_entries(tenant.pk, DAYS[0], [], name="02/late.json")
    call_command("rebuild", tenant=tenant.pk)

    found: list[Any] = []
    cursor = None
    for number in itertools.count():
        with mock.patch.object(traffic, "_MANY", many):
            page = list_traffic(
                log,
                span=Span(WINDOW),
                matching=TrafficFilter(**asked),
                limit=limit,
                cursor=cursor,
                sort=sort,
            )
        assert len(page.requests) <= limit
        said = body_of(client.post(f"/tenants/{tenant.pk}/query", {"sql": page.sql}))["rows"]
        assert [row["logId"] for row in said] == [row.log_id for row in page.requests]
        found += page.requests
        cursor = page.cursor
        if cursor is None:
            break
        if number == 0:
            named = [{**entry, "logId": f"late-{index}"} for index, entry in enumerate(late)]
            save_entries(tenant.pk, DAYS[0], named, name="02/late.json")
            call_command("rebuild", tenant=tenant.pk)

    def seen(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
        return Counter(
            (row["timestamp"], row["logId"], row["userName"], row["standardizedSql"], row["responseTimeMs"])
            for row in rows
        )

    expected = seen(
        [row for entries in (first, second) for row in _deduplicated(entries) if _fits(row, asked)]
    )
    shown = seen(
        [
            {
                "timestamp": None if row.at is None else _ms(row.at),
                "logId": row.log_id,
                "userName": row.user_name,
                "standardizedSql": row.statement,
                "responseTimeMs": row.response_time_ms,
            }
            for row in found
            if not (row.log_id or "").startswith("late-")
        ]
    )
    assert shown == expected
    column, descends = sort.removeprefix("-"), sort.startswith("-")
    name = {
        "timestamp": "at",
        "responseTimeMs": "response_time_ms",
        "warehouseExecutionTimeMs": "warehouse_execution_time_ms",
        "responseSize": "response_size",
    }[column]
    placed = [value for value in (getattr(row, name) for row in found) if value is not None]
    assert [getattr(row, name) for row in found] == [
        *sorted(placed, reverse=descends),
        *[None] * (len(found) - len(placed)),
    ]


def _ms(at: str) -> int:
    return round(dt.datetime.fromisoformat(at).timestamp() * 1000)
