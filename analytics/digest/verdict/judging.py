"""Judge tenants: what their digests, logs and rules have to say, the worst first."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from django.db.models import DateTimeField, ExpressionWrapper, F, Max, OuterRef, Subquery

from accounts.models import Revision
from accounts.models.history import RevisionKind
from analytics.digest.facts import LEAKS
from analytics.digest.verdict.falls import TOLD_DAYS, find_fallen_day, tell_worst_fall
from analytics.digest.verdict.leaks import CLOSING_KINDS, find_closing, read_leaking
from analytics.digest.verdict.sentences import STATES, Verdict, VerdictSentence, VerdictState
from analytics.models import Build, Digest, TenantHealth
from logs.pending import last_pending_days
from tenantadmin.lib.core.formats import day_in_words
from tenantadmin.lib.core.timestamps import days_before, now

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

#: What the last digest found, by its section, the worst first.
_FINDINGS: Final = (
    ("errors", "Requests failed in bursts"),
    (LEAKS, "Cached results that depend on the user went to several users"),
    ("stale", "Hits were older than a change of a table that they read"),
)


def read_verdict(tenant_id: UUID) -> Verdict:
    """Return how a tenant is."""
    return read_verdicts([tenant_id])[tenant_id]


def read_verdicts(tenants: Iterable[UUID]) -> Mapping[UUID, Verdict]:
    """Return how each tenant is, in at most three queries, and two more if a log is late."""
    at = now()
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
    late = [it for it in ids if (last_days.get(it) or dt.date.min) < yesterday]
    pending, failed = last_pending_days(late), _last_failed_days(late)
    return {
        it: _judge(
            last_days.get(it),
            digests[it],
            histories[it],
            pending=pending.get(it),
            failed=failed.get(it),
            at=at,
        )
        for it in ids
    }


def _last_failed_days(tenants: Collection[UUID]) -> Mapping[UUID, dt.date]:
    """Return the last day of each tenant whose build failed and was not repaired."""
    if not tenants:
        return {}
    failed = Build.objects.to_repair().of_days().filter(tenant_id__in=tenants)
    periods = failed.order_by().values_list("tenant_id").annotate(Max("period"))
    return {tenant: dt.date.fromisoformat(period) for tenant, period in periods}


def find_open(tenants: Iterable[UUID]) -> Mapping[UUID, Sequence[VerdictSentence]]:
    """Return the open findings of tenants that have some."""
    return {
        tenant: verdict.open_findings
        for tenant, verdict in read_verdicts(tenants).items()
        if verdict.open_findings
    }


def note_findings(tenant_id: UUID) -> None:
    """Note in a tenant's health whether it has findings that are open or may open again with other rules."""
    worst = read_verdict(tenant_id)
    has_findings = any(it.is_open or it.is_closed for it in (worst, *worst.more))
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
) -> Verdict:
    """Return the verdict on a log that ends with ``last_day``. The digests are the newest first."""
    found = list(_judge_log(last_day, digests, pending=pending, failed=failed, today=at.date()))
    if digests and last_day is not None:
        rules = [it for it in history if it.kind == RevisionKind.RULES]
        found += tell_worst_fall(digests, rules, last_day=last_day, pending=pending, at=at)
        found += _tell_findings(digests[0], history, today=at.date())
    found.sort(key=lambda it: STATES.index(it.state))
    worst, *more = found or [VerdictSentence(VerdictState.HEALTHY, "Healthy", last_day)]
    return Verdict(worst.state, worst.text, worst.day, more)


def _judge_log(
    last_day: dt.date | None,
    digests: Sequence[Digest],
    *,
    pending: dt.date | None,
    failed: dt.date | None,
    today: dt.date,
) -> Iterator[VerdictSentence]:
    """Tell a log that is missing, late, or not judged yet."""
    yesterday = days_before(today, 1)
    # A day that failed is pending until its build succeeds.
    is_failing = failed is not None and pending is not None and failed >= pending
    if pending is not None and (last_day is None or (pending > last_day and not is_failing)):
        text = f"The log of the days up to {pending} is being summarised"
        yield VerdictSentence(VerdictState.NOT_JUDGED_YET, text, pending)
    elif last_day is None:
        yield VerdictSentence(VerdictState.NO_LOG_YET, "No log yet", None)
    elif last_day < yesterday:
        text = f"No log since {day_in_words(last_day, today)}"
        if failed is not None and failed > last_day:
            text = (
                f"No log was read since {day_in_words(last_day, today)}: "
                f"the build of {day_in_words(failed, today)} failed"
            )
        yield VerdictSentence(VerdictState.LOG_LATE, text, last_day)
    elif last_day == yesterday and not (digests and digests[0].last_day == yesterday):
        text = f"Not judged yet: there is no digest of {day_in_words(yesterday, today)} yet"
        yield VerdictSentence(VerdictState.NOT_JUDGED_YET, text, yesterday)


def _tell_findings(
    digest: Digest, history: Sequence[Revision], *, today: dt.date
) -> Iterator[VerdictSentence]:
    """Tell what the last digest found."""
    sections = {section["id"] for section in digest.document["sections"]}
    for section, finding in _FINDINGS:
        if section in sections:
            text = f"{finding} on {day_in_words(digest.last_day, today)}"
            newest_first = sorted(history, key=lambda it: (it.kind, -it.seq))
            closing = find_closing([digest], newest_first) if section == LEAKS else None
            if closing is None:
                yield VerdictSentence(VerdictState.FINDING, text, digest.last_day)
            else:
                text += f", closed by {closing}: digests of the days after it no longer show this"
                yield VerdictSentence(VerdictState.FINDING_CLOSED, text, digest.last_day)
