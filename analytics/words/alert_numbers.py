"""Alerts in words: what a kind's number is, what it is now, and the documents that say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from accounts.tenants.pricing import digits_of
from analytics.models import AlertKind
from analytics.reports.forecast import FORECAST_DAYS, MIN_FORECAST_DAYS
from analytics.watch.alert_kinds import (
    BASE_DAYS,
    KINDS,
    TENANT_KINDS,
    AlertUnit,
    AlertWindowUnit,
    KindOfAlert,
    NoNumber,
)
from analytics.watch.alerts import (
    AlertChannel,
    AlertQuietHours,
    describe_channel,
    former_end,
    signing_secrets,
)
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.formats import ago
from tenantadmin.lib.core.structs import JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now

if TYPE_CHECKING:
    from analytics.models import Alert, AlertFiring


class AlertKindDocument(JsonStruct):
    """A kind of alert: what its number is, and the defaults of an alert of this kind."""

    component = "AlertKindDescription"

    kind: Annotated[str, one_of(TENANT_KINDS)]
    about: Annotated[
        str,
        Meta(description="What the number is. `{value}` is the number with its unit."),
    ]
    unit: Annotated[AlertUnit, Meta(description="The unit of number and threshold.")]
    threshold: Annotated[float, Meta(description="The threshold of an alert that gives none.")]
    max_threshold: float
    window_unit: AlertWindowUnit | None
    window: Annotated[int | None, Meta(description="The window of an alert that gives none.")]
    max_window: int | None
    query: Annotated[str | None, Meta(description="The published query of the number, if it has one.")]
    fires_below: Annotated[
        bool, Meta(description="It fires below the threshold, until the number is above 110 % of it.")
    ]


_ABOUT: Final[Mapping[str, str]] = {
    AlertKind.HIT_RATE_FELL: "The hit rate of the last {window} h of the log is {value} below the hit rate "
    f"of the {BASE_DAYS} days before",
    AlertKind.LOG_LATE: "The newest entry of the log is {value} old",
    AlertKind.ERRORS: "{value} of the log entries of the last {window} h failed",
    AlertKind.STALE_RISK: "{value} of the hits of the last days of the log (days: {window}) were older than "
    "a change of a table that they read",
    AlertKind.LEAK: "Statements whose result depends on the user and was served to several users, in the "
    "last days of the log (days: {window}): {value}",
    AlertKind.SAVINGS_FELL: "The warehouse time that hits saved in the last {window} h of the log is "
    f"{{value}} below the time of the {BASE_DAYS} days before, per hour",
    AlertKind.BUILD_FAILED: "Summaries whose last build failed: {value}",
    AlertKind.BILL: "The bill of the month (UTC) is {value} so far",
    AlertKind.BILL_FORECAST: "The bill of the month (UTC) will be {value}, if its days go on like the "
    f"{FORECAST_DAYS} before",
    AlertKind.SAVINGS_LOW: "The cache will have saved {value} in the month (UTC), if its days go on like the "
    f"{FORECAST_DAYS} before",
}
_WITHOUT_NUMBER: Final[Mapping[str, str]] = {
    NoNumber.NO_PRICE: "no price of the warehouse is set",
    NoNumber.NO_PRICED_DAY: "no day of the month has a price",
    NoNumber.FEW_DAYS: f"the log has fewer than {MIN_FORECAST_DAYS} days before the newest",
}
_ABOUT_SERVICE: Final[Mapping[str, str]] = {
    AlertKind.LOG_LATE: "The last build of any tenant's day was {value} ago",
    AlertKind.BUILD_FAILED: "Builds that fail again and again: {value}",
    AlertKind.QUEUE_AGE: "The build that waits longest waits for {value}",
}


def about(kind: KindOfAlert) -> str:
    """Return what the number of a kind is, with ``{value}`` and ``{window}`` in it."""
    return (_ABOUT_SERVICE if kind.is_service else _ABOUT)[kind.kind]


def list_kinds() -> list[AlertKindDocument]:
    """Return the kinds of a tenant's alerts, in the order of the documentation."""
    return [AlertKindDocument.of(kind, about=about(kind)) for kind in KINDS.values()]


