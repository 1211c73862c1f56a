"""The alerts of a tenant, for staff: state, history and messages, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.alerts.evaluating import Reading, record_reading
from analytics.models import Alert, AlertDelivery
from tests.admin.logs import to
from tests.admin.staff import page_text

if TYPE_CHECKING:
    from django.test import Client

    from accounts.models import Tenant


def make_alert(tenant: Tenant, **fields: object) -> Alert:
    channel = {"type": "webhook", "url": "https://hooks.example.org/secret"}
    return Alert.objects.create(
        **{
            "tenant": tenant,
            "name": "Hits <b>",
            "kind": "hit-rate-fell",
            "threshold": 10.0,
            "window": 24,
            "channels": [channel],
            **fields,
        }
    )


def test_an_empty_tab_says_who_makes_alerts(support: Client, tenant: Tenant) -> None:
    shown = page_text(support, to("tenant-alerts", tenant))
    assert "The tenant has no alert. Its owners and admins make alerts in the dashboard." in shown


def test_state_history_and_messages(support: Client, tenant: Tenant) -> None:
    record_reading(make_alert(tenant), Reading(12.5, before=42.9))
    make_alert(tenant, name="Off", enabled=False)
    AlertDelivery.objects.update(state="failed", error="The receiver answered with status 500.")
    shown = page_text(support, to("tenant-alerts", tenant))
    assert (
        "fires Hits <b> hit-rate-fell now a hit rate of 30.4%, against 42.9% in the 28 days before: 12.5 "
        "points less; it fires from 10 points less; since just now 10 points, 24 hours just now"
    ) in shown
    assert (
        "fires a hit rate of 30.4%, against 42.9% in the 28 days before: 12.5 points less 10 points, 24 "
        "hours" in shown
    )
    assert "webhook https://hooks.example.org/…" in shown
    assert "off Off" in shown
    assert "failed The receiver answered with status 500. Hits <b> started" in shown
    assert "secret" not in shown
