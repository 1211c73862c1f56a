"""Read recommendations. Contract: docs/advice.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from analytics.advice.errors import RecommendationNotFound
from analytics.advice.outdated import find_outdated
from analytics.advice.wording import purpose_of, say_open
from analytics.models import Mining, Recommendation
from tenantadmin.lib.core.rendering import strong_etag

if TYPE_CHECKING:
    from uuid import UUID

State: Final = Recommendation.State
#: The most recommendations in one list. The oldest decided ones are left out.
_LISTED: Final = 100
_STATES: Final = {state: number for number, state in enumerate(State)}


def list_recommendations(*, tenant_id: UUID, state: str | None = None) -> list[Recommendation]:
    """Return a tenant's recommendations by state, undecided ones first, then by search, then by rank."""
    recommendations = Recommendation.objects.filter(tenant_id=tenant_id)
    if state is not None:
        recommendations = recommendations.filter(state=state)
    return sorted(
        recommendations[:_LISTED],
        key=lambda row: (_STATES[State(row.state)], -row.mined_at.timestamp(), row.rank),
    )


def say_open_recommendations(tenant_id: UUID) -> str | None:
    """Say in one line what is recommended to a tenant now, or None if nothing is."""
    undecided = list(Recommendation.objects.filter(tenant_id=tenant_id, state__in=Recommendation.UNDECIDED))
    outdated = find_outdated(undecided)
    searches = Mining.objects.filter(tenant_id=tenant_id, state__in=Mining.UNDER_WAY)
    return say_open(undecided, outdated, is_searching=bool(outdated) and searches.exists())


def read_recommendation(*, tenant_id: UUID, recommendation_id: UUID) -> Recommendation:
    """Return a recommendation.

    Raises:
        RecommendationNotFound: the tenant has no such recommendation.
    """
    recommendation = Recommendation.objects.filter(tenant_id=tenant_id, pk=recommendation_id).first()
    if recommendation is None:
        raise RecommendationNotFound
    return recommendation


def purpose_of_replay(replay_id: UUID) -> str:
    """Return what the recommendation with this replay is good for, or an empty text."""
    kinds = Recommendation.objects.filter(replay=replay_id).values_list("kind", flat=True)
    return next(map(purpose_of, kinds[:1]), "")


def recommendation_etag(recommendation: Recommendation) -> str:
    return strong_etag("recommendation", recommendation.pk, recommendation.version)