def describe_number(
    kind: KindOfAlert,
    *,
    value: float,
    before: float | None,
    currency: str,
    threshold: float,
    window: int | None,
) -> str:
    """Return a sentence with the number and the threshold of an alert."""
    said = describe_value(kind, value=value, before=before, currency=currency)
    if kind.is_compared and before is not None:
        said = f"The last {window} h of the log have {said}"
    else:
        said = about(kind).replace("{value}", said).replace("{window}", str(window))
    return f"{said} (threshold: {show_number(kind, threshold, currency)})."


def describe_value(kind: KindOfAlert, *, value: float, before: float | None, currency: str = "") -> str:
    """Return the number of an alert in words. If it is a difference or a forecast, say both of its parts.

    ``before`` is the part of the days before: a hit rate in percent, or saved milliseconds per hour. Of a
    forecast it is the month so far.
    """
    if before is None:
        return show_number(kind, value, currency)
    if not kind.is_compared:
        return f"{show_number(kind, value, currency)} ({show_number(kind, before, currency)} so far)"
    if kind.unit == "points":
        # Both are rounded, so their difference may lie outside of 0 to 100.
        rates = (min(max(rate, 0), 100) for rate in (before - value, before))
        recent, earlier = (formats.percent(rate / 100) for rate in rates)
        said = f"a hit rate of {recent}, against {earlier}"
    else:
        recent, earlier = formats.durations(before * (1 - value / 100), before)
        said = f"{recent} of warehouse time saved per hour, against {earlier}"
    change = f"{show_number(kind, abs(value))} {'more' if value < 0 else 'less'}"
    return f"{said} in the {BASE_DAYS} days before: {change}"


def show_number(kind: KindOfAlert, value: float | None, currency: str = "") -> str:
    """Return a number of this kind, or a threshold, with its unit: ``7.5%``."""
    if value is None:
        return formats.NONE
    match kind.unit:
        case "percent":
            return formats.percent(value / 100)
        case "minutes":
            return formats.duration(60_000 * value)
        case "points":
            return f"{value:,g} {'point' if value == 1 else 'points'}"
        case "money":
            return formats.money(f"{value:.{digits_of(currency)}f}", currency).rstrip()
        case unit:
            return formats.count(round(value), unit.removesuffix("s"))


class AlertDocument(JsonStruct):
    """A threshold for a number. The alert fires from there until the number is below 90 % of it.

    One whose kind has `firesBelow` fires below it, until the number is above 110 % of it.
    """

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
        str,
        Meta(
            description="`value` in words, with both of its parts if it is a difference or a forecast. "
            "If it is null, why."
        ),
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


def describe_alert(alert: Alert, *, firing: AlertFiring | None, shows_secrets: bool) -> AlertDocument:
    """Return the contract's Alert. ``firing`` is its firing that has not ended."""
    quiet, ends_at = alert.quiet_hours, former_end(alert)
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
        former_secret_ends_at=ends_at and format_timestamp(ends_at),
    )


def describe_state(alert: Alert, firing: AlertFiring | None) -> str:
    """Return what the number of an alert is, and since when it fires."""
    if alert.value is None:
        if alert.evaluated_at is None:
            return "first look within a minute"
        return _WITHOUT_NUMBER.get(alert.reason, "the log has too little to say it")
    kind = KINDS[alert.kind]
    said = describe_value(kind, value=alert.value, before=alert.before, currency=alert.currency)
    text = f"now {said}"
    if kind.is_compared and alert.before is not None:
        text += f"; it fires from {show_number(kind, alert.threshold)} less"
    return f"{text}; since {ago(firing.started_at, now=now())}" if firing else text


def describe_firing(firing: AlertFiring) -> AlertFiringDocument:
    """Return the contract's AlertFiring. Its alert should be loaded."""
    return AlertFiringDocument.of(
        firing,
        id=firing.pk,
        alert_id=firing.alert_id,
        name=firing.alert.name,
        kind=firing.alert.kind,
        value_text=describe_value(
            KINDS[firing.alert.kind], value=firing.value, before=firing.before, currency=firing.currency
        ),
    )
