"""The staff's pages: who sees them, what they show, what their acts do and record."""

from __future__ import annotations

import datetime as dt
import re
from html import unescape
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import unquote_plus
from uuid import uuid4

import orjson
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.admin.finding import tenants_matching
from accounts.admin.tabs import TABS
from accounts.limited_access import end_expired_access
from accounts.models import Domain, Event, Fqdn, Membership, Revision, Tenant, User
from accounts.support_role import set_support
from analytics.admin import tenants
from analytics.models import Build, DayRollup, TenantHealth
from analytics.tasks import refresh_day
from logs import quarantine
from logs.layout import day_start_ms
from logs.models import LogRead, Partition, PendingBuild, QuarantinedEntry
from rules.admin.json_lines import find_lines, line_of
from rules.drafts import create_draft
from rules.models import Marker, RuleDraft, Ruleset
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import LocalStore, ObjectNotFound, StoreError, default_store
from tests import factories
from tests.admin.acting import act
from tests.admin.logs import DAY, ENTRY, put_log
from tests.admin.reading import text_of
from tests.conftest import ApiClient
from tests.objects import save_object

if TYPE_CHECKING:
    from pathlib import Path

RULE: dict[str, Any] = {
    "id": "orders",
    "conditions": {"tables": {"containsAny": ["sales.orders"]}, "isReadOnly": True},
    "ttlSeconds": 3600,
}


@pytest.fixture
def support(world: factories.World) -> Client:
    user = factories.make_user("support@example.org", is_support=True)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def tenant(world: factories.World) -> Tenant:
    write_ruleset(tenant_id=world.tenant.pk, document={"rules": [RULE]}, actor="owner@example.org")
    return world.tenant


def to(name: str, tenant: Tenant, **more: Any) -> str:
    return reverse(f"admin:{name}", kwargs={"tenant": tenant.pk, **more})


def page(client: Client, address: str, **query: Any) -> str:
    answer = client.get(address, query)
    assert answer.status_code == 200, answer.content.decode()[-2000:]
    return text_of(answer.content.decode().partition('<div class="page">')[2])


def every_page(tenant: Tenant) -> dict[str, str]:
    """Return the addresses of all pages that support may see, by name."""
    draft = create_draft(tenant_id=tenant.pk, document={}, actor="x@example.org")
    names = [name for _, name in TABS.values()]
    more = (
        *("tenant-access", "tenant-rules-trace", "tenant-rebuild"),
        *("tenant-digests", "tenant-reports", "tenant-verify"),
    )
    return {
        **{name: reverse(f"admin:{name}") for name in ("index", "system", "terms")},
        **{name: to(name, tenant) for name in (*names, *more)},
        "tenant-quarantine": to("tenant-quarantine", tenant, day="2026-03-01"),
        "tenant-invalidate": f"{to('tenant-invalidate', tenant)}?rule=orders",
        "tenant-draft": to("tenant-draft", tenant, draft=draft.pk),
    }


def of_admins(tenant: Tenant) -> dict[str, str]:
    draft = create_draft(tenant_id=tenant.pk, document={}, actor="x@example.org")
    return {
        "terms-edit": reverse("admin:terms-edit"),
        "tenant-rules-add": to("tenant-rules-add", tenant),
        "tenant-restore": to("tenant-restore", tenant, kind="rules", seq=0),
        "tenant-draft-publish": to("tenant-draft-publish", tenant, draft=draft.pk),
        "tenant-draft-delete": to("tenant-draft-delete", tenant, draft=draft.pk),
    }


class TestRoles:
    def test_every_page_for_every_role(self, staff: Client, support: Client, tenant: Tenant) -> None:
        for name, address in every_page(tenant).items():
            assert staff.get(address).status_code == 200, name
            assert support.get(address).status_code == 200, name
        for name, address in of_admins(tenant).items():
            assert staff.get(address).status_code == 200, name
            refused = support.get(address)
            assert refused.status_code == 403, name
            assert "Your role on this site does not allow this." in refused.content.decode()

    def test_neither_strangers_nor_owners_get_in(self, tenant: Tenant, world: factories.World) -> None:
        pages = {**every_page(tenant), **of_admins(tenant)}
        pages["tenant-quarantined-entry"] = to("tenant-quarantined-entry", tenant, entry=1)
        for user in (None, world.owner, world.member, world.stranger):
            client = Client()
            if user is not None:
                client.force_login(user)
            for address in pages.values():
                for answer in (client.get(address), client.post(address, {"reason": "x", "rule": "orders"})):
                    assert answer.status_code == 302
                    assert answer["Location"].startswith("/admin/login/")
        assert not Marker.objects.exists()
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_support_sees_lists_but_does_nothing_to_their_rows(
        self, support: Client, world: factories.World
    ) -> None:
        address = reverse("admin:accounts_user_changelist")
        assert support.get(address).status_code == 200
        act(support, "deactivate", world.member)
        world.member.refresh_from_db()
        assert world.member.is_active
        shown = support.get(reverse("admin:accounts_user_change", args=[world.member.pk])).content.decode()
        assert "Deactivate" not in shown

    def test_support_is_no_admin_in_the_api(self, world: factories.World) -> None:
        user = factories.make_user("support@example.org", is_support=True)
        caller = ApiClient(factories.sign_in(user))
        assert caller.get(f"/config/tenants/{world.tenant.pk}").status_code in {403, 404}
        assert str(world.tenant.pk) not in b"".join(caller.get("/config/tenants")).decode()

    def test_the_role_is_given_and_taken_with_an_event(self, staff: Client, world: factories.World) -> None:
        assert "Made support: member@example.org." in act(staff, "make_support", world.member)
        client = Client()
        client.force_login(User.objects.get(pk=world.member.pk))
        assert client.get("/admin/").status_code == 200
        assert "This user is support already." in act(staff, "make_support", world.member)
        assert "Support ended: member@example.org." in act(staff, "end_support", world.member)
        assert client.get("/admin/").status_code == 302
        assert not set_support(world.member, is_support=False, actor="x@example.org")
        events = Event.objects.filter(kind="roles.changed").order_by("pk")
        assert [(it.before, it.after, it.reason) for it in events] == [
            ({"support": False}, {"support": True}, "asked to"),
            ({"support": True}, {"support": False}, "asked to"),
        ]

    def test_a_deactivated_support_user_is_no_staff(self, db: None) -> None:
        assert not factories.make_user("gone@example.org", is_support=True, is_active=False).is_staff
        assert not factories.make_user("s@example.org", is_support=True).is_superuser


