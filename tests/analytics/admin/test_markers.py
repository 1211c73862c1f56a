"""Invalidation markers: preview, create, remove."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from django.core import signing
from django.core.management import call_command

from accounts.models import Event, Tenant
from analytics.reports.reading import LogReader
from logs.audit import Reader
from rules.models import Marker, Ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.formats import exact_time
from tenantadmin.lib.core.timestamps import epoch_ms, from_epoch_ms, now
from tenantadmin.lib.objectstore import default_store
from tests.admin.logs import RULE, to
from tests.admin.reading import text_of
from tests.admin.staff import page_text
from tests.objects import save_entries

if TYPE_CHECKING:
    from django.test import Client


class TestMarkers:
    def test_the_blast_radius_comes_before_the_reason(self, support: Client, tenant: Tenant) -> None:
        shown = page_text(support, to("tenant-invalidate", tenant), rule="orders")
        assert "What ends if you invalidate orders by the log" in shown
        assert (
            "The log shows no cached result of the rule. "
            "This ends only those, if any, that the log does not have yet." in shown
        )
        assert "orders 0 0 B 0 ms 0" in shown
        # Staff without access cannot run SQL.
        html = support.get(to("tenant-invalidate", tenant), {"rule": "orders"}).content.decode()
        assert to("tenant-sql", tenant) + "?" not in html
        assert not Marker.objects.exists()

    def test_the_results_of_a_table_are_told_from_the_others(self, access: Client, tenant: Tenant) -> None:
        rules = [
            {"id": name, "conditions": {"userName": name}, "ttlSeconds": 3600}
            for name in ("most", "none", "some")
        ]
        write_ruleset(tenant_id=tenant.pk, document={"rules": rules}, actor="owner@example.org")
        Ruleset.objects.update(modified_at=now() - timedelta(minutes=30))
        at = epoch_ms(now()) - 60_000
        reads = {"some": ["catalog.products", "finance.ledger"], "none": ["finance.ledger"] * 3}
        entries = [
            {
                "logId": f"{rule} {index}",
                "timestamp": at,
                "cacheStatus": "MISS",
                "cacheKey": f"{rule} {index}",
                "matchedRule": rule,
                "tables": f'["{table}"]',
            }
            for rule, names in reads.items()
            for index, table in enumerate(names)
        ]
        day = from_epoch_ms(at).date()
        save_entries(tenant.pk, day, entries)
        call_command("rebuild", tenant=tenant.pk)
        address = to("tenant-invalidate", tenant)
        html = access.get(address, {"tables": "catalog.products"}).content.decode()
        shown = text_of(html)
        assert "This ends 2 cached results of the 1 ticked rule, 0 B: 1 reads catalog.products." in shown
        assert "1 of its 2 results reads catalog.products. The other 1 ends too." in shown
        no_table = "so it may have results of catalog.products."
        assert f"{no_table} By the log, it has no result of catalog.products, only 3 others." in shown
        assert f"{no_table} By the log, it has no cached result." in shown
        assert "The log is read up to" in shown
        assert "A rule is not ticked at first if it does not name catalog.products and" in shown
        assert "Tick all" in shown
        boxes = re.findall(r'name="rules" value="(\w+)" aria-label="[^"]+"( checked)?', html)
        assert boxes == [("some", " checked"), ("most", ""), ("none", "")]
        # The number leads to the results themselves.
        links = re.findall(rf'href="{to("tenant-sql", tenant)}\?sql=([^"]+)"', html)
        assert len(links) == 6
        log = LogReader(default_store(), tenant.pk, Reader("x@example.org", ""))
        listed = log.rows(unquote_plus(links[0]))
        assert sorted(row["tables"] for row in listed) == ['["catalog.products"]', '["finance.ledger"]']

        previewed = re.search(r'name="previewed" value="([^"]+)"', html)
        assert previewed is not None
        form = {"tables": "catalog.products", "reason": "x", "previewed": previewed[1]}
        # The sentence follows the ticks, and so does the button.
        for ticks, told in (
            ([], "No rule is ticked, so nothing ends."),
            (["most"], "The log shows no cached result of the 1 ticked rule."),
            (["most", "some"], "This ends 2 cached results of the 2 ticked rules, 0 B: 1 reads"),
            (["none", "some"], "This ends 5 cached results of the 2 ticked rules, 0 B: 1 reads"),
        ):
            answer = access.post(f"{address}?part=ends", {**form, "rules": ticks})
            assert told in text_of(answer.content.decode())
        assert not Marker.objects.exists()
        assert access.post(address, form).status_code == 400
        assert access.post(address, {**form, "rules": ["some"]}).status_code == 302
        assert [marker.target_rule_id for marker in Marker.objects.all()] == ["some"]
        said = "Invalidated: some. That ended 2 cached results, of which 1 read catalog.products."
        assert said in text_of(access.get(to("tenant-markers", tenant)).content.decode())

    def test_a_preview_of_an_earlier_release(self, access: Client, tenant: Tenant) -> None:
        previewed = signing.dumps({"orders": [1, None]})
        form = {"rule": "orders", "reason": "x", "previewed": previewed}
        assert access.post(to("tenant-invalidate", tenant), form).status_code == 302
        assert Marker.objects.count() == 1

    def test_support_invalidates_with_a_reason(self, support: Client, tenant: Tenant) -> None:
        address = to("tenant-invalidate", tenant)
        assert support.post(address, {"rule": "orders", "reason": ""}).status_code == 400
        previewed = support.get(address, {"rule": "orders"}).context["signed"]
        form = {"rule": "orders", "reason": "backfill", "previewed": previewed}
        assert support.post(address, form).status_code == 302
        marker = Marker.objects.get()
        assert (marker.target_rule_id, marker.metadata) == ("orders", {"reason": "backfill"})
        event = Event.objects.get(kind="staff.acted")
        assert event.after == {
            "act": "marker.created",
            "markers": [marker.marker_id],
            "rules": ["orders"],
        }
        html = support.get(to("tenant-markers", tenant)).content.decode()
        shown = text_of(html)
        at = exact_time(marker.invalidated_at)
        told = f"older than {at} is served any more; by the log there was none."
        assert f"Invalidated: orders. No result {told}" in shown
        # The page's script shows it in the zone of the reader.
        assert re.search(f'No result older than <time class="moment "[^>]*>{at}</time>', html)
        assert f"active orders just now {marker.created_by} backfill" in shown
        support.post(address, {"rule": "orders", "reason": "again"})
        assert "superseded orders" in page_text(support, to("tenant-markers", tenant))

    def test_tables_are_invalidated_by_all_rules_that_can_have_their_results(
        self, support: Client, tenant: Tenant
    ) -> None:
        write_ruleset(
            tenant_id=tenant.pk,
            document={"rules": [RULE, {**RULE, "id": "none", "action": "deny"}]},
            actor="owner@example.org",
        )
        html = support.get(to("tenant-markers", tenant)).content.decode()
        assert '<option value="sales.orders">' in html
        # A rule that stores nothing is not offered.
        assert re.findall(r'<option value="(orders|none)">', html) == ["orders", "orders"]
        address = to("tenant-invalidate", tenant)
        form = {"tables": "SALES.orders, sales.items", "reason": "backfill"}
        shown = page_text(support, address, tables=form["tables"])
        assert "What ends if you invalidate SALES.orders, sales.items" in shown
        assert (
            "orders Its conditions name one of them. By the log, it has no cached result. 0 0 B 0 ms 0"
            in shown
        )
        form["rules"] = "orders"
        assert support.post(address, form).status_code == 302
        marker = Marker.objects.get()
        assert (marker.target_rule_id, marker.metadata) == ("orders", {"reason": "backfill"})
        event = Event.objects.get(kind="staff.acted")
        assert (event.after or {})["tables"] == ["SALES.orders", "sales.items"]
        write_ruleset(tenant_id=tenant.pk, document={"rules": []}, actor="x", confirm_deletes=["orders"])
        shown = page_text(support, address, tables="sales.orders")
        assert "No rule can have cached results of these tables" in shown
        assert "Reason or ticket" not in shown
        assert support.post(address, form).status_code == 400

    def test_markers_are_filtered(self, support: Client, tenant: Tenant) -> None:
        page = to("tenant-markers", tenant)
        support.post(to("tenant-invalidate", tenant), {"rule": "orders", "reason": "backfill"})
        marker = Marker.objects.get()
        at = marker.invalidated_at - timedelta(days=9)
        marker.pk, marker.marker_id, marker.target_rule_id = None, "old", "items"
        marker.invalidated_at, marker.expires_at, marker.created_by = at, at, "gateway@example.org"
        marker.save(force_insert=True)
        cases: tuple[tuple[dict[str, Any], str, str], ...] = (
            ({}, "backfill", "9 days ago"),
            ({"show": "past"}, "expired items 9 days ago", "active orders"),
            ({"show": "all", "of": "items"}, "expired items", "active orders"),
            ({"show": "all", "by": " Gateway@example.org"}, "expired items", "active orders"),
            ({"of": "items"}, "No marker matches. Show all", "expired items"),
        )
        for query, shown, not_shown in cases:
            text = page_text(support, page, **query)
            assert shown in text, query
            assert not_shown not in text, query
        # Publishing empties the cache: nothing is left that the marker would end.
        write_ruleset(tenant_id=tenant.pk, document={"rules": [RULE]}, actor="owner@example.org")
        shown = page_text(support, page)
        assert "not needed orders" in shown
        assert "backfill no more: publishing emptied the cache since Remove" in shown
        Marker.objects.all().delete()
        assert "No marker is active: results are served until they expire." in page_text(support, page)

    def test_an_unknown_rule(self, support: Client, tenant: Tenant) -> None:
        for query in ({"rule": "none"}, {}):
            answer = support.get(to("tenant-invalidate", tenant), query)
            assert answer.status_code == 404
            back = f'<a class="button quiet" href="{to("tenant-markers", tenant)}">Invalidate</a>'
            assert back in answer.content.decode()
        assert (
            support.post(to("tenant-invalidate", tenant), {"rule": "none", "reason": "x"}).status_code == 404
        )
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_a_marker_is_taken_back(self, support: Client, tenant: Tenant) -> None:
        support.post(to("tenant-invalidate", tenant), {"rule": "orders", "reason": "x"})
        marker = Marker.objects.get()
        address = to("tenant-marker-remove", tenant, marker=marker.marker_id)
        assert "Results from before the marker" in page_text(support, address)
        assert support.post(address, {"reason": "mistake"}).status_code == 302
        marker.refresh_from_db()
        assert marker.removed_at is not None
        for answer in (support.get(address), support.post(address, {"reason": "mistake"})):
            assert answer.status_code == 404
            assert 'name="reason"' not in answer.content.decode()
