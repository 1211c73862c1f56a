"""The staff's pages of insights: recommendations, digests, stale risk and leaks, verification."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.models import Event, Membership, Revision, Tenant
from accounts.tenants.lifecycle import delete_tenant
from analytics.models import Digest, Effect, Mining, Recommendation, ReplayRun, TenantHealth
from logs.models import QueryRun
from rules.models import RuleDraft, Ruleset
from rules.write import write_ruleset
from tenantadmin.backoffice.templatetags.backoffice import change
from tenantadmin.lib.core.timestamps import now
from tests.admin.advice import GAIN, RULE, recommend
from tests.admin.logs import DAY, put_log, to
from tests.admin.reading import text_of
from tests.admin.rows import make_row
from tests.admin.staff import page_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from tests import factories


@pytest.fixture
def tenant(world: factories.World) -> Tenant:
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": []}, actor="owner@example.org")
    return world.tenant


@pytest.fixture
def access(staff: Client, world: factories.World) -> Client:
    """A platform admin with limited access to the tenant's log."""
    Membership.objects.create(
        user=world.platform_admin, tenant=world.tenant, role="member", ends_at=now() + dt.timedelta(hours=1)
    )
    return staff


@pytest.fixture
def decide(staff: Client, tenant: Tenant) -> Callable[..., Any]:
    """Send the form of an act on a recommendation, as its page shows it."""

    def run(act: str, found: Recommendation, client: Client = staff, query: str = "", **fields: str) -> Any:
        address = to(f"tenant-advice-{act}", tenant, recommendation=found.pk) + query
        html = client.get(address).content.decode()
        etags = [*re.findall(r'name="etag" value="([^"]+)"', html), ""]
        etag = etags[0].replace("&quot;", '"')
        return client.post(address, {"etag": etag, "reason": "ticket 7", **fields})

    return run