class TestAccess:
    def test_access_is_a_membership_that_ends(self, support: Client, tenant: Tenant) -> None:
        answer = support.post(to("tenant-access", tenant), {"hours": 2, "reason": "ticket 7"}, follow=True)
        assert "You have access to Warehouse for 2 h." in answer.content.decode()
        membership = Membership.objects.get(user__email="support@example.org")
        assert membership.role == "member"
        assert membership.ends_at is not None
        assert dt.timedelta(hours=1.9) < membership.ends_at - now() <= dt.timedelta(hours=2)
        caller = ApiClient(factories.sign_in(membership.user))
        assert caller.get(f"/tenants/{tenant.pk}/query/schema").status_code == 200
        Membership.objects.filter(pk=membership.pk).update(ends_at=now())
        assert caller.get(f"/tenants/{tenant.pk}/query/schema").status_code != 200
        assert end_expired_access() == 1
        assert end_expired_access() == 0
        assert not Membership.objects.filter(pk=membership.pk).exists()
        events = Event.objects.filter(kind__startswith="membership.", tenant_id=tenant.pk).order_by("pk")
        assert [(it.kind, it.actor, it.subject, it.reason) for it in events] == [
            ("membership.added", "support@example.org", "support@example.org", "ticket 7"),
            ("membership.removed", "system", "support@example.org", ""),
        ]

    def test_owners_see_it(self, support: Client, tenant: Tenant, world: factories.World) -> None:
        support.post(to("tenant-access", tenant), {"hours": 1, "reason": "ticket 7"})
        caller = ApiClient(factories.sign_in(world.owner))
        found = caller.get("/config/events?kind=membership.added").json()["events"]
        assert [(it["subject"], it["reason"]) for it in found] == [("support@example.org", "ticket 7")]

    def test_it_is_given_back(self, support: Client, tenant: Tenant) -> None:
        address = to("tenant-access-end", tenant)
        for refused in (support.get(address), support.post(address, {"reason": "done"})):
            assert refused.status_code == 409
            assert "You have no limited access to this tenant." in refused.content.decode()
        support.post(to("tenant-access", tenant), {"hours": 1, "reason": "x"})
        assert "you are no longer a member of this tenant" in page(support, address)
        assert support.post(address, {"reason": "done"}).status_code == 302
        assert not Membership.objects.filter(user__email="support@example.org").exists()

    @pytest.mark.parametrize("hours", ["0", "9", "", "x"])
    def test_for_a_limited_time_only(self, support: Client, tenant: Tenant, hours: str) -> None:
        assert support.post(to("tenant-access", tenant), {"hours": hours, "reason": "x"}).status_code == 400
        assert not Membership.objects.filter(user__email="support@example.org").exists()

    def test_a_lasting_member_stays_one(self, support: Client, tenant: Tenant) -> None:
        user = User.objects.get(email="support@example.org")
        Membership.objects.create(user=user, tenant=tenant, role="owner")
        refused = support.post(to("tenant-access", tenant), {"hours": 1, "reason": "x"})
        assert refused.status_code == 409
        membership = Membership.objects.get(user=user)
        assert (membership.role, membership.ends_at) == ("owner", None)

    @pytest.mark.parametrize("name", ["tenant-access", "tenant-member", "tenant-engine", "tenant-rules-add"])
    def test_a_deleted_tenant_has_no_form(self, staff: Client, tenant: Tenant, name: str) -> None:
        assert staff.get(to(name, tenant)).status_code == 200
        Tenant.objects.filter(pk=tenant.pk).update(deleted_at=now())
        refused = staff.get(to(name, tenant))
        assert refused.status_code == 404
        assert "The tenant is deleted and cannot be changed." in refused.content.decode()


