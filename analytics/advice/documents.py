"""Recommendations and the search for them, as the API shows them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from analytics.advice.outdated import find_outdated
from analytics.advice.proposal import Kind, Variant
from analytics.advice.wording import figures_of_kind, name_saved_time, purpose_of
from analytics.models import Mining, Recommendation
from analytics.replay.figures import Figure  # of a struct
from analytics.replay.result import complete_gateway
from rules.diff import StoredRule
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of, sent_as
from tenantadmin.lib.core.timestamps import Timestamp

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class AdviceWindow(JsonStruct):
    """The days, both included."""

    from_: dt.date
    to: dt.date


class RecommendationBase(JsonStruct):
    """The revision of the rules and the days that it was made from."""

    seq: Count
    window: AdviceWindow


class AdviceChange(JsonStruct):
    """A change of the rules, and what it is predicted to do."""

    variant: Annotated[str, one_of([variant.value for variant in Variant])] | None = None
    title: str
    why: list[str]
    rules: Annotated[list[StoredRule], Meta(description="The rules that are new or changed.")]
    patch: list[Annotated[dict[str, Any], sent_as("analytics.advice.edits.RuleEdit")]]
    predicted: Annotated[dict[str, Any], sent_as("analytics.advice.measure.Prediction")]
    figures: Annotated[list[Figure] | None, Meta(description="What is predicted, in words.")] = None


class RecommendationDocument(AdviceChange):
    """A change of the rules that the service recommends. docs/advice.md says how it is found."""

    recommendation_id: UUID
    tenant_id: UUID
    kind: Annotated[str, one_of([kind.value for kind in Kind])]
    purpose: Annotated[str, Meta(description="What it is good for, for people to read.")] = ""
    saved_time: Annotated[str, Meta(description="What `savedMs` is of, for people to read.")] = ""
    is_outdated: Annotated[
        bool,
        Meta(description="It changes rules that were written since: draft and accept answer 409."),
    ] = msgspec.field(default=False, name="outdated")
    state: Annotated[str, one_of(Recommendation.State.values)]
    caveats: Annotated[list[str], Meta(description="Codes of what the log cannot show.")]
    alternatives: Annotated[
        list[Annotated[dict[str, Any], sent_as("analytics.advice.documents.AdviceChange")]],
        Meta(description="Other ways to the same end. Draft or accept one by its `variant`."),
    ]
    evidence: list[Annotated[dict[str, Any], sent_as("analytics.advice.measure.EvidenceRows")]]
    replay_id: Annotated[
        UUID | None,
        Meta(
            description="The replay of the rules with it. Null if it was removed, long after the decision, "
            "or where an alternative was chosen."
        ),
    ]
    fingerprint: Annotated[str, Meta(description="The same for the same kind and subject.")]
    based_on: RecommendationBase
    mined_at: Timestamp
    draft_id: UUID | None
    decided_by: str | None
    decided_at: Timestamp | None
    reason: Annotated[
        str | None,
        Meta(description="Why it was dismissed, or why it is superseded although it was found again."),
    ]
    until: dt.date | None
    accepted_seq: Annotated[Count | None, Meta(description="The revision of the rules that has it.")]


class MiningState(JsonStruct):
    """The last search for recommendations."""

    state: Annotated[str, one_of(Mining.State.values)]
    progress: Annotated[float, Meta(ge=0, le=1)]
    requested_by: str
    requested_at: Timestamp
    finished_at: Timestamp | None
    error: str | None
    report: Annotated[
        Annotated[dict[str, Any], sent_as("analytics.advice.storing.MiningReport")] | None,
        Meta(description="Of the last search that was done."),
    ]


def describe_recommendation(
    recommendation: Recommendation, outdated: Collection[UUID] | None = None
) -> RecommendationDocument:
    """Return a recommendation. ``outdated`` are the ids of those that change other rules."""
    if outdated is None and recommendation.state in Recommendation.UNDECIDED:
        outdated = find_outdated([recommendation])
    window = AdviceWindow(from_=recommendation.first_day, to=recommendation.last_day)

    def figures(predicted: Mapping[str, Any]) -> list[Figure]:
        return figures_of_kind(predicted["gain"], recommendation.kind)

    return RecommendationDocument.of(
        recommendation,
        variant=recommendation.variant or None,
        figures=figures(recommendation.predicted),
        alternatives=[
            {**one, "figures": msgspec.to_builtins(figures(one["predicted"]))}
            for one in recommendation.alternatives
        ],
        purpose=purpose_of(recommendation.kind),
        saved_time=name_saved_time(recommendation.kind),
        is_outdated=recommendation.pk in (outdated or ()),
        based_on=RecommendationBase(seq=recommendation.seq, window=window),
        decided_by=recommendation.decided_by or None,
        reason=recommendation.reason or None,
    )


def describe_mining(mining: Mining) -> MiningState:
    """Return the last search for recommendations, with its report if it is done."""
    return MiningState.of(mining, error=mining.error or None, report=complete_gateway(mining.report))
