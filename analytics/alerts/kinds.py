"""The kinds of alerts: units, defaults and limits of threshold and window, and what a message says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from msgspec import Meta

from analytics.alerts.queries import ALERT_QUERIES, BASE_DAYS
from analytics.models import AlertKind
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.structs import JsonStruct, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping

AlertUnit: TypeAlias = Literal["points", "minutes", "percent", "statements", "builds"]
AlertWindowUnit: TypeAlias = Literal["hours", "days"]

#: The kinds of a tenant's alerts.
TENANT_KINDS: Final = [kind for kind in AlertKind.values if kind != AlertKind.QUEUE_AGE]
_MAX_THRESHOLD: Final[Mapping[AlertUnit, float]] = {
    "points": 100,
    "percent": 100,
    "minutes": 525_600,
    "statements": 1_000_000,
    "builds": 1_000_000,
}


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
    query: Annotated[
        str | None,
        Meta(description="The published query of the number; null if it is not about entries of the log."),
    ]


def _kind(
    kind: AlertKind,
    about: str,
    unit: AlertUnit,
    threshold: float,
    *,
    hours: int | None = None,
    days: int | None = None,
) -> AlertKindDocument:
    query = ALERT_QUERIES.get(kind)
    return AlertKindDocument(
        kind=kind.value,
        about=about,
        unit=unit,
        threshold=float(threshold),
        max_threshold=float(_MAX_THRESHOLD[unit]),
        window_unit="hours" if hours else "days" if days else None,
        window=hours or days,
        max_window=168 if hours else 7 if days else None,
        query=query.name if query else None,
    )


_KINDS: Final = (
    _kind(
        AlertKind.HIT_RATE_FELL,
        "The hit rate of the last {window} h of the log is {value} below the hit rate of the "
        f"{BASE_DAYS} days before",
        "points",
        10,
        hours=24,
    ),
    _kind(AlertKind.LOG_LATE, "The newest entry of the log is {value} old", "minutes", 120),
    _kind(
        AlertKind.ERRORS,
        "{value} of the log entries of the last {window} h failed",
        "percent",
        5,
        hours=1,
    ),
    _kind(
        AlertKind.STALE_RISK,
        "{value} of the hits of the last days of the log (days: {window}) were older than a change of a "
        "table that they read",
        "percent",
        1,
        days=1,
    ),
    _kind(
        AlertKind.LEAK,
        "Statements whose result depends on the user and was served to several users, in the last days of "
        "the log (days: {window}): {value}",
        "statements",
        1,
        days=1,
    ),
    _kind(
        AlertKind.SAVINGS_FELL,
        "The warehouse time that hits saved in the last {window} h of the log is {value} below the time of "
        f"the {BASE_DAYS} days before, per hour",
        "percent",
        30,
        hours=168,
    ),
    _kind(AlertKind.BUILD_FAILED, "Summaries whose last build failed: {value}", "builds", 1),
)
#: In the order of the documentation.
KINDS: Final[Mapping[str, AlertKindDocument]] = {kind.kind: kind for kind in _KINDS}
#: The kinds of the whole service, whose numbers have another meaning.
SERVICE_KINDS: Final[Mapping[str, AlertKindDocument]] = {
    kind.kind: kind
    for kind in (
        _kind(AlertKind.LOG_LATE, "The last build of any tenant's day was {value} ago", "minutes", 60),
        _kind(AlertKind.BUILD_FAILED, "Builds that fail again and again: {value}", "builds", 1),
        _kind(AlertKind.QUEUE_AGE, "The build that waits longest waits for {value}", "minutes", 30),
    )
}


def say_number(
    kind: AlertKindDocument, *, value: float, before: float | None, threshold: float, window: int | None
) -> str:
    """Return a sentence with the number and the threshold of an alert."""
    said = say_value(kind, value=value, before=before)
    if before is None:
        said = kind.about.replace("{value}", said).replace("{window}", str(window))
    else:
        said = f"The last {window} h of the log have {said}"
    return f"{said} (threshold: {show_number(kind, threshold)})."


def say_value(kind: AlertKindDocument, *, value: float, before: float | None) -> str:
    """Return the number of an alert in words. If it is a difference, say both of its parts.

    ``before`` is the part of the days before: a hit rate in percent, or saved milliseconds per hour.
    """
    if before is None:
        return show_number(kind, value)
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


def show_number(kind: AlertKindDocument, value: float | None) -> str:
    """Return a number of this kind, or a threshold, with its unit: ``7.5%``."""
    if value is None:
        return formats.NONE
    match kind.unit:
        case "percent":
            return formats.percent(value / 100)
        case "minutes":
            return formats.duration(60_000 * value)
        case "points":
            return f"{value:,g} points"
        case unit:
            return formats.count(round(value), unit.removesuffix("s"))
