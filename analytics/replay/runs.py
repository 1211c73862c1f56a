"""Queue, read, cancel and expire replays. Contract: docs/replay.md."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from datetime import date, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef
from msgspec import Meta

from accounts.events import record_event
from accounts.limits import Quota, count_use, use_quota
from accounts.models import Tenant
from accounts.models.events import EventKind
from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from analytics.models import Recommendation, ReplayRun
from analytics.replay.execution import Request, collect_input
from analytics.replay.figures import Figure, ReplayRow, figures_of_replay, rows_of_replay
from analytics.replay.names import describe_outcome, name_replays
from analytics.replay.result import (
    Calibration,
    EvidenceQuery,
    LearnedGateway,
    MovedRequests,
    PublishCost,
    ReplayBilled,
    ReplayCounts,
    ReplayLeaks,
    ReplayRows,
    ReplayRuleCounts,
    ReplayRuleset,
    ReplayWindow,
    SampledChanges,
)
from analytics.replay.sample import Sample
from analytics.replay.words import Outdated, ReplayJudgement, describe_days, describe_notes, judge
from logs.partitions import describe_longest_window
from rules.in_force import choose_rules
from rules.models import RuleDraft
from rules.ruleset import read_ruleset
from rules.write import RulesetRejected, lint_document
from tenantadmin.lib.core.errors import Detail, NotFound, RateLimited, ValidationFailed
from tenantadmin.lib.core.rendering import strong_etag
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of, sent_as
from tenantadmin.lib.core.timestamps import Timestamp, now

if TYPE_CHECKING:
    from django.db.models import QuerySet


class ReplayNotFound(NotFound):
    message = "There is no such replay."


class TooLarge(ValidationFailed):
    message = "The replay is too large. Choose fewer days."


class TooManyReplays(RateLimited):
    message = "Too many replays of this tenant are waiting. Try again when one has ended."


def find_outdated(run: ReplayRun) -> Outdated:
    """Return what has changed since a replay of a live tenant; nothing if it has not finished.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    if run.result is None:
        return Outdated(())
    live = read_ruleset(run.tenant_id)
    named = run.subject.get("draftId")
    draft = None if named is None else RuleDraft.objects.filter(tenant=run.tenant_id, pk=named).first()
    is_gone = named is not None and draft is None
    reasons = ["of a draft that was published or deleted"] if is_gone else []
    if draft is not None:
        normalized = lint_document({"rules": draft.rules}).normalized
        if normalized is None or run.rules != list(normalized):
            reasons.append("of an earlier text of the draft")
    seq = run.result["against"].get("seq")
    # Replays of earlier releases have no number.
    if seq is None:
        is_same = live.modified_at <= (run.started_at or live.modified_at)
    else:
        history = DocumentHistory(RevisionKind.RULES, run.tenant_id).revisions()
        then = None if seq == live.seq else history.filter(seq=seq).first()
        is_same = seq == live.seq or (then is not None and (then.document or {}).get("rules") == live.rules)
    if not is_same:
        against = "earlier rules" if seq is None else f"revision {seq}"
        reasons.append(f"against {against}, not the rules in force (revision {live.seq})")
    return Outdated(reasons, can_repeat=not is_gone, is_against_earlier=not is_same)


REPLAY_STATES: Final = ReplayRun.State.values
#: The most finished runs that are kept for a tenant, and how long.
_KEPT: Final = 50
_LIFETIME: Final = timedelta(days=30)


class ReplaySubject(JsonStruct):
    """The replayed ruleset: a revision, a draft, or the digest of the rules that were sent."""

    seq: Count | None = None
    draft_id: UUID | None = None
    digest: str | None = None


class ReplaySummary(JsonStruct):
    """A replay without its result."""

    replay_id: UUID
    name: Annotated[str, Meta(description="What was replayed, for people to read.")]
    outcome: Annotated[
        str | None, Meta(description="What the rules change, in a few words. Null until it is done.")
    ] = None
    tenant_id: UUID
    state: Annotated[str, one_of(REPLAY_STATES)]
    progress: Annotated[float, Meta(ge=0, le=1)]
    subject: Annotated[dict[str, Any], sent_as("analytics.replay.runs.ReplaySubject")]
    window: ReplayWindow
    requested_by: str
    requested_at: Timestamp
    started_at: Timestamp | None
    finished_at: Timestamp | None
    error: str | None


