"""The messages of alerts: when they are due, and how they are sent."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Q
from standardwebhooks.webhooks import Webhook

from accounts.mailing import compose, parcel_of
from accounts.models import User
from analytics.alerts.documents import signing_secrets
from analytics.alerts.messages import heading, make_content, slack_payload, webhook_payload
from analytics.digest.preferences import readable_tenants
from analytics.models import AlertDelivery, AlertFiring
from tenantadmin.lib.core import outgoing
from tenantadmin.lib.core.emails import named, unlinked
from tenantadmin.lib.core.outgoing import NotSent
from tenantadmin.lib.core.rendering import dump_json
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.jobs import outbox
from tenantadmin.lib.jobs.outbox import MAIL, WEB, Kind, Parcel, Skipped

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from analytics.models import Alert

#: How long messages and their alerts' firings are kept.
_RETENTION: Final = timedelta(days=90)


def queue_messages(
    alert: Alert,
    *,
    occasion: AlertDelivery.Occasion,
    at: datetime,
    firing: AlertFiring | None = None,
) -> list[AlertDelivery]:
    """Queue a message to each channel of an alert. Call it in the transaction of the crossing.

    A message about a crossing waits until the alert's quiet hours are over.
    """
    content = make_content(alert, firing=firing)
    due_at = at if firing is None else after_quiet_hours(alert.quiet_hours, at=at)
    return outbox.put(
        [
            AlertDelivery(
                alert=alert,
                firing=firing,
                occasion=occasion,
                channel=channel,
                channel_number=number,
                content=content,
                created_at=at,
                due_at=due_at,
            )
            for number, channel in enumerate(alert.channels)
        ]
    )


def after_quiet_hours(quiet: Mapping[str, str] | None, *, at: datetime) -> datetime:
    """Return the time itself, or the end of the quiet hours that it lies in."""
    if quiet is None:
        return at
    start, end = (time.fromisoformat(quiet[name]).replace(tzinfo=UTC) for name in ("from", "to"))
    moment = at.timetz()
    is_quiet = start <= moment < end if start < end else moment >= start or moment < end
    if not is_quiet:
        return at
    end_day = at.date() if moment < end else at.date() + timedelta(days=1)
    return datetime.combine(end_day, end)


def delete_old_messages() -> None:
    """Delete messages and ended firings that are older than `_RETENTION`."""
    before = now() - _RETENTION
    AlertDelivery.objects.filter(created_at__lt=before).delete()
    AlertFiring.objects.filter(ended_at__lt=before).delete()


def _pack(message: AlertDelivery) -> Parcel:
    """Return a message to send.

    Raises:
        Skipped: the receiver may not have it, or the tenant is deleted.
    """
    tenant = message.alert.tenant
    if tenant is not None and tenant.deleted_at is not None:
        raise Skipped("The tenant is deleted.")
    channel = message.channel
    if channel["type"] == "email":
        if tenant is not None:
            _require_reader(channel["to"], tenant.pk)
        return _pack_mail(message)
    if channel["type"] == "webhook":
        body, signed_at = dump_json(webhook_payload(message, at=message.created_at)), now()
    else:
        body, signed_at = dump_json(slack_payload(message)), None
    host = urlsplit(channel["url"]).netloc
    # Another tenant's receiver at the same host may be well.
    receiver = f"{message.alert.tenant_id} {host}"
    return Parcel(receiver=receiver, send=lambda _: _post(message, body, signed_at=signed_at))


def _require_reader(email: str, tenant_id: UUID) -> None:
    """Refuse a receiver who has never signed in, or may not read the tenant's summaries any more."""
    user = User.objects.filter(email=email, is_active=True).first()
    if user is None or not readable_tenants(user).filter(pk=tenant_id).exists():
        raise Skipped("The receiver is not a member who may read this tenant's summaries.")
    if user.last_login is None:
        raise Skipped("The receiver has not signed in yet.")


def _pack_mail(message: AlertDelivery) -> Parcel:
    subject, tenant = unlinked(heading(message)), message.content["tenantName"]
    context = {
        **message.content,
        "tenantName": tenant and named(tenant),
        "heading": subject,
        "service": settings.PUBLIC_BASE_URL,
    }
    mail = compose(to=message.channel["to"], subject=subject, template="alert", context=context)
    return parcel_of(mail, identity=f"alert-{message.pk}")


def _post(message: AlertDelivery, body: bytes, *, signed_at: datetime | None = None) -> None:
    """Send JSON, signed by the scheme of the Standard Webhooks if ``signed_at`` is a time.

    Raises:
        NotSent: the receiver did not answer with 2xx.
    """
    headers = {"Content-Type": "application/json", "User-Agent": "tenantadmin"}
    if signed_at is not None:
        identity, secrets = str(message.pk), signing_secrets(message.alert)
        headers |= {
            "webhook-id": identity,
            "webhook-timestamp": str(int(signed_at.timestamp())),
            "webhook-signature": " ".join(
                Webhook(secret).sign(identity, signed_at, body.decode()) for secret in secrets
            ),
        }
    answer = outgoing.post(
        message.channel["url"],
        body=body,
        headers=headers,
        seconds=WEB.seconds,
        exceptions=outgoing.parse_exceptions(tuple(settings.WEBHOOK_EXCEPTIONS)),
    )
    if 300 <= answer.status < 400:
        reason = f"The receiver redirects (status {answer.status}). Give the address that it redirects to."
    elif not 200 <= answer.status < 300:
        reason = f"The receiver answered with status {answer.status}."
    else:
        return
    raise NotSent(reason, has_answered=True, retry_after=answer.retry_after)


_MAILED: Final = Q(channel__type="email")
ALERT_MAILS: Final = Kind(
    name="alert mail", model=AlertDelivery, lane=MAIL, pack=_pack, tenant="alert__tenant_id", waiting=_MAILED
)
ALERT_WEBHOOKS: Final = Kind(
    name="alert", model=AlertDelivery, lane=WEB, pack=_pack, tenant="alert__tenant_id", waiting=~_MAILED
)
