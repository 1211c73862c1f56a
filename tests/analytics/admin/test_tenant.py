"""The overview of a tenant: state, figures, chart, rules and statements."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING
from uuid import uuid4

import msgspec
import pytest
from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from analytics.admin import tenants
from analytics.models import Build, DayRollup, TenantHealth
from logs.layout import day_start_ms
from logs.models import PendingBuild
from rules.write import write_ruleset
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store
from tests.admin.logs import DAY, ENTRY, RULE, put_log, to
from tests.admin.reading import text_of
from tests.admin.staff import page_text
from tests.objects import save_object

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client

    from accounts.models import Tenant


class TestTenant:
    def test_what_summaries_lack_stands_beside_the_verdict(self, staff: Client, tenant: Tenant) -> None:
        today = now().date()
        health = TenantHealth.objects.create(tenant_id=tenant.pk, last_day=today)
        page = to("tenant", tenant)
        assert "Healthy" in page_text(staff, page)
        failed = Build.objects.create(tenant_id=tenant.pk, period="2026-03-01", state=Build.State.FAILED)
        health.quarantined, health.stale_days = 1, 2
        health.save()
        shown = page_text(staff, page)
        assert "The build of 2026-03-01 failed, so figures may lack requests Builds" in shown
        assert "2 days must be built again, so figures may be old Builds" in shown
        assert "1 log entry is in quarantine: unreadable, and not counted Quarantine" in shown
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
        pending.delete()
        TenantHealth.objects.update(last_day=today)
        # Home tells failures for as long.
        assert "2026-03-01 failed" in page_text(staff, reverse("admin:index"))
        Build.objects.filter(pk=failed.pk).update(started_at=now() - dt.timedelta(days=8))
        assert "2026-03-01" not in page_text(staff, page)
        assert "2026-03-01 failed" not in page_text(staff, reverse("admin:index"))

    def test_it_shows_state_figures_and_changes(self, staff: Client, tenant: Tenant) -> None:
        shown = page_text(staff, to("tenant", tenant))
        assert f"Warehouse {tenant.pk} Acme plan team live" in shown
        assert "No log of this period has arrived." in shown
        assert "rules revision 1 added orders owner@example.org" in shown

    def test_the_chart_has_lines_up_to_its_last_day(self, staff: Client, tenant: Tenant) -> None:
        today = now().date()
        health = TenantHealth.objects.create(tenant_id=tenant.pk, last_day=today)
        at = {"tenant_id": tenant.pk}
        marks = tenants.chart_of(tenants.read_overview(tenant.pk, days=7), **at)["marks"]
        assert {mark["at"] for mark in marks} == {today.isoformat()}
        assert marks[0]["text"] == "rules revision 1: added orders"
        health.last_day = today - dt.timedelta(days=1)
        health.save()
        assert tenants.chart_of(tenants.read_overview(tenant.pk, days=7), **at)["marks"] == []
        assert "rules revision 1 added orders owner@example.org" in page_text(staff, to("tenant", tenant))

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
                not_cached=misses // 4 if hits else 0,
                warehouse_ms=10 * misses,
            )
        shown = page_text(staff, to("tenant", tenant), days=7)
        compare = (
            "2026-03-22 to 2026-03-28, UTC. Changes compare the mean day with that of the period before "
            "(15 to 21 March). The page Savings shows what was saved in each. Days without requests are left "
            "out: 1 of this period and 2 of the one before have some."
        )
        assert compare in shown
        assert "Hit rate 60.0% +15.0 points;" in shown
        assert (
            "Hits 60 +15 a day Misses 30 −24 a day Not cached (bypassed, passed through) 10 +9 a day "
            "Warehouse time spent 400 ms −150 ms a day"
        ) in shown
        few = "Not compared with the period before (29 March 2024 to 28 March 2025): it has no requests."
        assert few in page_text(staff, to("tenant", tenant), days=365)
        DayRollup.objects.filter(day=last - dt.timedelta(days=13)).delete()
        shown = page_text(staff, to("tenant", tenant), days=7)
        assert compare.replace("2 of the one", "1 of the one") in shown
        assert "Hits 60 −30 a day" in shown

    def test_every_figure_links_to_its_requests(self, staff: Client, tenant: Tenant) -> None:
        put_log(tenant, ENTRY, {**ENTRY, "cacheStatus": "MISS"})
        html = staff.get(to("tenant", tenant), {"days": 7}).content.decode()
        opened = f"{to('tenant-open', tenant)}?to=statements%3Fday%3D2026-03-01"
        figures = re.findall(r'<div class="value"><a href="([^"]+)"', html)
        assert figures == [f"{opened}%26days%3D7"] * 5
        assert f'<a href="{opened}">1</a>' in html

    def test_the_range_chooses_rules_and_statements(
        self, staff: Client, tenant: Tenant, object_store: Path
    ) -> None:
        rules = [{**RULE, "name": "All orders"}]
        write_ruleset(tenant_id=tenant.pk, document={"rules": rules}, actor="owner@example.org")
        decided = {**ENTRY, "matchedRule": "orders", "matchedRuleName": "Orders"}
        gone = {**decided, "matchedRule": "gone", "matchedRuleName": "Old", "standardizedSql": "SELECT old"}
        misses = [{**decided, "cacheStatus": "MISS", "logId": name} for name in ("second", "third")]
        waited = [{**gone, "cacheStatus": "HOLD", "logId": f"waited {number}"} for number in range(3)]
        put_log(tenant, decided, *misses, {**gone, "logId": "gone"}, *waited)
        earlier = {**decided, "timestamp": day_start_ms(DAY - dt.timedelta(days=7)), "logId": "earlier"}
        key = f"{tenant.pk}/logs/{DAY - dt.timedelta(days=7):%Y/%m/%d}/00/a.json"
        save_object(default_store(), key, msgspec.json.encode(earlier))
        call_command("rebuild", tenant=tenant.pk)
        html = staff.get(to("tenant", tenant), {"days": 7}).content.decode()
        assert 'hx-get="?part=range&amp;days=7"' in html
        part = staff.get(f"{to('tenant', tenant)}?days=7&part=range").content.decode()
        shown = text_of(part)
        assert (
            "Rules 2026-02-23 to 2026-03-01, and the change of the mean day against 2026-02-16 to 2026-02-22"
            in shown
        )
        assert "Hit rate All orders 3 +2 a day 1 2 0 0 33.3% −66.7 points" in shown
        assert "Top statements 2026-02-23 to 2026-03-01" in shown
        assert "SELECT <b> All orders 3 1" in shown
        # The log has the name of a rule that is gone.
        assert "Old 1 new 1 0 0 3 100%" in shown
        assert "SELECT old Old 1 1" in shown
        assert '<span title="gone">Old</span>' in part
        longer = text_of(staff.get(f"{to('tenant', tenant)}?days=28&part=range").content.decode())
        assert "All orders 4 2 2 0 0 50.0%" in longer
        # A live rule has its own name, and leads to the dashboard.
        rule = f"{to('tenant-open', tenant)}?to=rules%3Frule%3Dorders"
        assert f'<a href="{rule}" title="orders">All orders</a>' in part

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
        assert "No statement is in the log of these days." in shown

    def test_a_tenant_that_never_was(self, staff: Client, db: None) -> None:
        answer = staff.get(reverse("admin:tenant", args=[uuid4()]))
        assert answer.status_code == 404
        assert "There is nothing here" in answer.content.decode()

    def test_it_costs_a_constant_number_of_queries(self, staff: Client, tenant: Tenant) -> None:
        for name, limit in {
            "tenant": 16,
            "tenant-builds": 14,
            "tenant-insights": 12,
            "tenant-digests": 12,
            "tenant-reports": 12,
            "tenant-verify": 12,
        }.items():
            with CaptureQueriesContext(connection) as captured:
                assert staff.get(to(name, tenant)).status_code == 200
            assert len(captured) <= limit, name
