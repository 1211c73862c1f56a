"""What is wrong with a tenant now, from the digests of its last days. `analytics.words.verdict` says it."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, groupby
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from django.db.models import DateTimeField, ExpressionWrapper, F, Max, OuterRef, Subquery

from accounts.models import Revision
from accounts.models.history import RevisionAction, RevisionKind
from analytics.models import Build, Digest, TenantHealth
from analytics.reports.leaks import ClosedLeaks, Closing
from analytics.watch.facts import FELL, LEAKS, has_fallen, revision_of
from logs.pending import last_pending_days
from rules.conditions import Request, read_request
from rules.language import CachingDefaults, read_rules
from rules.match import find_possible
from tenantadmin.lib.core.timestamps import days_before, now


class VerdictState(StrEnum):
    """How a tenant is, the worst first."""

    NO_LOG_YET = "no-log-yet"
    LOG_LATE = "log-late"
    HIT_RATE_FELL = "hit-rate-fell"
    FINDING = "finding"
    NOT_JUDGED_YET = "not-judged-yet"
    FINDING_CLOSED = "finding-closed"
    HIT_RATE_RECOVERED = "hit-rate-recovered"
    HEALTHY = "healthy"


STATES: Final = [state.value for state in VerdictState]


class About(StrEnum):
    """What a finding tells."""

    NO_LOG = "no-log"
    SUMMARISING = "summarising"
    LOG_LATE = "log-late"
    NO_DIGEST = "no-digest"
    FALL = FELL
    ERRORS = "errors"
    LEAKS = LEAKS
    STALE = "stale"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Restore:
    """A revision of the rules that restored an earlier one.

    Attributes:
        is_untried: the log ends before it.
    """

    seq: int
    restored_from: int | None
    at: dt.datetime
    is_untried: bool


@dataclass(frozen=True, slots=True)
class Fall:
    """A fall of the hit rate. Rates in percent, of its first day.

    Attributes:
        has_start: False while the digests of earlier days, on which it may have begun, are still being made.
        revision: the one of the rules with which it coincides, and when it was made, if that is known.
        restore: the one that restored a revision from before ``revision``.
        is_judged_since: there is a digest of a day after the restore.
    """

    usual: float
    rate: float
    is_over: bool
    has_start: bool = True
    revision: int | None = None
    revised_at: dt.datetime | None = None
    restore: Restore | None = None
    is_judged_since: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    Attributes:
        day: the day that it is about, or the log's last.
        failed: of a late log, the last day whose build failed.
        closing: the revision since which a leak cannot happen again.
    """

    state: VerdictState
    about: About
    day: dt.date | None
    fall: Fall | None = None
    failed: dt.date | None = None
    closing: Closing | None = None

    @property
    def is_open(self) -> bool:
        """True if a digest found it, and nothing has ended it since."""
        return self.state in {VerdictState.HIT_RATE_FELL, VerdictState.FINDING}

    @property
    def is_closed(self) -> bool:
        """True if the rules and the configuration of today no longer cause it."""
        return self.state is VerdictState.FINDING_CLOSED


def find_restore(history: Sequence[Revision], cause: Revision | None) -> Revision | None:
    """Return the revision that restored one from before the cause of a fall, or None."""
    if cause is None:
        return None
    restores = (row for row in history if row.seq > cause.seq and row.action == RevisionAction.RESTORE)
    return next((row for row in restores if (row.restored_from or 0) < cause.seq), None)


def _as_restore(revision: Revision, logged: dt.date | None) -> Restore:
    """Return what a restore is. ``logged`` is the last day with a log."""
    is_untried = logged is None or logged < revision.changed_at.date()
    return Restore(revision.seq, revision.restored_from, revision.changed_at, is_untried)


def find_restores(health: Iterable[TenantHealth], *, since: dt.datetime) -> Mapping[UUID, Restore]:
    """Return the last restore of the rules of tenants, for those with one, in at most two queries."""
    last_days = {row.pk: row.last_day for row in health}
    restores = Revision.objects.filter(
        kind=RevisionKind.RULES,
        tenant_id__in=last_days,
        action=RevisionAction.RESTORE,
        changed_at__gte=since,
    )
    last = {row.tenant_id: row for row in restores.defer("document").order_by("changed_at") if row.tenant_id}
    pending = last_pending_days(last)
    return {
        tenant: _as_restore(restore, pending.get(tenant, last_days[tenant]))
        for tenant, restore in last.items()
    }


#: The documents whose revisions can close a leak, in the order of their names.
CLOSING_KINDS: Final = (RevisionKind.CONFIG, RevisionKind.RULES)


def read_leaking(digest: Digest) -> list[Mapping[str, Any]]:
    """Return what is known of the statements that leaked, or nothing if the digest does not know them all."""
    leaking: list[Mapping[str, Any]] = digest.document.get("leaking", [])
    return leaking