class Replay(ReplaySummary):
    """A replay. What is not required is there when it is done; docs/replay.md defines every number."""

    judgement: ReplayJudgement | None = None
    figures: Annotated[
        list[Figure] | None, Meta(description="What the rules change, compared with the rules of `against`.")
    ] = None
    by_rule: Annotated[
        list[ReplayRow] | None,
        Meta(description="All counts, then the counts of each rule, with their changes, for people to read."),
    ] = None
    rows: ReplayRows | None = None
    gateway: LearnedGateway | None = None
    sample: Annotated[
        Sample | None,
        Meta(description="What was replayed of a large log. Absent if it is all."),
    ] = None
    calibration: Calibration | None = None
    total: ReplayCounts | None = None
    rules: list[ReplayRuleCounts] | None = None
    against: ReplayRuleset | None = None
    billed: Annotated[
        ReplayBilled | None, Meta(description="Absent also in replays of a sample or of earlier releases.")
    ] = None
    moved: list[MovedRequests] | None = None
    leaks: Annotated[ReplayLeaks | None, Meta(description="Absent also in replays of earlier releases.")] = (
        None
    )
    publish_cost: PublishCost | None = None
    sampled_changes: SampledChanges = None
    caveats: list[str] | None = None
    notes: Annotated[list[str] | None, Meta(description="What to keep in mind, in words.")] = None
    evidence: list[EvidenceQuery] | None = None
    names: Annotated[
        dict[str, str] | None,
        Meta(description="The names of the rules by id. Absent also in replays of earlier releases."),
    ] = None


def _read_subject(
    tenant_id: UUID, *, rules: object, seq: int | None, draft_id: UUID | None
) -> tuple[Sequence[Mapping[str, Any]], Mapping[str, Any]]:
    """Return the complete rules that a request names, and how: by their digest, a revision, or a draft.

    Raises:
        RulesetRejected: the rules do not pass lint.
        ValidationFailed: none or several ways are used, or there is no such revision or draft.
    """
    if sum(choice is not None for choice in (rules, seq, draft_id)) != 1:
        raise ValidationFailed.at("", "invalid", "Give one of 'rules', 'seq' and 'draftId'.")
    if rules is None:
        chosen = choose_rules(tenant_id, seq=seq, draft_id=draft_id)
        return chosen.rules, {"seq": seq} if draft_id is None else {"draftId": str(draft_id)}
    result = lint_document({"rules": rules})
    if result.normalized is None:
        raise RulesetRejected(result)
    complete = list(result.normalized)
    return complete, name_rules(complete)