class TestHome:
    def test_it_is_calm_without_trouble(self, staff: Client, db: None) -> None:
        assert "All is calm" in page(staff, "/admin/")

    def test_each_trouble_leads_to_its_cure(self, staff: Client, tenant: Tenant) -> None:
        today = now().date()
        TenantHealth.objects.create(
            tenant_id=tenant.pk,
            last_day=today - dt.timedelta(days=3),
            rate_7=0.4,
            rate_28=0.5,
            drop=0.1,
            requests_7=1000,
            stale_days=2,
            quarantined=5,
        )
        Build.objects.create(tenant_id=tenant.pk, period="2026", state="failed", error="no such file")
        Domain.objects.create(account=tenant.account, name="waits.example", challenge="c")
        html = staff.get("/admin/").content.decode()
        shown = text_of(html)
        assert "All is calm" not in shown
        assert "Warehouse 40.0 % 50.0 % -10.0 points 1 000" in shown
        assert f"Warehouse {today - dt.timedelta(days=3)}" in shown
        assert "Warehouse 2026 failed no such file" in shown
        assert "Warehouse stale 2 days" in shown
        assert "waits.example Acme" in shown
        for name in ("tenant", "tenant-builds", "tenant-history"):
            assert f'href="{to(name, tenant)}' in html

    def test_what_was_mended_is_left_out(self, staff: Client, tenant: Tenant) -> None:
        at = now() - dt.timedelta(hours=1)
        for number, (period, state) in enumerate(
            [
                ("2026-03-01", "failed"),
                ("2026-03-01", "done"),
                ("2026-03-02", "done"),
                ("2026-03-02", "failed"),
            ]
        ):
            Build.objects.create(
                tenant_id=tenant.pk,
                period=period,
                state=state,
                error=f"error {number}",
                started_at=at + dt.timedelta(minutes=number),
            )
        # One that runs has not mended it yet.
        Build.objects.create(tenant_id=tenant.pk, period="2026-03-02")
        # That of another tenant mends nothing.
        Build.objects.create(tenant_id=uuid4(), period="2026-03-02", state="done")
        shown = page(staff, "/admin/")
        assert "Warehouse 2026-03-02 failed error 3" in shown
        assert "error 0" not in shown

    def test_the_last_failure_of_a_period_is_enough(self, staff: Client, tenant: Tenant) -> None:
        for minutes in (2, 1):
            Build.objects.create(
                tenant_id=tenant.pk,
                period="2026",
                state="failed",
                started_at=now() - dt.timedelta(minutes=minutes),
                error=f"{minutes} minutes ago",
            )
        shown = page(staff, "/admin/")
        assert "1 minutes ago" in shown
        assert "2 minutes ago" not in shown

    def test_deleted_tenants_need_nobody(self, staff: Client, tenant: Tenant) -> None:
        for tenant_id in (tenant.pk, uuid4()):
            TenantHealth.objects.create(
                tenant_id=tenant_id,
                last_day=now().date() - dt.timedelta(days=3),
                drop=0.1,
                requests_7=1000,
                stale_days=2,
                quarantined=5,
            )
            Build.objects.create(tenant_id=tenant_id, period="2026", state="failed")
        assert "All is calm" not in page(staff, "/admin/")
        Tenant.objects.filter(pk=tenant.pk).update(deleted_at=now())
        assert "All is calm" in page(staff, "/admin/")

    def test_a_change_leads_to_its_difference(self, staff: Client, tenant: Tenant) -> None:
        html = staff.get("/admin/").content.decode()
        assert f'href="{to("tenant-history", tenant)}?kind=rules&amp;to=1"' in html

    def test_changes_name_their_account(self, staff: Client, tenant: Tenant) -> None:
        Revision.objects.create(
            kind="account", account_id=tenant.account_id, seq=0, action="create", user="x", document={}
        )
        html = staff.get("/admin/").content.decode()
        assert f'href="{reverse("admin:account", args=[tenant.account_id])}">Acme</a>' in html

    def test_small_drops_and_few_requests_are_noise(self, staff: Client, world: factories.World) -> None:
        common = {"rate_7": 0.1, "rate_28": 0.5, "last_day": now().date()}
        other = factories.make_tenant(world.account, "Other")
        TenantHealth.objects.create(tenant_id=world.tenant.pk, drop=0.4, requests_7=99, **common)
        TenantHealth.objects.create(tenant_id=other.pk, drop=0.019, requests_7=1000, **common)
        assert "No tenant's hit rate fell" in page(staff, "/admin/")

    def test_what_nobody_owns_is_loaded_behind(self, staff: Client, world: factories.World) -> None:
        assert "Every tenant and every account has an owner." in text_of(
            staff.get("/admin/", {"part": "without-owner"}).content.decode()
        )
        Membership.objects.filter(tenant=world.tenant, role="owner").delete()
        world.account.owners.clear()
        shown = text_of(staff.get("/admin/", {"part": "without-owner"}).content.decode())
        assert shown == "Warehouse tenant Acme account"

    def test_queries_do_not_grow_with_the_rows(self, staff: Client, world: factories.World) -> None:
        def fill() -> None:
            name = str(uuid4())
            tenant = Tenant.objects.create(account=world.account, name=name, name_key=name)
            TenantHealth.objects.create(
                tenant_id=tenant.pk, drop=0.3, requests_7=500, stale_days=1, quarantined=1
            )
            Build.objects.create(tenant_id=tenant.pk, period="2026", state="failed")
            Domain.objects.create(account=world.account, name=f"d{uuid4()}.example", challenge="c")

        fill()
        with CaptureQueriesContext(connection) as few:
            staff.get("/admin/")
        for _ in range(4):
            fill()
        with CaptureQueriesContext(connection) as many:
            staff.get("/admin/")
        assert len(many) == len(few) <= 15


class TestFinding:
    """What a customer says leads to the tenant, by the list and by the palette."""

    @pytest.mark.parametrize("said", ["ware", "WAREHOUSE", "{id}", "db.acme.example", "Member@Example.org"])
    def test_a_tenant_is_found(self, staff: Client, tenant: Tenant, said: str) -> None:
        Fqdn.objects.create(name="db.acme.example", tenant_id=tenant.pk)
        term = said.format(id=tenant.pk)
        href = to("tenant", tenant)
        listed = staff.get(reverse("admin:accounts_tenant_changelist"), {"q": term}).content.decode()
        assert re.findall(r'field-name[^>]*><a href="([^"?]+)', listed) == [href]
        found = staff.get("/admin/search/", {"s": term}).content.decode()
        assert f'href="{href}"' in found

    @pytest.mark.parametrize("said", ["house", "acme.example", "x@example.org", "a\0b", "%"])
    def test_no_other_is(self, staff: Client, tenant: Tenant, said: str) -> None:
        found = staff.get("/admin/search/", {"s": said})
        assert found.status_code == 200
        assert to("tenant", tenant) not in found.content.decode()

    def test_people_and_accounts_are_found(self, support: Client, tenant: Tenant) -> None:
        found = support.get("/admin/search/", {"s": "acme"}).content.decode()
        assert reverse("admin:account", args=[tenant.account_id]) in found
        found = support.get("/admin/search/", {"s": "member@"}).content.decode()
        assert "member@example.org" in found

    def test_the_search_uses_indexes(self, db: None) -> None:
        account = factories.make_account()
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO accounts_tenant (id, account_id, name, name_key, created_at, modified_at) "
                "SELECT gen_random_uuid(), %s, 'Tenant ' || n, 'tenant ' || n, now(), now() "
                "FROM generate_series(1, 20000) AS n",
                [account.pk],
            )
            cursor.execute("ANALYZE accounts_tenant")
        plan = Tenant.objects.filter(tenants_matching("tenant 1234")).explain()
        assert "Seq Scan on accounts_tenant" not in plan, plan
        assert "tenant_name_start" in plan
        assert "Seq Scan" not in Tenant.objects.order_by("name", "id")[:100].explain()


