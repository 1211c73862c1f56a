"""The page of one tenant: owners, plan and limits, health, access, and what was done last."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.dashboard import in_dashboard
from accounts.models import AccessRequest, Fqdn, Membership, Revision, User
from accounts.tenants.lifecycle import delete_tenant
from analytics.models import Build, TenantHealth
from logs.models import PendingBuild, QueryRun
from rules.write import write_ruleset
from tenantadmin.lib.core.request_context import acting_for
from tenantadmin.lib.core.timestamps import now
from tests.admin.filling import RULE, make_row, recommend, to
from tests.admin.staff import page_text

if TYPE_CHECKING:
    from django.test import Client

    from accounts.models import Tenant
    from tests import factories


def test_owners_plan_limits_and_access(staff: Client, world: factories.World, tenant: Tenant) -> None:
    Fqdn.objects.create(name="db.acme.example", tenant_id=tenant.pk)
    html = staff.get(to("tenant", tenant)).content.decode()
    shown = page_text(staff, to("tenant", tenant))
    assert f"Warehouse {tenant.pk} Acme plan team live Open in the dashboard" in shown
    assert "Owners owner@example.org Account Acme" in shown
    assert "Plan team FQDNs 1 of" in shown
    assert "Rules 1 of" in shown
    assert "Queries run on duckdb Choose" in shown
    assert "db.acme.example claimed" in shown
    assert "Staff, for a limited time none Requests for access none open" in shown
    assert "You no access to its log. Take access for a limited time" in shown
    # What one does here is to open the tenant.
    assert f'<a class="button" href="{to("tenant-open", tenant)}">' in html
    assert f'<a class="button quiet" href="{to("tenant-open", tenant)}">' in staff.get(
        to("tenant-builds", tenant)
    ).content.decode().replace("\n", "")
    ends_at = now() + dt.timedelta(hours=1)
    Membership.objects.create(user=world.platform_admin, tenant=tenant, role="member", ends_at=ends_at)
    make_row(
        AccessRequest,
        tenant=tenant,
        staff=world.stranger,
        hours=1,
        outcome="",
        ended_at=None,
        expires_at=now() + dt.timedelta(hours=1),
    )
    shown = page_text(staff, to("tenant", tenant))
    assert "Staff, for a limited time admin@example.org until" in shown
    assert "Requests for access 1 open" in shown
    assert "End my access" in shown
    Membership.objects.filter(tenant=tenant, role="owner").delete()
    assert "Owners none" in page_text(staff, to("tenant", tenant))


def test_what_summaries_lack_stands_beside_the_verdict(staff: Client, tenant: Tenant) -> None:
    today = now().date()
    health = TenantHealth.objects.create(tenant_id=tenant.pk, last_day=today, rate_7=0.5, requests_7=7000)
    page = to("tenant", tenant)
    shown = page_text(staff, page)
    assert "Healthy" in shown
    assert f"Last log {today} Last build none Days that wait for a build none" in shown
    assert "Hit rate 7 days 50.0%, 28 days – Requests, 7 days 7,000" in shown
    failed = Build.objects.create(tenant_id=tenant.pk, period="2026-03-01", state=Build.State.FAILED)
    health.quarantined, health.stale_days = 1, 2
    health.save()
    shown = page_text(staff, page)
    assert "The build of 2026-03-01 failed, so figures may lack requests Builds" in shown
    assert "2 days must be built again, so figures may be old Builds" in shown
    assert "1 log entry is in quarantine: unreadable, and not counted Quarantine" in shown
    assert "Last build 2026-03-01 failed" in shown
    assert "Healthy" not in shown
    TenantHealth.objects.update(last_day="2026-02-27")
    late = page_text(staff, page)
    assert "No log was read since" in late
    assert "so figures may lack requests" not in late
    # The verdict does not tell a failure while a later day is being summarised.
    pending = PendingBuild.objects.create(tenant_id=tenant.pk, day="2026-03-02")
    late = page_text(staff, page)
    assert "The log of the days up to 2026-03-02 is being summarised" in late
    assert "The build of 2026-03-01 failed, so figures may lack requests Builds" in late
    assert "Days that wait for a build 1" in late
    pending.delete()
    TenantHealth.objects.update(last_day=today)
    # Home tells failures for as long.
    assert "2026-03-01 failed" in page_text(staff, reverse("admin:index"))
    Build.objects.filter(pk=failed.pk).update(started_at=now() - dt.timedelta(days=8))
    assert "The build of 2026-03-01 failed" not in page_text(staff, page)
    assert "2026-03-01 failed" not in page_text(staff, reverse("admin:index"))


def test_what_is_recommended_leads_to_the_dashboard(support: Client, tenant: Tenant) -> None:
    assert "What would help now" not in page_text(support, to("tenant", tenant))
    for kind in ("leak-fix", "cache"):
        recommend(tenant, kind=kind)
    recommend(tenant, state="dismissed")
    address = in_dashboard(tenant.pk, "recommendations")
    link = (
        f'What would help now: <a href="{address}">2 open recommendations: '
        "1 privacy leak to close; judging by the 1 day replayed, changes of rules could save about "
        "5 min of warehouse time a month</a>"
    )
    assert link in support.get(to("tenant", tenant)).content.decode()


def test_the_last_ten_acts(staff: Client, support: Client, tenant: Tenant) -> None:
    with acting_for("ticket 7"):
        rules = [{**RULE, "ttlSeconds": 90}]
        write_ruleset(tenant_id=tenant.pk, document={"rules": rules}, actor="owner@example.org")
    make_row(
        QueryRun, tenant_id=tenant.pk, email="owner@example.org", statement="SELECT secret", by_service=False
    )
    html = staff.get(to("tenant", tenant)).content.decode()
    assert f'href="{in_dashboard(tenant.pk, "history", kind="rules", seq=2)}"'.replace("&", "&amp;") in html
    assert "SELECT secret" in html
    # Support reads statements of a tenant only with access to it.
    shown = support.get(to("tenant", tenant)).content.decode()
    assert "SELECT secret" not in shown
    assert "ran SQL over the log" in shown
    for number in range(12):
        Revision.objects.create(
            kind="rules",
            tenant_id=tenant.pk,
            account_id=tenant.account_id,
            seq=100 + number,
            user=f"u{number}@example.org",
            action="update",
            document={},
            request_id=f"r{number}",
        )
    html = staff.get(to("tenant", tenant)).content.decode()
    assert html.partition('id="acts"')[2].count("<tr>") == 11


def test_a_deleted_tenant(staff: Client, tenant: Tenant) -> None:
    delete_tenant(tenant_id=tenant.pk, actor="owner@example.org")
    shown = page_text(staff, to("tenant", tenant))
    assert "deleted" in shown
    assert "Healthy" not in shown
    assert "Take access for a limited time" not in shown


def test_a_tenant_that_never_was(staff: Client, db: None) -> None:
    answer = staff.get(reverse("admin:tenant", args=[uuid4()]))
    assert answer.status_code == 404
    assert "There is nothing here" in answer.content.decode()


@pytest.mark.parametrize(("name", "limit"), [("tenant", 30), ("tenant-builds", 14), ("tenant-people", 24)])
def test_it_costs_a_constant_number_of_queries(
    staff: Client, world: factories.World, tenant: Tenant, name: str, limit: int
) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert staff.get(to(name, tenant)).status_code == 200
        return len(captured)

    few = count()
    for number in range(5):
        user = User.objects.create(email=f"m{number}@example.org")
        Membership.objects.create(user=user, tenant=tenant, role="owner")
        Fqdn.objects.create(name=f"f{number}.acme.example", tenant_id=tenant.pk)
        write_ruleset(tenant_id=tenant.pk, document={"rules": []}, actor=user.email)
    assert count() <= few <= limit