def name_rules(rules: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the subject of a run of complete rules without a revision or draft."""
    return {"digest": hashlib.sha256(msgspec.json.encode(rules, order="deterministic")).hexdigest()}


def queue_replay(
    *,
    tenant_id: UUID,
    first_day: date,
    last_day: date,
    warmup_days: int,
    gateway: Mapping[str, bool],
    actor: str,
    rules: object = None,
    seq: int | None = None,
    draft_id: UUID | None = None,
    is_exact: bool = False,
) -> ReplayRun:
    """Return the finished, running or queued run with this input, or queue a new one.

    The ruleset is one of ``rules``, the revision ``seq`` and a draft. A run that failed or was cancelled is
    queued again. ``is_exact``: all entries are replayed, also of a large log.

    Raises:
        TenantNotFound: there is no such live tenant.
        RulesetRejected, ValidationFailed: see `_read_subject`; or the last day is before the first.
        TooLarge: there are too many days or rows.
        TooManyReplays: too many replays of the tenant are queued.
        RateLimited: the tenant has started too many replays, or stores too much (`use_quota`).
    """
    require_live_tenant(tenant_id)
    complete, subject = _read_subject(tenant_id, rules=rules, seq=seq, draft_id=draft_id)
    days = (last_day - first_day).days + 1
    if days < 1:
        raise ValidationFailed.at("/to", "invalid", "'to' is before 'from'.")
    if days > settings.REPLAY_MAX_DAYS:
        _refuse_size("days", days, settings.REPLAY_MAX_DAYS)
    collected = collect_input(
        Request(tenant_id, complete, first_day, last_day, warmup_days, gateway, is_exact)
    )
    if collected.rows > settings.REPLAY_MAX_ROWS and not collected.is_sampled:
        cure = describe_longest_window(
            {day: rows for day, *_, rows in collected.partitions},
            last=last_day,
            before=warmup_days,
            most=settings.REPLAY_MAX_ROWS,
        )
        _refuse_size("log entries", collected.rows, settings.REPLAY_MAX_ROWS, cure=cure)
    digest = collected.digest()
    with transaction.atomic():
        # The lock lets one request of a tenant at a time check the limits.
        if not Tenant.objects.live().select_for_update(no_key=True).filter(pk=tenant_id):
            raise TenantNotFound
        run = ReplayRun.objects.filter(tenant_id=tenant_id, digest=digest).first()
        if run is not None and run.state not in {ReplayRun.State.FAILED, ReplayRun.State.CANCELLED}:
            _lead_to(run, subject)
            return run
        _require_capacity(tenant_id)
        use_quota(Quota.DOCUMENTS, tenant_id, complete)
        if run is not None:
            run.delete()
        run = ReplayRun.objects.create(
            tenant_id=tenant_id,
            digest=digest,
            subject=subject,
            rules=complete,
            first_day=first_day,
            last_day=last_day,
            warmup_days=warmup_days,
            gateway=gateway,
            is_exact=is_exact,
            requested_by=actor,
        )
        _record(EventKind.REPLAY_REQUESTED, run, actor)
        return run


def _lead_to(run: ReplayRun, subject: Mapping[str, Any]) -> None:
    """Give a run of a draft that is gone the subject that was asked for: its page leads to a draft."""
    draft = run.subject.get("draftId")
    if draft is not None and not RuleDraft.objects.filter(pk=draft).exists():
        run.subject = subject
        run.save(update_fields=["subject"])


def _record(kind: EventKind, run: ReplayRun, actor: str) -> None:
    record_event(
        kind,
        actor=actor,
        subject=str(run.pk),
        tenant_id=run.tenant_id,
        after={
            "subject": run.subject,
            "from": run.first_day.isoformat(),
            "to": run.last_day.isoformat(),
        },
    )


def _refuse_size(what: str, count: int, limit: int, *, cure: str = "Choose fewer days.") -> None:
    message = f"The replay has {count} {what}; at most {limit} are allowed. {cure}"
    raise TooLarge(message, details=[Detail("/from", "out-of-range", message)])


def _require_capacity(tenant_id: UUID) -> None:
    runs = ReplayRun.objects.filter(tenant_id=tenant_id)
    if runs.filter(state=ReplayRun.State.QUEUED).count() >= settings.REPLAY_QUEUE:
        raise TooManyReplays(retry_after=int(settings.REPLAY_TIMEOUT_SECONDS))
    count_use(limit=settings.REPLAY_LIMIT, kind="replay", key=str(tenant_id))


def cancel_replay(*, tenant_id: UUID, replay_id: UUID, actor: str) -> bool:
    """Cancel a run, or delete it if it has ended. Return True if it was cancelled.

    Raises:
        ReplayNotFound: there is no such run.
    """
    run = read_replay(tenant_id=tenant_id, replay_id=replay_id)
    runs = ReplayRun.objects.filter(pk=run.pk)
    with transaction.atomic():
        unfinished = runs.exclude(state__in=ReplayRun.FINISHED)
        if unfinished.update(state=ReplayRun.State.CANCELLED, finished_at=now()):
            _record(EventKind.REPLAY_CANCELLED, run, actor)
            return True
        if not runs.delete()[0]:
            raise ReplayNotFound
        _record(EventKind.REPLAY_REMOVED, run, actor)
        return False


def read_replay(*, tenant_id: UUID, replay_id: UUID) -> ReplayRun:
    """Return a run.

    Raises:
        ReplayNotFound: there is no such run.
    """
    run = ReplayRun.objects.filter(tenant_id=tenant_id, pk=replay_id).first()
    if run is None:
        raise ReplayNotFound
    return run


#: What `describe_outcome` reads of a result.
_PARTS: Final = {
    "saved": "total__savedMs",
    "saved_before": "against__total__savedMs",
    "billed": "billed__gain",
}


def list_replays(*, tenant_id: UUID) -> QuerySet[ReplayRun]:
    """Return a tenant's runs, newest first, without their results but for what `describe_outcome` reads."""
    parts = {name: F(f"result__{path}") for name, path in _PARTS.items()}
    return ReplayRun.objects.filter(tenant_id=tenant_id).defer("result", "rules").annotate(**parts)


def delete_old_replays() -> None:
    """Delete finished runs after their lifetime, and all but the newest of each tenant.

    Replays of undecided recommendations are kept.
    """
    finished = ReplayRun.objects.filter(state__in=ReplayRun.FINISHED).exclude(
        Exists(Recommendation.objects.filter(replay=OuterRef("pk"), state__in=Recommendation.UNDECIDED))
    )
    finished.filter(requested_at__lt=now() - _LIFETIME).delete()
    for tenant_id in set(finished.order_by().values_list("tenant_id", flat=True)):
        kept = finished.filter(tenant_id=tenant_id).values_list("pk", flat=True)[:_KEPT]
        finished.filter(tenant_id=tenant_id).exclude(pk__in=list(kept)).delete()


def replay_etag(run: ReplayRun, outdated: Outdated, name: str) -> str:
    """Return the entity tag of a run and its name."""
    return strong_etag(
        "replay", run.pk, f"{run.state}-{run.progress}-{run.finished_at}", *outdated.reasons, name
    )


def describe_replay(
    run: ReplayRun, outdated: Outdated | None = None, *, purpose: str = "", name: str | None = None
) -> dict[str, Any]:
    """Return a `Replay`: a run with its stored result, if it has one, judged (`judge`).

    ``name`` is what `name_replays` gives. Without it, it is looked up.
    """
    judged: dict[str, Any] = {}
    if run.result is not None:
        judgement = judge(run.result, purpose=purpose, outdated=outdated)
        window = run.result["window"] | {"text": describe_days(run.result["window"])}
        # Results of earlier releases have no names.
        names = run.result.get("names") or {rule["id"]: rule.get("name") for rule in run.rules}
        judged = {
            **run.result,
            "window": window,
            "judgement": msgspec.to_builtins(judgement),
            "figures": msgspec.to_builtins(figures_of_replay(run.result, purpose=purpose)),
            "byRule": msgspec.to_builtins(rows_of_replay(run.result, names)),
            "notes": describe_notes(run.result),
        }
    return {**msgspec.to_builtins(summarize_replay(run, name or name_replays([run])[run.pk])), **judged}


def summarize_replays(runs: Collection[ReplayRun]) -> list[ReplaySummary]:
    """Return runs of `list_replays`, without their results."""
    names = name_replays(runs)
    return [
        summarize_replay(run, names[run.pk], **{name: getattr(run, name) for name in _PARTS}) for run in runs
    ]


def summarize_replay(
    run: ReplayRun, name: str, *, saved: Any = None, saved_before: Any = None, billed: Any = None
) -> ReplaySummary:
    """Return a run without its result. If it is done, the keywords are what `describe_outcome` takes."""
    days = {"from": run.first_day.isoformat(), "to": run.last_day.isoformat()}
    window = ReplayWindow(
        from_=run.first_day, to=run.last_day, warmup_days=run.warmup_days, text=describe_days(days)
    )
    outcome = saved and describe_outcome(saved=saved, saved_before=saved_before, billed=billed)
    return ReplaySummary.of(run, name=name, outcome=outcome, window=window, error=run.error or None)