class TestTenant:
    def test_it_shows_state_figures_and_changes(self, staff: Client, tenant: Tenant) -> None:
        shown = page(staff, to("tenant", tenant))
        assert f"Warehouse {tenant.pk} Acme team live" in shown
        assert "No day of this period is built." in shown
        assert "rules 1 update owner@example.org" in shown

    def test_the_chart_has_lines_up_to_its_last_day(self, staff: Client, tenant: Tenant) -> None:
        today = now().date()
        health = TenantHealth.objects.create(tenant_id=tenant.pk, last_day=today)
        at = {"history": "/history/"}
        marks = tenants.chart_of(tenants.read_overview(tenant.pk, days=7), **at)["marks"]
        assert {mark["at"] for mark in marks} == {today.isoformat()}
        assert marks[0]["text"] == "rules 1: update by owner@example.org"
        health.last_day = today - dt.timedelta(days=1)
        health.save()
        assert tenants.chart_of(tenants.read_overview(tenant.pk, days=7), **at)["marks"] == []
        assert "rules 1 update owner@example.org" in page(staff, to("tenant", tenant))

    @pytest.mark.parametrize("days", ["7", "365"])
    def test_the_range_is_chosen(self, staff: Client, tenant: Tenant, days: str) -> None:
        html = staff.get(to("tenant", tenant), {"days": days}).content.decode()
        assert re.search(rf'href="\?days={days}" aria-current="true"', html)

    @pytest.mark.parametrize("days", ["", "0", "28", "-1", "x", "\0"])
    def test_another_range_is_the_default(self, staff: Client, tenant: Tenant, days: str) -> None:
        html = staff.get(to("tenant", tenant), {"days": days}).content.decode()
        assert 'href="?days=28" aria-current="true"' in html

    def test_figures_change_against_the_days_before(self, staff: Client, tenant: Tenant) -> None:
        last = dt.date(2026, 3, 28)
        TenantHealth.objects.create(tenant_id=tenant.pk, last_day=last)
        for age, hits, misses in ((0, 60, 40), (6, 0, 0), (7, 90, 10), (13, 0, 100), (14, 1000, 1000)):
            DayRollup.objects.create(
                tenant_id=tenant.pk,
                day=last - dt.timedelta(days=age),
                build="b",
                version=1,
                files={},
                bytes=1,
                hits=hits,
                misses=misses,
                warehouse_ms=10 * misses,
            )
        shown = page(staff, to("tenant", tenant), days=7)
        assert "2026-03-22 to 2026-03-28, UTC, against 2026-03-15 to 2026-03-21" in shown
        assert "Hit rate 60.0 % +15.0 points;" in shown
        assert "Hits 60 −30 Misses 40 −70 Warehouse time 400 ms −700 ms" in shown
        assert "of which only" not in shown
        assert "there is no log of the 365 days before" in page(staff, to("tenant", tenant), days=365)
        DayRollup.objects.filter(day=last - dt.timedelta(days=13)).delete()
        shown = page(staff, to("tenant", tenant), days=7)
        assert "2026-03-15 to 2026-03-21, of which only 1 day has a log" in shown

    def test_every_figure_links_to_its_requests(self, staff: Client, tenant: Tenant) -> None:
        put_log(tenant, ENTRY, {**ENTRY, "cacheStatus": "MISS"})
        html = staff.get(to("tenant", tenant), {"days": 7}).content.decode()
        sql = to("tenant-sql", tenant)
        figures = re.findall(r'<div class="value"><a href="([^"]+)"', html)
        assert figures == [
            f"{sql}?first=2026-02-23&amp;last=2026-03-01&amp;{more}"
            for more in (
                "show=statuses",
                "status=HIT&amp;show=statements",
                "show=statuses",
                "show=statements",
            )
        ]
        assert f'<a href="{sql}?first=2026-03-01&amp;last=2026-03-01&amp;show=statuses">1</a>' in html

    def test_the_range_chooses_rules_and_statements(
        self, staff: Client, access: Client, tenant: Tenant, object_store: Path
    ) -> None:
        decided = {**ENTRY, "matchedRule": "orders", "matchedRuleName": "Orders"}
        put_log(tenant, decided, {**decided, "cacheStatus": "MISS"}, {**decided, "cacheStatus": "MISS"})
        earlier = {**decided, "timestamp": day_start_ms(DAY - dt.timedelta(days=7)), "logId": "earlier"}
        key = f"{tenant.pk}/logs/{DAY - dt.timedelta(days=7):%Y/%m/%d}/00/a.json"
        save_object(default_store(), key, orjson.dumps(earlier))
        call_command("rebuild", tenant=tenant.pk)
        html = staff.get(to("tenant", tenant), {"days": 7}).content.decode()
        assert 'hx-get="?part=range&amp;days=7"' in html
        part = staff.get(f"{to('tenant', tenant)}?days=7&part=range").content.decode()
        shown = text_of(part)
        assert "Rules 2026-02-23 to 2026-03-01, and change against 2026-02-16 to 2026-02-22" in shown
        assert "Orders orders 3 +2 33.3 % -66.7 points" in shown
        assert "Top statements 2026-02-23 to 2026-03-01" in shown
        assert "SELECT <b> orders 3 1" in shown
        longer = text_of(staff.get(f"{to('tenant', tenant)}?days=28&part=range").content.decode())
        assert "Orders orders 4 new 50.0 %" in longer
        # The number of a statement leads to SQL that counts the same requests.
        href = unescape(re.findall(rf'href="({to("tenant-sql", tenant)}\?sql=[^"]+)"', part)[0])
        sql = re.findall(r"<textarea[^>]*>(.*?)</textarea>", access.get(href).content.decode(), re.DOTALL)[0]
        answer = access.post(to("tenant-sql", tenant), {"statement": unescape(sql).strip()})
        assert "HIT null 1 1 0" in text_of(answer.content.decode())
        assert "MISS null 2 0 2" in text_of(answer.content.decode())

    def test_a_range_that_cannot_be_read(self, staff: Client, tenant: Tenant, object_store: Path) -> None:
        put_log(tenant, ENTRY)
        for files in DayRollup.objects.values_list("files", flat=True):
            for key in files.values():
                default_store().delete(key)
        shown = text_of(staff.get(to("tenant", tenant), {"part": "range"}).content.decode())
        assert "The rules and statements of 2026-02-02 to 2026-03-01 cannot be read now." in shown

    def test_a_range_without_log(self, staff: Client, tenant: Tenant) -> None:
        shown = text_of(staff.get(to("tenant", tenant), {"part": "range"}).content.decode())
        assert "No rule decided a request of these days." in shown
        assert "No day of these is built." in shown

    def test_a_tenant_that_never_was(self, staff: Client, db: None) -> None:
        answer = staff.get(reverse("admin:tenant", args=[uuid4()]))
        assert answer.status_code == 404
        assert "There is nothing here" in answer.content.decode()

    def test_it_costs_a_constant_number_of_queries(self, staff: Client, tenant: Tenant) -> None:
        for name, limit in {
            "tenant": 16,
            "tenant-history": 12,
            "tenant-markers": 12,
            "tenant-builds": 14,
            "tenant-rules": 12,
            "tenant-insights": 12,
            "tenant-digests": 12,
            "tenant-reports": 12,
            "tenant-verify": 12,
        }.items():
            with CaptureQueriesContext(connection) as captured:
                assert staff.get(to(name, tenant)).status_code == 200
            assert len(captured) <= limit, name


