"""Alerts: how they are stored and changed."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Annotated, Any, ClassVar, Final
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from django.db import transaction
from django.db.models import F, Prefetch, QuerySet
from django.utils.crypto import salted_hmac
from msgspec import Meta

from accounts.events import record_event
from accounts.models import Membership, Tenant
from accounts.models.events import EventKind
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from analytics.models import Alert, AlertDelivery, AlertFiring
from analytics.watch.alert_kinds import KINDS
from tenantadmin.lib.core.errors import BadRequest, Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.rendering import require_etag, strong_etag
from tenantadmin.lib.core.structs import Count, Email, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now

#: The types of channels. docs/alerts.md says what each gets.
CHANNEL_TYPES: Final = ("email", "webhook", "slack", "teams", "pagerduty")
#: The address of PagerDuty, for channels without a `url`. PagerDuty has other addresses in other regions.
PAGERDUTY_URL: Final = "https://events.pagerduty.com/v2/enqueue"


class AlertChannel(JsonStruct):
    """Where messages go: the mail of a member, or a URL that gets a signed webhook or another's JSON."""

    type: Annotated[str, one_of(CHANNEL_TYPES)]
    to: Email | None = None
    url: Annotated[
        str | None,
        Meta(description="Cut after the host for callers without `config:write`: such a URL is a secret."),
    ] = None
    key: Annotated[
        str | None,
        Meta(description="The routing key of `pagerduty`; `…` for callers without `config:write`."),
    ] = None


class AlertQuietHours(JsonStruct):
    from_: Annotated[str, Meta(description="`HH:MM` in UTC.")]
    to: Annotated[str, Meta(description="`HH:MM` in UTC; earlier than `from` if a midnight is between.")]


class AlertDeliveryDocument(JsonStruct):
    """A message to one channel."""

    component = "AlertDelivery"

    id: Annotated[UUID, Meta(description="The `webhook-id`, the same in every attempt.")]
    occasion: Annotated[str, one_of(AlertDelivery.Occasion.values)]
    channel: AlertChannel
    state: Annotated[str, one_of(AlertDelivery.State.values)]
    attempts: Count
    created_at: Timestamp
    due_at: Annotated[Timestamp | None, Meta(description="The next attempt, while it is queued.")]
    finished_at: Timestamp | None
    error: Annotated[str, Meta(description="Why the last attempt failed; empty if it did not.")]


def describe_channel(channel: Mapping[str, Any], *, shows_secrets: bool = False) -> AlertChannel:
    """Return a channel. Without ``shows_secrets``, its URL ends after the host, and its key is hidden."""
    url, key = channel.get("url"), channel.get("key")
    if url is not None and not shows_secrets:
        parts = urlsplit(url)
        url, key = f"{parts.scheme}://{parts.netloc}/…", key and "…"
    return AlertChannel(type=channel["type"], to=channel.get("to"), url=url, key=key)


def describe_delivery(delivery: AlertDelivery) -> AlertDeliveryDocument:
    """Return the contract's AlertDelivery. URLs are cut after the host."""
    is_queued = delivery.state == AlertDelivery.State.QUEUED
    return AlertDeliveryDocument.of(
        delivery,
        id=delivery.pk,
        channel=describe_channel(delivery.channel),
        due_at=format_timestamp(delivery.due_at) if is_queued else None,
    )


def signing_secrets(alert: Alert) -> list[str]:
    """Return the secrets that sign an alert's webhooks, the newest first."""
    number = alert.secret_number
    former = [number - 1] if former_end(alert) else []
    return [_make_secret(alert, each) for each in (number, *former)]


def former_end(alert: Alert) -> datetime | None:
    """Return when the former secret ends, or None if there is none."""
    end = alert.previous_ends_at
    return end if end is not None and end > now() else None


def _make_secret(alert: Alert, number: int) -> str:
    """Return a secret of an alert. It is made of `SECRET_KEY`, the alert's id and the secret's number."""
    value = str(alert.pk) if number == 1 else f"{alert.pk}.{number}"
    key = salted_hmac("analytics.alerts", value, algorithm="sha256").digest()
    return f"whsec_{base64.b64encode(key).decode()}"


