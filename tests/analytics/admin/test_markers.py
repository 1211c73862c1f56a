"""Invalidation markers: preview, create, remove."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_plus

from accounts.models import Event, Tenant
from rules.models import Marker
from tests.admin.logs import to
from tests.admin.staff import page_text

if TYPE_CHECKING:
    from django.test import Client


class TestMarkers:
    def test_the_blast_radius_comes_before_the_reason(self, support: Client, tenant: Tenant) -> None:
        shown = page_text(support, to("tenant-invalidate", tenant), rule="orders")
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
        shown = page_text(support, to("tenant-markers", tenant))
        assert f"active orders just now {marker.created_by} backfill" in shown
        support.post(address, {"rule": "orders", "reason": "again"})
        assert "superseded orders" in page_text(support, to("tenant-markers", tenant))

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
        Marker.objects.all().delete()
        assert "No marker is active: results are served until they expire." in page_text(support, page)

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
        assert "Results from before the marker" in page_text(support, address)
        assert support.post(address, {"reason": "mistake"}).status_code == 302
        marker.refresh_from_db()
        assert marker.removed_at is not None
        for answer in (support.get(address), support.post(address, {"reason": "mistake"})):
            assert answer.status_code == 404
            assert 'name="reason"' not in answer.content.decode()