class TestRules:
    def form(self, tenant: Tenant, **changes: Any) -> dict[str, Any]:
        stored = Ruleset.objects.get(pk=tenant.pk)
        return {
            "rules": '[{"id": "new", "conditions": {"isReadOnly": true}, "ttlSeconds": 60}]',
            "etag": read_ruleset(tenant.pk).etag,
            "base_seq": stored.seq,
            "confirm_deletes": "",
            "reason": "ticket 9",
            **changes,
        }

    def test_saving_writes_a_revision_and_an_event_with_the_reason(
        self, staff: Client, tenant: Tenant
    ) -> None:
        answer = staff.post(to("tenant-rules", tenant), self.form(tenant), follow=True)
        assert "Saved as revision 2." in answer.content.decode()
        assert [rule["id"] for rule in Ruleset.objects.get(pk=tenant.pk).rules] == ["new"]
        revision = Revision.objects.get(kind="rules", tenant_id=tenant.pk, seq=2)
        assert revision.user == "admin@example.org"
        event = Event.objects.get(kind="staff.acted")
        assert (event.actor, event.reason, event.after) == (
            "admin@example.org",
            "ticket 9",
            {"act": "rules.published", "seq": 2},
        )

    @pytest.mark.parametrize(
        "changes", [{"reason": ""}, {"rules": "["}, {"rules": "{}"}, {"rules": '[{"id": 1}]'}]
    )
    def test_what_is_wrong_is_said_and_nothing_is_written(
        self, staff: Client, tenant: Tenant, changes: dict[str, str]
    ) -> None:
        answer = staff.post(to("tenant-rules", tenant), self.form(tenant, **changes))
        assert answer.status_code == 400
        assert Ruleset.objects.get(pk=tenant.pk).seq == 1
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_both_sides_are_shown_if_somebody_saved_first(self, staff: Client, tenant: Tenant) -> None:
        form = self.form(
            tenant, rules='[{"id": "orders", "conditions": {"isReadOnly": true}, "ttlSeconds": 60}]'
        )
        write_ruleset(
            tenant_id=tenant.pk, document={"rules": [{**RULE, "ttlSeconds": 10}]}, actor="owner@example.org"
        )
        answer = staff.post(to("tenant-rules", tenant), form)
        assert answer.status_code == 409
        html = answer.content.decode()
        shown = text_of(html)
        assert "Somebody saved revision 2 first" in shown
        assert "Both sides changed: orders" in shown
        assert '"ttlSeconds": 10' in shown
        assert Ruleset.objects.get(pk=tenant.pk).rules[0]["ttlSeconds"] == 10
        # Having seen both, the reader may save over them.
        again = {**form, "etag": re.findall(r'name="etag" value="([^"]+)"', html)[0].replace("&quot;", '"')}
        assert staff.post(to("tenant-rules", tenant), {**again, "base_seq": 2}).status_code == 302
        assert Ruleset.objects.get(pk=tenant.pk).rules[0]["ttlSeconds"] == 60

    def test_a_removed_rule_with_a_marker_is_confirmed(
        self, support: Client, staff: Client, tenant: Tenant
    ) -> None:
        support.post(to("tenant-invalidate", tenant), {"rule": "orders", "reason": "x"})
        refused = staff.post(to("tenant-rules", tenant), self.form(tenant))
        assert refused.status_code == 400
        assert "These rules have active markers" in refused.content.decode()
        saved = staff.post(to("tenant-rules", tenant), self.form(tenant, confirm_deletes="orders"))
        assert saved.status_code == 302

    def test_lint_marks_lines_as_one_types(self, support: Client, tenant: Tenant) -> None:
        text = '[\n  {"id": "a",\n   "conditions": {"isReadOnly": true},\n   "ttlSeconds": -1}\n]'
        answer = support.post(f"{to('tenant-rules', tenant)}?part=check", {"rules": text})
        marks = answer.json()["marks"]
        assert (marks[0]["row"], marks[0]["type"]) == (3, "error")
        broken = support.post(f"{to('tenant-rules', tenant)}?part=check", {"rules": "[\n1,\n,"})
        assert [(mark["row"], mark["type"]) for mark in broken.json()["marks"]] == [(2, "error")]
        assert Ruleset.objects.get(pk=tenant.pk).seq == 1

    def test_support_looks_but_does_not_save(self, support: Client, tenant: Tenant) -> None:
        assert 'name="reason"' not in support.get(to("tenant-rules", tenant)).content.decode()
        for more in ({}, {"draft": "yes"}):
            answer = support.post(to("tenant-rules", tenant), {**self.form(tenant), **more})
            assert answer.status_code == 403
        assert Ruleset.objects.get(pk=tenant.pk).seq == 1
        assert not RuleDraft.objects.exists()

    def test_a_simple_rule_is_added_behind_the_others(self, staff: Client, tenant: Tenant) -> None:
        form = {"rule_id": "items", "tables": "sales.items, b", "ttl_seconds": 60, "reason": "x"}
        assert staff.post(to("tenant-rules-add", tenant), form).status_code == 302
        rules = Ruleset.objects.get(pk=tenant.pk).rules
        assert [rule["id"] for rule in rules] == ["orders", "items"]
        assert rules[1]["conditions"] == {"isReadOnly": True, "tables": {"containsAny": ["b", "sales.items"]}}
        refused = staff.post(to("tenant-rules-add", tenant), form)
        assert refused.status_code == 400
        assert "duplicate-rule-id" in refused.content.decode()

    def test_a_request_is_traced(self, support: Client, tenant: Tenant) -> None:
        address = to("tenant-rules-trace", tenant)
        sent = '{"tables": ["sales.orders"], "isReadOnly": true}'
        shown = text_of(support.post(address, {"request": sent}).content.decode())
        assert "orders decides: cache" in shown
        shown = text_of(support.post(address, {"request": '{"isReadOnly": true}'}).content.decode())
        assert "No rule decides" in shown
        for wrong in ("[", "[]", '{"isReadOnly": "perhaps"}'):
            assert support.post(address, {"request": wrong}).status_code == 400


