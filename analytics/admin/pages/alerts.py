"""The alerts of a tenant, when they fired, and what became of the messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from accounts.admin.pages.base import TenantPage
from analytics.alerts.documents import describe_channel, say_state
from analytics.alerts.kinds import KINDS, say_value, show_number
from analytics.alerts.storing import alerts_of, firing_of, firings_of
from analytics.models import AlertDelivery
from tenantadmin.lib.core.formats import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.alerts.kinds import AlertKindDocument
    from analytics.models import Alert, AlertFiring

_MOST: Final = 50


class AlertsPage(TenantPage):
    """Alerts. Owners and admins of the tenant change them in the dashboard."""

    title = "Alerts"
    template_name = "backoffice/tenant/alerts.html"

    def read(self) -> Mapping[str, Any]:
        deliveries = AlertDelivery.objects.filter(alert__tenant=self.tenant).select_related("alert")[:_MOST]
        return {
            "alerts": [_row(alert) for alert in alerts_of(self.tenant.pk)],
            "firings": [_firing(firing) for firing in firings_of(self.tenant.pk)[:_MOST]],
            "deliveries": [(delivery, describe_channel(delivery.channel)) for delivery in deliveries],
        }


def _row(alert: Alert) -> dict[str, Any]:
    kind, firing = KINDS[alert.kind], firing_of(alert)
    return {
        "alert": alert,
        "firing": firing,
        "number": say_state(alert, firing),
        "threshold": _threshold(kind, alert),
        "channels": [describe_channel(channel) for channel in alert.channels],
    }


def _firing(firing: AlertFiring) -> dict[str, Any]:
    kind = KINDS[firing.alert.kind]
    return {
        "firing": firing,
        "number": say_value(kind, value=firing.value, before=firing.before),
        "threshold": _threshold(kind, firing),
    }


def _threshold(kind: AlertKindDocument, row: Alert | AlertFiring) -> str:
    """Return a threshold with its window: ``10 points, 24 hours``."""
    shown = show_number(kind, row.threshold)
    if row.window is None or kind.window_unit is None:
        return shown
    return f"{shown}, {count(row.window, kind.window_unit.removesuffix('s'))}"
