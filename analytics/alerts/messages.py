"""What a message about an alert says, as a webhook, for Slack, and as a mail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from analytics.alerts.kinds import KINDS, SERVICE_KINDS, say_number
from tenantadmin.lib.core.timestamps import format_timestamp

if TYPE_CHECKING:
    from datetime import datetime

    from analytics.models import Alert, AlertDelivery, AlertFiring

_HEADINGS: Final = {"started": "Alert", "ended": "Over", "test": "Test of the alert"}


def make_content(alert: Alert, *, firing: AlertFiring | None) -> dict[str, Any]:
    """Return what the messages of a crossing, or of a test, say: the ``data`` of the webhook."""
    tenant = alert.tenant
    kind = (SERVICE_KINDS if tenant is None else KINDS)[alert.kind]
    value = None if firing is None else alert.value
    text = "This is a test. The alert's channel works."
    if value is not None:
        text = say_number(
            kind, value=value, before=alert.before, threshold=alert.threshold, window=alert.window
        )
    return {
        "alertId": str(alert.pk),
        "name": alert.name,
        "tenantId": None if tenant is None else str(tenant.pk),
        "tenantName": None if tenant is None else tenant.name,
        "kind": alert.kind,
        "unit": kind.unit,
        "threshold": alert.threshold,
        "window": alert.window,
        "value": value,
        "startedAt": firing and format_timestamp(firing.started_at),
        "endedAt": firing and firing.ended_at and format_timestamp(firing.ended_at),
        "text": text,
        "href": _dashboard_address(alert),
    }


def heading(delivery: AlertDelivery) -> str:
    """Return one line: the subject of the mail."""
    content = delivery.content
    where = content["tenantName"] or settings.PUBLIC_BASE_URL
    return f"{_HEADINGS[delivery.occasion]} “{content['name']}”, {where}"


def webhook_payload(delivery: AlertDelivery, *, at: datetime) -> dict[str, Any]:
    """Return the JSON of a webhook, in the shape of the Standard Webhooks."""
    return {
        "type": f"alert.{delivery.occasion}",
        "timestamp": format_timestamp(at),
        "data": delivery.content,
    }


def slack_payload(delivery: AlertDelivery) -> dict[str, Any]:
    """Return the JSON of an incoming webhook of Slack."""
    content = delivery.content
    text = f"*{_escape(heading(delivery))}*\n{_escape(content['text'])}\n<{content['href']}|Open>"
    return {"text": text}


def _escape(text: str) -> str:
    """Escape what Slack reads as markup, such as the mention of a channel."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _dashboard_address(alert: Alert) -> str:
    if alert.tenant_id is None:
        return f"{settings.PUBLIC_BASE_URL}/admin/"
    return f"{settings.DASHBOARD_URL}#/t/{alert.tenant_id}/alerts"
