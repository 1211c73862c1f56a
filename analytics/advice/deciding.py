"""Draft, accept, dismiss and reopen recommendations. Contract: docs/advice.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction

from accounts.events import SYSTEM, record_event
from accounts.models.events import EventKind
from analytics.advice.edits import apply_edits, read_edits
from analytics.advice.errors import NothingToWrite, RulesetMoved, SameIsOpen, WrongState
from analytics.advice.mining import queue_mining
from analytics.advice.outdated import is_outdated
from analytics.advice.recommendations import State, read_recommendation, recommendation_etag
from analytics.advice.variants import choose_variant
from analytics.models import Recommendation
from rules.drafts import create_draft
from rules.models import RuleDraft
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.errors import Conflict, ValidationFailed
from tenantadmin.lib.core.rendering import require_etag
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from uuid import UUID

    from rules.ruleset import RulesetState


def draft_recommendation(
    *,
    tenant_id: UUID,
    recommendation_id: UUID,
    actor: str,
    variant: str | None = None,
    expected_etag: str | None = None,
) -> RuleDraft:
    """Make a draft of the ruleset with the recommendation.

    ``variant`` chooses one of its alternatives. ``expected_etag`` is a value of ``If-Match``, or None.

    Raises:
        ValidationFailed: it has no such alternative.
        RecommendationNotFound, TenantNotFound: there is no such recommendation or live tenant.
        WrongState: the recommendation is not open.
        RulesetMoved: the ruleset was written after the search.
        TooManyDrafts: the tenant has reached its limit of drafts.
        Conflict: another caller changed the recommendation first.
    """
    recommendation = _read_in_state(tenant_id, recommendation_id, State.OPEN, expected_etag=expected_etag)
    chosen = choose_variant(recommendation, variant)
    current = read_ruleset(tenant_id)
    rules = _edit_rules(recommendation, current)
    with transaction.atomic():
        draft = create_draft(
            tenant_id=tenant_id,
            document={"name": recommendation.title[:200], "rules": rules, "baseSeq": current.seq},
            actor=actor,
        )
        _change(recommendation, state=State.DRAFTED, draft_id=draft.pk, **chosen)
    return draft


def accept_recommendation(
    *,
    tenant_id: UUID,
    recommendation_id: UUID,
    actor: str,
    variant: str | None = None,
    expected_etag: str | None = None,
    comment: str = "",
) -> RulesetState:
    """Write the ruleset with the recommendation, and queue a search for others.

    The summary of the new revision names the recommendation, and ``comment``.

    ``variant`` chooses one of its alternatives.

    Raises:
        RecommendationNotFound, TenantNotFound: there is no such recommendation or live tenant.
        WrongState: the recommendation was already decided.
        RulesetMoved: the ruleset was written after the search.
        RulesetRejected, ValidationFailed, PlanLimitExceeded: see `write_ruleset`.
        Conflict: another caller changed the recommendation or the ruleset first.
    """
    recommendation = _read_in_state(
        tenant_id, recommendation_id, *Recommendation.UNDECIDED, expected_etag=expected_etag
    )
    chosen = choose_variant(recommendation, variant)
    current = read_ruleset(tenant_id)
    rules = _edit_rules(recommendation, current)
    with transaction.atomic():
        # Of several callers at once, the first changes the version; the others raise Conflict here.
        _change(
            recommendation,
            state=State.ACCEPTED,
            decided_by=actor,
            decided_at=now(),
            accepted_seq=current.seq + 1,
            **chosen,
        )
        written = write_ruleset(
            tenant_id=tenant_id,
            document={"rules": rules, "seq": current.seq},
            actor=actor,
            comment=comment,
            summary={
                "recommendation": {"recommendationId": str(recommendation.pk), "title": recommendation.title}
            },
        )
        if recommendation.draft_id is not None:
            RuleDraft.objects.filter(tenant=tenant_id, pk=recommendation.draft_id).delete()
    queue_mining(tenant_id=tenant_id, actor=SYSTEM)
    return written


def dismiss_recommendation(
    *,
    tenant_id: UUID,
    recommendation_id: UUID,
    actor: str,
    reason: str,
    until: date | None,
    expected_etag: str | None = None,
) -> Recommendation:
    """Dismiss a recommendation, for ever or until the day ``until``.

    It comes back on that day, or earlier if it would save twice as much.

    Raises:
        RecommendationNotFound: the tenant has no such recommendation.
        WrongState: the recommendation was already decided.
        ValidationFailed: ``until`` is not in the future.
        Conflict: another caller changed the recommendation first.
    """
    if until is not None and until <= now().date():
        raise ValidationFailed.at("/until", "out-of-range", "'until' must be a day in the future.")
    recommendation = _read_in_state(
        tenant_id, recommendation_id, *Recommendation.UNDECIDED, expected_etag=expected_etag
    )
    with transaction.atomic():
        _change(
            recommendation,
            state=State.DISMISSED,
            decided_by=actor,
            decided_at=now(),
            reason=reason,
            until=until,
        )
        _record(EventKind.RECOMMENDATION_DISMISSED, recommendation, actor, reason=reason)
    return recommendation


def reopen_recommendation(
    *, tenant_id: UUID, recommendation_id: UUID, actor: str, expected_etag: str | None = None
) -> Recommendation:
    """Open a dismissed recommendation again.

    Raises:
        RecommendationNotFound: the tenant has no such recommendation.
        WrongState: the recommendation is not dismissed.
        SameIsOpen: a newer recommendation with the same subject is open.
        Conflict: another caller changed the recommendation first.
    """
    recommendation = _read_in_state(
        tenant_id, recommendation_id, State.DISMISSED, expected_etag=expected_etag
    )
    try:
        with transaction.atomic():
            _change(recommendation, state=State.OPEN, decided_by="", decided_at=None, reason="", until=None)
            _record(EventKind.RECOMMENDATION_REOPENED, recommendation, actor)
    except IntegrityError:
        raise SameIsOpen from None
    return recommendation


def _read_in_state(
    tenant_id: UUID, recommendation_id: UUID, *allowed: str, expected_etag: str | None
) -> Recommendation:
    """Return a recommendation that is in one of the states ``allowed``, and has the expected version."""
    recommendation = read_recommendation(tenant_id=tenant_id, recommendation_id=recommendation_id)
    require_etag(recommendation_etag(recommendation), expected=expected_etag)
    if recommendation.state not in allowed:
        raise WrongState(state=recommendation.state, allowed=" or ".join(allowed))
    return recommendation


def _edit_rules(recommendation: Recommendation, current: RulesetState) -> list[Mapping[str, Any]]:
    """Return the current rules with the recommendation.

    Raises:
        NothingToWrite: it changes no rule.
        RulesetMoved: the ruleset was written after the search.
    """
    if not recommendation.patch:
        raise NothingToWrite
    if is_outdated(recommendation, current):
        raise RulesetMoved(base=recommendation.seq, current=current.seq)
    return apply_edits(current.rules, read_edits(recommendation.patch))


def _record(kind: EventKind, recommendation: Recommendation, actor: str, *, reason: str = "") -> None:
    record_event(
        kind,
        actor=actor,
        subject=str(recommendation.pk),
        tenant_id=recommendation.tenant_id,
        after={"kind": recommendation.kind, "title": recommendation.title},
        reason=reason,
        repeats={"subject": str(recommendation.pk)},
    )


def _change(recommendation: Recommendation, **changes: Any) -> None:
    """Write changes if the stored version is still the version that was read.

    Raises:
        Conflict: another caller changed the recommendation first.
    """
    changes["version"] = recommendation.version + 1
    if not Recommendation.objects.filter(pk=recommendation.pk, version=recommendation.version).update(
        **changes
    ):
        raise Conflict
    for name, value in changes.items():
        setattr(recommendation, name, value)
