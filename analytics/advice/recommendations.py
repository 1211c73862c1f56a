"""Read, draft, accept, dismiss and reopen recommendations. Contract: docs/advice.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import IntegrityError, transaction

from accounts.events import record_event
from accounts.models.events import EventKind
from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory
from analytics.advice.edits import apply_edits, read_edits
from analytics.advice.errors import RecommendationNotFound, RulesetMoved, SameIsOpen, WrongState
from analytics.models import Mining, Recommendation
from rules.drafts import create_draft
from rules.models import RuleDraft
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.errors import Conflict, ValidationFailed
from tenantadmin.lib.core.rendering import strong_etag
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date
    from uuid import UUID

    from rules.ruleset import RulesetState

State: Final = Recommendation.State
#: The most recommendations in one list; those that were decided long ago are left out.
_LISTED: Final = 100
_STATES: Final = {state: number for number, state in enumerate(State)}


def list_recommendations(*, tenant_id: UUID, state: str | None = None) -> list[Recommendation]:
    """Return a tenant's recommendations: those to decide first, in order, then the newest."""
    found = Recommendation.objects.filter(tenant_id=tenant_id)
    if state is not None:
        found = found.filter(state=state)
    return sorted(found[:_LISTED], key=lambda row: (_STATES[State(row.state)], -row.mined_at.timestamp()))


def read_recommendation(*, tenant_id: UUID, recommendation_id: UUID) -> Recommendation:
    """Return a recommendation.

    Raises:
        RecommendationNotFound: the tenant has no such recommendation.
    """
    found = Recommendation.objects.filter(tenant_id=tenant_id, pk=recommendation_id).first()
    if found is None:
        raise RecommendationNotFound
    return found


def draft_recommendation(
    *, tenant_id: UUID, recommendation_id: UUID, actor: str, check_etag: Callable[[str], None]
) -> RuleDraft:
    """Make a draft of the ruleset with the recommendation.

    ``check_etag`` gets the entity tag of the recommendation, and raises if the caller expected another.

    Raises:
        RecommendationNotFound, TenantNotFound: there is no such recommendation or live tenant.
        WrongState: it is not open.
        RulesetMoved: the ruleset was written since.
        TooManyDrafts: the tenant has as many drafts as it may have.
        Conflict: it changed meanwhile.
    """
    found = read_recommendation(tenant_id=tenant_id, recommendation_id=recommendation_id)
    check_etag(recommendation_etag(found))
    _require_state(found, State.OPEN)
    rules = _rules_with(found)
    with transaction.atomic():
        draft = create_draft(
            tenant_id=tenant_id,
            document={"name": found.title[:200], "rules": rules, "baseSeq": found.seq},
            actor=actor,
        )
        _change(found, state=State.DRAFTED, draft_id=draft.pk)
    return draft


def accept_recommendation(
    *, tenant_id: UUID, recommendation_id: UUID, actor: str, check_etag: Callable[[str], None]
) -> RulesetState:
    """Write the ruleset with the recommendation. The summary of the new revision names it.

    Raises:
        RecommendationNotFound, TenantNotFound: there is no such recommendation or live tenant.
        WrongState: it was decided already.
        RulesetMoved: the ruleset was written since.
        RulesetRejected, ValidationFailed, PlanLimitExceeded: as `write_ruleset`.
        Conflict: it or the ruleset changed meanwhile.
    """
    found = read_recommendation(tenant_id=tenant_id, recommendation_id=recommendation_id)
    check_etag(recommendation_etag(found))
    _require_state(found, *Recommendation.UNDECIDED)
    rules = _rules_with(found)
    with transaction.atomic():
        # The first of several callers has the row; the others find another version.
        _change(found, state=State.ACCEPTED, decided_by=actor, decided_at=now(), accepted_seq=found.seq + 1)
        written = write_ruleset(
            tenant_id=tenant_id,
            document={"rules": rules, "seq": found.seq},
            actor=actor,
            summary={"recommendation": {"recommendationId": str(found.pk), "title": found.title}},
        )
        if found.draft_id is not None:
            RuleDraft.objects.filter(tenant=tenant_id, pk=found.draft_id).delete()
    return written


def dismiss_recommendation(
    *,
    tenant_id: UUID,
    recommendation_id: UUID,
    actor: str,
    reason: str,
    until: date | None,
    check_etag: Callable[[str], None],
) -> Recommendation:
    """Dismiss a recommendation: for ever, or until a day.

    It comes back when the day has come, or when it would save twice as much.

    Raises:
        RecommendationNotFound: the tenant has no such recommendation.
        WrongState: it was decided already.
        ValidationFailed: ``until`` is not in the future.
        Conflict: it changed meanwhile.
    """
    if until is not None and until <= now().date():
        raise ValidationFailed.at("/until", "out-of-range", "'until' must be a day in the future.")
    found = read_recommendation(tenant_id=tenant_id, recommendation_id=recommendation_id)
    check_etag(recommendation_etag(found))
    _require_state(found, *Recommendation.UNDECIDED)
    with transaction.atomic():
        _change(
            found,
            state=State.DISMISSED,
            decided_by=actor,
            decided_at=now(),
            reason=reason,
            until=until,
        )
        _record(EventKind.RECOMMENDATION_DISMISSED, found, actor, reason=reason)
    return found


