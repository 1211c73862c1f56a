"""Quarantined entries and their bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from uuid import uuid4

import pytest

from logs import quarantine
from logs.models import LogRead, QuarantinedEntry
from tenantadmin.lib.objectstore import LocalStore, ObjectNotFound, StoreError, default_store
from tests.admin.filling import to
from tests.admin.staff import page_text
from tests.objects import save_object

if TYPE_CHECKING:
    from pathlib import Path

    from django.test import Client

    from accounts.models import Tenant


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
