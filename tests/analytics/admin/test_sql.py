"""The staff's page of SQL, the trace of logged requests, and what the editors complete."""

from __future__ import annotations

import datetime as dt
import io
import json
import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from redis import RedisError

from accounts.limited_access import may_read_logs
from accounts.models import Event, Membership, Tenant, User
from analytics.admin.pages import sql as sql_page
from logs.cancelling import WATCH
from logs.models import QueryRun, SavedQuery
from logs.sql.cancellation import Cancellation
from logs.sql.errors import QueryCancelled
from tenantadmin.lib.core.timestamps import now
from tests.admin.logs import DAY, ENTRY, START, put_log, statement_in, to
from tests.admin.reading import text_of

if TYPE_CHECKING:
    from tests import factories


class BrokenCache:
    """Redis does not answer."""

    asked = False

    def set(self, *_: Any, **__: Any) -> None:
        raise RedisError

    def get_many(self, *_: Any) -> None:
        self.asked = True
        raise RedisError


class TestAccess:
    def test_without_access_the_page_says_how_to_get_it(self, staff: Client, tenant: Tenant) -> None:
        answer = staff.get(to("tenant-sql", tenant), {"sql": "SELECT 1"})
        assert answer.status_code == 200
        page = text_of(answer.content.decode())
        assert "SQL over it is for members. Take access for a limited time" in page
        assert "SELECT 1" not in page
        for sent in ({"statement": "SELECT 1"}, {"statement": "SELECT 1", "file": "csv"}, {"delete": "1"}):
            assert staff.post(to("tenant-sql", tenant), sent).status_code == 403
        assert staff.get(to("tenant-sql", tenant), {"part": "running"}).status_code == 403
        cancel = to("tenant-sql-cancel", tenant, run=1)
        assert staff.get(cancel).status_code == 403
        assert staff.post(cancel, {"reason": "x"}).status_code == 403
        assert staff.post(f"{to('tenant-rules', tenant)}?part=values", {}).status_code == 403
        logged = {"log_id": "log-0", "day": DAY.isoformat()}
        assert staff.post(to("tenant-rules-trace", tenant), logged).status_code == 403
        assert not QueryRun.objects.exists()
        assert not SavedQuery.objects.exists()

    def test_taking_access_leads_back_to_the_page_that_needs_it(
        self, support: Client, tenant: Tenant
    ) -> None:
        html = support.get(to("tenant-sql", tenant), {"sql": "SELECT 1"}).content.decode()
        take = re.findall(rf'href="({to("tenant-access", tenant)}[^"]+)"', html)[0]
        answer = support.post(take, {"hours": 1, "reason": "ticket 7"})
        assert answer["Location"] == f"{to('tenant-sql', tenant)}?sql=SELECT+1"
        assert statement_in(support.get(answer["Location"]).content.decode()) == "SELECT 1"
        for elsewhere in ("https://evil.example/", "//evil.example", "/admin/", ""):
            address = f"{to('tenant-access', tenant)}?back={elsewhere}"
            answer = support.post(address, {"hours": 1, "reason": "x"})
            assert answer["Location"] == to("tenant-people", tenant)

    def test_access_ends_with_its_time(self, access: Client, tenant: Tenant) -> None:
        user = User.objects.get(email="support@example.org")
        assert may_read_logs(user, tenant_id=tenant.pk)
        assert not may_read_logs(user, tenant_id=uuid4())
        Membership.objects.filter(user=user).update(ends_at=now())
        assert access.post(to("tenant-sql", tenant), {"statement": "SELECT 1"}).status_code == 403

    def test_strangers_and_members_without_a_staff_role_stay_out(
        self, tenant: Tenant, world: factories.World
    ) -> None:
        for user in (None, world.stranger, world.member, world.owner):
            client = Client()
            if user is not None:
                client.force_login(user)
            for address in (to("tenant-sql", tenant), to("tenant-sql-cancel", tenant, run=1)):
                assert client.post(address, {"statement": "SELECT 1"}).status_code == 302
        assert not QueryRun.objects.exists()