#: How long messages and their alerts' firings are kept.
_RETENTION: Final = timedelta(days=90)


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


def draft_alert(*, tenant_id: UUID, wanted: Mapping[str, Any], alert_id: UUID | None = None) -> Alert:
    """Return an alert as `create_alert` makes it, which is not stored; with ``alert_id`` as `replace_alert`.

    Raises:
        TenantNotFound, ValidationFailed: as `create_alert`.
        AlertNotFound: the tenant has no alert ``alert_id``.
    """
    tenant = Tenant.objects.live().filter(pk=tenant_id).first()
    if tenant is None:
        raise TenantNotFound
    own = _check(tenant_id, wanted)
    if alert_id is None:
        return Alert(tenant=tenant, **own)
    alert = read_alert(tenant_id=tenant_id, alert_id=alert_id)
    for name, value in own.items():
        setattr(alert, name, value)
    return alert


def alert_etag(alert: Alert) -> str:
    """Return the entity tag of what an alert watches and whom it tells, whether it fires or not."""
    return strong_etag("alert", alert.pk, alert.version)


def replace_alert(
    *,
    tenant_id: UUID,
    alert_id: UUID,
    wanted: Mapping[str, Any],
    actor: str,
    expected_etag: str | None = None,
) -> Alert:
    """Replace an alert. If it is switched off while it fires, the firing ends without a message.

    ``expected_etag`` is a value of ``If-Match``, or None.

    Raises:
        TenantNotFound, AlertNotFound: there is no such live tenant, or it has no such alert.
        ValidationFailed: as `create_alert`.
        Conflict: the caller's copy is stale.
    """
    with transaction.atomic():
        _lock_tenant(tenant_id)
        alert = _lock_alert(tenant_id, alert_id)
        require_etag(alert_etag(alert), expected=expected_etag)
        before = _trace(alert)
        moment = now()
        for name, value in _check(tenant_id, wanted).items():
            setattr(alert, name, value)
        alert.version, alert.modified_at, alert.due_at, alert.attempts = uuid4(), moment, moment, 0
        # The number was another one's.
        alert.value, alert.before, alert.source, alert.evaluated_at, alert.took_ms = None, None, "", None, 0
        alert.currency = alert.reason = ""
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


def delete_alert(*, tenant_id: UUID, alert_id: UUID, actor: str, expected_etag: str | None = None) -> None:
    """Delete an alert with its history. ``expected_etag`` is a value of ``If-Match``, or None.

    Raises:
        TenantNotFound, AlertNotFound: there is no such live tenant, or it has no such alert.
        Conflict: the caller's copy is stale.
    """
    with transaction.atomic():
        _lock_tenant(tenant_id)
        alert = _lock_alert(tenant_id, alert_id)
        require_etag(alert_etag(alert), expected=expected_etag)
        _record(EventKind.ALERT_DELETED, alert, actor=actor, before=_trace(alert))
        alert.delete()


def note_test(*, tenant_id: UUID, alert_id: UUID, actor: str) -> Alert:
    """Return an alert, locked, and record that a test of it is sent. Call it in a transaction.

    Raises:
        TenantNotFound, AlertNotFound: there is no such live tenant, or it has no such alert.
    """
    _lock_tenant(tenant_id)
    alert = _lock_alert(tenant_id, alert_id)
    _record(EventKind.ALERT_TESTED, alert, actor=actor)
    return alert


def note_channel_test(alert: Alert, *, actor: str) -> None:
    """Record that a test of the channels of an alert that is not stored is sent."""
    record_event(
        EventKind.ALERT_TESTED,
        actor=actor,
        subject=str(alert.tenant_id),
        tenant_id=alert.tenant_id,
        after=_trace(alert),
    )


def list_firings(tenant_id: UUID) -> list[AlertFiring]:
    """Return when the alerts of a live tenant fired, newest first; at most `_MAX_LISTED`.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    require_live_tenant(tenant_id)
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
