"""Compare the numbers of alerts with their thresholds, after each build of a day and every ten minutes.

One transaction writes a crossing and its messages. A run may be killed at any point and repeated: a second
one finds the crossing, and writes nothing.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from time import monotonic
from typing import Final
from uuid import UUID, uuid4

import duckdb
from django.conf import settings
from django.db import transaction
from django.db.models import Max

from accounts.tenants.pricing import Pricing
from analytics.models import Alert, AlertDelivery, AlertFiring, AlertKind, Build, TenantHealth
from analytics.queues import ALERTS
from analytics.reports.forecast import find_forecast_source, forecast_month
from analytics.reports.savings import find_source, read_savings
from analytics.reports.sql import LOOK_BACK_DAYS
from analytics.watch.alert_kinds import BASE_DAYS, KINDS, SERVICE_KINDS, NoNumber, alert_sql
from analytics.watch.reading import LogDay, open_log
from analytics.words.alerts import make_messages
from logs.models import PendingBuild
from logs.partitions import partitions_with_file
from logs.pending import pending_state
from rules.ruleset import read_tables
from rules.tables.warehouse import ANY_TABLES, WarehouseTables
from tenantadmin.lib.core.errors import ApiError
from tenantadmin.lib.core.timestamps import days_before, epoch_ms, now
from tenantadmin.lib.database.connections import Busy, build_lock
from tenantadmin.lib.jobs import outbox
from tenantadmin.lib.objectstore import ObjectStore, StoreError

logger = logging.getLogger(__name__)

#: The time between two evaluations, if no day is built meanwhile.
INTERVAL: Final = ALERTS.lease
#: The time until alerts are due again that another worker evaluates.
_BUSY: Final = timedelta(seconds=30)
#: A day that waits longer for its build is incomplete.
_INCOMPLETE: Final = timedelta(minutes=10)
#: After an evaluation that read the log, the alert rests for this many times as long.
_REST: Final = 20
#: The kinds whose query compares names of tables.
_WITH_TABLES: Final = (AlertKind.LEAK, AlertKind.STALE_RISK)


@dataclass(frozen=True, slots=True)
class Reading:
    """The number of an alert; None without enough data.

    Attributes:
        source: a hash of what it was read from.
        before: `Alert.before`.
        currency: of a number in money.
        reason: a `NoNumber`; empty if there is a number, or for want of entries.
    """

    value: float | None
    source: str = ""
    took_ms: int = 0
    before: float | None = None
    currency: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Span:
    """The days that an alert reads, and the first of its window."""

    first: date
    window_first: date
    last: date


def evaluate_tenant(store: ObjectStore, *, tenant: UUID) -> None:
    """Evaluate the alerts of a tenant. An alert that cannot be read is due again later.

    Raises:
        Busy: another worker does. They are due again soon.
    """
    try:
        with build_lock(tenant=tenant, period="alerts", wait=False):
            days = _read_days(tenant)
            for alert in ALERTS.rows.filter(tenant=tenant).order_by("pk"):
                _evaluate(store, alert, tenant=tenant, days=days)
    except Busy:
        Alert.objects.filter(tenant=tenant, enabled=True).make_due(now() + _BUSY)
        raise


def _evaluate(store: ObjectStore, alert: Alert, *, tenant: UUID, days: Sequence[LogDay]) -> None:
    try:
        reading = _read(store, alert, tenant=tenant, days=days)
    except (ApiError, StoreError, duckdb.Error) as error:
        # Perhaps a build has replaced a file.
        logger.warning(
            "The alert %s of tenant %s could not be evaluated, attempt %d: %s",
            alert.pk,
            tenant,
            alert.attempts,
            error,
        )
        return
    if reading is not None:
        record_reading(alert, reading)
    # A build has perhaps made it due again.
    ALERTS.postpone(alert, until=now() + INTERVAL)


def record_reading(alert: Alert, reading: Reading) -> None:
    """Store the number of an alert. If it crosses the threshold, write the crossing and its messages.

    Do nothing if the alert was changed or switched off since it was read.
    """
    with transaction.atomic():
        rows = Alert.objects.filter(pk=alert.pk, version=alert.version, enabled=True)
        current = rows.select_for_update(no_key=True, of=("self",)).select_related("tenant").first()
        if current is None:
            return
        moment = now()
        current.value, current.before = reading.value, reading.before
        current.evaluated_at, current.source, current.took_ms = moment, reading.source, reading.took_ms
        current.currency, current.reason = reading.currency, reading.reason
        current.save(
            update_fields=["value", "before", "evaluated_at", "source", "took_ms", "currency", "reason"]
        )
        if reading.value is None:
            return
        firing = current.firings.filter(ended_at=None).first()
        kind = (SERVICE_KINDS if current.tenant_id is None else KINDS)[current.kind]
        fires = kind.fires(reading.value, threshold=current.threshold, already=firing is not None)
        if firing is None and fires:
            occasion = AlertDelivery.Occasion.STARTED
            firing = AlertFiring.objects.create(
                alert=current,
                started_at=moment,
                value=reading.value,
                before=reading.before,
                currency=reading.currency,
                threshold=current.threshold,
                window=current.window,
            )
        elif firing is not None and not fires:
            occasion = AlertDelivery.Occasion.ENDED
            firing.ended_at = moment
            firing.save(update_fields=["ended_at"])
        else:
            return
        outbox.put(make_messages(current, occasion=occasion, at=moment, firing=firing))
        logger.info("The alert %s has %s", alert.pk, occasion)


def evaluate_service() -> None:
    """Evaluate the alerts of the whole service, which the settings define."""
    if not settings.SERVICE_ALERT_CHANNELS and not Alert.objects.filter(tenant=None, enabled=True).exists():
        return
    pending = pending_state()
    built_at = TenantHealth.objects.aggregate(at=Max("updated_at"))["at"]
    values: dict[str, tuple[float, float | None]] = {
        AlertKind.LOG_LATE: (
            settings.SERVICE_ALERT_LOG_LATE_MINUTES,
            built_at and (now() - built_at).total_seconds() // 60,
        ),
        AlertKind.BUILD_FAILED: (settings.SERVICE_ALERT_FAILED_BUILDS, pending.failing),
        AlertKind.QUEUE_AGE: (settings.SERVICE_ALERT_QUEUE_MINUTES, pending.age_seconds // 60),
    }
    for kind, (threshold, value) in values.items():
        alert = _define_service_alert(kind, threshold)
        if alert is not None:
            record_reading(alert, Reading(value))


def _define_service_alert(kind: str, threshold: float) -> Alert | None:
    """Return the row of a service alert as the settings define it; None if they define none."""
    channels = [
        {"type": "email", "to": to} if "://" not in to else {"type": "slack", "url": to}
        for to in settings.SERVICE_ALERT_CHANNELS
    ]
    wanted = {
        "name": f"service: {kind}",
        "threshold": float(threshold),
        "channels": channels,
        "enabled": bool(channels and threshold),
    }
    alert = Alert.objects.filter(tenant=None, kind=kind).first()
    if alert is None or any(getattr(alert, name) != value for name, value in wanted.items()):
        if alert is None and not wanted["enabled"]:
            return None
        alert, _ = Alert.objects.update_or_create(
            tenant=None, kind=kind, defaults={**wanted, "version": uuid4(), "modified_at": now()}
        )
        if not alert.enabled:
            alert.firings.filter(ended_at=None).update(ended_at=now())
    return alert if alert.enabled else None


def _read_days(tenant: UUID) -> list[LogDay]:
    """Return the days with entries that alerts may read, oldest first."""
    tomorrow = now().date() + timedelta(days=1)
    rows = partitions_with_file(tenant=tenant).filter(day__lte=tomorrow)
    last = rows.aggregate(last=Max("day"))["last"]
    if last is None:
        return []
    first = days_before(last, BASE_DAYS + LOOK_BACK_DAYS + 1)
    return [LogDay(row.day, row.build, row.files) for row in rows.filter(day__gte=first).defer("hours")]


def _read(store: ObjectStore, alert: Alert, *, tenant: UUID, days: Sequence[LogDay]) -> Reading | None:
    """Return the number of an alert; None if there is nothing new, or the log is incomplete.

    Raises:
        ApiError, StoreError, duckdb.Error: the log cannot be read.
    """
    if alert.kind == AlertKind.BUILD_FAILED:
        return Reading(Build.objects.filter(tenant_id=tenant).unrepaired().count())
    if not days:
        return Reading(None)
    if KINDS[alert.kind].unit == "money":
        return _read_money(store, alert, tenant=tenant, last=days[-1].day)
    span = _span(alert, last=days[-1].day)
    is_about_now = alert.kind == AlertKind.LOG_LATE
    tables = read_tables(tenant) if alert.kind in _WITH_TABLES else ANY_TABLES
    # The query of stale hits reads the changes of the days before.
    used = [day for day in days if days_before(span.first, LOOK_BACK_DAYS) <= day.day]
    source = _hash(alert, used, tables)
    if not is_about_now and not _is_to_read(alert, source, tenant=tenant, window_first=span.window_first):
        return None
    statement = alert_sql(
        alert.kind,
        first=span.first,
        last=span.last,
        hours=alert.window or 0,
        now_ms=epoch_ms(now()),
        warehouse=tables,
    )
    began_at = monotonic()
    with open_log(store, used) as log:
        rows = log.rows(statement)
    row = {"value": None, **(rows[0] if rows else {})}
    value, before = (None if row.get(name) is None else float(row[name]) for name in ("value", "before"))
    return Reading(value, source, round((monotonic() - began_at) * 1000), before)


def _read_money(store: ObjectStore, alert: Alert, *, tenant: UUID, last: date) -> Reading | None:
    """Return an amount of the month of the newest day of the log, as `_read`.

    Raises:
        ApiError, StoreError, duckdb.Error: what is kept of the days cannot be read.
    """
    is_forecast = alert.kind != AlertKind.BILL
    if is_forecast:
        found = find_forecast_source(tenant=tenant, last=last)
    else:
        found = find_source(tenant=tenant, first=last.replace(day=1), last=last, step="day")
    if not found.prices:
        return Reading(None, reason=NoNumber.NO_PRICE)
    source = hashlib.sha256(f"{alert.kind} {found.etag}".encode()).hexdigest()
    # Days of an earlier release are built soon.
    if found.kept is None or not _is_to_read(alert, source, tenant=tenant, window_first=found.first):
        return None
    began_at = monotonic()
    so_far, amount, reason = None, None, NoNumber.NO_PRICED_DAY
    if not is_forecast:
        _, body = read_savings(store, found, reader=None)
        amount = json.loads(body)["total"]["withCache"]["money"]
    elif (forecast := forecast_month(store, found)) is None:
        reason = NoNumber.FEW_DAYS
    else:
        so_far, amount = (
            (month.saved if alert.kind == AlertKind.SAVINGS_LOW else month.with_cache).money
            for month in (forecast.so_far, forecast.whole)
        )
    return Reading(
        None if amount is None else float(amount),
        source,
        round((monotonic() - began_at) * 1000),
        before=None if so_far is None else float(so_far),
        currency=Pricing.of(found.prices).currency or "",
        reason=reason if amount is None else "",
    )


def _is_to_read(alert: Alert, source: str, *, tenant: UUID, window_first: date) -> bool:
    """Return True if there is something new and complete to read, and the alert has rested enough."""
    if alert.source == source or _is_incomplete(tenant, window_first):
        return False
    rest_until = alert.evaluated_at and alert.evaluated_at + _REST * timedelta(milliseconds=alert.took_ms)
    if rest_until is None or rest_until <= now():
        return True
    Alert.objects.filter(pk=alert.pk).update(due_at=min(rest_until, now() + INTERVAL))
    return False


def _span(alert: Alert, *, last: date) -> _Span:
    window = alert.window or 1
    if KINDS[alert.kind].window_unit == "days":
        first = days_before(last, window - 1)
        return _Span(first, first, last)
    window_first = days_before(last, -(-window // 24))
    first = days_before(window_first, BASE_DAYS) if KINDS[alert.kind].is_compared else window_first
    return _Span(first, window_first, last)


def _is_incomplete(tenant: UUID, window_first: date) -> bool:
    """Return True if a day of the window has been waiting for its build."""
    waiting = PendingBuild.objects.filter(tenant_id=tenant, marked_at__lt=now() - _INCOMPLETE)
    return waiting.filter(day__gte=window_first).exists()


def _hash(alert: Alert, days: Sequence[LogDay], tables: WarehouseTables) -> str:
    text = f"{alert.kind} {alert.window} {tables}\n" + "".join(f"{day.day} {day.build}\n" for day in days)
    return hashlib.sha256(text.encode()).hexdigest()
