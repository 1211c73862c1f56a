"""Reports: stale risk, leaks, timeline and the preview of an invalidation."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from msgspec import structs

from accounts.models import Revision, TenantConfig
from analytics.demo.generate import generate
from analytics.demo.logs import read_demo
from analytics.models import Digest
from analytics.reports.blast import preview_invalidation, preview_tables
from analytics.reports.reading import LogReader
from logs.audit import Reader
from logs.layout import day_start_ms
from logs.models import QueryRun
from rules.models import Marker, Ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import format_timestamp
from tenantadmin.lib.objectstore import default_store
from tests import factories
from tests.conftest import ApiClient
from tests.objects import save_entries

if TYPE_CHECKING:
    from analytics.demo.profile import Profile
    from tests.factories import World

DAY = dt.date(2026, 3, 2)
START = day_start_ms(DAY)
HOUR = 3_600_000
DAYS = f"from={DAY}&to={DAY}"


def moment(milliseconds: int) -> dt.datetime:
    return dt.datetime.fromtimestamp((START + milliseconds) / 1000, dt.UTC)


def put(world: World, *entries: dict[str, Any], day: dt.date = DAY) -> None:
    numbered = [
        {
            "logId": f"{number}",
            **entry,
            "timestamp": None if entry["timestamp"] is None else START + entry["timestamp"],
        }
        for number, entry in enumerate(entries)
    ]
    save_entries(world.tenant.pk, day, numbered)
    call_command("rebuild", tenant=world.tenant.pk)


def get(world: World, path: str, *scopes: str, status: int = 200) -> Any:
    token = factories.pat_token(world.owner, *scopes, tenants=[str(world.tenant.pk)])
    answer = ApiClient(token).get(f"/tenants/{world.tenant.pk}/{path}")
    assert answer.status_code == status, answer.content
    return answer.json()


def add_revision(world: World, at: int) -> Revision:
    """Repeat the last revision of the rules at another time."""
    latest = Revision.objects.filter(tenant_id=world.tenant.pk, kind="rules").latest("seq")
    latest.pk, latest.seq, latest.changed_at = None, latest.seq + 1, moment(at)
    latest.save(force_insert=True)
    return latest


def add_marker(world: World, name: str, at: int) -> None:
    Marker.objects.create(
        tenant=world.tenant,
        marker_id=name,
        target_rule_id="r",
        ttl_seconds=60,
        invalidated_at=moment(at),
        expires_at=moment(at),
        created_at=moment(at),
    )


class TestStale:
    def hit(self, at: int, age: int | None, tables: str, **fields: Any) -> dict[str, Any]:
        return {
            "timestamp": at,
            "cacheStatus": "HIT",
            "cacheAgeSeconds": age,
            "tables": tables,
            "matchedRule": "r",
            **fields,
        }

    def change(self, at: int, tables: str, sql: str, **fields: Any) -> dict[str, Any]:
        return {
            "timestamp": at,
            "cacheStatus": "BYPASS",
            "isDataChange": True,
            "tables": tables,
            "standardizedSql": sql,
            "matchedRule": "w",
            **fields,
        }

    def report(self, world: World) -> Any:
        return get(world, f"reports/stale?{DAYS}", "analytics:read")

    def test_a_hit_that_is_older_than_a_change_is_at_risk(self, world: World) -> None:
        put(
            world,
            # Done at 50,000.
            self.change(49_000, '["s.a"]', "UPDATE s.a SET x = ?", warehouseExecutionTimeMs=1_000),
            self.hit(60_000, 12, '["s.a"]', logId="older"),
            # Born at 49,001 or up to 999 ms earlier: the change may be in it.
            self.hit(60_001, 11, '["s.a"]', logId="rounding"),
            self.hit(60_000, 11, '["s.a"]', logId="exactly"),
            self.hit(60_000, 12, '["s.b"]', logId="another table"),
            self.hit(49_999, 12, '["s.a"]', logId="before the change"),
            self.hit(60_000, None, '["s.a"]', logId="no age"),
        )
        body = self.report(world)
        assert (body["hits"], body["atRisk"]) == (5, 2)
        assert body["rules"] == [{"ruleId": "r", "hits": 5, "atRisk": 2}]
        assert body["findings"] == [
            {
                "ruleId": "r",
                "table": "s.a",
                "changedBy": "w",
                "hits": 2,
                "lastAt": START + 60_000,
                "example": "older",
                "longestMs": 10_000,
            }
        ]
        assert (body["from"], body["to"]) == (str(DAY), str(DAY))
        assert (body["spellings"], body["views"]) == ([], [])

    def test_the_report_says_in_how_many_ways_the_log_names_a_table(self, world: World) -> None:
        create = self.change(1, '["v.a","s.a"]', "CREATE VIEW v.a AS SELECT ? FROM s.a", isDDL=True)
        put(world, create, self.hit(2, 1, '["S.A"]'), self.hit(3, 1, '["\\"p\\".s.a","s.b"]'))
        body = self.report(world)
        assert body["spellings"] == [{"table": "p.s.a", "spellings": ['"p".s.a', "S.A", "s.a"]}]
        assert body["views"] == [{"view": "v.a", "tables": ["s.a"], "isConfigured": False}]
        assert "changes-inside-the-warehouse-are-invisible" in body["caveats"]

    @pytest.mark.parametrize("age", [2_147_484, 2_592_000, 2**31 - 1])
    def test_an_age_may_be_as_large_as_its_column(self, world: World, age: int) -> None:
        put(
            world,
            self.change(49_000, '["s.a"]', "UPDATE s.a SET x = ?"),
            self.hit(60_000, age, '["s.a"]', logId="old"),
        )
        body = self.report(world)
        assert (body["hits"], body["atRisk"]) == (1, 1)

    @pytest.mark.parametrize(
        ("sql", "tables", "stale"),
        [
            ("INSERT INTO s.a SELECT * FROM s.b", '["s.a", "s.b"]', ["s.a"]),
            ('insert into "S"."A" select 1 from s.b', '["S.A", "s.b"]', ["s.a"]),
            ("MERGE INTO s.a USING s.b ON ?", '["s.b", "s.a"]', ["s.a"]),
            ("DELETE FROM s.b WHERE x IN (SELECT x FROM s.a)", '["s.a", "s.b"]', ["s.b"]),
            ("TRUNCATE TABLE s.a", '["s.a"]', ["s.a"]),
            ("CREATE OR REPLACE TABLE s.a AS SELECT * FROM s.b", '["s.a", "s.b"]', ["s.a"]),
            ("CALL load()", '["s.a", "s.b"]', ["s.a", "s.b"]),
            (None, '["s.a", "s.b"]', ["s.a", "s.b"]),
            ("UPDATE s.a SET x = ?", "no json", []),
        ],
    )
    def test_the_table_that_the_statement_names_has_changed(
        self, world: World, sql: str, tables: str, stale: list[str]
    ) -> None:
        put(
            world,
            self.change(50_000, tables, sql),
            *(self.hit(60_000, 30, f'["{name}"]', logId=name) for name in ("s.a", "S.B")),
        )
        assert [finding["table"] for finding in self.report(world)["findings"]] == stale

    def test_a_statement_that_did_not_run_changed_nothing(self, world: World) -> None:
        put(
            world,
            *(
                self.change(50_000, '["s.a"]', "UPDATE s.a SET x = ?", cacheStatus=status, logId=status)
                for status in ("BLOCKED", "ERROR", "INVALIDATION_ERROR")
            ),
            self.hit(60_000, 30, '["s.a"]'),
        )
        assert self.report(world)["atRisk"] == 0

    def test_a_change_of_the_day_before_counts(self, world: World) -> None:
        before = DAY - dt.timedelta(days=1)
        put(world, self.change(-HOUR, '["s.a"]', "UPDATE s.a SET x = ?"), day=before)
        put(world, self.hit(HOUR, 10_000, '["s.a"]'))
        assert self.report(world)["atRisk"] == 1


class TestLeaks:
    def test_findings_are_closed_only_if_digests_know_all_of_them(self, world: World) -> None:
        known, other = "SELECT CURRENT_USER()", "SELECT SESSION_USER()"
        entries = [self.entry("k1", "Ana", known), self.entry("k1", "Bo", known)]
        put(world, *entries)
        Digest.objects.create(
            tenant_id=world.tenant.pk, period=DAY.isoformat(), first_day=DAY, last_day=DAY,
            document={"sections": [{"id": "leaks"}], "leaking": [{"standardizedSql": known}]},
        )  # fmt: skip
        # The tenant has no rules, since its first revision.
        assert self.report(world)["closedBy"] == 0
        Revision.objects.create(
            kind="config", tenant_id=world.tenant.pk, account_id=world.tenant.account_id, seq=1,
            document={"defaults": {"cacheEnabled": False, "ttlSeconds": 60}},
        )  # fmt: skip
        body = self.report(world)
        assert (body.get("closedBy"), body["closedByConfig"]) == (None, 1)
        put(world, *entries, self.entry("k2", "Ana", other), self.entry("k2", "Bo", other))
        body = self.report(world)
        assert ({item["statement"] for item in body["findings"]}, body.get("closedBy")) == (
            {known, other},
            None,
        )

    def report(self, world: World) -> Any:
        return get(world, f"reports/leaks?{DAYS}", "analytics:users")

    def entry(self, key: str, user: str | None, sql: str, **fields: Any) -> dict[str, Any]:
        return {
            "timestamp": 1000,
            "logId": f"{key} {user} {fields}",
            "cacheStatus": "HIT",
            "cacheKey": key,
            "userName": user,
            "standardizedSql": sql,
            "matchedRule": "r",
            **fields,
        }

    def test_a_shared_result_that_depends_on_the_user_is_a_leak(self, world: World) -> None:
        own = "SELECT * FROM t WHERE u = CURRENT_USER()"
        random = "SELECT random()"
        put(
            world,
            self.entry("k1", "Ana", own, cacheStatus="MISS"),
            self.entry("k1", "Bo", own),
            self.entry("k2", "Ana", own),
            self.entry("k3", "Ana", random, hasNonDeterministicFunctions=True),
            self.entry("k3", "Bo", random, hasNonDeterministicFunctions=True),
            self.entry("k4", "Ana", "SELECT ?"),
            self.entry("k4", "Bo", "SELECT ?"),
            self.entry("k5", "Ana", "SELECT current_users FROM t"),
            self.entry("k5", "Bo", "SELECT current_users FROM t"),
            self.entry("k6", "Ana", own),
            self.entry("k6", None, own),
            self.entry("k7", "Ana", own, cacheStatus="BYPASS"),
            self.entry("k7", "Bo", own, cacheStatus="BYPASS"),
        )
        body = self.report(world)
        assert (body["keys"], body["sharedKeys"]) == (6, 4)
        common = {"ruleId": "r", "keys": 1, "served": 2, "users": ["Ana", "Bo"], "userCount": 2}
        assert body["findings"] == [
            {"grade": "certain", "statement": own, "word": "CURRENT_USER()", **common},
            {"grade": "likely", "statement": random, "word": None, **common},
        ]
        assert body["caveats"] == []
        assert body["text"] == (
            "1 statement depends on the user and was served to 2 users, 2 times; "
            "1 statement may depend on the user and was served to 2 users, 2 times"
        )

    def test_a_shared_result_of_a_table_that_differs_per_user_is_a_leak(self, world: World) -> None:
        config = TenantConfig.objects.get(pk=world.tenant.pk)
        config.document["warehouse"] = {"perUserTables": ["hr.*", "Pay.Slips", "it's"]}
        config.save()
        reads = {
            "k1": '["HR.People", "a.b"]',
            "k2": '["pay.slips"]',
            "k3": '["pay.slips2", "xhr.people"]',
            "k4": None,
            "k5": "[",
        }
        put(
            world,
            *(
                self.entry(key, user, f"SELECT '{key}'", tables=tables)
                for key, tables in reads.items()
                for user in ("Ana", "Bo")
            ),
            self.entry("k6", "Ana", "SELECT 'k6'", tables='["hr.people"]'),
        )
        found = [(leak["grade"], leak["statement"]) for leak in self.report(world)["findings"]]
        assert found == [("certain", "SELECT 'k1'"), ("certain", "SELECT 'k2'")]
        assert self.report(world)["text"] == (
            "2 statements depend on the user and were served to up to 2 users, 4 times"
        )

    @pytest.mark.parametrize(
        ("statement", "adapter", "grade", "word"),
        [
            ("SELECT x FROM s.t WHERE owner = USER", "postgresql", "certain", "USER"),
            ("SELECT x FROM s.t WHERE owner = USER", "databricks", "likely", "USER"),
            ("SELECT x FROM s.t WHERE owner = USER", None, "likely", "USER"),
            ("SELECT x FROM s.t WHERE owner = $me", "snowflake", "certain", "$me"),
            ("SELECT `current_user`()", "databricks", "certain", "current_user()"),
            ("SELECT * FROM information_schema.tables", "snowflake", "certain", "information_schema"),
            ("SELECT count(*) FROM app.user (x)", "postgresql", None, None),
        ],
    )
    def test_a_word_makes_a_leak_and_is_named(
        self, world: World, statement: str, adapter: str | None, grade: str | None, word: str | None
    ) -> None:
        put(world, *(self.entry("k", user, statement, adapterType=adapter) for user in ("Ana", "Bo")))
        found = [(leak["grade"], leak["word"]) for leak in self.report(world)["findings"]]
        assert found == ([(grade, word)] if grade else [])

    def test_a_table_without_a_schema_is_a_caveat_where_users_share_results(self, world: World) -> None:
        entries = {"k1": ('["s.t"]', "Bo"), "k2": ('["t"]', "Ana"), "k3": ('["\\"s\\".\\"t\\""]', "Bo")}
        for key, (tables, other) in entries.items():
            put(world, *(self.entry(key, user, f"SELECT {key}", tables=tables) for user in ("Ana", other)))
            assert self.report(world)["caveats"] == []
        put(world, *(self.entry("k4", user, "SELECT k4", tables='["s.t", "t"]') for user in ("Ana", "Bo")))
        assert self.report(world)["caveats"] == ["tables-without-schema"]

    def test_at_most_ten_users_are_named(self, world: World) -> None:
        put(world, *(self.entry("k", f"u{number:02}", "SELECT SESSION_USER") for number in range(12)))
        (finding,) = self.report(world)["findings"]
        assert (finding["userCount"], finding["users"]) == (12, [f"u{number:02}" for number in range(10)])


def put_demo(world: World, profile: Profile) -> None:
    """Store and build a week of a tenant of the demo, with its configuration."""
    hours = generate(profile, tenant_id=str(world.tenant.pk), first_day=DAY, days=7, entries=14_000, seed=1)
    for hour in hours:
        at = moment(hour.start - START)
        save_entries(world.tenant.pk, at.date(), hour.entries, name=f"{at:%H}/a.json")
    call_command("rebuild", tenant=world.tenant.pk)
    TenantConfig.objects.filter(pk=world.tenant.pk).update(document=profile.config)


@pytest.mark.slow
def test_the_demo_leaks_a_table_until_its_rule_varies(world: World) -> None:
    profile = read_demo().profiles[1]
    assert profile.leak is not None
    put_demo(world, structs.replace(profile, leak=structs.replace(profile.leak, cured=3 * 1440)))
    days = [DAY + dt.timedelta(days=offset) for offset in (0, 2, 3, 6)]
    before, after = (
        get(world, f"reports/leaks?from={first}&to={last}", "analytics:users")
        for first, last in (days[:2], days[2:])
    )
    assert {(leak["grade"], leak["ruleId"]) for leak in before["findings"]} == {("certain", "billing")}
    assert all("billing.invoices" in leak["statement"] for leak in before["findings"])
    assert after["findings"] == []
    assert after["sharedKeys"] > 0


@pytest.mark.slow
def test_the_demo_has_a_leak_and_stale_hits(world: World) -> None:
    put_demo(world, read_demo().profiles[0])
    days = f"from={DAY}&to={DAY + dt.timedelta(days=6)}"

    (leak,) = get(world, f"reports/leaks?{days}", "analytics:users")["findings"]
    assert (leak["grade"], leak["ruleId"]) == ("certain", "customers")
    assert "CURRENT_USER()" in leak["statement"]
    assert leak["userCount"] >= 2
    stale = get(world, f"reports/stale?{days}", "analytics:read")
    assert 0 < stale["atRisk"] < stale["hits"]


class TestTimeline:
    SCOPES = ("analytics:read", "config:read")

    def test_each_hour_has_its_counts_changes_and_markers(self, world: World) -> None:
        put(
            world,
            {"timestamp": 0, "cacheStatus": "HIT"},
            {"timestamp": HOUR - 1, "cacheStatus": "PASSTHROUGH"},
            {"timestamp": HOUR, "cacheStatus": "MISS"},
            {"timestamp": HOUR, "cacheStatus": "ERROR", "logId": "e"},
            {"timestamp": -1, "cacheStatus": "HIT"},
        )
        latest = add_revision(world, HOUR)
        for name, at in (("m1", 2 * HOUR - 1), ("m2", HOUR), ("m3", 24 * HOUR)):
            add_marker(world, name, at)
        body = get(world, f"timeline?{DAYS}", *self.SCOPES)
        first, second, *rest = body["buckets"]
        assert first == {
            "at": format_timestamp(moment(0)),
            "hits": 1,
            "misses": 1,
            "notCached": 1,
            "hitRate": 0.5,
            "changes": [],
            "markers": {},
        }
        assert (second["hits"], second["misses"], second["notCached"]) == (0, 1, 0)
        assert second["hitRate"] == 0.0
        (change,) = second["changes"]
        assert (change["kind"], change["seq"], change["text"]) == ("rules", latest.seq, latest.text)
        assert second["markers"] == {"r": 2}
        assert len(rest) == 22
        assert {(bucket["hits"], bucket["misses"], bucket["hitRate"]) for bucket in rest} == {(0, 0, None)}
        assert body["outside"] == {"hits": 1, "misses": 0}

    def test_by_day(self, world: World) -> None:
        put(world, {"timestamp": 5 * HOUR, "cacheStatus": "HIT"})
        body = get(world, f"timeline?from=2026-03-01&to={DAY}&step=day", *self.SCOPES)
        assert [(bucket["at"], bucket["hits"]) for bucket in body["buckets"]] == [
            ("2026-03-01T00:00:00.000Z", 0),
            ("2026-03-02T00:00:00.000Z", 1),
        ]

    def test_an_entry_delivered_under_the_next_day_counts_there_whatever_the_window_is(
        self, world: World
    ) -> None:
        put(world, {"timestamp": -1, "cacheStatus": "HIT"}, {"timestamp": None, "cacheStatus": "MISS"})
        before = DAY - dt.timedelta(days=1)
        for first, last in ((before, DAY), (DAY, DAY), (DAY, DAY + dt.timedelta(days=1))):
            body = get(world, f"timeline?from={first}&to={last}&step=day", *self.SCOPES)
            counts = {one["at"][:10]: (one["hits"], one["misses"]) for one in body["buckets"]}
            assert counts.pop(DAY.isoformat()) == (1, 1)
            assert set(counts.values()) <= {(0, 0)}
            assert body["outside"] == {"hits": 0, "misses": 0}
            body = get(world, f"timeline?from={first}&to={last}", *self.SCOPES)
            assert {(one["hits"], one["misses"]) for one in body["buckets"]} == {(0, 0)}
            assert body["outside"] == {"hits": 1, "misses": 1}


@pytest.mark.parametrize(
    ("report", "database_queries", "log_queries"),
    # One of the queries reads the list of files, because it changed.
    [("reports/stale", 11, 4), ("reports/leaks", 8, 2), ("timeline", 6, 1)],
)
def test_the_number_of_queries_does_not_depend_on_the_log(
    world: World, report: str, database_queries: int, log_queries: int
) -> None:
    scopes = ("analytics:read", "analytics:users", "config:read")
    client = ApiClient(factories.pat_token(world.owner, *scopes, tenants=[str(world.tenant.pk)]))

    def count(days: str) -> tuple[int, int]:
        before = QueryRun.objects.count()
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"/tenants/{world.tenant.pk}/{report}?{days}").status_code == 200
        return len(captured), QueryRun.objects.count() - before

    assert count(DAYS) == (database_queries, log_queries)
    for number in range(3):
        put(world, {"timestamp": HOUR, "logId": str(number)}, day=DAY - dt.timedelta(days=number))
        add_revision(world, number * HOUR)
        add_marker(world, f"m{number}", number * HOUR)
    assert count("from=2026-02-01&to=2026-03-02") == (database_queries, log_queries)


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("from=2026-03-02&to=2026-03-01", "/from"),
        ("from=2026-01-01&to=2026-02-01", "/from"),
        ("from=2026-03-02", "/to"),
        ("from=2026-3-2&to=2026-03-03", "/from"),
    ],
)
def test_wrong_days_are_a_400(world: World, query: str, path: str) -> None:
    body = get(world, f"reports/stale?{query}", "analytics:read", status=400)
    assert [detail["path"] for detail in body["details"]] == [path]


def test_reports_name_their_queries_and_are_audited(world: World) -> None:
    body = get(world, f"reports/leaks?{DAYS}", "analytics:users")
    assert (body["keys"], body["findings"]) == (0, [])
    assert [query["name"] for query in body["queries"]] == ["findings", "totals"]
    runs = QueryRun.objects.filter(email=world.owner.email, outcome="ok").order_by("pk")
    assert list(runs.values_list("statement", flat=True)) == [query["sql"] for query in body["queries"]]


class TestPreview:
    NOW = moment(12 * HOUR)
    RULES = (
        {"id": "r", "conditions": {"userName": "x"}, "ttlSeconds": 3600},
        {"id": "s", "conditions": {"userName": "y"}},
        {"id": "w", "conditions": {"isDataChange": True}, "invalidateRules": ["r", "s"]},
    )

    @pytest.fixture
    def log(self, world: World) -> LogReader:
        write_ruleset(tenant_id=world.tenant.pk, document={"rules": [*self.RULES]}, actor=world.owner.email)
        Ruleset.objects.filter(pk=world.tenant.pk).update(modified_at=moment(11 * HOUR))
        return LogReader(default_store(), world.tenant.pk, Reader("x@example.org", ""))

    def miss(self, key: str, at: int, **fields: Any) -> dict[str, Any]:
        return {
            "timestamp": at,
            "logId": f"{key} {at}",
            "cacheStatus": "MISS",
            "cacheKey": key,
            "matchedRule": "r",
            "responseSize": 100,
            "warehouseExecutionTimeMs": 10,
            **fields,
        }

    def test_only_live_results_count(self, world: World, log: LogReader) -> None:
        eleven = 11 * HOUR
        put(
            world,
            self.miss("under the old rules", eleven - 1),
            self.miss("just expired", eleven - 10 + 0, warehouseExecutionTimeMs=10),
            self.miss("live", eleven, warehouseExecutionTimeMs=1),
            self.miss("twice", eleven + 1000, responseSize=1),
            self.miss("twice", eleven + 2000, responseSize=7, warehouseExecutionTimeMs=20),
            self.miss("other rule", eleven + 1000, matchedRule="s"),
            self.miss("no hit", eleven + 1000, cacheStatus="HIT"),
            self.miss("future", 13 * HOUR),
            self.miss("unmeasured", eleven + 1, responseSize=-1, warehouseExecutionTimeMs=None),
        )
        preview = preview_invalidation(log, rule_id="r", now=self.NOW)
        (target,) = preview.targets
        assert (target.entries, target.bytes, target.refill_ms) == (3, 107, 21)
        assert target.last_store_at == format_timestamp(moment(eleven + 2000))
        # The results themselves, the newest first.
        (sql,) = (query.sql for query in preview.queries if query.name == "r results")
        assert [row["responseSize"] for row in log.rows(sql)] == [7, 100, -1]

    def test_a_preview_without_results_says_why(self, world: World, log: LogReader) -> None:
        def note(published: int) -> str | None:
            Ruleset.objects.filter(pk=world.tenant.pk).update(modified_at=moment(published))
            return preview_tables(log, tables=["x"], now=self.NOW).log_note

        minute = HOUR // 60
        published = "The rules were published 4 minutes ago, which emptied the cache"
        empty = f"{published}, and the log has no request since."
        assert note(12 * HOUR - 4 * minute) == empty
        put(world, self.miss("under the old rules", 12 * HOUR - 5 * minute))
        assert note(12 * HOUR - 4 * minute) == empty
        put(world, self.miss("no result", 12 * HOUR - minute, cacheStatus="BYPASS"))
        since = f"{published}: since then these rules have stored no result that is still valid."
        assert note(12 * HOUR - 4 * minute) == since
        assert note(-13 * HOUR) is None

    def test_results_of_the_tables_are_counted_apart(self, world: World, log: LogReader) -> None:
        eleven = 11 * HOUR
        put(
            world,
            self.miss("other", eleven, tables='["finance.ledger"]'),
            self.miss("none", eleven, tables=None),
            self.miss("one", eleven + 1, matchedRule="s", tables='["Catalog.Products","sales.orders"]'),
            self.miss("two", eleven + 2, matchedRule="s", tables='["catalog.prices"]'),
            self.miss("three", eleven + 3, matchedRule="s", tables='["finance.ledger"]'),
            self.miss("three", eleven + 4, matchedRule="s", tables='["finance.ledger"]'),
        )

        def found(*tables: str) -> list[tuple[str, int, int | None]]:
            preview = preview_tables(log, tables=tables, now=self.NOW)
            assert preview.rule_ids == ["r", "s"]
            return [(target.rule_id, target.table_entries or 0, target.entries) for target in preview.targets]

        # The rule with most results of the tables is first.
        assert found("catalog.products") == [("s", 1, 3), ("r", 0, 2)]
        assert found("catalog.*", "FINANCE.*") == [("s", 3, 3), ("r", 1, 2)]
        assert found("x") == [("r", 0, 2), ("s", 0, 3)]

        def why(*tables: str) -> list[str | None]:
            return [target.why for target in preview_tables(log, tables=tables, now=self.NOW).targets]

        assert why("catalog.*", "FINANCE.*") == [
            "All 3 of its results read these tables.",
            "1 of its 2 results reads these tables. The other 1 ends too.",
        ]
        no_table = "It is not limited to certain tables, so it may have results of catalog.products."
        assert why("catalog.products")[1] == (
            f"{no_table} By the log, it has no result of catalog.products, only 2 others."
        )
        some, every = (
            preview_tables(log, tables=tables, now=self.NOW)
            for tables in (["catalog.products"], ["catalog.*", "FINANCE.*"])
        )
        assert some.note == (
            "A rule is not ticked at first if it does not name catalog.products and, in the log, its "
            "statements do not read catalog.products. Tick these rules too to be on the safe side: all of "
            "their results end then."
        )
        assert every.note is None
        assert some.log_until == format_timestamp(moment(eleven + 4))
        newest = "The newest request in the log is from 1 hour ago"
        assert some.log_note == f"{newest}. Results stored since are not counted here."
        by_rule = preview_invalidation(log, rule_id="r", now=self.NOW)
        by_long_names = preview_tables(log, tables=["x" * 2000 for _ in range(100)], now=self.NOW)
        uncounted = [*by_rule.targets, *by_long_names.targets]
        unknown = "It is not limited to certain tables, so it may have results of these tables."
        assert [(target.entries, target.table_entries, target.why) for target in uncounted] == [
            (2, None, None),
            (2, 0, f"{unknown} By the log, it has no result of these tables, only 2 others."),
            (3, 0, f"{unknown} By the log, it has no result of these tables, only 3 others."),
        ]

    def test_rules_that_name_the_tables_are_suggested(self, world: World, log: LogReader) -> None:
        def rule(name: str, **conditions: Any) -> dict[str, Any]:
            return {"id": name, "conditions": {"isReadOnly": True, **conditions}}

        rules = [
            rule("other", tables={"containsAny": ["Finance.*"]}),
            rule("not", **{"not": {"tables": {"containsAny": ["sales.orders"]}}}),
            rule("named", tables={"containsAny": ["SALES.orders", "sales.returns"]}),
            rule("schema", any=[{"userName": "x"}, {"tables": {"containsAny": ["sales.*"]}}]),
            rule("all"),
        ]
        write_ruleset(tenant_id=world.tenant.pk, document={"rules": rules}, actor=world.owner.email)

        def found(*tables: str) -> dict[str, tuple[bool | None, str | None]]:
            preview = preview_tables(log, tables=tables, now=self.NOW)
            return {target.rule_id: (target.suggested, target.why) for target in preview.targets}

        none = " By the log, it has no cached result."
        other = "It is for Finance.*; a statement may read sales.orders too."
        any_table = "It is not limited to certain tables, so it may have results of sales.orders."
        assert found("sales.orders") == {
            "named": (True, f"Its conditions name sales.orders.{none}"),
            "schema": (True, f"Its conditions name sales.orders.{none}"),
            "other": (False, f"{other}{none}"),
            "not": (False, f"{any_table}{none}"),
            "all": (False, f"{any_table}{none}"),
        }
        assert [name for name, (suggested, _) in found("*", "x").items() if suggested] == [
            "other",
            "named",
            "schema",
        ]
        assert found("x", "finance.ledger")["other"] == (True, f"Its conditions name one of them.{none}")

    def test_rules_whose_ended_results_read_the_tables_are_suggested(
        self, world: World, log: LogReader
    ) -> None:
        eleven = 11 * HOUR
        products = '["catalog.products"]'
        put(
            world,
            self.miss("under the old rules", eleven - 1, tables=products),
            self.miss("expired", eleven - 2 * HOUR, matchedRule="s", tables=products),
            self.miss("other", eleven, matchedRule="s", tables='["finance.ledger"]'),
        )

        def found(*tables: str) -> list[tuple[str, int, int | None, bool | None, str | None]]:
            return [
                (target.rule_id, target.entries, target.table_entries, target.suggested, target.why)
                for target in preview_tables(log, tables=tables, now=self.NOW).targets
            ]

        reads = "By the log, its statements read catalog.products, but it now has no"
        assert found("catalog.products") == [
            ("r", 0, 0, True, f"{reads} cached result."),
            ("s", 1, 0, True, f"{reads} result of catalog.products, only 1 other."),
        ]
        assert [suggested for _, _, _, suggested, _ in found("catalog.prices")] == [False, False]

    def test_a_name_without_its_schema_finds_the_names_with_one(self, world: World, log: LogReader) -> None:
        put(world, self.miss("one", 11 * HOUR, tables='["Raw.Orders","sales.returns"]'))

        named = {"id": "named", "conditions": {"tables": {"containsAny": ["sales.orders", "raw.*"]}}}
        rules = [named, {"id": "r", "conditions": {"isReadOnly": True}}]
        write_ruleset(tenant_id=world.tenant.pk, document={"rules": rules}, actor="x", confirm_deletes=["s"])
        targets = preview_tables(log, tables=["ORDERS"], now=self.NOW).targets
        assert [(target.rule_id, target.suggested) for target in targets] == [("named", True), ("r", True)]

    def test_a_marker_ends_earlier_results(self, world: World, log: LogReader) -> None:
        eleven = 11 * HOUR
        put(world, self.miss("before", eleven), self.miss("at", eleven + 90), self.miss("after", eleven + 91))
        Marker.objects.create(
            tenant=world.tenant,
            marker_id="m",
            target_rule_id="r",
            ttl_seconds=3600,
            invalidated_at=moment(eleven + 100),
            expires_at=moment(13 * HOUR),
            created_at=moment(eleven + 100),
        )
        assert preview_invalidation(log, rule_id="r", now=self.NOW).targets[0].entries == 2

    def test_keys_of_the_same_hour_of_the_last_same_weekdays(self, world: World, log: LogReader) -> None:
        week = 7 * 24 * HOUR
        put(
            world,
            self.miss("a", 12 * HOUR - week),
            self.miss("b", 13 * HOUR - 1 - week, cacheStatus="HIT"),
            self.miss("b", 12 * HOUR + 5 - week, cacheStatus="HIT"),
            self.miss("b", 12 * HOUR + 6 - week, cacheStatus="HOLD"),
            self.miss("c", 13 * HOUR - week),
            day=DAY - dt.timedelta(weeks=1),
        )
        (target,) = preview_invalidation(log, rule_id="r", now=self.NOW).targets
        assert [(str(hour.day), hour.keys, hour.requests) for hour in target.same_hour] == [
            ("2026-02-23", 2, 3),
            ("2026-02-16", 0, 0),
            ("2026-02-09", 0, 0),
            ("2026-02-02", 0, 0),
        ]

    @pytest.mark.usefixtures("log")
    def test_a_rule_with_targets_previews_each(self, world: World) -> None:
        token = factories.pat_token(world.owner, "cache-admin", tenants=[str(world.tenant.pk)])
        client = ApiClient(token)
        address = f"/tenants/{world.tenant.pk}/rules"
        body = client.post(f"{address}/w/invalidations/preview").json()
        assert [target["ruleId"] for target in body["targets"]] == ["r", "s"]
        assert body["targets"][0]["lastStoreAt"] is None
        assert client.post(f"{address}/nope/invalidations/preview").status_code == 404
        # Two for each target.
        assert QueryRun.objects.count() == 4
        with CaptureQueriesContext(connection) as of_two:
            client.post(f"{address}/w/invalidations/preview")
        with CaptureQueriesContext(connection) as of_one:
            client.post(f"{address}/r/invalidations/preview")
        assert (len(of_two), len(of_one)) == (13, 8)
        assert not Marker.objects.exists()
