"""Alerts: how they are stored and shown, and the messages that they queue."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import F, Prefetch, QuerySet
from django.utils.crypto import salted_hmac
from msgspec import UNSET, Meta, UnsetType

from accounts.events import record_event
from accounts.limits import count_use
from accounts.models import Membership, Tenant
from accounts.models.events import EventKind
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from analytics.models import Alert, AlertDelivery, AlertFiring
from analytics.watch.alert_kinds import (
    KINDS,
    SERVICE_KINDS,
    TENANT_KINDS,
    describe_number,
    describe_value,
    show_number,
)
from tenantadmin.lib.core.errors import BadRequest, Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.formats import ago
from tenantadmin.lib.core.structs import Count, Email, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now
from tenantadmin.lib.jobs import outbox

if TYPE_CHECKING:
    from collections.abc import Mapping


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


class AlertDocument(JsonStruct):
    """A threshold for a number. The alert fires from there until the number is below 90 % of it."""

    id: UUID
    tenant_id: UUID
    name: str
    kind: Annotated[str, one_of(TENANT_KINDS)]
    threshold: float
    window: Annotated[int | None, Meta(description="In the kind's unit; null if the kind has none.")]
    channels: list[AlertChannel]
    quiet_hours: Annotated[
        AlertQuietHours | None, Meta(description="Messages of this time are sent when it is over.")
    ]
    enabled: bool
    state: Annotated[
        Literal["firing", "quiet", "unknown"],
        Meta(description="`unknown`: not evaluated yet, or not enough data."),
    ]
    since: Annotated[Timestamp | None, Meta(description="Since when it fires.")]
    value: Annotated[float | None, Meta(description="The number at the last evaluation.")]
    value_text: Annotated[
        str, Meta(description="`value` in words, with both of its parts if it is a difference.")
    ]
    evaluated_at: Timestamp | None
    created_at: Timestamp
    modified_at: Timestamp
    signing_secret: Annotated[
        str | UnsetType,
        Meta(description="For receivers of webhooks; only for callers with `config:write`."),
    ] = UNSET
    former_secret_ends_at: Annotated[
        Timestamp | None,
        Meta(description="Until then the secret before the last rotation signs too. Null if it has ended."),
    ]


class AlertFiringDocument(JsonStruct):
    """The time from a crossing of the threshold to the crossing back."""

    component = "AlertFiring"

    id: UUID
    alert_id: UUID
    name: str
    kind: Annotated[str, one_of(TENANT_KINDS)]
    started_at: Timestamp
    ended_at: Annotated[Timestamp | None, Meta(description="Null while the alert fires.")]
    value: Annotated[float, Meta(description="The number that crossed the threshold.")]
    value_text: Annotated[str, Meta(description="`value` in words.")]
    threshold: float
    window: int | None


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


def describe_alert(alert: Alert, *, firing: AlertFiring | None, shows_secrets: bool) -> AlertDocument:
    """Return the contract's Alert. ``firing`` is its firing that has not ended."""
    quiet, former_end = alert.quiet_hours, _former_end(alert)
    return AlertDocument.of(
        alert,
        id=alert.pk,
        tenant_id=alert.tenant_id,
        channels=[describe_channel(channel, shows_secrets=shows_secrets) for channel in alert.channels],
        quiet_hours=quiet and AlertQuietHours(from_=quiet["from"], to=quiet["to"]),
        state="firing" if firing else "unknown" if alert.value is None else "quiet",
        since=firing and format_timestamp(firing.started_at),
        value_text=describe_state(alert, firing),
        signing_secret=signing_secrets(alert)[0] if shows_secrets else UNSET,
        former_secret_ends_at=former_end and format_timestamp(former_end),
    )


def describe_state(alert: Alert, firing: AlertFiring | None) -> str:
    """Return what the number of an alert is, and since when it fires."""
    if alert.value is None:
        return "the log has too little to say it" if alert.evaluated_at else "first look within a minute"
    kind = KINDS[alert.kind]
    text = f"now {describe_value(kind, value=alert.value, before=alert.before)}"
    if alert.before is not None:
        text += f"; it fires from {show_number(kind, alert.threshold)} less"
    return f"{text}; since {ago(firing.started_at, now=now())}" if firing else text


def describe_channel(channel: Mapping[str, Any], *, shows_secrets: bool = False) -> AlertChannel:
    """Return a channel. Without ``shows_secrets``, its URL ends after the host, and its key is hidden."""
    url, key = channel.get("url"), channel.get("key")
    if url is not None and not shows_secrets:
        parts = urlsplit(url)
        url, key = f"{parts.scheme}://{parts.netloc}/…", key and "…"
    return AlertChannel(type=channel["type"], to=channel.get("to"), url=url, key=key)


def describe_firing(firing: AlertFiring) -> AlertFiringDocument:
    """Return the contract's AlertFiring. Its alert should be loaded."""
    return AlertFiringDocument.of(
        firing,
        id=firing.pk,
        alert_id=firing.alert_id,
        name=firing.alert.name,
        kind=firing.alert.kind,
        value_text=describe_value(KINDS[firing.alert.kind], value=firing.value, before=firing.before),
    )


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
    former = [number - 1] if _former_end(alert) else []
    return [_make_secret(alert, each) for each in (number, *former)]


def _former_end(alert: Alert) -> datetime | None:
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


def make_content(alert: Alert, *, firing: AlertFiring | None) -> dict[str, Any]:
    """Return what the messages of a crossing, or of a test, say: the ``data`` of the webhook."""
    tenant = alert.tenant
    kind = (SERVICE_KINDS if tenant is None else KINDS)[alert.kind]
    value = None if firing is None else alert.value
    text = "This is a test. The alert's channel works."
    if value is not None:
        text = describe_number(
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


def _dashboard_address(alert: Alert) -> str:
    if alert.tenant_id is None:
        return f"{settings.PUBLIC_BASE_URL}/admin/"
    return f"{settings.DASHBOARD_URL}#/t/{alert.tenant_id}/alerts"


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