class TestRecommendations:
    def test_it_shows_reasons_evidence_prediction_and_actions(self, staff: Client, tenant: Tenant) -> None:
        found = recommend(tenant)
        html = staff.get(to("tenant-insights", tenant)).content.decode()
        page = text_of(html)
        assert "Cache m.ads for a minute saves time 60 requests read m.ads." in page
        assert "Warehouse time 5 s less Hits ≈ 50 more bounds: 40 to 60 more" in page
        assert "Over the 1 day replayed, changes of rules could save about 5 s of warehouse time." in page
        assert f"by a replay of {DAY} to {DAY} with the rules of revision 1" in page
        assert "SELECT standardizedSql FROM proxy_logs" in page
        assert "SELECT &lt;b&gt;" in html
        for act in ("accept", "draft", "dismiss"):
            assert to(f"tenant-advice-{act}", tenant, recommendation=found.pk) in html
        # Without access the SQL is to read, not to run.
        assert "Open in SQL" not in page

    def test_predicted_figures_link_to_their_replay_or_the_evidence(
        self, staff: Client, tenant: Tenant
    ) -> None:
        found = recommend(tenant)
        html = staff.get(to("tenant-insights", tenant)).content.decode()
        assert html.count(f'<a href="#evidence-{found.pk}">') == 3
        assert f'id="evidence-{found.pk}"' in html
        found.replay = make_row(ReplayRun, tenant_id=tenant.pk, state="done")
        found.save()
        replay = reverse("admin:analytics_replayrun_change", args=[found.replay.pk])
        html = staff.get(to("tenant-insights", tenant)).content.decode()
        assert html.count(f'<a href="{replay}">') == 3
        assert staff.get(replay).status_code == 200

    def test_support_looks_and_searches_but_does_not_decide(self, support: Client, tenant: Tenant) -> None:
        found = recommend(tenant)
        page = page_text(support, to("tenant-insights", tenant))
        assert "A platform admin decides." in page
        assert "Make a draft" not in page
        for act in ("accept", "draft", "dismiss", "reopen"):
            address = to(f"tenant-advice-{act}", tenant, recommendation=found.pk)
            assert support.get(address).status_code == 403
            assert support.post(address, {"etag": "x", "reason": "x"}).status_code == 403
        assert support.post(to("tenant-insights", tenant)).status_code == 302
        mining = Mining.objects.get(pk=tenant.pk)
        assert (mining.state, mining.requested_by) == ("queued", "support@example.org")
        found.refresh_from_db()
        assert found.state == "open"

    def test_the_search_is_polled_and_then_shows_its_result(self, support: Client, tenant: Tenant) -> None:
        Mining.objects.create(tenant_id=tenant.pk, state="running", progress=0.25, requested_by="system")
        address = to("tenant-insights", tenant)
        part = support.get(address, {"part": "search"})
        assert "<html" not in part.content.decode()
        assert 'value="0.250"' in part.content.decode()
        assert 'hx-trigger="every 3s"' in part.content.decode()
        assert "HX-Refresh" not in part
        report = {
            "notProposed": [
                {"why": "Its data changes too often.", "statements": 2, "requests": 9, "warehouseMs": 2000}
            ]
        }
        Mining.objects.update(state="done", finished_at=now(), report=report)
        part = support.get(address, {"part": "search"})
        assert part["HX-Refresh"] == "true"
        assert "hx-trigger" not in part.content.decode()
        page = page_text(support, address)
        assert "Nothing is recommended now" in page
        assert "Its data changes too often. 2 9 2 s" in page
        Mining.objects.update(state="failed", error="The search failed. Request it again.")
        assert "failed The search failed." in page_text(support, address)

    def test_an_alternative_is_compared_and_accepted(
        self, staff: Client, support: Client, tenant: Tenant, decide: Callable[..., Any]
    ) -> None:
        rule = {**RULE, "varyBy": ["userName"]}
        gain = {**GAIN, "hits": {"low": 7, "likely": None, "high": 7}}
        other = {
            "variant": "per-user",
            "title": "Cache m.ads per user",
            "why": ["Each user gets their own."],
            "rules": [rule],
            "patch": [{"op": "insert", "ruleId": "ads", "before": None, "rule": rule}],
            "predicted": {"gain": gain},
        }
        found = recommend(
            tenant, variant="shared", caveats=["row-level-security-invisible"], alternatives=[other]
        )
        address = to("tenant-insights", tenant)
        page = page_text(staff, address)
        assert "No statement tells whether the warehouse shows each user other rows." in page
        assert (
            "Cache m.ads per user Each user gets their own. 5 s less 7 more no change Accept Make a draft"
            in page
        )
        assert "Accept Make a draft" not in page_text(support, address)
        accept = to("tenant-advice-accept", tenant, recommendation=found.pk)
        assert f"{accept}?variant=per-user" in staff.get(address).content.decode()
        page = page_text(staff, accept, variant="per-user")
        assert "Cache m.ads per user saves time" in page
        assert '+ "userName"' in page
        decide("accept", found, query="?variant=per-user")
        assert [rule["varyBy"] for rule in Ruleset.objects.get(pk=tenant.pk).rules] == [["userName"]]
        assert staff.get(accept, {"variant": "x"}).status_code == 400

    def test_too_many_searches(self, support: Client, tenant: Tenant, settings: Any) -> None:
        settings.REPLAY_LIMIT = "1 per hour"
        settings.RATE_LIMIT_NAMESPACE = f"test-{uuid4().hex}"
        address = to("tenant-insights", tenant)
        assert support.post(address).status_code == 302
        Mining.objects.update(state="done")
        assert support.post(address).status_code == 429

    def test_accepting_shows_the_change_and_writes_the_rules(
        self, staff: Client, tenant: Tenant, decide: Callable[..., Any]
    ) -> None:
        found = recommend(tenant)
        page = page_text(staff, to("tenant-advice-accept", tenant, recommendation=found.pk))
        assert "This will empty the cache." in page
        assert '+ "id": "ads",' in page
        answer = decide("accept", found)
        assert answer["Location"] == f"{to('tenant-insights', tenant)}?show=decided"
        assert [rule["id"] for rule in Ruleset.objects.get(pk=tenant.pk).rules] == ["ads"]
        revision = Revision.objects.get(kind="rules", tenant_id=tenant.pk, seq=2)
        assert (revision.user, revision.summary["recommendation"]["title"]) == (
            "admin@example.org",
            found.title,
        )
        assert revision.summary["comment"] == "ticket 7"
        event = Event.objects.get(kind="staff.acted")
        assert (event.actor, event.reason, event.after) == (
            "admin@example.org",
            "ticket 7",
            {"act": "recommendation.accepted", "recommendationId": str(found.pk), "seq": 2},
        )
        page = page_text(staff, to("tenant-insights", tenant), show="decided")
        assert "Accepted by admin@example.org" in page
        assert "as revision 2" in page
        assert "Its effect is measured after three whole days." in page
        # What is decided is not offered again, and is refused.
        assert "This is not possible now." in page_text(
            staff, to("tenant-advice-accept", tenant, recommendation=found.pk)
        )
        assert decide("accept", found, etag='"old"').status_code == 409
        assert Ruleset.objects.get(pk=tenant.pk).seq == 2

    def test_a_decision_on_an_outdated_page_is_refused(
        self, staff: Client, tenant: Tenant, decide: Callable[..., Any]
    ) -> None:
        found = recommend(tenant)
        assert decide("accept", found, etag='"old"').status_code == 409
        write_ruleset(tenant_id=tenant.pk, document={"rules": [RULE]}, actor="owner@example.org")
        warning = (
            "The rules have changed since the search. What it recommends would change the rules of before, "
            "and cannot be accepted. Search again"
        )
        accept = to("tenant-advice-accept", tenant, recommendation=found.pk)
        insights = to("tenant-insights", tenant)
        assert page_text(staff, insights).count(warning) == 1
        assert f"{found.title} saves time of revision 1" in page_text(staff, insights)
        assert "What would help now: 1 recommendation is of earlier rules: search again" in page_text(
            staff, to("tenant", tenant)
        )
        assert accept not in staff.get(insights).content.decode()
        assert warning in page_text(staff, accept)
        assert f'<form method="post" action="{insights}"' in staff.get(accept).content.decode()
        assert decide("draft", found, etag='"old"').status_code == 409
        found.refresh_from_db()
        assert found.state == "open"
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_a_draft_is_made_of_it(self, staff: Client, tenant: Tenant, decide: Callable[..., Any]) -> None:
        found = recommend(tenant)
        answer = decide("draft", found)
        draft = RuleDraft.objects.get()
        assert answer["Location"] == f"{to('tenant-open', tenant)}?to=drafts%2F{draft.pk}"
        assert [rule["id"] for rule in draft.rules] == ["ads"]
        assert "Drafts" in page_text(staff, to("tenant-insights", tenant))
        assert Ruleset.objects.get(pk=tenant.pk).seq == 1

    def test_it_is_dismissed_with_a_reason_and_opened_again(
        self, staff: Client, tenant: Tenant, decide: Callable[..., Any]
    ) -> None:
        found = recommend(tenant)
        assert decide("dismiss", found, reason="").status_code == 400
        assert decide("dismiss", found, until="2020-01-01").status_code == 400
        until = (now() + dt.timedelta(days=9)).date().isoformat()
        assert decide("dismiss", found, reason="seasonal", until=until).status_code == 302
        page = page_text(staff, to("tenant-insights", tenant), show="decided")
        assert "Dismissed by admin@example.org" in page
        assert f": seasonal; until {until}" in page
        assert decide("reopen", found).status_code == 302
        found.refresh_from_db()
        assert (found.state, found.reason, found.until) == ("open", "", None)
        kinds = Event.objects.exclude(kind="staff.acted").filter(subject=str(found.pk)).order_by("pk")
        assert [(event.kind, event.reason) for event in kinds] == [
            ("recommendation.dismissed", "seasonal"),
            ("recommendation.reopened", "ticket 7"),
        ]

    def test_the_measured_effect_beside_the_predicted(self, staff: Client, tenant: Tenant) -> None:
        measure = {"measured": 48, "predicted": 52, "beforeAfter": None, "inconclusive": False}
        saved = {"measured": -4000, "predicted": 6000, "beforeAfter": 1000, "inconclusive": True}
        found = recommend(
            tenant, state="accepted", accepted_seq=1, decided_at=now(), decided_by="a@b.example"
        )
        Effect.objects.create(
            recommendation=found,
            tenant_id=tenant.pk,
            state="closed",
            first_day=DAY,
            last_day=DAY,
            result={"hits": measure, "savedMs": saved, "closedBy": 3},
        )
        page = page_text(staff, to("tenant-insights", tenant), show="decided")
        assert "Hits +48 +52 –" in page
        assert "Time saved costs 4 s more 6 s 1 s inconclusive" in page
        assert "The measurement ended with revision 3." in page
        Effect.objects.update(result=None)
        assert "before three whole days had passed" in page_text(
            staff, to("tenant-insights", tenant), show="decided"
        )

    def test_of_another_tenant_and_of_none(
        self, staff: Client, tenant: Tenant, world: factories.World
    ) -> None:
        for found in (uuid4(), recommend(world.stranger_tenant).pk):
            address = to("tenant-advice-accept", tenant, recommendation=found)
            assert staff.get(address).status_code == 404
            assert staff.post(address, {"etag": "x", "reason": "x"}).status_code == 404

    def test_a_deleted_tenant_shows_its_recommendations(self, staff: Client, tenant: Tenant) -> None:
        recommend(tenant)
        delete_tenant(tenant_id=tenant.pk, actor="owner@example.org")
        page = page_text(staff, to("tenant-insights", tenant))
        assert "Cache m.ads for a minute" in page
        assert "Accept" not in page
        assert "Search now" not in page

    def test_queries_do_not_grow_with_the_rows(self, staff: Client, tenant: Tenant) -> None:
        recommend(tenant, state="accepted", accepted_seq=1)
        with CaptureQueriesContext(connection) as few:
            staff.get(to("tenant-insights", tenant), {"show": "decided"})
        for _ in range(3):
            found = recommend(tenant, state="accepted", accepted_seq=1)
            Effect.objects.create(recommendation=found, tenant_id=tenant.pk)
        with CaptureQueriesContext(connection) as many:
            staff.get(to("tenant-insights", tenant), {"show": "decided"})
        assert len(many) == len(few) <= 10