def find_closing(digests: Sequence[Digest], newest_first: Iterable[Revision]) -> Closing | None:
    """Return the revision since which no statement that leaked can leak again, or None.

    A statement can leak if the configuration has the cache on, and a rule that may decide it shares results.
    What is not known of its requests, such as who asks, may be anything. What leaked after a revision is not
    closed by it, whatever it says.

    Args:
        digests: at least one. If one does not know its leaks, nothing of the history is read.
        newest_first: the revisions of `CLOSING_KINDS`, one kind after the other. They may reach further back
            than is needed.
    """
    leaking = [read_leaking(digest) for digest in digests]
    if not all(leaking):
        return None
    requests = [
        {name: value for name, value in read_request(known).items() if name in known}
        for known in chain.from_iterable(leaking)
    ]
    since = _since(max(digest.first_day for digest in digests))
    for kind, revisions in groupby(newest_first, key=attrgetter("kind")):
        closing = None
        for revision in revisions:
            if revision.changed_at < since or _can_leak(revision, requests):
                break
            closing = Closing(RevisionKind(kind), revision.seq)
        if closing is not None:
            return closing
    return None


def _can_leak(revision: Revision, requests: Iterable[Request]) -> bool:
    document = revision.document
    if revision.kind == RevisionKind.CONFIG:
        return document is None or CachingDefaults.of(document).enabled
    rules = read_rules((document or {}).get("rules", ()))
    return any(rule.is_shared for known in requests for rule in find_possible(rules, known))


def has_leaks(digest: Digest) -> bool:
    """Return True if the digest found leaks."""
    return any(section["id"] == LEAKS for section in digest.document["sections"])


def find_closing_of_all(digests: Iterable[Digest]) -> Closing | None:
    """Return the revision since which no leak that a tenant's digests found can happen again.

    None if one can, or if they found none. Only then is nothing read.
    """
    leaking = [digest for digest in digests if has_leaks(digest)]
    if not leaking:
        return None
    history = (
        Revision.objects.filter(
            kind__in=CLOSING_KINDS,
            tenant_id=leaking[0].tenant_id,
            changed_at__gte=_since(max(digest.first_day for digest in leaking)),
        )
        .only("changed_at", "document", "kind", "seq")
        .order_by("kind", "-seq")
    )
    # Documents are large, and mostly the first one says that a leak is open.
    return find_closing(leaking, history.iterator(chunk_size=10))


def find_closed_of_days(tenant_id: UUID, first: dt.date, last: dt.date) -> ClosedLeaks | None:
    """Return what the digests of some days found, if all of it is closed, as `find_closing_of_all`."""
    of_days = Digest.objects.filter(
        tenant_id=tenant_id, first_day=F("last_day"), last_day__range=(first, last)
    )
    digests = list(of_days)
    closing = find_closing_of_all(digests)
    if closing is None:
        return None
    return ClosedLeaks(
        closing, {known["standardizedSql"] for digest in digests for known in read_leaking(digest)}
    )


def _since(day: dt.date) -> dt.datetime:
    """Return the start of the day before a digest of ``day``: a write of that day may have closed it."""
    return dt.datetime.combine(days_before(day, 1), dt.time(), dt.UTC)


#: A fall of the hit rate is told for this many days after it ended.
TOLD_DAYS: Final = 7
#: Digests are made the newest first. This long after one, an earlier one may still be on its way.
_MAKING: Final = dt.timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class _FallenDay:
    """A day whose hit rate was lower than usual. Rates in percent."""

    day: dt.date
    usual: float
    rate: float
    document: Mapping[str, Any]

    @property
    def depth(self) -> float:
        return self.usual - self.rate


@dataclass(slots=True)
class _FallenDays:
    """The time from a day whose hit rate fell until one whose hit rate is as usual again."""

    #: The newest first. Between them are only days without a log, or with too few requests to judge.
    days: list[_FallenDay]
    is_over: bool
    #: The last judged day before it, if it was read.
    before: dt.date | None = None

    @property
    def depth(self) -> float:
        return max(day.depth for day in self.days)

    @property
    def start(self) -> _FallenDay:
        """The first day that fell half as deep as the deepest, or that coincides with a revision."""
        return next(
            day
            for day in reversed(self.days)
            if 2 * day.depth >= self.depth or _find_cause(day.document) is not None
        )

    @property
    def state(self) -> VerdictState:
        return VerdictState.HIT_RATE_RECOVERED if self.is_over else VerdictState.HIT_RATE_FELL


