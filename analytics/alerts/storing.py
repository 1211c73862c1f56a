"""List, create, change, delete and test the alerts of a tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import F, Prefetch

from accounts.events import record_event
from accounts.limits import count_use
from accounts.models import Membership, Tenant
from accounts.models.events import EventKind
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from analytics.alerts.delivering import queue_messages
from analytics.alerts.documents import describe_channel
from analytics.alerts.kinds import KINDS
from analytics.models import Alert, AlertDelivery, AlertFiring
from tenantadmin.lib.core.errors import BadRequest, Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import timedelta
    from uuid import UUID

    from django.db.models import QuerySet

#: The most alerts of a tenant, and the most channels of an alert.
MAX_ALERTS: Final = 20
MAX_CHANNELS: Final = 5
#: The most entries of a history.
_MAX_LISTED: Final = 200


class AlertNotFound(NotFound):
    message: ClassVar[str] = "There is no such alert."


class TooManyAlerts(BadRequest):
    message: ClassVar[str] = f"A tenant has at most {MAX_ALERTS} alerts. Delete one first."


class AlertOff(BadRequest):
    message: ClassVar[str] = "The alert is switched off."


def list_alerts(tenant_id: UUID) -> list[Alert]:
    """Return the alerts of a live tenant, newest first. `firing_of` needs no further query.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    require_live_tenant(tenant_id)
    return list(alerts_of(tenant_id))


def alerts_of(tenant_id: UUID) -> QuerySet[Alert]:
    """Return a tenant's alerts, each with its firing that has not ended."""
    open_firings = Prefetch("firings", AlertFiring.objects.filter(ended_at=None), to_attr="open_firings")
    return Alert.objects.filter(tenant=tenant_id).prefetch_related(open_firings)


def firing_of(alert: Alert) -> AlertFiring | None:
    """Return the firing of an alert of `alerts_of` that has not ended."""
    firings: list[AlertFiring] = alert.open_firings  # type: ignore[attr-defined]
    return firings[0] if firings else None


def read_alert(*, tenant_id: UUID, alert_id: UUID) -> Alert:
    """Return an alert of a live tenant.

    Raises:
        TenantNotFound, AlertNotFound: there is no such live tenant, or it has no such alert.
    """
    require_live_tenant(tenant_id)
    alert = alerts_of(tenant_id).filter(pk=alert_id).first()
    if alert is None:
        raise AlertNotFound
    return alert


def create_alert(*, tenant_id: UUID, wanted: Mapping[str, Any], actor: str) -> Alert:
    """Create an alert. ``wanted`` has the members of the contract's AlertBody.

    Raises:
        TenantNotFound: there is no such live tenant.
        TooManyAlerts: the tenant has `MAX_ALERTS`.
        ValidationFailed: threshold or window do not fit the kind, or a mail is not for a member.
    """
    with transaction.atomic():
        _lock_tenant(tenant_id)
        fields = _check(tenant_id, wanted)
        if Alert.objects.filter(tenant=tenant_id).count() >= MAX_ALERTS:
            raise TooManyAlerts
        alert = Alert.objects.create(tenant_id=tenant_id, **fields)
        _record(EventKind.ALERT_CREATED, alert, actor=actor, after=_trace(alert))
    return read_alert(tenant_id=tenant_id, alert_id=alert.pk)


def replace_alert(*, tenant_id: UUID, alert_id: UUID, wanted: Mapping[str, Any], actor: str) -> Alert:
    """Replace an alert. If it is switched off while it fires, the firing ends without a message.

    Raises:
        TenantNotFound, AlertNotFound: there is no such live tenant, or it has no such alert.
        ValidationFailed: as `create_alert`.
    """
    with transaction.atomic():
        _lock_tenant(tenant_id)
        alert = _lock_alert(tenant_id, alert_id)
        before = _trace(alert)
        moment = now()
        for name, value in _check(tenant_id, wanted).items():
            setattr(alert, name, value)
        alert.version, alert.modified_at, alert.due_at, alert.attempts = uuid4(), moment, moment, 0
        # The number was another one's.
        alert.value, alert.before, alert.source, alert.evaluated_at, alert.took_ms = None, None, "", None, 0
        alert.save()
        if not alert.enabled:
            alert.firings.filter(ended_at=None).update(ended_at=moment)
            queued = alert.deliveries.filter(state=AlertDelivery.State.QUEUED)
            queued.update(state=AlertDelivery.State.SKIPPED, finished_at=moment, error=AlertOff.message)
        _record(EventKind.ALERT_CHANGED, alert, actor=actor, before=before, after=_trace(alert))
    return read_alert(tenant_id=tenant_id, alert_id=alert_id)


def rotate_secret(*, tenant_id: UUID, alert_id: UUID, grace: timedelta, actor: str) -> Alert:
    """Give an alert a new secret for its webhooks. The former one signs too for ``grace``.

    Raises:
        TenantNotFound, AlertNotFound: there is no such live tenant, or it has no such alert.
    """
    with transaction.atomic():
        _lock_tenant(tenant_id)
        alert = _lock_alert(tenant_id, alert_id)
        alert.secret_number += 1
        alert.previous_ends_at = now() + grace
        alert.save(update_fields=["secret_number", "previous_ends_at"])
        ends = format_timestamp(alert.previous_ends_at)
        _record(EventKind.ALERT_CHANGED, alert, actor=actor, after={"formerSecretEndsAt": ends})
    return read_alert(tenant_id=tenant_id, alert_id=alert_id)


