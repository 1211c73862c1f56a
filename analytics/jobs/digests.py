"""Make the digests of a tenant's days and weeks, and make them again when a build of their days changes.

A run may be killed at any point and repeated: one transaction stores a digest and queues its mails.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import duckdb
from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.urls import reverse
from msgspec import Meta
from redis import RedisError

from accounts.models import Revision, Tenant
from accounts.models.history import RevisionAction, RevisionKind
from accounts.tenants.config import read_prices
from analytics.advice.recommend import find_outdated
from analytics.models import Digest, ModelExchange, Recommendation, TenantHealth
from analytics.queues import DIGESTS
from analytics.watch.facts import (
    LOOK_BACK_DAYS,
    Changes,
    DigestPeriod,
    HandMarker,
    OpenRecommendation,
    RulesWrite,
)
from analytics.watch.preferences import queue_mails
from analytics.watch.reading import LogDay, open_log
from analytics.watch.sections import DIGEST_VERSION
from analytics.watch.verdict import note_findings
from analytics.words.sections import make_document
from logs.partitions import partitions_with_file
from rules.diff import diff_rules
from rules.models import Marker
from rules.ruleset import read_tables
from tenantadmin.lib.core.rendering import dump_json, make_storable, strong_etag
from tenantadmin.lib.core.structs import JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, days_before, end_of_day, epoch_ms, now
from tenantadmin.lib.database.connections import build_lock
from tenantadmin.lib.objectstore import ObjectStore, StoreError

if TYPE_CHECKING:
    from django.db.models import QuerySet


logger = logging.getLogger(__name__)

#: The service makes the digests of this many days. The command makes older ones, which are kept current too.
RECENT_DAYS: Final = 35
#: A digest is made this long after its period ended, because the last logs come late.
DELAY: Final = timedelta(hours=1)
#: A digest that is made later than this after its period ended is not mailed.
MAIL_DAYS: Final = timedelta(days=3)
#: No further digest is begun after this time. The others follow in the next turn.
_SECONDS: Final = 240.0
#: How a write of the rules concerns a rule, in the summary of its revision.
_VERBS: Final = ("added", "removed", "changed")


def make_due_digests(store: ObjectStore, *, tenant: UUID) -> None:
    """Make the digests of a tenant that are due, the newest first, and say when to look again.

    A tenant is looked at when one of its days was built, when a day or week with entries ended, and once a
    day, because a new release may make other digests.

    Raises:
        Busy: another worker makes one.
        Exception: some could not be made. The others were, or follow when the tenant is looked at again.
    """
    # Read first, so that a build from now on has the tenant looked at again.
    row = TenantHealth.objects.get(pk=tenant)
    until = monotonic() + _SECONDS
    failure: Exception | None = None
    failed, is_late = _read_failed(tenant), False
    # What failed before is last, so that it does not take the time of the others.
    for name in sorted(find_due_digests(tenant), key=failed.__contains__):
        if is_late := monotonic() > until:
            break
        try:
            make_digest(store, tenant=tenant, period=DigestPeriod.named(name))
        except (StoreError, duckdb.Error) as error:
            logger.warning("The digest %s of tenant %s could not be made: %s", name, tenant, error)
            failure = failure or error
            failed |= {name}
            _note_failed(tenant, failed)
    if failure is not None:
        # The row is not postponed, so it rests longer each time, and is counted as failing.
        raise failure
    # A build does not make a row due that failed before, so a day may have been built during this turn.
    has_more = is_late or row.attempts > 1
    DIGESTS.postpone(row, until=now() if has_more else _find_next_turn(_read_days(tenant)))


#: Failed digests are remembered for so long after the last failure.
_REMEMBER: Final = int(timedelta(days=2).total_seconds())


def _read_failed(tenant: UUID) -> frozenset[str]:
    """Return the periods whose digest failed lately. Without the cache, none are known."""
    with suppress(RedisError):
        return frozenset(cache.get(f"failed-digests:{tenant}") or ())
    return frozenset()


def _note_failed(tenant: UUID, names: frozenset[str]) -> None:
    with suppress(RedisError):
        cache.set(f"failed-digests:{tenant}", sorted(names), _REMEMBER)


def find_due_digests(tenant: UUID) -> list[str]:
    """Return the periods whose digest is missing, stale or without entries, the newest first."""
    if Tenant.objects.assessments().filter(pk=tenant).exists():
        return []
    days = _read_days(tenant)
    stored = dict(Digest.objects.filter(tenant_id=tenant).values_list("period", "source"))
    today = now().date()
    recent = [day.day for day in days if today - timedelta(days=RECENT_DAYS) <= day.day < today]
    periods = _periods_of(recent) | {DigestPeriod.named(name) for name in stored}
    due = [
        period
        for period in periods
        if _has_ended(period) and _source(period, days) != stored.get(period.name, "")
    ]
    return [
        period.name for period in sorted(due, key=lambda period: (period.last, period.first), reverse=True)
    ]


def _find_next_turn(days: Iterable[LogDay]) -> datetime:
    """Return the time when the next day or week with entries has ended, at most a day from now."""
    tomorrow = now() + timedelta(days=1)
    last_week = now().date() - timedelta(days=7)
    periods = _periods_of(day.day for day in days if day.day >= last_week)
    ends = [end_of_day(period.last) for period in periods if not _has_ended(period)]
    return min([tomorrow - DELAY, *ends]) + DELAY


def _periods_of(days: Iterable[date]) -> set[DigestPeriod]:
    return {period for day in days for period in (DigestPeriod.of_day(day), DigestPeriod.with_day(day))}


def make_digest(
    store: ObjectStore, *, tenant: UUID, period: DigestPeriod, wait: bool = False
) -> Digest | None:
    """Return the current digest of a period, and make it if it is missing or stale. None without entries.

    Raises:
        Busy: another worker makes it, and ``wait`` is false.
        StoreError, duckdb.Error: the log cannot be read.
    """
    with build_lock(tenant=tenant, period=f"digest {period.name}", wait=wait):
        days = _read_days(tenant, period)
        source = _source(period, days)
        stored = Digest.objects.filter(tenant_id=tenant, period=period.name).first()
        if not source:
            Digest.objects.filter(tenant_id=tenant, period=period.name).delete()
            note_findings(tenant)
            return None
        if stored is not None and stored.source == source:
            return stored
        with open_log(
            store,
            days,
            warehouse=read_tables(tenant),
            prices=read_prices(tenant),
        ) as log:
            document = make_document(log, period, _read_changes(tenant, period))
        return _save(stored, tenant=tenant, period=period, source=source, document=make_storable(document))


def _save(
    stored: Digest | None,
    *,
    tenant: UUID,
    period: DigestPeriod,
    source: str,
    document: Mapping[str, Any],
) -> Digest:
    etag = strong_etag(tenant, dump_json(document))
    # Processes of the previous release show the texts of an earlier document if there are some.
    fields: dict[str, Any] = {"source": source, "document": document, "rewritten": None, "etag": etag}
    if stored is None or stored.etag != etag:
        fields["made_at"] = now()
    with transaction.atomic():
        digest, is_new = Digest.objects.update_or_create(
            tenant_id=tenant,
            period=period.name,
            defaults=fields,
            create_defaults={**fields, "first_day": period.first, "last_day": period.last},
        )
        if is_new and now() - end_of_day(period.last) < MAIL_DAYS:
            queue_mails(digest)
        if not period.is_week:
            note_findings(tenant)
    logger.info("Made the digest %s of tenant %s", period.name, tenant)
    return digest


def _read_days(tenant: UUID, period: DigestPeriod | None = None) -> list[LogDay]:
    """Return the days with entries, oldest first: all days, or the days that the digest of a period reads."""
    rows = partitions_with_file(tenant=tenant)
    if period is not None:
        rows = rows.filter(day__range=(days_before(period.first, LOOK_BACK_DAYS), period.last))
    return [LogDay(row.day, row.build, row.files) for row in rows.defer("hours")]


def _source(period: DigestPeriod, days: Iterable[LogDay]) -> str:
    """Return a hash of the builds that a period's digest is made from; empty if it has no entries."""
    first = days_before(period.first, LOOK_BACK_DAYS)
    used = [day for day in days if first <= day.day <= period.last]
    if not any(day.day >= period.first for day in used):
        return ""
    text = f"{DIGEST_VERSION} {period.name}\n" + "".join(f"{day.day} {day.build}\n" for day in used)
    return hashlib.sha256(text.encode()).hexdigest()