def _find_worst_fall(
    digests: Sequence[Digest],
    history: Sequence[Revision],
    *,
    last_day: dt.date,
    pending: dt.date | None,
    at: dt.datetime,
) -> Iterator[Finding]:
    """Find the worst fall of the last days, if there is one.

    Args:
        digests: the newest first.
        last_day: the last summarised day of the log.
        pending: the last day that is not summarised yet.
    """
    falls = _last_falls(digests, since=days_before(last_day, TOLD_DAYS - 1))
    if falls:
        worst = max(falls, key=lambda fall: (not fall.is_over, fall.depth, fall.start.day))
        start = worst.start
        if worst.before is None and digests[-1].made_at > at - _MAKING:
            fall = Fall(start.usual, start.rate, worst.is_over, has_start=False)
        else:
            logged = max(last_day, pending or last_day)
            fall = _read_fall(history, worst, judged=digests[0].last_day, logged=logged)
        yield Finding(worst.state, About.FALL, start.day, fall=fall)


def find_fallen_day(digest: Digest) -> _FallenDay | None:
    """Return the day of a digest if its hit rate fell."""
    facts = _facts_of(digest)
    rate, usual = facts.get("hit-rate"), facts.get("hit-rate-median")
    if rate is None or usual is None or not has_fallen(facts):
        return None
    return _FallenDay(digest.last_day, usual, rate, digest.document)


def _last_falls(digests: Sequence[Digest], *, since: dt.date) -> list[_FallenDays]:
    """Return the falls that lasted until ``since`` or longer, the newest first. So are the digests."""
    falls: list[_FallenDays] = []
    is_over, current = False, None
    for digest in digests:
        if day := find_fallen_day(digest):
            if current is None:
                current = _FallenDays([], is_over)
                falls.append(current)
            current.days.append(day)
        elif _has_usual_rate(digest):
            if current is not None:
                current.before = digest.last_day
            is_over, current = True, None
    return [fall for fall in falls if fall.days[0].day >= since]


def _has_usual_rate(digest: Digest) -> bool:
    """Return True if a day that did not fall has its usual hit rate, which may be small on weekends."""
    facts = _facts_of(digest)
    rate, usual = facts.get("hit-rate"), facts.get("hit-rate-median")
    return rate is not None and bool(usual) and 2 * rate >= (usual or 0)


def _facts_of(digest: Digest) -> dict[str, float | None]:
    return {fact["id"]: fact["value"] for fact in digest.document["facts"]}


def _read_fall(history: Sequence[Revision], fallen: _FallenDays, *, judged: dt.date, logged: dt.date) -> Fall:
    """Return a fall. ``judged`` is the day of the last digest, ``logged`` the last day with a log."""
    start = fallen.start
    seq = _find_cause(start.document)
    if seq is None:
        seq = _last_write_between(history, fallen.before, start.day)
    cause = next((row for row in history if row.seq == seq), None)
    restore = find_restore(history, cause)
    return Fall(
        start.usual,
        start.rate,
        fallen.is_over,
        revision=seq,
        revised_at=None if cause is None else cause.changed_at,
        restore=None if restore is None else _as_restore(restore, logged),
        is_judged_since=restore is not None and judged > restore.changed_at.date(),
    )


def _find_cause(document: Mapping[str, Any]) -> int | None:
    """Return the revision with which the digest says that a fall coincides, the clearest fall first."""
    for name in document["names"]:
        seq = revision_of(name)
        if seq is not None and name["id"].startswith((f"{FELL}-", "moved-", "burst-")):
            return seq
    return None


def _last_write_between(history: Sequence[Revision], before: dt.date | None, day: dt.date) -> int | None:
    """Return the last revision between two days. The digests of both know the writes of their own days."""
    if before is None:
        return None
    written = [row.seq for row in history if before < row.changed_at.date() < day]
    return written[-1] if written else None


#: What the last digest found, by its section, the worst first.
_SECTIONS: Final = (About.ERRORS, About.LEAKS, About.STALE)


def read_findings(tenants: Iterable[UUID], *, at: dt.datetime) -> Mapping[UUID, Sequence[Finding]]:
    """Return what was found of each tenant, the worst first; at least that nothing was.

    It takes at most three queries, and two more if a log is late.
    """
    ids = list(tenants)
    health = TenantHealth.objects.filter(pk__in=ids, last_day__isnull=False)
    last_days = dict(health.values_list("pk", "last_day"))
    digests: defaultdict[UUID, list[Digest]] = defaultdict(list)
    last_day = TenantHealth.objects.filter(pk=OuterRef("tenant_id")).values("last_day")
    recent = Digest.objects.filter(
        tenant_id__in=last_days,
        first_day=F("last_day"),
        last_day__gt=ExpressionWrapper(
            Subquery(last_day) - dt.timedelta(days=2 * TOLD_DAYS), output_field=DateTimeField()
        ),
    )
    for digest in recent.order_by("-last_day") if last_days else ():
        digests[digest.tenant_id].append(digest)
    histories = _read_histories(digests)
    yesterday = days_before(at.date(), 1)
    late = [tenant for tenant in ids if (last_days.get(tenant) or dt.date.min) < yesterday]
    pending, failed = last_pending_days(late), _last_failed_days(late)
    return {
        tenant: _judge(
            last_days.get(tenant),
            digests[tenant],
            histories[tenant],
            pending=pending.get(tenant),
            failed=failed.get(tenant),
            at=at,
        )
        for tenant in ids
    }