def test_changes() -> None:
    assert [change(value) for value in (None, 0, 12, -1200)] == ["–", "no change", "+12", "−1,200"]


class TestDigests:
    def digest(self, tenant: Tenant, period: str, hits: int, **fields: Any) -> Digest:
        first = dt.date.fromisoformat(period) if "W" not in period else dt.date(2026, 2, 23)
        last = first if "W" not in period else dt.date(2026, 3, 1)
        sql = f"SELECT count(*) FROM proxy_logs WHERE day = '{period}'"
        return Digest.objects.create(
            tenant_id=tenant.pk,
            period=period,
            first_day=first,
            last_day=last,
            source="s",
            document={
                "kind": "day",
                "period": period,
                "from": str(first),
                "to": str(last),
                "quiet": False,
                "facts": [{"id": "total-hits", "value": hits, "unit": "count", "sql": sql}],
                "names": [
                    {"id": "name", "kind": "statement", "value": "<i>", "href": None},
                    {"id": "write", "kind": "revision", "value": f"revision 2 ({first})", "href": None},
                    {"id": "rule", "kind": "rule", "value": "orders", "href": None, "label": "All <orders>"},
                ],
                "sections": [
                    {
                        "id": "totals",
                        "heading": "Totals",
                        "text": "Hits: {total-hits} of {name}, {write}, {rule}",
                    }
                ],
            },
            etag="e",
            **fields,
        )

    def test_the_newest_with_the_sql_of_its_numbers(
        self, staff: Client, support: Client, tenant: Tenant
    ) -> None:
        address = to("tenant-digests", tenant)
        assert "There is no digest yet." in page_text(support, address)
        self.digest(tenant, "2026-02-28", 7)
        self.digest(tenant, "2026-W09", 8)
        self.digest(tenant, "2026-03-01", 9)
        html = support.get(address).content.decode()
        # The statement leads to its requests.
        found = re.search(r'Hits: <a href="#sql-total-hits">9</a> of <a href="([^"]+)">(.*?)</a>', html)
        assert found is not None
        assert found[2] == "<code>&lt;i&gt;</code>"
        opened = f"{to('tenant-open', tenant)}?to="
        assert found[1] == f"{opened}statements%3Fday%3D2026-03-01%26days%3D1%26statement%3D%253Ci%253E"
        rule = '<strong title="orders">All &lt;orders&gt;</strong>'
        assert f'<a href="{opened}rules%3Frule%3Dorders">{rule}</a>' in html
        revision = f'<a href="{opened}history%3Fkind%3Drules%26seq%3D2">'
        assert f"{revision}<code>revision 2 (2026-03-01)</code></a>" in html
        assert 'id="sql-total-hits"' in html
        assert "day = &#x27;2026-03-01&#x27;" in html
        assert re.findall(r"<option[^>]*>([^<]*)<", html) == ["2026-03-01", "2026-W09", "2026-02-28"]
        assert "Hits: 7 of <i>" in page_text(support, address, period="2026-02-28")

    def test_overview_and_digest_say_what_is_open_now(self, support: Client, tenant: Tenant) -> None:
        self.digest(tenant, "2026-03-01", 9)
        pages = [to("tenant", tenant), to("tenant-digests", tenant)]
        assert not [page for page in pages if "What would help now" in page_text(support, page)]
        for kind in ("leak-fix", "cache"):
            recommend(tenant, kind=kind)
        recommend(tenant, state="dismissed")
        link = (
            f'What would help now: <a href="{to("tenant-insights", tenant)}">2 open recommendations: '
            "1 privacy leak to close; over the 1 day replayed, changes of rules could save about 10 s of "
            "warehouse time</a>"
        )
        assert [link in support.get(page).content.decode() for page in pages] == [True, True]

    @pytest.mark.parametrize("period", ["2026-02-27", "x", "\0"])
    def test_of_another_period(self, support: Client, tenant: Tenant, period: str) -> None:
        self.digest(tenant, "2026-02-28", 7)
        expected = 404 if period != "\0" else 200
        assert support.get(to("tenant-digests", tenant), {"period": period}).status_code == expected