class TestHistory:
    def test_sentences_compare_and_blame(self, staff: Client, tenant: Tenant) -> None:
        shown = page(staff, to("tenant-history", tenant))
        assert "1 : owner@example.org added orders" in shown
        assert "0 : seed@example.org created it" in shown
        assert "Who last changed each rule orders 1 owner@example.org" in shown
        compared = page(staff, to("tenant-history", tenant), to=1)
        assert "Revision 0 to 1" in compared
        assert '+ "id": "orders",' in compared
        assert "Revision 1 to 0" in page(staff, to("tenant-history", tenant), **{"from": 1, "to": 0})
        assert "created it" in page(staff, to("tenant-history", tenant), kind="config")

    @pytest.mark.parametrize("query", [{"to": "9"}, {"cursor": "x"}])
    def test_what_there_is_not(self, staff: Client, tenant: Tenant, query: dict[str, str]) -> None:
        assert staff.get(to("tenant-history", tenant), query).status_code in {400, 404}

    def test_restoring_shows_what_it_does_and_does_it(self, staff: Client, tenant: Tenant) -> None:
        address = to("tenant-restore", tenant, kind="rules", seq=0)
        html = staff.get(address).content.decode()
        shown = text_of(html)
        assert "The warm cache is lost." in shown
        assert '− "id": "orders",' in shown
        same = "says the same as the live one: there is nothing to restore."
        assert same not in shown
        assert f"Revision 1 {same}" in page(staff, to("tenant-restore", tenant, kind="rules", seq=1))
        etag = re.findall(r'name="etag" value="([^"]+)"', html)[0].replace("&quot;", '"')
        assert staff.post(address, {"etag": etag, "reason": "x"}).status_code == 302
        assert Ruleset.objects.get(pk=tenant.pk).rules == []
        revision = Revision.objects.get(kind="rules", tenant_id=tenant.pk, seq=2)
        assert revision.restored_from == 0
        assert staff.post(address, {"etag": etag, "reason": "x"}).status_code == 409
        assert (
            staff.post(to("tenant-restore", tenant, kind="config", seq=0), {"reason": "x"}).status_code == 302
        )
        acts = Event.objects.filter(kind="staff.acted").order_by("pk").values_list("after__act", flat=True)
        assert list(acts) == ["rules.restored", "config.restored"]

    def test_no_other_kind_is_restored(self, staff: Client, tenant: Tenant) -> None:
        assert staff.get(to("tenant-restore", tenant, kind="account", seq=0)).status_code == 404


class TestMarkers:
    def test_the_blast_radius_comes_before_the_reason(self, support: Client, tenant: Tenant) -> None:
        shown = page(support, to("tenant-invalidate", tenant), rule="orders")
        assert "orders 0 0 B 0 ms 0, 0, 0, 0" in shown
        # Each number leads to its SQL.
        html = support.get(to("tenant-invalidate", tenant), {"rule": "orders"}).content.decode()
        links = re.findall(rf'href="{to("tenant-sql", tenant)}\?sql=([^"]+)"', html)
        assert len(links) == 4
        assert unquote_plus(links[0]).startswith("SELECT\n    count(*) AS entries,")
        assert unquote_plus(links[3]).startswith("SELECT day, count(DISTINCT cacheKey) AS keys")
        assert not Marker.objects.exists()

    def test_support_invalidates_with_a_reason(self, support: Client, tenant: Tenant) -> None:
        address = to("tenant-invalidate", tenant)
        assert support.post(address, {"rule": "orders", "reason": ""}).status_code == 400
        assert support.post(address, {"rule": "orders", "reason": "backfill"}).status_code == 302
        marker = Marker.objects.get()
        assert (marker.target_rule_id, marker.metadata) == ("orders", {"reason": "backfill"})
        event = Event.objects.get(kind="staff.acted")
        assert event.after == {
            "act": "marker.created",
            "markers": [marker.marker_id],
            "rules": ["orders"],
        }
        shown = page(support, to("tenant-markers", tenant))
        assert f"active {marker.marker_id} backfill orders" in shown
        support.post(address, {"rule": "orders", "reason": "again"})
        assert f"superseded {marker.marker_id}" in page(support, to("tenant-markers", tenant))

    def test_an_unknown_rule(self, support: Client, tenant: Tenant) -> None:
        for query in ({"rule": "none"}, {}):
            answer = support.get(to("tenant-invalidate", tenant), query)
            assert answer.status_code == 404
            back = f'<a class="button quiet" href="{to("tenant", tenant)}">Warehouse</a>'
            assert back in answer.content.decode()
        assert (
            support.post(to("tenant-invalidate", tenant), {"rule": "none", "reason": "x"}).status_code == 404
        )
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_a_marker_is_taken_back(self, support: Client, tenant: Tenant) -> None:
        support.post(to("tenant-invalidate", tenant), {"rule": "orders", "reason": "x"})
        marker = Marker.objects.get()
        address = to("tenant-marker-remove", tenant, marker=marker.marker_id)
        assert "Results from before the marker" in page(support, address)
        assert support.post(address, {"reason": "mistake"}).status_code == 302
        marker.refresh_from_db()
        assert marker.removed_at is not None
        for answer in (support.get(address), support.post(address, {"reason": "mistake"})):
            assert answer.status_code == 404
            assert 'name="reason"' not in answer.content.decode()


