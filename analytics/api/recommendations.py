"""Recommendations and their effects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from django.urls import reverse
from msgspec import Meta
from rest_framework.response import Response
from rest_framework.serializers import DictField, ListField, ValidationError

from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.serializers.history import CommentParameters
from accounts.viewsets import AppViewSet
from analytics.advice.follow import RecommendationEffect, describe_effect, read_effect
from analytics.advice.proposal import Variant
from analytics.advice.recommend import (
    Decision,
    MiningState,
    RecommendationDocument,
    describe_mining,
    describe_recommendation,
    draft_together,
    find_outdated,
    list_recommendations,
    read_mining,
    read_recommendation,
    recommendation_etag,
    request_mining,
)
from analytics.advice.summary import describe_ledger
from analytics.advice.words import describe_possible
from analytics.models import Recommendation
from analytics.models import Recommendation as RecommendationRow
from rules.api.drafts import draft_response
from rules.api.rules import ruleset_response
from rules.drafts import DraftDocument
from rules.ruleset import TenantRules
from rules.write import RulesetRefusal
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.http.hal import ETAG, IF_MATCH, IF_NONE_MATCH, ItemList, hrefs, item, not_modified
from tenantadmin.lib.http.schema import NOT_MODIFIED, refusal
from tenantadmin.lib.http.serializers import (
    DayField,
    OneOfField,
    StrictCharField,
    StrictSerializer,
    StrictUuidField,
)
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


_VARIANTS = [variant.value for variant in Variant]


class RecommendationParameters(StrictSerializer):
    """Which recommendations are listed."""

    state = OneOfField(choices=RecommendationRow.State.values, required=False)


class VariantParameters(StrictSerializer):
    """Which variant of a recommendation is drafted or accepted."""

    variant = OneOfField(
        choices=_VARIANTS,
        required=False,
        help_text="One of `alternatives`. Default: the recommendation itself.",
    )


class AcceptParameters(VariantParameters, CommentParameters):
    pass


class DraftsBody(StrictSerializer):
    """Which recommendations one draft has."""

    recommendations = ListField(child=StrictUuidField(), min_length=1, max_length=100)
    variants = DictField(
        child=OneOfField(choices=_VARIANTS),
        required=False,
        help_text="By the id of a recommendation, the one of its `alternatives` to take.",
    )

    def validate_recommendations(self, value: list[UUID]) -> list[UUID]:
        if len(set(value)) < len(value):
            raise ValidationError("A recommendation is there twice.", code="duplicate")
        return value


class DismissBody(StrictSerializer):
    """Why a recommendation is dismissed, and until when."""

    reason = StrictCharField(max_length=1000)
    until = DayField(required=False, help_text="The day on which it may come back. Default: never.")


_DECIDED = refusal(409, "It was decided already, it changed, or the rules were written since.")


class RecommendationList(ItemList):
    mining: Annotated[MiningState | None, Meta(description="Null before the first search.")]
    recommendations: list[RecommendationDocument]
    possible: Annotated[
        str | None,
        Meta(
            description="What the undecided ones could save that fit the rules in force, for people to read."
        ),
    ] = None
    ledger: Annotated[
        str | None,
        Meta(description="What the accepted ones that are listed gain a month and a year, as measured."),
    ] = None


class RecommendationViewSet(AppViewSet):
    """What the service recommends to change in a tenant's rules."""

    tag = "Recommendations"
    prefix = "tenants/<uuid:tenant>/recommendations"

    @route("GET", "", Level.TENANT, Scope.ANALYTICS_NUMBERS, name="recommendations")
    @operation(
        summary="List a tenant's recommendations, those to decide first",
        query=RecommendationParameters,
        responses={200: RecommendationList},
    )
    def list_recommendations(self, request: Request, tenant: UUID) -> Response:
        """`mining` is the last search. Its report says what is not proposed, and why."""
        recommendations = list_recommendations(tenant_id=tenant, state=self.query.get("state"))
        href = hrefs("recommendation", tenant=tenant, recommendationId=tenant)
        mining = read_mining(tenant_id=tenant)
        undecided = [row for row in recommendations if row.state in Recommendation.UNDECIDED]
        outdated = find_outdated(undecided)
        return Response(
            RecommendationList(
                links=self.links("tenant", (item(str(row.pk), href(row.pk)) for row in recommendations)),
                mining=None if mining is None else describe_mining(mining),
                recommendations=[describe_recommendation(row, outdated) for row in recommendations],
                possible=describe_possible(undecided, outdated),
                ledger=describe_ledger(recommendations),
            )
        )

    @route("POST", "", Level.TENANT, Scope.ANALYTICS_READ, needs_no_reason=True)
    @operation(
        summary="Search for recommendations now",
        queue="REPLAY_LIMIT",
        responses={202: MiningState, 429: refusal(429, "Too many searches were started.")},
    )
    def request_recommendations(self, request: Request, tenant: UUID) -> Response:
        """A search also runs each night. It is done when `mining.state` of the list (`Location`) is `done`.

        The same log and rules give the same recommendations; then nothing is computed again.
        """
        mining = request_mining(tenant_id=tenant, actor=self.principal.email)
        location = reverse("recommendations", kwargs={"tenant": tenant})
        return Response(describe_mining(mining), status=202, headers={"Location": location})

    @route("GET", "/<uuid:recommendationId>", Level.TENANT, Scope.ANALYTICS_NUMBERS, name="recommendation")
    @operation(
        summary="Read a recommendation",
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: RecommendationDocument, 304: NOT_MODIFIED},
    )
    def get_recommendation(self, request: Request, tenant: UUID, recommendationId: UUID) -> Response:  # noqa: N803
        """The rules, why, what they are predicted to do, and SQL that shows it."""
        recommendation = read_recommendation(tenant_id=tenant, recommendation_id=recommendationId)
        return not_modified(request, recommendation_etag(recommendation)) or _response(recommendation)

    @route(
        "POST",
        "/<uuid:recommendationId>/draft",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        also=Scope.CONFIG_WRITE,
        name="recommendation-draft",
    )
    @operation(
        summary="Make a draft of the rules with a recommendation",
        query=VariantParameters,
        headers=[IF_MATCH, ETAG],
        responses={201: DraftDocument, 409: _DECIDED},
    )
    def draft_recommendation(self, request: Request, tenant: UUID, recommendationId: UUID) -> Response:  # noqa: N803
        """`If-Match` has the tag of the recommendation. Publishing the draft accepts it."""
        draft = self._decision(tenant, recommendationId).draft(self.query.get("variant"))
        return draft_response(draft, status=201, Location=_draft_href(tenant, draft.pk))

    @route(
        "POST",
        "/drafts",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        also=Scope.CONFIG_WRITE,
        name="recommendation-drafts",
    )
    @operation(
        summary="Make one draft of the rules with several recommendations",
        body=DraftsBody,
        headers=[ETAG],
        responses={201: DraftDocument, 409: refusal(409, "Two of them exclude each other, or as for one.")},
    )
    def draft_recommendations(self, request: Request, tenant: UUID) -> Response:
        """Its replay is of all together, and publishing it accepts all: the cache is emptied once."""
        wanted, variants = self.body["recommendations"], self.body.get("variants", {})
        if others := variants.keys() - set(map(str, wanted)):
            path = f"/variants/{min(others)}"
            raise ValidationFailed.at(path, "unknown-value", "It is none of 'recommendations'.")
        draft = draft_together(
            {key: variants.get(str(key)) for key in wanted}, tenant_id=tenant, actor=self.principal.email
        )
        return draft_response(draft, status=201, Location=_draft_href(tenant, draft.pk))

    @route(
        "POST",
        "/<uuid:recommendationId>/accept",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        also=Scope.CONFIG_WRITE,
        name="recommendation-accept",
    )
    @operation(
        summary="Accept a recommendation",
        query=AcceptParameters,
        headers=[IF_MATCH, ETAG],
        responses={200: TenantRules, 400: RulesetRefusal, 409: _DECIDED},
    )
    def accept_recommendation(self, request: Request, tenant: UUID, recommendationId: UUID) -> Response:  # noqa: N803
        """Writes the rules with it. `If-Match` has the tag of the recommendation.

        The new revision names it. The others are searched again, for the new rules.
        """
        variant, comment = self.query.get("variant"), self.query.get("comment", "")
        return ruleset_response(self._decision(tenant, recommendationId).accept(variant, comment=comment))

    @route(
        "POST",
        "/<uuid:recommendationId>/dismiss",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        also=Scope.CONFIG_WRITE,
        name="recommendation-dismiss",
    )
    @operation(
        summary="Dismiss a recommendation",
        body=DismissBody,
        headers=[IF_MATCH, ETAG],
        responses={200: RecommendationDocument, 409: _DECIDED},
    )
    def dismiss_recommendation(self, request: Request, tenant: UUID, recommendationId: UUID) -> Response:  # noqa: N803
        """It comes back on the day `until`, or when it would save twice as much."""
        reason, until = self.body["reason"], self.body.get("until")
        return _response(self._decision(tenant, recommendationId).dismiss(reason, until=until))

    @route(
        "POST",
        "/<uuid:recommendationId>/reopen",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        also=Scope.CONFIG_WRITE,
        name="recommendation-reopen",
    )
    @operation(
        summary="Open a dismissed recommendation again",
        headers=[IF_MATCH, ETAG],
        responses={200: RecommendationDocument, 409: _DECIDED},
    )
    def reopen_recommendation(self, request: Request, tenant: UUID, recommendationId: UUID) -> Response:  # noqa: N803
        """Only a dismissed one can be opened."""
        return _response(self._decision(tenant, recommendationId).reopen())

    @route(
        "GET",
        "/<uuid:recommendationId>/effect",
        Level.TENANT,
        Scope.ANALYTICS_NUMBERS,
        name="recommendation-effect",
    )
    @operation(
        summary="Read what an accepted recommendation did",
        responses={200: RecommendationEffect, 409: refusal(409, "The recommendation is not accepted.")},
    )
    def get_recommendation_effect(
        self,
        request: Request,
        tenant: UUID,
        recommendationId: UUID,  # noqa: N803
    ) -> Response:
        """Measured daily, after 3 whole days, for at most 28 days or until the rules are written again."""
        effect = read_effect(tenant_id=tenant, recommendation_id=recommendationId)
        return Response(describe_effect(effect))

    def _decision(self, tenant: UUID, recommendation: UUID) -> Decision:
        return Decision(
            tenant_id=tenant,
            recommendation_id=recommendation,
            actor=self.principal.email,
            expected_etag=self.request.headers.get("If-Match"),
        )


def _response(recommendation: Recommendation) -> Response:
    return Response(
        describe_recommendation(recommendation), headers={"ETag": recommendation_etag(recommendation)}
    )


def _draft_href(tenant: UUID, draft: UUID) -> str:
    return reverse("rules-draft", kwargs={"tenant": tenant, "draft": draft})