class TestReports:
    def test_it_opens_with_the_last_days(self, support: Client, tenant: Tenant) -> None:
        TenantHealth.objects.create(tenant_id=tenant.pk, last_day=DAY)
        address = to("tenant-reports", tenant)
        html = support.get(address).content.decode()
        assert f'value="{DAY - dt.timedelta(days=6)}"' in html
        assert not QueryRun.objects.exists()
        html = support.get(address, {"part": "figures"}).content.decode()
        assert text_of(html).startswith(f"Stale risk 2026-02-23 to {DAY} 0 of 0 hits were older")
        # Who takes access comes back to the page.
        assert f"?back={quote(address, safe='')}" in html
        assert "part" not in html.partition("?back=")[2].partition('"')[0]

    def test_leaks_name_users_only_with_access(self, support: Client, access: Client, tenant: Tenant) -> None:
        per_user = {"standardizedSql": "SELECT current_user()", "cacheKey": "k", "cacheStatus": "HIT"}
        put_log(tenant, *({**per_user, "userName": name} for name in ("ana", "bea")))
        query: dict[str, Any] = {"first": DAY.isoformat(), "last": DAY.isoformat()}
        address = to("tenant-reports", tenant)
        page = page_text(support, address, **query)
        assert "0 of 0 hits were older" in page
        assert "Leaks name users, so they are for members. Take access for a limited time" in page
        assert "ana" not in page.split()
        assert "current_user" not in page
        page = page_text(access, address, **query)
        assert (
            "1 statement depends on the user and was served to 2 users, 2 times. Of 1 cached results, 1 went"
            in page
        )
        assert "certain no rule SELECT current_user() 1 2 ana, bea" in page
        runs = QueryRun.objects.values_list("email", "outcome")
        assert sorted(set(runs)) == [("admin@example.org", "ok"), ("support@example.org", "ok")]

    @pytest.mark.parametrize("last", ["2026-02-28", "2026-04-02", "x"])
    def test_bad_days(self, support: Client, tenant: Tenant, last: str) -> None:
        answer = support.get(to("tenant-reports", tenant), {"first": "2026-03-01", "last": last})
        assert answer.status_code == 400
        assert not QueryRun.objects.exists()


