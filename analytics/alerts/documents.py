"""Alerts, their history and their messages, as the API shows them."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit
from uuid import UUID

from django.utils.crypto import salted_hmac
from msgspec import UNSET, Meta, UnsetType

from analytics.alerts.kinds import KINDS, TENANT_KINDS, say_value, show_number
from analytics.models import AlertDelivery
from tenantadmin.lib.core.formats import ago
from tenantadmin.lib.core.structs import Count, Email, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from analytics.models import Alert, AlertFiring


class AlertChannel(JsonStruct):
    """Where messages go: the mail of a member, or a URL that gets a signed webhook or Slack's JSON."""

    type: Literal["email", "webhook", "slack"]
    to: Email | None = None
    url: Annotated[
        str | None,
        Meta(description="Cut after the host for callers without `config:write`: such a URL is a secret."),
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
        value_text=say_state(alert, firing),
        signing_secret=signing_secrets(alert)[0] if shows_secrets else UNSET,
        former_secret_ends_at=former_end and format_timestamp(former_end),
    )


def say_state(alert: Alert, firing: AlertFiring | None) -> str:
    """Return what the number of an alert is, and since when it fires."""
    if alert.value is None:
        return "the log has too little to say it" if alert.evaluated_at else "first look within a minute"
    kind = KINDS[alert.kind]
    text = f"now {say_value(kind, value=alert.value, before=alert.before)}"
    if alert.before is not None:
        text += f"; it fires from {show_number(kind, alert.threshold)} less"
    return f"{text}; since {ago(firing.started_at, now=now())}" if firing else text


def describe_channel(channel: Mapping[str, Any], *, shows_secrets: bool = False) -> AlertChannel:
    """Return a channel. Without ``shows_secrets``, its URL ends after the host."""
    url = channel.get("url")
    if url is not None and not shows_secrets:
        parts = urlsplit(url)
        url = f"{parts.scheme}://{parts.netloc}/…"
    return AlertChannel(type=channel["type"], to=channel.get("to"), url=url)


def describe_firing(firing: AlertFiring) -> AlertFiringDocument:
    """Return the contract's AlertFiring. Its alert should be loaded."""
    return AlertFiringDocument.of(
        firing,
        id=firing.pk,
        alert_id=firing.alert_id,
        name=firing.alert.name,
        kind=firing.alert.kind,
        value_text=say_value(KINDS[firing.alert.kind], value=firing.value, before=firing.before),
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
    return [_make_secret(alert, it) for it in (number, *former)]


def _former_end(alert: Alert) -> datetime | None:
    """Return when the former secret ends, or None if there is none."""
    end = alert.previous_ends_at
    return end if end is not None and end > now() else None


def _make_secret(alert: Alert, number: int) -> str:
    """Return a secret of an alert. It is made of `SECRET_KEY`, the alert's id and the secret's number."""
    value = str(alert.pk) if number == 1 else f"{alert.pk}.{number}"
    key = salted_hmac("analytics.alerts", value, algorithm="sha256").digest()
    return f"whsec_{base64.b64encode(key).decode()}"
