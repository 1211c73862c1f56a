"""How a tenant is, in a sentence for each finding of its digests, the worst first.

Staff pages and the dashboard show it first. It reads rows alone: neither the log nor the object store.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

from django.db.models import DateTimeField, ExpressionWrapper, F, Max, OuterRef, Subquery
from msgspec import Meta

from accounts.models import Revision
from accounts.models.history import RevisionAction, RevisionKind
from analytics.digest.facts import FELL, MOST_LEAKS, has_fallen, revision_of
from analytics.models import Digest, TenantHealth
from logs.models import PendingBuild
from tenantadmin.lib.core.formats import ago, apart, day_in_words, percent
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import days_before, now

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

#: A fall of the hit rate is told for this many days after it ended.
_DAYS: Final = 7
#: Digests are made the newest first. This long after one, an earlier one may still be on its way.
_MAKING: Final = dt.timedelta(minutes=5)
_LEAKS: Final = "leaks"
#: What the last digest found, by its section, the worst first.
_FINDINGS: Final = (
    ("errors", "Requests failed in bursts"),
    (_LEAKS, "Cached results that depend on the user went to several users"),
    ("stale", "Hits were older than a change of a table that they read"),
)


class VerdictState(StrEnum):
    """How a tenant is. What is found is told in this order, the worst first."""

    NO_LOG_YET = "no-log-yet"
    LOG_LATE = "log-late"
    HIT_RATE_FELL = "hit-rate-fell"
    FINDING = "finding"
    NOT_JUDGED_YET = "not-judged-yet"
    FINDING_CLOSED = "finding-closed"
    HIT_RATE_RECOVERED = "hit-rate-recovered"
    HEALTHY = "healthy"


STATES: Final = [state.value for state in VerdictState]


class VerdictSentence(JsonStruct, kw_only=False):
    """One thing that was found."""

    state: VerdictState
    text: Annotated[str, Meta(description="Without a full stop.")]
    day: Annotated[dt.date | None, Meta(description="The day that the sentence is about, or the log's last.")]

    @property
    def is_good(self) -> bool:
        return self.state is VerdictState.HEALTHY

    @property
    def is_bad(self) -> bool:
        return self.is_open or self.state is VerdictState.LOG_LATE

    @property
    def is_open(self) -> bool:
        """True if a digest found it, and nothing has ended it since."""
        return self.state in {VerdictState.HIT_RATE_FELL, VerdictState.FINDING}

    @property
    def is_closed(self) -> bool:
        """True if the rules of today no longer cause it."""
        return self.state is VerdictState.FINDING_CLOSED

    @property
    def has_digest(self) -> bool:
        """True if the digest of ``day`` says more."""
        return self.is_open or self.is_closed or self.state is VerdictState.HIT_RATE_RECOVERED


class Verdict(VerdictSentence, kw_only=False):
    """How a tenant is: the worst that was found."""

    more: Annotated[list[VerdictSentence], Meta(description="What else was found, the worst first.")]
    advice: Annotated[
        str | None, Meta(description="What is recommended now, for people to read. Absent if nothing is.")
    ] = None

    @property
    def open_findings(self) -> list[VerdictSentence]:
        """What must be mended, the worst first."""
        return [sentence for sentence in (self, *self.more) if sentence.is_open]


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
class _Fall:
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


def read_verdict(tenant_id: UUID) -> Verdict:
    """Return how a tenant is."""
    return read_verdicts([tenant_id])[tenant_id]


def read_verdicts(tenants: Iterable[UUID]) -> Mapping[UUID, Verdict]:
    """Return how each tenant is, in at most three queries, and one more if a log is late."""
    wanted = list(tenants)
    health = TenantHealth.objects.filter(pk__in=wanted, last_day__isnull=False)
    last_days = dict(health.values_list("pk", "last_day"))
    digests: defaultdict[UUID, list[Digest]] = defaultdict(list)
    last_day = TenantHealth.objects.filter(pk=OuterRef("tenant_id")).values("last_day")
    recent = Digest.objects.filter(
        tenant_id__in=last_days,
        first_day=F("last_day"),
        last_day__gt=ExpressionWrapper(
            Subquery(last_day) - dt.timedelta(days=2 * _DAYS), output_field=DateTimeField()
        ),
    )
    for digest in recent.order_by("-last_day") if last_days else ():
        digests[digest.tenant_id].append(digest)
    histories = _read_histories(digests)
    yesterday = days_before(now().date(), 1)
    pending = _read_pending(it for it in wanted if (last_days.get(it) or dt.date.min) < yesterday)
    return {
        tenant: _judge(day, digests[tenant], histories[tenant], pending=pending.get(tenant))
        if (day := last_days.get(tenant))
        else _judge_without_log(pending.get(tenant))
        for tenant in wanted
    }


def _read_pending(tenants: Iterable[UUID]) -> Mapping[UUID, dt.date]:
    """Return the last day of tenants whose log has arrived and is not built yet."""
    days = PendingBuild.objects.filter(tenant_id__in=list(tenants), day__isnull=False)
    return dict(days.order_by().values_list("tenant_id").annotate(Max("day")))


def _judge_without_log(pending: dt.date | None) -> Verdict:
    if pending is not None:
        return Verdict(*_being_summarised(pending), [])
    return Verdict(VerdictState.NO_LOG_YET, "No log yet", None, [])


def _being_summarised(day: dt.date) -> tuple[VerdictState, str, dt.date]:
    return VerdictState.NOT_JUDGED_YET, f"The log of the days up to {day} is being summarised", day


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
    """Return the revisions of the rules that can have caused or ended what digests found, oldest first."""
    histories: defaultdict[UUID, list[Revision]] = defaultdict(list)
    concerned = [
        tenant
        for tenant, found in digests.items()
        if _leaking_rules(found[0]) or any(map(_fallen_day, found))
    ]
    if concerned:
        since = days_before(min(digests[tenant][-1].first_day for tenant in concerned), 1)
        revisions = Revision.objects.filter(
            kind=RevisionKind.RULES,
            tenant_id__in=concerned,
            changed_at__gte=dt.datetime.combine(since, dt.time(), dt.UTC),
        ).order_by("seq")
        if not any(_leaking_rules(digests[tenant][0]) for tenant in concerned):
            revisions = revisions.defer("document")
        for revision in revisions:
            if revision.tenant_id is not None:
                histories[revision.tenant_id].append(revision)
    return histories


def _judge(
    last_day: dt.date, digests: Sequence[Digest], history: Sequence[Revision], *, pending: dt.date | None
) -> Verdict:
    """Return the verdict on a log that ends with ``last_day``. The digests are the newest first."""
    found = sorted(_find_all(last_day, digests, history, pending), key=lambda it: STATES.index(it.state))
    worst, *more = found or [VerdictSentence(VerdictState.HEALTHY, "Healthy", last_day)]
    return Verdict(worst.state, worst.text, worst.day, more)


def _find_all(
    last_day: dt.date, digests: Sequence[Digest], history: Sequence[Revision], pending: dt.date | None
) -> Iterator[VerdictSentence]:
    """Yield what can be said of a log that ends with ``last_day``, apart from that all is well."""
    today = now().date()
    yesterday = today - dt.timedelta(days=1)
    if pending is not None and pending > last_day:
        yield VerdictSentence(*_being_summarised(pending))
    elif last_day < yesterday:
        text = f"No log since {day_in_words(last_day, today)}"
        yield VerdictSentence(VerdictState.LOG_LATE, text, last_day)
    elif last_day == yesterday and not (digests and digests[0].last_day == yesterday):
        text = f"Not judged yet: there is no digest of {day_in_words(yesterday, today)} yet"
        yield VerdictSentence(VerdictState.NOT_JUDGED_YET, text, yesterday)
    if falls := _last_falls(digests, since=days_before(last_day, _DAYS - 1)):
        worst = max(falls, key=lambda fall: (not fall.is_over, fall.depth, fall.start.day))
        judged, logged = digests[0].last_day, max(last_day, pending or last_day)
        if worst.before is None and digests[-1].made_at > now() - _MAKING:
            yield _describe_unfinished(worst)
        else:
            yield _describe(history, worst, today, judged=judged, logged=logged)
    if digests:
        sections = {section["id"] for section in digests[0].document["sections"]}
        day = digests[0].last_day
        for section, text in _FINDINGS:
            if section in sections:
                told = f"{text} on {day_in_words(day, today)}"
                closed_by = _closed_by(digests[0], history) if section == _LEAKS else None
                if closed_by is None:
                    yield VerdictSentence(VerdictState.FINDING, told, day)
                else:
                    told += f", closed by revision {closed_by}; the digest of the next whole day lacks it"
                    yield VerdictSentence(VerdictState.FINDING_CLOSED, told, day)


def _leaking_rules(digest: Digest) -> set[str]:
    """Return the rules whose results leaked, if the digest names the rules of all leaks."""
    names = [it for it in digest.document["names"] if it["id"].startswith("leak-")]
    rules = [it["value"] for it in names if it["kind"] == "rule"]
    statements = sum(it["kind"] == "statement" for it in names)
    return set(rules) if len(rules) == statements < MOST_LEAKS else set()


def _closed_by(digest: Digest, history: Sequence[Revision]) -> int | None:
    """Return the revision since which all rules that leaked keep the results of users apart, or None."""
    rules = _leaking_rules(digest)
    closed_by = None
    for revision in history if rules else ():
        if not all(_keeps_apart(revision, rule_id) for rule_id in rules):
            closed_by = None
        elif closed_by is None:
            closed_by = revision.seq
    return closed_by


def _keeps_apart(revision: Revision, rule_id: str) -> bool:
    """Return True if the rule does not share results between users."""
    rules = {rule["id"]: rule for rule in (revision.document or {}).get("rules", [])}
    rule = rules.get(rule_id)
    # Another rule may cache the statement instead of one that is gone.
    return (
        rule is not None
        and rule["enabled"]
        and (rule["action"] != "cache" or "userName" in (rule.get("varyBy") or ()))
    )


def _last_falls(digests: Sequence[Digest], *, since: dt.date) -> list[_Fall]:
    """Return the falls that lasted until ``since`` or longer, the newest first. So are the digests."""
    falls: list[_Fall] = []
    is_over, current = False, None
    for digest in digests:
        if day := _fallen_day(digest):
            if current is None:
                current = _Fall([], is_over)
                falls.append(current)
            current.days.append(day)
        elif _has_usual_rate(digest):
            if current is not None:
                current.before = digest.last_day
            is_over, current = True, None
    return [fall for fall in falls if fall.days[0].day >= since]


def _facts_of(digest: Digest) -> dict[str, float | None]:
    return {fact["id"]: fact["value"] for fact in digest.document["facts"]}


def _has_usual_rate(digest: Digest) -> bool:
    """Return True if a day that did not fall has its usual hit rate, which may be small on weekends."""
    facts = _facts_of(digest)
    rate, usual = facts.get("hit-rate"), facts.get("hit-rate-median")
    return rate is not None and bool(usual) and 2 * rate >= (usual or 0)


def _fallen_day(digest: Digest) -> _FallenDay | None:
    facts = _facts_of(digest)
    rate, usual = facts.get("hit-rate"), facts.get("hit-rate-median")
    if rate is None or usual is None or not has_fallen(facts):
        return None
    return _FallenDay(digest.last_day, usual, rate, digest.document)


def _describe_unfinished(fall: _Fall) -> VerdictSentence:
    """Tell a fall that may have begun on an earlier day, whose digest is not made yet."""
    text = (
        f"Hit rate fell from {percent(fall.start.usual / 100)} to {percent(fall.start.rate / 100)}; "
        "since when and why is not known yet, because the digests of earlier days are still being made"
    )
    return VerdictSentence(_state_of(fall), text, fall.start.day)


def _state_of(fall: _Fall) -> VerdictState:
    return VerdictState.HIT_RATE_RECOVERED if fall.is_over else VerdictState.HIT_RATE_FELL


def _describe(
    history: Sequence[Revision], fall: _Fall, today: dt.date, *, judged: dt.date, logged: dt.date
) -> VerdictSentence:
    """Tell a fall. ``judged`` is the day of the last digest, ``logged`` the last day with a log."""
    start = fall.start
    usual, rate = percent(start.usual / 100), percent(start.rate / 100)
    text = f"Hit rate fell from {usual} to {rate} on {day_in_words(start.day, today)}"
    seq = _find_cause(start.document)
    if seq is None:
        seq = _last_write_between(history, fall.before, start.day)
    if seq is not None:
        text += f" after revision {seq}"
    cause = next((it for it in history if it.seq == seq), None)
    restore = _find_restore(history, cause)
    if cause is not None and restore is not None and (fall.is_over or judged > restore.changed_at.date()):
        text += f", restored {apart(cause.changed_at, restore.changed_at) or 'a moment'} later"
        if not fall.is_over:
            text += ", and is still down"
    elif restore is not None:
        text += f"; {tell_restore(restore, logged)}"
    elif fall.is_over:
        text += ", and has recovered"
    return VerdictSentence(_state_of(fall), text, start.day)


def tell_restore(restore: Revision, logged: dt.date | None) -> str:
    """Say which revision restored which, and if the log ends before, with the day ``logged``."""
    passed = ago(restore.changed_at, now=now())
    # Without the comma, "revision 1 4 minutes ago" reads as 14.
    text = f"revision {restore.seq} restored revision {restore.restored_from}, {passed}"
    is_untried = logged is None or logged < restore.changed_at.date()
    return f"{text}; no requests since" if is_untried else text


def tell_restores(health: Iterable[TenantHealth], *, since: dt.datetime) -> Mapping[UUID, str]:
    """Tell the last restore of the rules of tenants, for those with one, in at most two queries."""
    last_days = {row.pk: row.last_day for row in health}
    restores = Revision.objects.filter(
        kind=RevisionKind.RULES,
        tenant_id__in=last_days,
        action=RevisionAction.RESTORE,
        changed_at__gte=since,
    )
    last = {it.tenant_id: it for it in restores.defer("document").order_by("changed_at") if it.tenant_id}
    pending = _read_pending(last) if last else {}
    return {tenant: tell_restore(it, pending.get(tenant, last_days[tenant])) for tenant, it in last.items()}


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
    written = [it.seq for it in history if before < it.changed_at.date() < day]
    return written[-1] if written else None


def _find_restore(history: Sequence[Revision], cause: Revision | None) -> Revision | None:
    """Return the revision that restored one from before the cause of a fall, or None."""
    if cause is None:
        return None
    restores = (it for it in history if it.seq > cause.seq and it.action == RevisionAction.RESTORE)
    return next((it for it in restores if (it.restored_from or 0) < cause.seq), None)
