"""Home lists what needs attention."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.dashboard import in_dashboard
from accounts.models import Domain, Invitation, Membership, Revision, Snooze, Tenant
from analytics.models import Build, DayRollup, Digest, TenantHealth
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.admin.filling import make_row, to
from tests.admin.staff import page_text, text_of

if TYPE_CHECKING:
    from django.test import Client

HOUR = dt.timedelta(hours=1)


class TestHome:
    def test_it_is_calm_without_trouble(self, staff: Client, db: None) -> None:
        assert "Nothing needs attention" in page_text(staff, "/admin/")

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
        assert "Nothing needs attention" not in shown
        assert "Warehouse 40.0% 50.0% −10.0 points 1,000" in shown
        assert f"Warehouse {today - dt.timedelta(days=3)}" in shown
        assert "Warehouse 2026 failed no such file" in shown
        assert "Warehouse stale 2 days" in shown
        assert "waits.example Acme" in shown
        for name in ("tenant", "tenant-builds", "tenant-open"):
            assert f'href="{to(name, tenant)}' in html

    def test_a_finding_is_listed_while_it_is_open(self, staff: Client, tenant: Tenant) -> None:
        yesterday = now().date() - dt.timedelta(days=1)
        TenantHealth.objects.create(tenant_id=tenant.pk, last_day=yesterday, has_findings=True)
        document = {"facts": [], "names": [], "sections": [{"id": "leaks"}]}
        digest = Digest.objects.create(
            tenant_id=tenant.pk,
            period=str(yesterday),
            first_day=yesterday,
            last_day=yesterday,
            document=document,
        )
        day = f"{yesterday:%A}, {yesterday.day} {yesterday:%B}"
        told = f"Cached results that depend on the user went to several users on {day}"
        html = staff.get("/admin/").content.decode()
        assert f"Warehouse {told} Acknowledge Snooze" in text_of(html)
        assert f'href="{in_dashboard(tenant.pk, "digest", day=yesterday)}"' in html
        lists = staff.get("/admin/accounts/tenant/").content.decode()
        assert f'<span class="chip bad" title="{told}">1 open finding</span>' in lists
        # The panel asks the verdict: what is noted may be closed.
        digest.document["sections"] = []
        digest.save()
        assert "Nothing needs attention" in page_text(staff, "/admin/")
        assert "open finding" not in page_text(staff, "/admin/accounts/tenant/")

    def test_a_restore_of_the_rules_stands_beside_the_fall(self, staff: Client, tenant: Tenant) -> None:
        TenantHealth.objects.create(
            tenant_id=tenant.pk, last_day=now().date(), rate_7=0.4, rate_28=0.5, drop=0.1, requests_7=1000
        )
        assert "restored" not in page_text(staff, "/admin/")
        for seq, hours in ((2, 30), (3, 2)):
            Revision.objects.create(
                kind="rules",
                tenant_id=tenant.pk,
                account_id=tenant.account_id,
                seq=seq,
                user="x@example.org",
                action="restore",
                restored_from=0,
                document={},
                changed_at=now() - dt.timedelta(hours=hours, minutes=1),
            )
        shown = page_text(staff, "/admin/")
        assert "Warehouse revision 3 restored revision 0, 2 hours ago 40.0%" in shown
        assert "rules: restored revision 0: saved it without a difference x@example.org" in shown
        TenantHealth.objects.update(last_day=now().date() - dt.timedelta(days=2))
        assert "restored revision 0, 2 hours ago; no requests since" in page_text(staff, "/admin/")

    def test_a_row_is_put_away_for_one_person(self, staff: Client, support: Client, tenant: Tenant) -> None:
        build = Build.objects.create(tenant_id=tenant.pk, period="2026", state="failed", error="no room")
        TenantHealth.objects.create(
            tenant_id=tenant.pk,
            last_day=now().date() - dt.timedelta(days=3),
            rate_7=0.4,
            rate_28=0.5,
            drop=0.1,
            requests_7=1000,
            stale_days=1,
            quarantined=1,
        )
        domain = Domain.objects.create(account=tenant.account, name="new.example", challenge="c")
        rows = [f"{panel}:{tenant.pk}" for panel in ("drops", "late", "stale", "quarantine")]
        rows += [f"failed:{build.pk}", f"domains:{domain.pk}"]
        html = staff.get("/admin/").content.decode()
        for act in ("snooze", "acknowledge"):
            assert sorted(re.findall(rf'name="{act}" value="([^"]+)"', html)) == sorted(rows)
            for row in rows:
                assert staff.post("/admin/", {act: row})["Location"] == "/admin/"
            shown = page_text(staff, "/admin/")
            assert "Nothing needs attention: open findings, hit rates, late logs, builds" in shown
            assert "6 rows put away by you" in shown
        for told in (
            "Warehouse late log it changes",
            "Warehouse, 2026 failed build",
            "new.example domain to",
        ):
            assert told in shown
        assert "no room" in page_text(support, "/admin/")
        # A later failure of the same period is another row.
        Build.objects.create(tenant_id=tenant.pk, period="2026", state="failed", error="still no room")
        assert "still no room" in page_text(staff, "/admin/")
        Snooze.objects.filter(panel="late").update(until=now())
        assert "5 rows put away by you" in page_text(staff, "/admin/")
        staff.post("/admin/", {"back": f"drops:{tenant.pk}"})
        shown = page_text(staff, "/admin/")
        assert "4 rows put away by you" in shown
        assert "−10.0 points" in shown
        staff.post("/admin/", {"back": ""})
        assert "put away" not in page_text(staff, "/admin/").replace("Put away", "")

    @pytest.mark.parametrize(
        ("panel", "same", "worse"),
        [
            ("drops", {"drop": 0.115}, {"drop": 0.13}),
            ("late", {"drop": 0.1}, {"last_day": dt.date(2026, 3, 2)}),
            ("stale", {"stale_days": 1}, {"stale_days": 3}),
            ("quarantine", {"quarantined": 4}, {"quarantined": 6}),
        ],
    )
    def test_an_acknowledged_row_comes_back_when_it_is_worse(
        self, panel: str, same: dict[str, Any], worse: dict[str, Any], staff: Client, tenant: Tenant
    ) -> None:
        if panel == "late":
            worse = {"last_day": now().date() - dt.timedelta(days=2)}
        health = TenantHealth.objects.create(
            tenant_id=tenant.pk,
            last_day=now().date() - dt.timedelta(days=3),
            drop=0.1,
            requests_7=1000,
            stale_days=2,
            quarantined=5,
        )
        row = f'name="acknowledge" value="{panel}:{tenant.pk}"'
        staff.post("/admin/", {"acknowledge": f"{panel}:{tenant.pk}"})
        for change, is_shown in ((same, False), (worse, True)):
            TenantHealth.objects.filter(pk=health.pk).update(**change)
            html = staff.get("/admin/").content.decode()
            assert (row in html, "1 row put away" in html) == (is_shown, not is_shown)

    def test_an_acknowledged_finding_comes_back_with_another_one(self, staff: Client, tenant: Tenant) -> None:
        yesterday = now().date() - dt.timedelta(days=1)
        TenantHealth.objects.create(tenant_id=tenant.pk, last_day=yesterday, has_findings=True)
        digest = Digest.objects.create(
            tenant_id=tenant.pk,
            period=str(yesterday),
            first_day=yesterday,
            last_day=yesterday,
            document={"facts": [], "names": [], "sections": [{"id": "leaks"}, {"id": "stale"}]},
        )
        staff.post("/admin/", {"acknowledge": f"findings:{tenant.pk}"})
        assert "Cached results" not in page_text(staff, "/admin/")
        # One of two has ended: that is no news.
        digest.document["sections"] = [{"id": "stale"}]
        digest.save()
        assert "Hits were older" not in page_text(staff, "/admin/")
        digest.document["sections"] = [{"id": "stale"}, {"id": "errors"}]
        digest.save()
        assert "Requests failed in bursts" in page_text(staff, "/admin/")
        digest.document["sections"] = [{"id": "stale"}]
        digest.save()
        assert "Hits were older" not in page_text(staff, "/admin/")
        # The same on another day.
        day = yesterday - dt.timedelta(days=1)
        Digest.objects.update(period=str(day), first_day=day, last_day=day)
        TenantHealth.objects.update(last_day=day)
        assert "Hits were older" in page_text(staff, "/admin/")

    @pytest.mark.parametrize("act", ["snooze", "acknowledge", "back"])
    @pytest.mark.parametrize("row", ["late", "late:x", "x:1", "failed:x", "failed:\0", "domains:"])
    def test_what_home_does_not_show_is_not_put_away(
        self, act: str, row: str, staff: Client, db: None
    ) -> None:
        assert staff.post("/admin/", {act: row}).status_code == 400
        assert not Snooze.objects.exists()

    def test_totals_of_the_service(self, staff: Client, tenant: Tenant) -> None:
        cache.clear()
        today = now().date()
        sums = {
            0: (30, 10, 1),
            1: (1000, 500, 3_600_000),
            7: (500, 0, 3_600_000),
            8: (0, 0, 0),
            14: (500, 500, 600),
        }
        for age, (hits, misses, ms) in sums.items():
            day = today - dt.timedelta(days=age)
            counts = {"hits": hits, "misses": misses, "warehouse_ms": ms}
            make_row(DayRollup, tenant_id=tenant.pk, day=day, **counts)
        html = staff.get("/admin/", {"part": "totals"}).content.decode()
        # Per day with a log: 1,000 requests against 1,000, and an hour against 600 ms.
        assert text_of(html) == (
            "Live tenants 2 Requests, 7 days 2,000 0% by the mean day Hit rate, 7 days 75.0% +25.0 points "
            "Warehouse time, 7 days 2 h +599,900.0% by the mean day Hit rate by day, 28 days "
            "All tenants, the 7 whole days until yesterday. Changes compare the mean day with that of the "
            "7 days before. Days without a log are left out: 2 of these 7 days have one, and 1 of the 7 "
            "before."
        )
        assert 'points="0.0,15.0 33.3,0.0 66.7,10.0 100.0,7.5"' in html
        # The sums are kept for some minutes, but not the number of tenants.
        DayRollup.objects.all().delete()
        make_row(Tenant, deleted_at=None)
        text = text_of(staff.get("/admin/", {"part": "totals"}).content.decode())
        assert text.startswith("Live tenants 3 Requests, 7 days 2,000 ")

    def test_without_a_period_before_there_is_no_change(self, staff: Client, tenant: Tenant) -> None:
        cache.clear()
        yesterday = now().date() - dt.timedelta(days=1)
        make_row(DayRollup, tenant_id=tenant.pk, day=yesterday, hits=1, misses=1, warehouse_ms=1)
        text = text_of(staff.get("/admin/", {"part": "totals"}).content.decode())
        assert "a day" not in text
        assert "points" not in text

    def test_repaired_failures_are_left_out(self, staff: Client, tenant: Tenant) -> None:
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
        # A running build does not clear the failure yet.
        Build.objects.create(tenant_id=tenant.pk, period="2026-03-02")
        # A finished build of another tenant does not clear it.
        Build.objects.create(tenant_id=uuid4(), period="2026-03-02", state="done")
        shown = page_text(staff, "/admin/")
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
        shown = page_text(staff, "/admin/")
        assert "1 minutes ago" in shown
        assert "2 minutes ago" not in shown

    def test_deleted_tenants_are_left_out(self, staff: Client, tenant: Tenant) -> None:
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
        assert "Nothing needs attention" not in page_text(staff, "/admin/")
        Tenant.objects.filter(pk=tenant.pk).update(deleted_at=now())
        assert "Nothing needs attention" in page_text(staff, "/admin/")

    def test_a_change_leads_to_its_difference(self, staff: Client, tenant: Tenant) -> None:
        html = staff.get("/admin/").content.decode()
        assert f'href="{to("tenant-open", tenant)}?to=history%3Fkind%3Drules%26seq%3D1"' in html

    def test_changes_name_their_account(self, staff: Client, tenant: Tenant) -> None:
        Revision.objects.create(
            kind="account",
            account_id=tenant.account_id,
            seq=0,
            action="create",
            user="x",
            summary={"comment": "new customer"},
            document={},
        )
        html = staff.get("/admin/").content.decode()
        assert f'href="{reverse("admin:account", args=[tenant.account_id])}">Acme</a>' in html
        assert "Acme created the account (“new customer”) x" in text_of(html)

    def test_small_drops_and_few_requests_are_noise(self, staff: Client, world: factories.World) -> None:
        common = {"rate_7": 0.1, "rate_28": 0.5, "last_day": now().date()}
        other = factories.make_tenant(world.account, "Other")
        TenantHealth.objects.create(tenant_id=world.tenant.pk, drop=0.4, requests_7=99, **common)
        TenantHealth.objects.create(tenant_id=other.pk, drop=0.019, requests_7=1000, **common)
        assert "Nothing needs attention" in page_text(staff, "/admin/")

    def test_rows_without_owner_load_in_a_second_request(self, staff: Client, world: factories.World) -> None:
        assert not text_of(staff.get("/admin/", {"part": "without-owner"}).content.decode())
        Membership.objects.filter(tenant=world.tenant, role="owner").delete()
        world.account.owners.clear()
        shown = text_of(staff.get("/admin/", {"part": "without-owner"}).content.decode())
        assert shown == "No owner Name What Owner Warehouse tenant name one Acme account name one"
        make_row(
            Invitation,
            tenant=world.tenant,
            email="olu@example.org",
            role="owner",
            outcome="",
            ended_at=None,
            created_at=now() - dt.timedelta(days=2),
            expires_at=now() + dt.timedelta(days=12),
        )
        shown = text_of(staff.get("/admin/", {"part": "without-owner"}).content.decode())
        assert "invited olu@example.org, 2 days ago ; the invitation ends in 12 days Acme account" in shown

    def test_queries_do_not_grow_with_the_rows(self, staff: Client, world: factories.World) -> None:
        def fill() -> None:
            name = str(uuid4())
            tenant = Tenant.objects.create(account=world.account, name=name, name_key=name)
            day = now().date()
            TenantHealth.objects.create(
                tenant_id=tenant.pk,
                drop=0.3,
                requests_7=500,
                stale_days=1,
                quarantined=1,
                last_day=day,
                has_findings=True,
            )
            Digest.objects.create(
                tenant_id=tenant.pk,
                period=name[:10],
                first_day=day,
                last_day=day,
                document={"facts": [], "names": [], "sections": [{"id": "errors"}]},
            )
            Build.objects.create(tenant_id=tenant.pk, period="2026", state="failed")
            Domain.objects.create(account=world.account, name=f"d{uuid4()}.example", challenge="c")

        def snoozed() -> None:
            for panel in ("findings", "late", "quarantine", "failed", "domains"):
                subject = str(uuid4()) if panel not in {"failed", "domains"} else str(Snooze.objects.count())
                Snooze.objects.create(
                    user=world.platform_admin, panel=panel, subject=subject, seen=[], until=now() + HOUR
                )

        fill()
        snoozed()
        with CaptureQueriesContext(connection) as few:
            staff.get("/admin/")
        for _ in range(4):
            fill()
            snoozed()
        with CaptureQueriesContext(connection) as many:
            staff.get("/admin/")
        assert len(many) == len(few) <= 25