def delete_alert(*, tenant_id: UUID, alert_id: UUID, actor: str) -> None:
    """Delete an alert with its history.

    Raises:
        TenantNotFound, AlertNotFound: there is no such live tenant, or it has no such alert.
    """
    with transaction.atomic():
        _lock_tenant(tenant_id)
        alert = _lock_alert(tenant_id, alert_id)
        _record(EventKind.ALERT_DELETED, alert, actor=actor, before=_trace(alert))
        alert.delete()


def send_test(*, tenant_id: UUID, alert_id: UUID, actor: str) -> list[AlertDelivery]:
    """Queue a message to each channel of an alert that says that it is a test.

    Raises:
        TenantNotFound, AlertNotFound: there is no such live tenant, or it has no such alert.
        RateLimited: the tenant has sent too many tests.
    """
    read_alert(tenant_id=tenant_id, alert_id=alert_id)
    count_use(limit=settings.ALERT_TEST_LIMIT, kind="alert-test", key=str(tenant_id))
    with transaction.atomic():
        _lock_tenant(tenant_id)
        alert = _lock_alert(tenant_id, alert_id)
        _record(EventKind.ALERT_TESTED, alert, actor=actor)
        return queue_messages(alert, occasion=AlertDelivery.Occasion.TEST, at=now())


def list_firings(tenant_id: UUID) -> list[AlertFiring]:
    """Return when the alerts of a live tenant fired, newest first; at most `_MAX_LISTED`.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    require_live_tenant(tenant_id)
    return firings_of(tenant_id)


def firings_of(tenant_id: UUID) -> list[AlertFiring]:
    """Return the firings that `list_firings` lists, with their alerts."""
    return list(AlertFiring.objects.filter(alert__tenant=tenant_id).select_related("alert")[:_MAX_LISTED])


def list_deliveries(*, tenant_id: UUID, alert_id: UUID) -> list[AlertDelivery]:
    """Return the messages of an alert, newest first; at most `_MAX_LISTED`.

    Raises:
        TenantNotFound, AlertNotFound: there is no such live tenant, or it has no such alert.
    """
    return list(read_alert(tenant_id=tenant_id, alert_id=alert_id).deliveries.all()[:_MAX_LISTED])


def _check(tenant_id: UUID, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of an alert.

    Raises:
        ValidationFailed: threshold or window do not fit the kind, or a mail is not for a member.
    """
    kind = KINDS[wanted["kind"]]
    threshold = wanted.get("threshold", kind.threshold)
    window = wanted.get("window", kind.window)
    problems = []
    if not 0 < threshold <= kind.max_threshold:
        message = f"Give a number above 0, at most {kind.max_threshold:g} ({kind.unit})."
        problems.append(Detail("/threshold", "out-of-range", message))
    if kind.max_window is None and window is not None:
        problems.append(Detail("/window", "no-window", f"Alerts of the kind '{kind.kind}' have no window."))
    elif kind.max_window is not None and not 1 <= window <= kind.max_window:
        message = f"Give 1 to {kind.max_window} {kind.window_unit}."
        problems.append(Detail("/window", "out-of-range", message))
    members = _members(tenant_id, wanted["channels"])
    problems += [
        Detail(f"/channels/{number}/to", "no-member", f"{channel['to']} is not a member of this tenant.")
        for number, channel in enumerate(wanted["channels"])
        if channel["type"] == "email" and channel["to"] not in members
    ]
    if problems:
        raise ValidationFailed(details=problems)
    return {
        "name": wanted["name"],
        "kind": kind.kind,
        "threshold": threshold,
        "window": window,
        "channels": [dict(channel) for channel in wanted["channels"]],
        "quiet_hours": wanted.get("quietHours"),
        "enabled": wanted["enabled"],
    }


def _members(tenant_id: UUID, channels: list[Mapping[str, str]]) -> set[str]:
    """Return the addresses of the channels that are members'."""
    named = [channel["to"] for channel in channels if channel["type"] == "email"]
    rows = Membership.objects.in_force().filter(tenant=tenant_id, user__email__in=named)
    return set(rows.values_list(F("user__email"), flat=True))


def _lock_tenant(tenant_id: UUID) -> None:
    """Lock a live tenant, so that its alerts are counted right.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    if not Tenant.objects.live().select_for_update(no_key=True).filter(pk=tenant_id).exists():
        raise TenantNotFound


def _lock_alert(tenant_id: UUID, alert_id: UUID) -> Alert:
    alert = Alert.objects.select_for_update(no_key=True).filter(pk=alert_id, tenant=tenant_id).first()
    if alert is None:
        raise AlertNotFound
    return alert


def _trace(alert: Alert) -> dict[str, Any]:
    """Return what an event says of an alert. Paths of URLs are secrets."""
    channels = [describe_channel(channel) for channel in alert.channels]
    return {
        "name": alert.name,
        "kind": alert.kind,
        "threshold": alert.threshold,
        "window": alert.window,
        "channels": [f"{channel.type} {channel.to or channel.url}" for channel in channels],
        "quietHours": alert.quiet_hours,
        "enabled": alert.enabled,
    }


def _record(kind: EventKind, alert: Alert, *, actor: str, **values: Any) -> None:
    record_event(kind, actor=actor, subject=str(alert.pk), tenant_id=alert.tenant_id, **values)