class TestRun:
    def test_rows_permalink_and_audit(self, access: Client, tenant: Tenant) -> None:
        put_log(tenant, ENTRY, {"userName": None})
        statement = (
            f"SELECT logId, day, userName, standardizedSql\r\nFROM proxy_logs WHERE day = '{DAY}' ORDER BY 1"
        )
        answer = access.post(to("tenant-sql", tenant), {"statement": statement, "run": "yes"})
        assert answer.status_code == 200
        html = answer.content.decode()
        page = text_of(html)
        assert "2 rows" in page
        assert f"Explain log-0 {DAY} ana SELECT <b> Explain log-1 {DAY} null null" in page
        assert f'href="{to("tenant-rules-trace", tenant)}?log_id=log-0&amp;day={DAY}"' in html
        assert 'id="no-day" hidden' in html
        permalink = re.findall(r'<a href="([^"]+)">Permalink', html)[0].replace("&amp;", "&")
        again = access.get(permalink).content.decode()
        assert statement_in(again) == " ".join(statement.split())
        run = QueryRun.objects.get()
        assert (run.email, run.statement, run.outcome, run.rows) == (
            "support@example.org",
            statement.replace("\r\n", "\n"),
            "ok",
            2,
        )

    def test_the_table_is_capped_and_the_csv_is_not(
        self, access: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sql_page, "SHOWN_ROWS", 2)
        statement = "SELECT -i AS n, '=1+' || i AS t, NULL AS e, [i] AS l FROM range(3) AS r(i) ORDER BY i"
        page = text_of(access.post(to("tenant-sql", tenant), {"statement": statement}).content.decode())
        assert "the first 2 are shown, the files have all 3 rows of the result" in page
        assert "n t e l 0 =1+0 null [0] -1 =1+1 null [1]" in page
        monkeypatch.setattr(sql_page, "_PART_ROWS", 1)
        html = access.post(to("tenant-sql", tenant), {"statement": statement}).content.decode()
        assert re.findall("<tbody[^>]*>", html) == ["<tbody>", "<tbody hidden>"]
        assert "Show 1 more rows" in html
        answer = access.post(to("tenant-sql", tenant), {"statement": statement, "file": "csv"})
        assert answer["Content-Disposition"] == 'attachment; filename="proxy_logs.csv"'
        text = answer.getvalue().decode()
        assert text == "n,t,e,l\r\n0,'=1+0,,[0]\r\n-1,'=1+1,,[1]\r\n-2,'=1+2,,[2]\r\n"
        answer = access.post(to("tenant-sql", tenant), {"statement": statement, "file": "excel"})
        assert answer.getvalue().decode() == f"\N{BYTE ORDER MARK}{text}"
        answer = access.post(to("tenant-sql", tenant), {"statement": statement, "file": "parquet"})
        assert answer["Content-Disposition"] == 'attachment; filename="proxy_logs.parquet"'
        assert pq.read_table(io.BytesIO(answer.getvalue())).column("n").to_pylist() == [0, -1, -2]

    @pytest.mark.parametrize(
        ("select", "title", "labels", "values"),
        [
            ("'x' || i AS a, i * 1.5 AS b, i AS c", "b by a", ["x0", "x1"], [0, 1.5]),
            ("i AS hour, i * 10 AS n", "n by hour", ["0", "1"], [0, 10]),
            ("nullif('x' || i, 'x0') AS a, 'inf'::DOUBLE AS b", "b by a", ["null", "x1"], [None, None]),
        ],
    )
    def test_a_short_result_of_numbers_has_a_chart(
        self, select: str, title: str, labels: list[str], values: list[Any], access: Client, tenant: Tenant
    ) -> None:
        sql = f"SELECT {select} FROM range(2) AS r(i) ORDER BY i"
        html = access.post(to("tenant-sql", tenant), {"statement": sql}).content.decode()
        data = re.search(r'<script id="result-chart-data"[^>]*>(.*?)</script>', html)
        assert data is not None
        chart = json.loads(data[1])
        assert (chart["title"], chart["labels"], chart["bars"][0]["values"]) == (title, labels, values)

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT i FROM range(2) AS r(i)",
            "SELECT 'x' AS a, 'y' AS b, i FROM range(2) AS r(i)",
            "SELECT 'x' AS a, 1 AS b",
            "SELECT 'x' AS a, i FROM range(61) AS r(i)",
        ],
    )
    def test_other_results_have_none(self, sql: str, access: Client, tenant: Tenant) -> None:
        html = access.post(to("tenant-sql", tenant), {"statement": sql}).content.decode()
        assert "result-chart" not in html

    def test_numbers_stand_right_and_timestamps_say_their_time(self, access: Client, tenant: Tenant) -> None:
        sql = f"SELECT {START + 61_002} AS \"timestamp\", 'a' AS b, 1.5 AS c, repeat('x', 70) AS d"
        html = access.post(to("tenant-sql", tenant), {"statement": sql}).content.decode()
        heads = re.findall(r'<th( class="number")?>(\w+)(?: <span class="subtle">UTC</span>)?</th>', html)
        assert [name for style, name in heads if style] == ["timestamp", "c"]
        assert f'<td class="number">{START + 61_002} <span class="subtle">00:01:01.002</span></td>' in html
        assert "<td>a</td>" in html
        assert '<td class="long">xxx' in html
        count = access.post(to("tenant-sql", tenant), {"statement": 'SELECT 1225 AS "timestamp"'})
        assert '<td class="number">1225</td>' in count.content.decode()

    def test_values_are_exact(self, access: Client, tenant: Tenant) -> None:
        statement = (
            "SELECT 0.0004 AS a, 2026 AS year, 331451557290541101 AS b, "
            "1234567890123456789.5::DECIMAL(20,1) AS c, [9007199254740993.25, 1] AS d, 0.1::DOUBLE AS e"
        )
        page = text_of(access.post(to("tenant-sql", tenant), {"statement": statement}).content.decode())
        values = "0.0004 2026 331451557290541101 1234567890123456789.5 [9007199254740993.25,1.00] 0.1"
        assert f"a year b c d e {values}" in page

    @pytest.mark.parametrize(
        ("statement", "text"),
        [
            ("", "Write a statement first."),
            ("DROP TABLE x", "DROP is not allowed."),
            ("SELECT nothing FROM proxy_logs WHERE day = '2026-03-01'", "nothing"),
            ("SELECT {{ day }}, {{user}}, {{day}}", "Give a value for day, user."),
        ],
    )
    def test_errors_are_shown_beside_the_statement(
        self, access: Client, tenant: Tenant, statement: str, text: str
    ) -> None:
        for action in ("run", "file"):
            answer = access.post(to("tenant-sql", tenant), {"statement": statement, action: "yes"})
            assert answer.status_code == 400
            html = answer.content.decode()
            assert text in text_of(html.partition('role="alert"')[2])
            assert statement_in(html) == statement

    def test_parameters_are_values_and_never_sql(self, access: Client, tenant: Tenant) -> None:
        put_log(tenant, ENTRY, {**ENTRY, "userName": "o'hara"})
        statement = "SELECT userName AS who FROM proxy_logs WHERE day = {{day}} AND userName = {{user}}"
        form = {"statement": statement, "p-day": DAY.isoformat(), "p-user": "o'hara"}
        html = access.post(to("tenant-sql", tenant), form).content.decode()
        page = text_of(html)
        assert "1 row in" in page
        assert "userName = ('o''hara')" in page
        assert 'id="p-user" value="o&#x27;hara"' in html
        injected = {**form, "p-user": "x' OR 1=1 --"}
        assert "0 rows" in text_of(access.post(to("tenant-sql", tenant), injected).content.decode())
        permalink = re.findall(r'<a href="([^"]+)">Permalink', html)[0].replace("&amp;", "&")
        assert 'id="p-user" value="o&#x27;hara"' in access.get(permalink).content.decode()

    def test_a_long_statement_has_no_permalink(self, access: Client, tenant: Tenant) -> None:
        statement = f"SELECT 1 -- {'x' * 9000}"
        html = access.post(to("tenant-sql", tenant), {"statement": statement}).content.decode()
        assert "1 row in" in text_of(html)
        assert ">Permalink" not in html

    def test_without_day_the_page_warns(self, access: Client, tenant: Tenant) -> None:
        html = access.get(to("tenant-sql", tenant), {"sql": "SELECT 1 -- day"}).content.decode()
        assert 'id="no-day">' in html

    def test_the_time_of_a_caller_is_limited(self, access: Client, tenant: Tenant, settings: Any) -> None:
        settings.CALLER_BUDGETS = {**settings.CALLER_BUDGETS, "query": "0 per hour"}
        settings.RATE_LIMIT_NAMESPACE = f"test-{uuid4().hex}"
        answer = access.post(to("tenant-sql", tenant), {"statement": "SELECT 1"})
        assert answer.status_code == 429
        assert not QueryRun.objects.exists()

    def test_it_costs_a_constant_number_of_queries(self, access: Client, tenant: Tenant) -> None:
        user = User.objects.get(email="support@example.org")

        def cost() -> int:
            with CaptureQueriesContext(connection) as captured:
                assert access.get(to("tenant-sql", tenant)).status_code == 200
            return len(captured)

        few = cost()
        for number in range(4):
            SavedQuery.objects.create(user=user, name=f"q{number}", statement="SELECT 1")
            QueryRun.objects.create(tenant_id=tenant.pk, email="a@b.example", statement="SELECT 1")
        assert cost() == few <= 12