def reopen_recommendation(
    *, tenant_id: UUID, recommendation_id: UUID, actor: str, check_etag: Callable[[str], None]
) -> Recommendation:
    """Open a dismissed recommendation again.

    Raises:
        RecommendationNotFound: the tenant has no such recommendation.
        WrongState: it is not dismissed.
        SameIsOpen: a newer one with the same subject is open.
        Conflict: it changed meanwhile.
    """
    found = read_recommendation(tenant_id=tenant_id, recommendation_id=recommendation_id)
    check_etag(recommendation_etag(found))
    _require_state(found, State.DISMISSED)
    try:
        with transaction.atomic():
            _change(found, state=State.OPEN, decided_by="", decided_at=None, reason="", until=None)
            _record(EventKind.RECOMMENDATION_REOPENED, found, actor)
    except IntegrityError:
        raise SameIsOpen from None
    return found


def _record(kind: EventKind, found: Recommendation, actor: str, *, reason: str = "") -> None:
    record_event(
        kind,
        actor=actor,
        subject=str(found.pk),
        tenant_id=found.tenant_id,
        after={"kind": found.kind, "title": found.title},
        reason=reason,
    )


def _require_state(found: Recommendation, *allowed: str) -> None:
    if found.state not in allowed:
        raise WrongState(state=found.state, allowed=" or ".join(allowed))


def _rules_with(found: Recommendation) -> list[Any]:
    current = read_ruleset(found.tenant_id)
    if current.seq != found.seq:
        raise RulesetMoved(base=found.seq, current=current.seq)
    return apply_edits(current.rules, read_edits(found.patch))


def _change(found: Recommendation, **changes: Any) -> None:
    """Write changes, if nobody has changed it since it was read.

    Raises:
        Conflict: somebody has.
    """
    changes["version"] = found.version + 1
    if not Recommendation.objects.filter(pk=found.pk, version=found.version).update(**changes):
        raise Conflict
    for name, value in changes.items():
        setattr(found, name, value)


def settle_drafts(tenant_id: UUID) -> None:
    """Accept the recommendations whose drafts were published, and open those whose drafts were deleted."""
    drafted = Recommendation.objects.filter(tenant_id=tenant_id, state=State.DRAFTED)
    for found in drafted:
        if found.draft_id and RuleDraft.objects.filter(pk=found.draft_id).exists():
            continue
        revision = (
            DocumentHistory(RevisionKind.RULES, tenant_id)
            .revisions()
            .filter(summary__draft__draftId=str(found.draft_id))
            .first()
        )
        changes: dict[str, Any] = {"state": State.OPEN, "draft_id": None}
        if revision is not None:
            changes = {
                "state": State.ACCEPTED,
                "decided_by": revision.user,
                "decided_at": revision.changed_at,
                "accepted_seq": revision.seq,
            }
        drafted.filter(pk=found.pk, version=found.version).update(**changes, version=found.version + 1)


def recommendation_etag(found: Recommendation) -> str:
    return strong_etag("recommendation", found.pk, found.version)


def recommendation_as_json(found: Recommendation) -> dict[str, Any]:
    """Return the contract's recommendation."""
    return {
        "recommendationId": str(found.pk),
        "tenantId": str(found.tenant_id),
        "kind": found.kind,
        "state": found.state,
        "title": found.title,
        "why": found.why,
        "rules": found.rules,
        "patch": found.patch,
        "evidence": found.evidence,
        "predicted": found.predicted,
        "replayId": None if found.replay_id is None else str(found.replay_id),
        "fingerprint": found.fingerprint,
        "basedOn": {
            "seq": found.seq,
            "window": {"from": found.first_day.isoformat(), "to": found.last_day.isoformat()},
        },
        "minedAt": format_timestamp(found.mined_at),
        "draftId": None if found.draft_id is None else str(found.draft_id),
        "decidedBy": found.decided_by or None,
        "decidedAt": None if found.decided_at is None else format_timestamp(found.decided_at),
        "reason": found.reason or None,
        "until": None if found.until is None else found.until.isoformat(),
        "acceptedSeq": found.accepted_seq,
    }


def mining_as_json(mining: Mining | None) -> dict[str, Any] | None:
    """Return the last search for recommendations, with its report if it is done; None if there was none."""
    if mining is None:
        return None
    return {
        "state": mining.state,
        "progress": mining.progress,
        "requestedBy": mining.requested_by,
        "requestedAt": format_timestamp(mining.requested_at),
        "finishedAt": None if mining.finished_at is None else format_timestamp(mining.finished_at),
        "error": mining.error or None,
        "report": mining.report,
    }