def _last_failed_days(tenants: Collection[UUID]) -> Mapping[UUID, dt.date]:
    """Return the last day of each tenant whose build failed and was not repaired."""
    if not tenants:
        return {}
    failed = Build.objects.to_repair().of_days().filter(tenant_id__in=tenants)
    periods = failed.order_by().values_list("tenant_id").annotate(Max("period"))
    return {tenant: dt.date.fromisoformat(period) for tenant, period in periods}


def note_findings(tenant_id: UUID) -> None:
    """Note in a tenant's health whether it has findings that are open or may open again with other rules."""
    found = read_findings([tenant_id], at=now())[tenant_id]
    has_findings = any(finding.is_open or finding.is_closed for finding in found)
    TenantHealth.objects.filter(pk=tenant_id).update(has_findings=has_findings)


def _read_histories(digests: Mapping[UUID, Sequence[Digest]]) -> Mapping[UUID, Sequence[Revision]]:
    """Return the revisions that can have caused or ended what digests found, oldest first."""
    histories: defaultdict[UUID, list[Revision]] = defaultdict(list)
    leaking = {tenant for tenant, found in digests.items() if read_leaking(found[0])}
    fallen = {tenant for tenant, found in digests.items() if any(map(find_fallen_day, found))}
    if concerned := leaking | fallen:
        since = days_before(min(digests[tenant][-1].first_day for tenant in concerned), 1)
        revisions = Revision.objects.filter(
            kind__in=CLOSING_KINDS if leaking else [RevisionKind.RULES],
            tenant_id__in=concerned,
            changed_at__gte=dt.datetime.combine(since, dt.time(), dt.UTC),
        ).order_by("seq")
        if not leaking:
            revisions = revisions.defer("document")
        for revision in revisions:
            if revision.tenant_id is not None:
                histories[revision.tenant_id].append(revision)
    return histories


def _judge(
    last_day: dt.date | None,
    digests: Sequence[Digest],
    history: Sequence[Revision],
    *,
    pending: dt.date | None,
    failed: dt.date | None,
    at: dt.datetime,
) -> list[Finding]:
    """Return what was found of a log that ends with ``last_day``. The digests are the newest first."""
    found = list(_judge_log(last_day, digests, pending=pending, failed=failed, today=at.date()))
    if digests and last_day is not None:
        rules = [row for row in history if row.kind == RevisionKind.RULES]
        found += _find_worst_fall(digests, rules, last_day=last_day, pending=pending, at=at)
        found += _find_in_digest(digests[0], history)
    found.sort(key=lambda finding: STATES.index(finding.state))
    return found or [Finding(VerdictState.HEALTHY, About.NOTHING, last_day)]


def _judge_log(
    last_day: dt.date | None,
    digests: Sequence[Digest],
    *,
    pending: dt.date | None,
    failed: dt.date | None,
    today: dt.date,
) -> Iterator[Finding]:
    """Find that a log is missing, late, or not judged yet."""
    yesterday = days_before(today, 1)
    # A day that failed is pending until its build succeeds.
    is_failing = failed is not None and pending is not None and failed >= pending
    if pending is not None and (last_day is None or (pending > last_day and not is_failing)):
        yield Finding(VerdictState.NOT_JUDGED_YET, About.SUMMARISING, pending)
    elif last_day is None:
        yield Finding(VerdictState.NO_LOG_YET, About.NO_LOG, None)
    elif last_day < yesterday:
        later = failed if failed is not None and failed > last_day else None
        yield Finding(VerdictState.LOG_LATE, About.LOG_LATE, last_day, failed=later)
    elif last_day == yesterday and not (digests and digests[0].last_day == yesterday):
        yield Finding(VerdictState.NOT_JUDGED_YET, About.NO_DIGEST, yesterday)


def _find_in_digest(digest: Digest, history: Sequence[Revision]) -> Iterator[Finding]:
    """Return what the last digest found."""
    sections = {section["id"] for section in digest.document["sections"]}
    for about in _SECTIONS:
        if about in sections:
            newest_first = sorted(history, key=lambda row: (row.kind, -row.seq))
            closing = find_closing([digest], newest_first) if about is About.LEAKS else None
            state = VerdictState.FINDING if closing is None else VerdictState.FINDING_CLOSED
            yield Finding(state, about, digest.last_day, closing=closing)