class TestSaved:
    def test_saved_opened_replaced_and_deleted_with_events(self, access: Client, tenant: Tenant) -> None:
        address = to("tenant-sql", tenant)
        for statement in ("SELECT 1", "SELECT {{user}}"):
            answer = access.post(address, {"statement": statement, "save": "yes", "name": " by user "})
            assert answer.status_code == 302
        saved = SavedQuery.objects.get()
        assert (saved.user.email, saved.name, saved.statement) == (
            "support@example.org",
            "by user",
            "SELECT {{user}}",
        )
        html = access.get(answer["Location"]).content.decode()
        assert statement_in(html) == "SELECT {{user}}"
        assert 'name="p-user"' in html
        assert "by user" in text_of(html.partition("Saved queries")[2])
        assert access.post(address, {"delete": str(saved.pk)}).status_code == 302
        assert not SavedQuery.objects.exists()
        events = Event.objects.filter(kind__startswith="query.").order_by("pk")
        assert [(it.kind, it.actor, it.subject, it.before, it.after) for it in events] == [
            ("query.saved", "support@example.org", "by user", None, {"statement": "SELECT 1"}),
            ("query.saved", "support@example.org", "by user", None, {"statement": "SELECT {{user}}"}),
            ("query.deleted", "support@example.org", "by user", {"statement": "SELECT {{user}}"}, None),
        ]

    def test_the_result_stays_when_the_page_saves(self, access: Client, tenant: Tenant) -> None:
        form = {"statement": "SELECT 1", "save": "yes", "name": "one"}
        ours = {"HX-Request": "true"}
        part = access.post(to("tenant-sql", tenant), form, headers=ours).content.decode()
        assert "<html" not in part
        assert text_of(part).startswith("Saved the query “one”. Saved queries")
        assert f'href="?saved={SavedQuery.objects.get().pk}"' in part
        refused = access.post(to("tenant-sql", tenant), {**form, "name": ""}, headers=ours)
        assert (refused.status_code, 'role="alert"' in refused.content.decode()) == (200, True)
        assert SavedQuery.objects.count() == 1

    @pytest.mark.parametrize(
        "sent", [{"name": ""}, {"name": "x" * 101}, {"statement": " "}, {"statement": "x" * 70_000}]
    )
    def test_invalid_names_cannot_be_saved(
        self, access: Client, tenant: Tenant, sent: dict[str, str]
    ) -> None:
        form = {"statement": "SELECT 1", "name": "a", "save": "yes", **sent}
        assert access.post(to("tenant-sql", tenant), form).status_code == 400
        assert not SavedQuery.objects.exists()

    def test_at_most_a_hundred(self, access: Client, tenant: Tenant) -> None:
        user = User.objects.get(email="support@example.org")
        SavedQuery.objects.bulk_create(
            SavedQuery(user=user, name=f"q{number}", statement="SELECT 1") for number in range(100)
        )
        form = {"statement": "SELECT 2", "save": "yes"}
        assert access.post(to("tenant-sql", tenant), {**form, "name": "new"}).status_code == 400
        assert access.post(to("tenant-sql", tenant), {**form, "name": "q7"}).status_code == 302

    @pytest.mark.parametrize("query_id", ["0", "x", "9" * 40])
    def test_saved_queries_of_other_users_are_hidden(
        self, access: Client, tenant: Tenant, world: factories.World, query_id: str
    ) -> None:
        other = SavedQuery.objects.create(user=world.owner, name="own", statement="SELECT 'secret'")
        for wanted in (str(other.pk), query_id):
            assert access.post(to("tenant-sql", tenant), {"delete": wanted}).status_code == 404
            answer = access.get(to("tenant-sql", tenant), {"saved": wanted})
            assert "secret" not in answer.content.decode()
        assert SavedQuery.objects.filter(pk=other.pk).exists()