def _has_ended(period: DigestPeriod) -> bool:
    return now() - DELAY > end_of_day(period.last)


def _read_changes(tenant: UUID, period: DigestPeriod) -> Changes:
    # Coincidences look back at most six hours, so one day is enough.
    since, until = datetime.combine(days_before(period.first, 1), time(), UTC), end_of_day(period.last)
    markers = Marker.objects.filter(
        tenant=tenant, number__isnull=True, invalidated_at__range=(since, until)
    ).order_by("invalidated_at", "pk")
    undecided = list(
        Recommendation.objects.filter(tenant_id=tenant, state__in=Recommendation.UNDECIDED).order_by(
            "rank", "pk"
        )
    )
    outdated = find_outdated(undecided)
    return Changes(
        writes=_read_writes(tenant, since, until),
        earlier=_read_earlier_writes(tenant, period),
        markers=[
            HandMarker(rule_id, epoch_ms(moment))
            for rule_id, moment in markers.values_list("target_rule_id", "invalidated_at")
        ],
        recommendations=[
            OpenRecommendation(
                row.title, reverse("recommendation", kwargs={"tenant": tenant, "recommendationId": row.pk})
            )
            for row in undecided
            if row.pk not in outdated
        ],
    )


def _writes_of(tenant: UUID) -> QuerySet[Revision]:
    writes = [RevisionAction.UPDATE, RevisionAction.RESTORE]
    return Revision.objects.filter(kind=RevisionKind.RULES, tenant_id=tenant, action__in=writes).order_by(
        "seq"
    )


