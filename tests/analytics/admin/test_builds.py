"""Builds of a tenant, days that are built again."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from django.urls import reverse

from accounts.models import Event, Tenant
from analytics.models import Build
from analytics.tasks import refresh_day, refresh_periods
from logs import quarantine
from logs.models import LogRead, Partition, PendingBuild, QuarantinedEntry
from logs.pending import mark_days
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import LocalStore, ObjectNotFound, StoreError, default_store
from tests.admin.filling import to
from tests.admin.staff import page_text, text_of
from tests.objects import save_object

if TYPE_CHECKING:
    from django.test import Client


class TestBuilds:
    def test_builds_days_and_quarantine(self, support: Client, tenant: Tenant) -> None:
        Build.objects.create(tenant_id=tenant.pk, period="2026-03-01", state="running")
        Build.objects.create(tenant_id=tenant.pk, period="2026-02-28", state="done")
        make_partition(tenant, "2026-02-28")
        Build.objects.create(tenant_id=tenant.pk, period="2026-02", state="done")
        Build.objects.create(tenant_id=tenant.pk, period="", state="done")
        for position in range(3):
            QuarantinedEntry.objects.create(
                tenant_id=tenant.pk, day="2026-03-01", key="k", position=position, reason="not JSON"
            )
        shown = page_text(support, to("tenant-builds", tenant))
        assert "2026-03-01 building since just now" in shown
        assert "2026-02 built just now Users, of the whole log built" in shown
        assert shown.count("2026-02-28") == 1
        assert "2026-02-28 built just now 1 1 Build again" in shown
        assert "2026-03-01 not JSON 3 Try again" in shown
        part = support.get(to("tenant-builds", tenant), {"part": "builds"}).content.decode()
        assert "<html" not in part
        assert 'hx-trigger="every 4s"' in part
        Build.objects.filter(state="running").update(state="done")
        part = support.get(to("tenant-builds", tenant), {"part": "builds"}).content.decode()
        assert "hx-trigger" not in part
        # Nobody needs to ask whether the last days are only not shown.
        yesterday = now().date() - dt.timedelta(days=1)
        assert f"{yesterday} no log" in text_of(part)

    def test_a_failed_build_that_home_shows_is_listed_however_old(
        self, staff: Client, tenant: Tenant
    ) -> None:
        at = now() - dt.timedelta(days=2)
        failed = Build.objects.create(
            tenant_id=tenant.pk, period="2026-11-21", state="failed", error="no room", started_at=at
        )
        for number in range(31):
            Build.objects.create(tenant_id=tenant.pk, period=f"2026-10-{number + 1:02d}", state="done")
        assert "2026-11-21 failed no room" in page_text(staff, "/admin/")
        assert (
            # Whether it has a log is not known.
            "2026-11-21 failed no room 2 days ago not known Build again"
            in page_text(staff, to("tenant-builds", tenant))
        )
        # A later build of the same day repairs it.
        Build.objects.create(tenant_id=tenant.pk, period=failed.period, state="done")
        assert "no room" not in page_text(staff, to("tenant-builds", tenant))

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
        assert "2 days will be built again. 2 days without a log: nothing to do." in shown
        assert "2026-02-27 pending due just now" in shown
        assert "2026-03-01 pending due just now" in shown
        assert len(tasks) == 2
        row.refresh_from_db()
        assert (row.listing_digest, row.hours, row.file) == ("", {}, "f")
        event = Event.objects.get(kind="staff.acted")
        assert event.after == {
            "act": "days.rebuilt",
            "first": "2026-02-26",
            "last": "2026-03-01",
            "days": ["2026-02-27", "2026-03-01"],
            "withoutLog": [],
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
        assert "Months and years made of the days automatically" in page_text(
            support, to("tenant-builds", tenant)
        )
        assert "pending What the last builds of days changed" in page_text(
            support, to("tenant-builds", tenant)
        )

    def test_a_failed_day_without_a_log_is_closed(
        self, support: Client, tenant: Tenant, object_store: Path, django_capture_on_commit_callbacks: Any
    ) -> None:
        Build.objects.create(tenant_id=tenant.pk, period="2026-03-01", state="failed", error="no room")
        form = {"first": "2026-03-01", "last": "2026-03-01", "reason": "ticket 3"}
        with django_capture_on_commit_callbacks():
            answer = support.post(to("tenant-rebuild", tenant), form, follow=True)
        shown = text_of(answer.content.decode())
        assert "1 day without a log: nothing to build. Its state becomes “no log” in a moment." in shown
        assert "will be built again" not in shown
        assert "2026-03-01 pending due just now" in shown
        # A task that is killed leaves the day pending, and closing again adds nothing.
        killed = patch("analytics.numbers.days.finish_day", side_effect=KeyboardInterrupt)
        with killed, pytest.raises(KeyboardInterrupt):
            refresh_day(str(tenant.pk), "2026-03-01")
        refresh_day(str(tenant.pk), "2026-03-01")
        assert list(Build.objects.values_list("state", "rows")) == [("done", 0), ("failed", None)]
        assert not Build.objects.unrepaired().exists()
        assert not PendingBuild.objects.exclude(day=None).exists()
        assert "2026-03-01 no log just now" in page_text(support, to("tenant-builds", tenant))
        told = "asked to build days again of Warehouse no log, nothing to build: 2026-03-01 ticket 3"
        assert told in page_text(support, reverse("admin:audit"))

    def test_a_build_that_was_killed_after_it_published_is_closed(
        self, tenant: Tenant, object_store: Path
    ) -> None:
        save_object(default_store(), f"{tenant.pk}/logs/2026/03/01/00/a.json", b"{}")
        mark_days(tenant=tenant.pk, days=[dt.date(2026, 3, 1)])
        refresh_day(str(tenant.pk), "2026-03-01")
        refresh_periods(str(tenant.pk))
        for period in ("2026-03-01", "2026-03"):
            Build.objects.create(tenant_id=tenant.pk, period=period, state="failed", error="killed")
        mark_days(tenant=tenant.pk, days=[dt.date(2026, 3, 1)])
        refresh_day(str(tenant.pk), "2026-03-01")
        refresh_periods(str(tenant.pk))
        assert not Build.objects.unrepaired().exists()

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
        assert "Build days again" not in page_text(support, to("tenant-builds", tenant))
        assert not PendingBuild.objects.exists()

    def test_the_store_does_not_answer(self, support: Client, tenant: Tenant) -> None:
        form = {"first": "2026-03-01", "last": "2026-03-01", "reason": "x"}
        with patch.object(LocalStore, "listdir", side_effect=StoreError("no answer")):
            answer = support.post(to("tenant-rebuild", tenant), form)
        assert answer.status_code == 503
        assert "The object store cannot be reached." in answer.content.decode()
        assert not PendingBuild.objects.exists()


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
        shown = page_text(support, address)
        assert f"{entry.key} 7 not JSON" in shown
        assert "of another day" not in shown
        assert "of another day" in page_text(support, to("tenant-quarantine", tenant, day="2026-03-02"))
        assert "No entry of this day" in page_text(support, address, after=entry.pk)
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
        shown = page_text(support, address, after=last)
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

    def test_with_access_bytes_are_shown_after_the_audit_row(
        self, access: Client, tenant: Tenant, object_store: Path
    ) -> None:
        entry = self.quarantine(tenant, b'{"logId": "1"}\n\n{"logId": <b>}\n', 1, reason="<i>")
        entry.refresh_from_db()
        # A line that is no JSON makes the whole file bad.
        address = to("tenant-quarantined-entry", tenant, entry=entry.pk)
        assert access.get(address).status_code == 404
        save_object(default_store(), entry.key, b'{"logId": "1"}\n\n{"logId": "<b>", "tables": 3}\n')
        assert address in access.get(to("tenant-quarantine", tenant, day="2026-03-01")).content.decode()
        shown = page_text(access, address)
        assert '<i> {"logId": "<b>", "tables": 3} 29 B' in shown
        assert list(LogRead.objects.values_list("tenant_id", "email", "key")) == 2 * [
            (tenant.pk, "support@example.org", entry.key)
        ]

    def test_a_whole_file_is_cut(
        self, access: Client, tenant: Tenant, object_store: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        entry = self.quarantine(tenant, b"\xff" + (2 << 20) * b"a" + b"end")
        address = to("tenant-quarantined-entry", tenant, entry=entry.pk)
        shown = page_text(access, address)
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