class TestBuilds:
    def test_builds_days_and_quarantine(self, support: Client, tenant: Tenant) -> None:
        Build.objects.create(tenant_id=tenant.pk, period="2026-03-01", state="running")
        for position in range(3):
            QuarantinedEntry.objects.create(
                tenant_id=tenant.pk, day="2026-03-01", key="k", position=position, reason="not JSON"
            )
        shown = page(support, to("tenant-builds", tenant))
        assert "2026-03-01 running" in shown
        assert "2026-03-01 not JSON 3 Try again" in shown
        part = support.get(to("tenant-builds", tenant), {"part": "builds"}).content.decode()
        assert "<html" not in part
        assert 'hx-trigger="every 4s"' in part

    def test_days_are_built_again(
        self, support: Client, tenant: Tenant, object_store: Path, django_capture_on_commit_callbacks: Any
    ) -> None:
        row = make_partition(tenant, "2026-03-01", hours={"0": {}})
        # The first build of this day failed.
        save_object(default_store(), f"{tenant.pk}/logs/2026/02/27/00/a.json", b"{}")
        form = {"first": "2026-02-26", "last": "2026-03-01", "reason": "ticket 3"}
        with django_capture_on_commit_callbacks() as tasks:
            answer = support.post(to("tenant-rebuild", tenant), form, follow=True)
        shown = text_of(answer.content.decode())
        assert "2 days will be built again. 2 of the chosen days have no log." in shown
        assert "2026-02-27 waits marked" in shown
        assert "2026-03-01 waits marked" in shown
        assert len(tasks) == 2
        row.refresh_from_db()
        assert (row.listing_digest, row.hours, row.file) == ("", {}, "f")
        event = Event.objects.get(kind="staff.acted")
        assert event.after == {
            "act": "days.rebuilt",
            "first": "2026-02-26",
            "last": "2026-03-01",
            "days": ["2026-02-27", "2026-03-01"],
        }

    def test_they_are_built_at_once(
        self, support: Client, tenant: Tenant, object_store: Path, django_capture_on_commit_callbacks: Any
    ) -> None:
        save_object(default_store(), f"{tenant.pk}/logs/2026/03/01/00/a.json", b"{}")
        form = {"first": "2026-03-01", "last": "2026-03-01", "reason": "ticket 3"}
        with django_capture_on_commit_callbacks() as tasks:
            support.post(to("tenant-rebuild", tenant), form)
        assert tasks
        refresh_day(str(tenant.pk), "2026-03-01")
        assert Build.objects.get(period="2026-03-01").state == "done"
        assert list(PendingBuild.objects.values_list("day", flat=True)) == [None]
        assert "months and years waits" in page(support, to("tenant-builds", tenant))

    @pytest.mark.parametrize("last", ["2026-01-31", "2026-03-31", "never"])
    def test_of_a_few_days_only(self, support: Client, tenant: Tenant, last: str) -> None:
        form = {"first": "2026-02-01", "last": last, "reason": "x"}
        assert support.post(to("tenant-rebuild", tenant), form).status_code == 400
        assert not Event.objects.filter(kind="staff.acted").exists()

    @pytest.mark.parametrize("day", ["2030-11-20", "0001-01-01", "9999-12-31"])
    def test_days_without_log_are_not_built(
        self, support: Client, tenant: Tenant, object_store: Path, day: str
    ) -> None:
        answer = support.post(to("tenant-rebuild", tenant), {"first": day, "last": day, "reason": "x"})
        assert answer.status_code == 400
        assert f"There is no log of {day} to {day}." in answer.content.decode()
        assert not PendingBuild.objects.exists()
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_nothing_is_built_of_a_deleted_tenant(
        self, support: Client, tenant: Tenant, object_store: Path
    ) -> None:
        make_partition(tenant, "2026-03-01")
        Tenant.objects.filter(pk=tenant.pk).update(deleted_at=now())
        form = {"first": "2026-03-01", "last": "2026-03-01", "reason": "x"}
        assert support.post(to("tenant-rebuild", tenant), form).status_code == 404
        assert "Build days again" not in page(support, to("tenant-builds", tenant))
        assert not PendingBuild.objects.exists()

    def test_the_store_does_not_answer(self, support: Client, tenant: Tenant) -> None:
        form = {"first": "2026-03-01", "last": "2026-03-01", "reason": "x"}
        with patch.object(LocalStore, "listdir", side_effect=StoreError("no answer")):
            answer = support.post(to("tenant-rebuild", tenant), form)
        assert answer.status_code == 503
        assert "The object store cannot be reached." in answer.content.decode()
        assert not PendingBuild.objects.exists()