class TestVerify:
    def test_a_document_is_compared_with_its_sql(self, access: Client, tenant: Tenant) -> None:
        put_log(tenant, {"cacheStatus": "HIT"}, {"cacheStatus": "MISS"})
        address = to("tenant-verify", tenant)
        answer = access.post(address, {"document": "day", "period": DAY.isoformat(), "user": ""})
        assert answer.status_code == 200
        page = text_of(answer.content.decode())
        assert re.search(rf"equal \d+ values of day {DAY}", page)
        assert "Open in SQL" in page
        assert QueryRun.objects.filter(email="admin@example.org", outcome="ok").exists()

    @pytest.mark.parametrize(
        ("sent", "status", "text"),
        [
            ({"document": "day", "period": "2026", "user": ""}, 400, "Give a period like 2026-03-01."),
            ({"document": "rules", "period": "2026", "user": "ana"}, 400, "made for single users"),
            ({"document": "none", "period": "", "user": ""}, 400, "Select a valid choice."),
            ({"document": "day", "period": "2026-03-09", "user": ""}, 404, "There is no log entry"),
        ],
    )
    def test_documents_that_cannot_be_verified(
        self, access: Client, tenant: Tenant, sent: dict[str, str], status: int, text: str
    ) -> None:
        answer = access.post(to("tenant-verify", tenant), sent)
        assert answer.status_code == status
        assert text in text_of(answer.content.decode())

    def test_verification_needs_access(self, support: Client, tenant: Tenant) -> None:
        address = to("tenant-verify", tenant)
        assert "Take access for a limited time" in page_text(support, address)
        refused = support.post(address, {"document": "day", "period": DAY.isoformat(), "user": ""})
        assert refused.status_code == 403
        assert not QueryRun.objects.exists()
