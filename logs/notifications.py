"""New raw log objects: notifications of the Gateway or of S3, and a sweep in case one was lost.

They only mark days as stale. A false notification costs one listing of the day. The sweep makes up for
lost ones.
"""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, timedelta
from math import ceil
from time import monotonic
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_plus
from uuid import UUID

import boto3
from botocore.config import Config
from django.conf import settings
from django.db import transaction

from accounts.models import TenantConfig
from logs.layout import find_tenants, is_canonical_uuid, parse_raw_key
from logs.models import EPOCH, LogSweep, PendingBuild
from logs.pending import mark_days
from tenantadmin.lib.core.errors import Detail, RateLimited, ValidationFailed
from tenantadmin.lib.core.timestamps import now
from tenantadmin.lib.objectstore import default_store
from tenantadmin.lib.objectstore.s3 import S3Store

if TYPE_CHECKING:
    from tenantadmin.lib.objectstore import ObjectStore

_BATCH: Final = 5_000

#: At most, between two machines.
_CLOCKS_DIFFER: Final = timedelta(minutes=2)


def add_tenants(tenants: Iterable[UUID | None]) -> None:
    """Add tenants to the sweep. Tenants that are already in it keep their turn."""
    rows = [LogSweep(tenant_id=tenant) for tenant in tenants]
    LogSweep.objects.bulk_create(rows, batch_size=_BATCH, ignore_conflicts=True)


def take_next(store: ObjectStore, *, interval_seconds: float) -> list[UUID]:
    """Return the tenants whose logs must be listed now, the longest unlisted first.

    Each run takes a share of all tenants, so that the work is spread over `LOG_SWEEP_SECONDS`. The list of
    tenants has a turn too: then new tenants of the store join, and are returned if the share allows it.

    Args:
        interval_seconds: the time from one run to the next.
    """
    if not LogSweep.objects.filter(tenant_id=None).exists():
        add_tenants([None])
    taken = _take(interval_seconds)
    if None in taken:
        known = set(LogSweep.objects.values_list("tenant_id", flat=True))
        add_tenants(tenant for tenant in find_tenants(store) if tenant not in known)
        taken += _take(interval_seconds)
    return [tenant for tenant in taken if tenant is not None]


def sweep_age() -> float | None:
    """Return the seconds since the tenant was listed that waits longest, or None before the first sweep."""
    listed = LogSweep.objects.filter(tenant_id__isnull=False, listed_at__gt=EPOCH)
    first = listed.values_list("listed_at", flat=True).first()
    return None if first is None else max(0.0, (now() - first).total_seconds())


def _take(interval_seconds: float) -> list[UUID | None]:
    moment = now()
    # A tenth more, so that the sweep does not fall behind.
    limit = ceil(1.1 * LogSweep.objects.count() * interval_seconds / settings.LOG_SWEEP_SECONDS)
    long_ago = moment - timedelta(seconds=settings.LOG_SWEEP_SECONDS)
    # A time in the future is of a clock that has been set back since.
    LogSweep.objects.filter(listed_at__gt=moment + _CLOCKS_DIFFER).update(listed_at=long_ago)
    due = LogSweep.objects.filter(listed_at__lte=long_ago)
    with transaction.atomic():
        rows = list(due.select_for_update(skip_locked=True)[: max(limit, 1)])
        LogSweep.objects.filter(pk__in=[row.pk for row in rows]).update(listed_at=moment)
    return [row.tenant_id for row in rows]


logger = logging.getLogger(__name__)

_HOUR_PREFIX: Final = re.compile(r"logs/([0-9]{4})/([0-9]{2})/([0-9]{2})/([01][0-9]|2[0-3])")

#: The maximum number of messages that SQS returns at once.
_MESSAGES: Final = 10

#: Of a tenant whose configuration names none.
_RETENTION_DAYS: Final = 400


def day_of_prefix(prefix: str) -> date:
    """Return the day of ``logs/YYYY/MM/DD/HH``.

    Raises:
        ValueError: the text has another form, or there is no such day.
    """
    match = _HOUR_PREFIX.fullmatch(prefix)
    if match is None:
        raise ValueError(prefix)
    return date(*map(int, match.groups()[:3]))