class TestQuarantine:
    def quarantine(
        self, tenant: Tenant, body: bytes, position: int | None = None, **more: Any
    ) -> QuarantinedEntry:
        key = f"{tenant.pk}/logs/2026/03/01/00/a.json"
        save_object(default_store(), key, body)
        return QuarantinedEntry.objects.create(
            **{"tenant_id": tenant.pk, "day": "2026-03-01", "key": key, "reason": "not JSON", **more},
            position=position,
        )

    def test_each_entry_has_its_key_position_and_reason(
        self, support: Client, tenant: Tenant, object_store: Path
    ) -> None:
        entry = self.quarantine(tenant, b"{", 7)
        self.quarantine(tenant, b"{", day="2026-03-02", reason="of another day")
        address = to("tenant-quarantine", tenant, day="2026-03-01")
        assert f'<a href="{address}">1</a>' in support.get(to("tenant-builds", tenant)).content.decode()
        shown = page(support, address)
        assert f"{entry.key} 7 not JSON" in shown
        assert "of another day" not in shown
        assert "of another day" in page(support, to("tenant-quarantine", tenant, day="2026-03-02"))
        assert "No entry of this day" in page(support, address, after=entry.pk)
        for day in ("2026-02-30", "x"):
            assert support.get(to("tenant-quarantine", tenant, day=day)).status_code == 404

    def test_there_are_pages(self, support: Client, tenant: Tenant) -> None:
        rows = [
            QuarantinedEntry(tenant_id=tenant.pk, day="2026-03-01", key="k", position=number, reason="r")
            for number in range(101)
        ]
        last = QuarantinedEntry.objects.bulk_create(rows)[-2].pk
        address = to("tenant-quarantine", tenant, day="2026-03-01")
        assert f'href="?after={last}">More<' in support.get(address).content.decode()
        shown = page(support, address, after=last)
        assert "k 100 r" in shown
        assert "k 99 r" not in shown
        assert "More" not in shown

    def test_bytes_need_access_and_leave_no_trace_without(
        self, staff: Client, support: Client, tenant: Tenant, object_store: Path
    ) -> None:
        entry = self.quarantine(tenant, b"secret")
        address = to("tenant-quarantined-entry", tenant, entry=entry.pk)
        listed = to("tenant-quarantine", tenant, day="2026-03-01")
        for client in (staff, support):
            refused = client.get(address)
            assert refused.status_code == 403
            assert "secret" not in refused.content.decode()
            html = client.get(listed).content.decode()
            assert address not in html
            assert f'href="{to("tenant-access", tenant)}?back={listed.replace("/", "%2F")}"' in html
        assert not LogRead.objects.exists()

    def test_whoever_has_access_sees_them_after_the_audit_row(
        self, access: Client, tenant: Tenant, object_store: Path
    ) -> None:
        entry = self.quarantine(tenant, b'{"logId": "1"}\n\n{"logId": <b>}\n', 1, reason="<i>")
        entry.refresh_from_db()
        # A line that is no JSON makes the whole file bad.
        address = to("tenant-quarantined-entry", tenant, entry=entry.pk)
        assert access.get(address).status_code == 404
        save_object(default_store(), entry.key, b'{"logId": "1"}\n\n{"logId": "<b>", "tables": 3}\n')
        assert address in access.get(to("tenant-quarantine", tenant, day="2026-03-01")).content.decode()
        shown = page(access, address)
        assert '<i> {"logId": "<b>", "tables": 3} 29 B' in shown
        assert list(LogRead.objects.values_list("tenant_id", "email", "key")) == 2 * [
            (tenant.pk, "support@example.org", entry.key)
        ]

    def test_a_whole_file_is_cut(
        self, access: Client, tenant: Tenant, object_store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        entry = self.quarantine(tenant, b"\xff" + (2 << 20) * b"a" + b"end")
        address = to("tenant-quarantined-entry", tenant, entry=entry.pk)
        shown = page(access, address)
        assert "\N{REPLACEMENT CHARACTER}aaa" in shown
        assert "end 2.1 MB" not in shown
        assert "2.1 MB, of which this is the beginning" in shown
        monkeypatch.setattr(quarantine, "MAX_OBJECT_BYTES", 2 << 20)
        assert access.get(address).status_code == 413

    @pytest.mark.parametrize(
        ("error", "status"), [(ObjectNotFound("k"), 404), (StoreError("no answer"), 503)]
    )
    def test_the_object_cannot_be_read(
        self, access: Client, tenant: Tenant, object_store: Path, error: StoreError, status: int
    ) -> None:
        entry = self.quarantine(tenant, b"{")
        address = to("tenant-quarantined-entry", tenant, entry=entry.pk)
        with patch.object(LocalStore, "open", side_effect=error):
            assert access.get(address).status_code == status
        assert LogRead.objects.count() == 1

    def test_no_entry_of_another_tenant(self, access: Client, tenant: Tenant, object_store: Path) -> None:
        entry = self.quarantine(tenant, b"secret", tenant_id=uuid4())
        answer = access.get(to("tenant-quarantined-entry", tenant, entry=entry.pk))
        assert answer.status_code == 404
        assert not LogRead.objects.exists()


def make_partition(tenant: Tenant, day: str, **more: Any) -> Partition:
    return Partition.objects.create(
        tenant_id=tenant.pk,
        day=day,
        listing_digest="d",
        build="b",
        file="f",
        rows=1,
        bytes=1,
        objects_read=1,
        duplicates=0,
        quarantined=0,
        **more,
    )


def test_lines_of_a_text() -> None:
    text = '[\n  {"id": "a,]",\n   "c": {\n     "d": [1,\n 2]}},\n  {}\n]'
    assert find_lines(text) == {
        "": 0,
        "/0": 1,
        "/0/id": 1,
        "/0/c": 2,
        "/0/c/d": 3,
        "/0/c/d/0": 3,
        "/0/c/d/1": 4,
        "/1": 5,
    }
    assert line_of(find_lines(text), "/0/c/missing") == 2
    assert line_of(find_lines(text), "/7") == 0