class TestRunning:
    def test_a_running_query_is_shown_and_cancelled_with_a_reason(
        self, access: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The engine stands for another process: it looks for marks while the query runs."""
        seen: list[str] = []

        class Engine:
            def execute(self, *, cancellation: Any, **_: Any) -> Any:
                other = Client()
                other.force_login(User.objects.get(email="support@example.org"))
                run = QueryRun.objects.get()
                seen.append(
                    text_of(other.get(to("tenant-sql", tenant), {"part": "running"}).content.decode())
                )
                cancel = to("tenant-sql-cancel", tenant, run=run.pk)
                seen.append(text_of(other.get(cancel).content.decode()))
                assert other.post(cancel, {"reason": ""}).status_code == 400
                WATCH.look()
                assert not cancellation.is_cancelled()
                assert other.post(cancel, {"reason": "too heavy"}).status_code == 302
                WATCH.look()
                assert cancellation.is_cancelled()
                raise QueryCancelled

        monkeypatch.setattr("logs.queries.get_engine", Engine)
        answer = access.post(to("tenant-sql", tenant), {"statement": "SELECT 1 AS slow"})
        assert answer.status_code == 400
        assert "The query was cancelled on the admin site" in text_of(answer.content.decode())
        run = QueryRun.objects.get()
        assert (run.outcome, run.message) == (
            "query_cancelled",
            "The query was cancelled on the admin site of this service.",
        )
        assert seen[0].startswith("support@example.org just now")
        assert "SELECT 1 AS slow Cancel" in seen[0]
        assert "Began just now , for support@example.org" in seen[1]
        event = Event.objects.get(kind="staff.acted")
        assert (event.reason, event.after) == (
            "too heavy",
            {"act": "query.cancelled", "queryRun": run.pk, "email": "support@example.org"},
        )
        assert event.tenant_id == tenant.pk

    def test_only_running_queries_are_cancelled(
        self, access: Client, tenant: Tenant, world: factories.World
    ) -> None:
        common = {"email": "a@b.example", "statement": "SELECT 1"}
        ended = QueryRun.objects.create(tenant_id=tenant.pk, outcome="ok", **common)
        killed = QueryRun.objects.create(tenant_id=tenant.pk, at=now() - dt.timedelta(minutes=6), **common)
        others = QueryRun.objects.create(tenant_id=world.stranger_tenant.pk, **common)
        assert "No query of this tenant is running." in text_of(
            access.get(to("tenant-sql", tenant), {"part": "running"}).content.decode()
        )
        for run in (ended, killed, others):
            address = to("tenant-sql-cancel", tenant, run=run.pk)
            assert access.post(address, {"reason": "x"}).status_code == 404
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_without_redis_nothing_is_cancelled(
        self, access: Client, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = QueryRun.objects.create(tenant_id=tenant.pk, email="a@b.example", statement="SELECT 1")
        broken = BrokenCache()
        monkeypatch.setattr("logs.cancelling.cache", broken)
        address = to("tenant-sql-cancel", tenant, run=run.pk)
        assert access.post(address, {"reason": "x"}).status_code == 503
        cancellation = Cancellation()
        with WATCH.watching(run.pk, cancellation):
            WATCH.look()
        assert not cancellation.is_cancelled()
        assert broken.asked