def notify_of_days(*, tenant: UUID, days: Sequence[date]) -> list[date]:
    """Mark the days that a Gateway names as stale. Return them in order, each once.

    Raises:
        ValidationFailed: a day is after tomorrow, or before the days that the tenant's Gateway keeps.
        RateLimited: too many days of the tenant wait to be built.
    """
    ((first, last),) = _bounds_of([tenant]).values()
    details = [
        Detail(f"/prefixes/{index}", "out-of-range", f"Days from {first} to {last} are built, not {day}.")
        for index, day in enumerate(days)
        if not first <= day <= last
    ]
    if details:
        raise ValidationFailed(details=details)
    named = sorted(set(days))
    others = PendingBuild.objects.filter(tenant_id=tenant, day__isnull=False).exclude(day__in=named)
    if others.count() + len(named) > settings.BUILD_QUEUE:
        raise RateLimited("Too many days of the tenant wait to be built already.", retry_after=60)
    notify(tenant=tenant, days=named)
    return named


def _bounds_of(tenants: Collection[UUID]) -> dict[UUID, tuple[date, date]]:
    """Return the first and the last day of which each tenant's Gateway may still write logs."""
    rows = TenantConfig.objects.filter(pk__in=tenants).values_list("pk", "document__logging__retentionDays")
    kept = dict.fromkeys(tenants, _RETENTION_DAYS) | {pk: days for pk, days in rows if days is not None}
    # Its clock and ours may differ by a day.
    today, day = now().date(), timedelta(days=1)
    return {tenant: (today - (days + 1) * day, today + day) for tenant, days in kept.items()}


def notify(*, tenant: UUID, days: Iterable[date]) -> None:
    """Mark ``days`` as stale because they have new objects. Contract: Raw logs."""
    add_tenants([tenant])
    mark_days(tenant=tenant, days=days)


def mark_objects(keys: Iterable[str]) -> int:
    """Mark the days of raw log objects as stale. Return the number of days.

    Other keys, and days that no Gateway writes any more or yet, are skipped: the sweep finds such a day.
    """
    days: dict[UUID, set[date]] = defaultdict(set)
    for key in keys:
        raw = parse_raw_key(key)
        if raw is not None and is_canonical_uuid(raw.tenant):
            days[UUID(raw.tenant)].add(raw.day)
    for tenant, (first, last) in sorted(_bounds_of(days).items()):
        if outside := {day for day in days[tenant] if not first <= day <= last}:
            days[tenant] -= outside
            logger.info("%d days of the tenant %s wait for the sweep", len(outside), tenant)
        if days[tenant]:
            notify(tenant=tenant, days=days[tenant])
    return sum(map(len, days.values()))


def read_event_message(body: str, *, bucket: str, location: str) -> list[str]:
    """Return the keys of the objects that a message announces, relative to the store.

    Args:
        body: an S3 event notification, alone or in an SNS message.
        bucket, location: the object store's. Objects elsewhere are skipped.

    Raises:
        ValueError: the message is not a notification of S3.
    """
    try:
        return list(_keys_of(json.loads(body), bucket=bucket, base=f"{location}/" if location else ""))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"not a notification of S3: {error!r}") from error


def _keys_of(event: Any, *, bucket: str, base: str) -> Iterator[str]:
    if event.get("Type") == "Notification":  # SNS
        event = json.loads(event["Message"])
    if event.get("Event") == "s3:TestEvent":  # S3 sends it when the notifications are set up
        return
    for record in event["Records"]:
        key = unquote_plus(record["s3"]["object"]["key"])
        if record["s3"]["bucket"]["name"] == bucket and key.startswith(base):
            yield key.removeprefix(base)


def receive_events(queue_url: str, *, seconds: float) -> int:
    """Read notifications of S3 from an SQS queue until it is empty or ``seconds`` have passed.

    A message is deleted after its days are marked. One that is not a notification of S3 stays in the queue:
    a redrive policy moves it to a dead-letter queue. Returns the number of messages that were handled.
    """
    store = default_store()
    if not isinstance(store, S3Store):
        raise TypeError("OBJECT_EVENTS_QUEUE_URL needs an object store on S3: change OBJECT_STORE_URL.")
    client = boto3.client("sqs", config=Config(connect_timeout=5, read_timeout=10))
    deadline = monotonic() + seconds
    handled = 0
    while monotonic() < deadline:
        answer = client.receive_message(QueueUrl=queue_url, MaxNumberOfMessages=_MESSAGES)
        if not (messages := answer.get("Messages", [])):
            break
        keys: list[str] = []
        done: list[Any] = []
        for message in messages:
            try:
                keys += read_event_message(message["Body"], bucket=store.bucket_name, location=store.location)
            except ValueError as error:
                logger.warning("Message %s of %s is %s", message["MessageId"], queue_url, error)
            else:
                done.append({"Id": str(len(done)), "ReceiptHandle": message["ReceiptHandle"]})
        mark_objects(keys)
        if done:
            client.delete_message_batch(QueueUrl=queue_url, Entries=done)
        handled += len(done)
    return handled
