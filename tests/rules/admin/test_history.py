"""The history of a tenant: compare, blame, restore."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from accounts.models import Event, Revision, Tenant
from rules.models import Ruleset
from tests.admin.logs import to
from tests.admin.reading import text_of
from tests.admin.staff import page_text

if TYPE_CHECKING:
    from django.test import Client


class TestHistory:
    def test_sentences_compare_and_blame(self, staff: Client, tenant: Tenant) -> None:
        shown = page_text(staff, to("tenant-history", tenant))
        assert "1 : owner@example.org added orders" in shown
        assert "0 : seed@example.org created it" in shown
        assert "Who last changed each rule orders 1 owner@example.org" in shown
        compared = page_text(staff, to("tenant-history", tenant), to=1)
        assert "Revision 0 to 1" in compared
        assert '+ "id": "orders",' in compared
        assert "Revision 1 to 0" in page_text(staff, to("tenant-history", tenant), **{"from": 1, "to": 0})
        assert "created it" in page_text(staff, to("tenant-history", tenant), kind="config")

    @pytest.mark.parametrize("query", [{"to": "9"}, {"cursor": "x"}])
    def test_a_missing_revision_or_cursor_is_an_error(
        self, staff: Client, tenant: Tenant, query: dict[str, str]
    ) -> None:
        assert staff.get(to("tenant-history", tenant), query).status_code in {400, 404}

    def test_a_restore_shows_its_effect_first(self, staff: Client, tenant: Tenant) -> None:
        address = to("tenant-restore", tenant, kind="rules", seq=0)
        html = staff.get(address).content.decode()
        shown = text_of(html)
        assert "The warm cache is lost." in shown
        assert '− "id": "orders",' in shown
        same = "says the same as the live one: there is nothing to restore."
        assert same not in shown
        equal = staff.get(to("tenant-restore", tenant, kind="rules", seq=1)).content.decode()
        assert f"Revision 1 {same}" in text_of(equal)
        assert 'name="reason"' not in equal
        etag = re.findall(r'name="etag" value="([^"]+)"', html)[0].replace("&quot;", '"')
        fields = {"etag": etag, "reason": "x", "comment": "Too early"}
        assert staff.post(address, fields).status_code == 302
        assert Ruleset.objects.get(pk=tenant.pk).rules == []
        revision = Revision.objects.get(kind="rules", tenant_id=tenant.pk, seq=2)
        assert (revision.restored_from, revision.summary["comment"]) == (0, "Too early")
        assert "(“Too early”)" in page_text(staff, to("tenant-history", tenant))
        assert staff.post(address, {"etag": etag, "reason": "x"}).status_code == 409
        assert (
            staff.post(to("tenant-restore", tenant, kind="config", seq=0), {"reason": "x"}).status_code == 302
        )
        acts = Event.objects.filter(kind="staff.acted").order_by("pk").values_list("after__act", flat=True)
        assert list(acts) == ["rules.restored", "config.restored"]

    def test_no_other_kind_is_restored(self, staff: Client, tenant: Tenant) -> None:
        assert staff.get(to("tenant-restore", tenant, kind="account", seq=0)).status_code == 404