def _revision_href(tenant: UUID, seq: int) -> str:
    return reverse("rules-revision", kwargs={"tenant": tenant, "seq": seq})


def _read_earlier_writes(tenant: UUID, period: DigestPeriod) -> list[RulesWrite]:
    """Return the writes of the days that a period is compared with, without reading the rules themselves."""
    since, until = days_before(period.first, LOOK_BACK_DAYS), days_before(period.first, 1)
    writes = _writes_of(tenant).filter(
        changed_at__range=(datetime.combine(since, time(), UTC), end_of_day(until))
    )
    found = []
    for seq, changed_at, summary in writes.values_list("seq", "changed_at", "summary"):
        names = {verb: frozenset(ids) for verb, ids in summary.get("names", {}).items()}
        found.append(
            RulesWrite(
                seq,
                epoch_ms(changed_at),
                _revision_href(tenant, seq),
                **names,
                labels=summary.get("labels", {}),
                # A summary of many rules names only the first.
                has_more=any(summary.get(verb, 0) > len(names.get(verb, ())) for verb in _VERBS),
            )
        )
    return found


def _read_writes(tenant: UUID, since: datetime, until: datetime) -> list[RulesWrite]:
    history = Revision.objects.filter(kind=RevisionKind.RULES, tenant_id=tenant)
    writes = list(
        _writes_of(tenant).filter(changed_at__range=(since, until)).values_list("seq", "changed_at")
    )
    numbers = {number for seq, _ in writes for number in (seq - 1, seq)}
    rules = {
        seq: (document or {}).get("rules", [])
        for seq, document in history.filter(seq__in=numbers).values_list("seq", "document")
    }
    found = []
    for seq, changed_at in writes:
        labels = diff_rules(before=rules.get(seq - 1, []), after=rules[seq], in_words=False).labels()
        found.append(
            RulesWrite(
                seq,
                epoch_ms(changed_at),
                _revision_href(tenant, seq),
                added=frozenset(labels["added"]),
                removed=frozenset(labels["removed"]),
                changed=frozenset(labels["changed"]),
                labels={rule_id: name for names in labels.values() for rule_id, name in names.items()},
            )
        )
    return found


#: The most exchanges in one list of the API.
_LISTED: Final = 100


class ModelExchangeDocument(JsonStruct):
    """One request to the language model, and its answer."""

    id: int
    period: Annotated[str, Meta(description="Of the digest.")]
    sent_at: Timestamp
    address: Annotated[str, Meta(description="Where it was sent.")]
    request: Annotated[Any, Meta(description="The whole body that was sent.")]
    answer: str
    outcome: Annotated[str, one_of(ModelExchange.Outcome.values)]
    reason: Annotated[str | None, Meta(description="Why it was refused, or what failed.")]


def list_exchanges(tenant: UUID) -> list[ModelExchangeDocument]:
    """Return the newest exchanges with the language model for a tenant."""
    return [
        ModelExchangeDocument.of(row, reason=row.reason or None)
        for row in ModelExchange.objects.filter(tenant_id=tenant)[:_LISTED]
    ]


def delete_old_exchanges() -> None:
    """Delete the exchanges that are older than `AUDIT_RETENTION_DAYS`."""
    ModelExchange.objects.filter(sent_at__lt=now() - settings.AUDIT_RETENTION).delete()
