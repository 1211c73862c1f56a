"""The history of a tenant: compare, blame, restore."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from accounts.models import Event, Revision, Tenant
from rules.models import Ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.formats import day_in_words
from tenantadmin.lib.core.timestamps import now
from tests.accounts.support import configure
from tests.admin.logs import RULE, to
from tests.admin.reading import text_of
from tests.admin.staff import page_text

if TYPE_CHECKING:
    from django.test import Client


class TestHistory:
    def test_sentences_compare_and_blame(self, staff: Client, tenant: Tenant) -> None:
        shown = page_text(staff, to("tenant-history", tenant))
        assert "1 in force added orders owner@example.org just now" in shown
        assert "0 created it seed@example.org just now" in shown
        assert "Who last changed each rule Rule Revision By When orders 1 owner@example.org" in shown
        # Without a choice, the last change is compared.
        html = staff.get(to("tenant-history", tenant)).content.decode()
        assert re.findall(r'name="(\w+)" value="(\d)"[^>]* checked', html) == [("to", "1"), ("from", "0")]
        compared = page_text(staff, to("tenant-history", tenant), to=1)
        assert "From revision 0 to 1" in compared
        assert '+ "id": "orders",' in compared
        assert "From revision 1 to 0" in page_text(
            staff, to("tenant-history", tenant), **{"from": 1, "to": 0}
        )
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
        assert "This will empty the cache." in shown
        assert '− "id": "orders",' in shown
        today = now().date()
        assert f"Revision 0 was in force on {day_in_words(today, today)}, for a moment." in shown
        same = "says the same as the one in force: there is nothing to restore."
        assert same not in shown
        equal = staff.get(to("tenant-restore", tenant, kind="rules", seq=1)).content.decode()
        assert f"Revision 1 {same}" in text_of(equal)
        assert 'name="reason"' not in equal
        etag = re.findall(r'name="etag" value="([^"]+)"', html)[0].replace("&quot;", '"')
        assert "although they have active markers" not in shown
        fields = {"etag": etag, "reason": "Too early"}
        assert staff.post(address, fields).status_code == 302
        assert Ruleset.objects.get(pk=tenant.pk).rules == []
        revision = Revision.objects.get(kind="rules", tenant_id=tenant.pk, seq=2)
        assert (revision.restored_from, revision.summary["comment"]) == (0, "Too early")
        said = page_text(staff, to("tenant-history", tenant))
        assert "restored revision 0: removed orders admin@example.org Too early just now" in said
        assert staff.post(address, {"etag": etag, "reason": "x"}).status_code == 409
        config = to("tenant-restore", tenant, kind="config", seq=0)
        refused = staff.post(config, {"reason": "x"})
        assert refused.status_code == 409
        assert "Revision 0 says the same as the one in force: there is nothing to restore." in text_of(
            refused.content.decode()
        )
        configure(tenant.pk, name="Warehouse", labels={"team": "sales"})
        assert staff.post(config, {"reason": "x"}).status_code == 302
        acts = Event.objects.filter(kind="staff.acted").order_by("pk").values_list("after__act", flat=True)
        assert list(acts) == ["rules.restored", "config.restored"]

    def test_only_what_differs_from_the_live_document_can_be_restored(
        self, staff: Client, support: Client, tenant: Tenant
    ) -> None:
        for seq, ttl in ((2, 3600), (3, 60)):
            write_ruleset(tenant_id=tenant.pk, document={"rules": [{**RULE, "ttlSeconds": ttl}]}, actor="x")
            assert Ruleset.objects.get(pk=tenant.pk).seq == seq
        # Revision 3 says what revision 1 said.
        offered = [
            ({"to": 3, "from": 1}, []),
            ({"to": 2, "from": 1}, [2]),
            ({"to": 3}, [2]),
            ({"to": 2, "from": 0}, [2, 0]),
        ]
        for query, seqs in offered:
            html = staff.get(to("tenant-history", tenant), query).content.decode()
            assert re.findall(r"/history/rules/(\d+)/restore/", html) == [str(seq) for seq in seqs]
        assert "/restore/" not in support.get(to("tenant-history", tenant), {"to": 2}).content.decode()
        before = Revision.objects.count()
        answer = staff.post(to("tenant-restore", tenant, kind="rules", seq=1), {"reason": "x"})
        assert (answer.status_code, Revision.objects.count()) == (409, before)

    def test_no_other_kind_is_restored(self, staff: Client, tenant: Tenant) -> None:
        assert staff.get(to("tenant-restore", tenant, kind="account", seq=0)).status_code == 404
