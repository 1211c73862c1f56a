"""List, describe, draft, accept, dismiss and reopen recommendations. Contract: docs/advice.md."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.signals import post_delete
from django.dispatch import receiver
from msgspec import Meta

from accounts.events import SYSTEM, record_event
from accounts.limits import count_use
from accounts.models.events import EventKind
from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory, read_pair
from accounts.tenants.config import read_prices, read_warehouse
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from accounts.tenants.pricing import Pricing
from analytics.advice.combine import Exclusive, combine_edits, with_own_ids
from analytics.advice.proposal import Kind, Variant, read_edits
from analytics.advice.summary import AdviceSummary, summarize
from analytics.advice.words import describe_open, figures_of_kind, name_saved_time, purpose_of
from analytics.models import Mining, Recommendation
from analytics.replay.figures import Figure
from rules.diff import StoredRule
from rules.drafts import create_draft
from rules.models import RuleDraft
from rules.ruleset import read_ruleset
from rules.write import write_ruleset
from tenantadmin.lib.core.errors import Conflict, Detail, NotFound, ValidationFailed
from tenantadmin.lib.core.rendering import require_etag, strong_etag
from tenantadmin.lib.core.structs import Count, JsonStruct, one_of, sent_as
from tenantadmin.lib.core.timestamps import Timestamp, now

if TYPE_CHECKING:
    from rules.ruleset import RulesetState


class RecommendationNotFound(NotFound):
    message = "There is no such recommendation."


class WrongState(Conflict):
    """The recommendation was already decided."""

    code = "conflict"

    def __init__(self, *, state: str, allowed: str) -> None:
        super().__init__(f"The recommendation is {state}; this is possible while it is {allowed}.")


class RulesetMoved(Conflict):
    """The ruleset was written after the recommendation was made."""

    def __init__(self, *, base: int, current: int) -> None:
        super().__init__(
            f"The rules are at revision {current}, and the recommendation is based on revision {base}. "
            "Search for recommendations again."
        )


class NothingToWrite(Conflict):
    code = "conflict"
    message = "This changes no rule. Its reasons say what to change, and where."


class ExcludeEachOther(Conflict):
    """Two recommendations want different things of one rule. ``details`` has the place of each."""

    code = "conflict"

    def __init__(self, titles: Mapping[int, str], *, rule_id: str) -> None:
        first, second = titles.values()
        super().__init__(
            f"“{first}” and “{second}” change the rule “{rule_id}” in different ways. Choose one of them.",
            details=[
                Detail(f"/recommendations/{place}", "excludes-each-other", title)
                for place, title in titles.items()
            ],
        )


class SameIsOpen(Conflict):
    code = "conflict"
    message = "The same recommendation is open again. Decide that one."


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
    patch: list[Annotated[dict[str, Any], sent_as("analytics.advice.proposal.RuleEdit")]]
    predicted: Annotated[dict[str, Any], sent_as("analytics.advice.measure.Prediction")]
    figures: Annotated[list[Figure] | None, Meta(description="What is predicted, in words.")] = None


class RecommendationDocument(AdviceChange):
    """A change of the rules that the service recommends. docs/advice.md says how it is found."""

    recommendation_id: UUID
    tenant_id: UUID
    kind: Annotated[str, one_of([kind.value for kind in Kind])]
    summary: AdviceSummary
    purpose: Annotated[str, Meta(description="What it is good for, for people to read.")] = ""
    saved_time: Annotated[str, Meta(description="What `savedMs` is of, for people to read.")] = ""
    is_outdated: Annotated[
        bool,
        Meta(description="It changes rules that were written since: draft and accept answer 409."),
    ] = msgspec.field(default=False, name="outdated")
    state: Annotated[str, one_of(Recommendation.State.values)]
    caveats: Annotated[list[str], Meta(description="Codes of what the log cannot show.")]
    alternatives: Annotated[
        list[Annotated[dict[str, Any], sent_as("analytics.advice.recommend.AdviceChange")]],
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
        Annotated[dict[str, Any], sent_as("analytics.advice.search.MiningReport")] | None,
        Meta(description="Of the last search that was done."),
    ]


def describe_recommendation(
    recommendation: Recommendation, outdated: Collection[UUID] | None = None
) -> RecommendationDocument:
    """Return a recommendation. ``outdated`` are the ids of those that change other rules."""
    if outdated is None and recommendation.state in Recommendation.UNDECIDED:
        outdated = find_outdated([recommendation])
    window = AdviceWindow(from_=recommendation.first_day, to=recommendation.last_day)
    is_setting = recommendation.kind == Kind.AUTO_SUSPEND and recommendation.state in Recommendation.UNDECIDED
    warehouse = read_warehouse(recommendation.tenant_id) if is_setting else None

    def figures(predicted: Mapping[str, Any]) -> list[Figure]:
        return figures_of_kind(predicted["gain"], recommendation.kind)

    return RecommendationDocument.of(
        recommendation,
        variant=recommendation.variant or None,
        summary=summarize(recommendation, warehouse=warehouse),
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
    return MiningState.of(mining, error=mining.error or None, report=mining.report)


def find_outdated(
    recommendations: Iterable[Recommendation], current: RulesetState | None = None
) -> set[UUID]:
    """Return the ids of a tenant's recommendations that change other rules than the current ones.

    The rules of a deleted tenant are gone, so none of its recommendations is outdated.
    """
    rows = [row for row in recommendations if row.patch or any(one["patch"] for one in row.alternatives)]
    try:
        current = current or (read_ruleset(rows[0].tenant_id) if rows else None)
    except TenantNotFound:
        current = None
    if current is None:
        return set()
    seqs = {row.seq for row in rows if row.seq != current.seq}
    others = {seq for seq in seqs if rules_at(current.tenant_id, seq) != current.rules}
    return {row.pk for row in rows if row.seq in others}


def rules_at(tenant_id: UUID, seq: int) -> list[Any]:
    """Return the rules of a revision."""
    document, _ = read_pair(DocumentHistory(RevisionKind.RULES, tenant_id), earlier=seq, later=seq)
    rules: list[Any] = document.get("rules", [])
    return rules


State: Final = Recommendation.State
#: The most recommendations in one list. The oldest decided ones are left out.
_LISTED: Final = 100
#: What can be decided is one list, drafted or not.
_STATES: Final = {state: max(number, 1) for number, state in enumerate(State)}


def list_recommendations(*, tenant_id: UUID, state: str | None = None) -> list[Recommendation]:
    """Return a tenant's recommendations by state, undecided ones first, then by search, then by rank."""
    recommendations = Recommendation.objects.filter(tenant_id=tenant_id).select_related("effect")
    if state is not None:
        recommendations = recommendations.filter(state=state)
    return sorted(
        recommendations[:_LISTED],
        key=lambda row: (_STATES[State(row.state)], -row.mined_at.timestamp(), row.rank),
    )


def describe_open_recommendations(tenant_id: UUID) -> str | None:
    """Say in one line what is recommended to a tenant now, or None if nothing is."""
    undecided = list(Recommendation.objects.filter(tenant_id=tenant_id, state__in=Recommendation.UNDECIDED))
    outdated = find_outdated(undecided)
    searches = Mining.objects.filter(tenant_id=tenant_id, state__in=Mining.UNDER_WAY)
    return describe_open(undecided, outdated, is_searching=bool(outdated) and searches.exists())


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


def choose_variant(recommendation: Recommendation, variant: str | None) -> dict[str, Any]:
    """Make an alternative the change that the recommendation is. Return the fields that changed.

    Nothing is stored. None, and the variant that it is already, change nothing.

    Raises:
        ValidationFailed: the recommendation has no such alternative.
    """
    if variant in {None, recommendation.variant}:
        return {}
    names = [one["variant"] for one in recommendation.alternatives]
    if variant not in names:
        known = ", ".join(filter(None, [recommendation.variant, *names])) or "none"
        raise ValidationFailed.at(
            "/variant", "out-of-range", f"This recommendation has no variant '{variant}'. It has: {known}."
        )
    chosen = recommendation.alternatives[names.index(variant)]
    own = {name: getattr(recommendation, name) for name in chosen}
    # The replay belongs to the other change.
    fields = {
        **chosen,
        "alternatives": [own if one is chosen else one for one in recommendation.alternatives],
        "replay": None,
    }
    for name, value in fields.items():
        setattr(recommendation, name, value)
    return fields


def request_mining(*, tenant_id: UUID, actor: str) -> Mining:
    """Queue a search, unless one waits or runs.

    Raises:
        TenantNotFound: there is no such live tenant.
        RateLimited: the tenant has started too many searches.
    """
    require_live_tenant(tenant_id)
    with transaction.atomic():
        if not Mining.objects.filter(pk=tenant_id, state__in=Mining.UNDER_WAY).exists():
            count_use(limit=settings.REPLAY_LIMIT, kind="recommendations", key=str(tenant_id))
            record_event(
                EventKind.RECOMMENDATIONS_REQUESTED,
                actor=actor,
                subject=str(tenant_id),
                tenant_id=tenant_id,
            )
        return queue_mining(tenant_id=tenant_id, actor=actor)


def queue_mining(*, tenant_id: UUID, actor: str) -> Mining:
    """Queue a search without checking the rate limit. For scheduled jobs."""
    with transaction.atomic():
        mining, _ = Mining.objects.select_for_update().get_or_create(
            tenant_id=tenant_id, defaults={"state": Mining.State.DONE, "requested_by": actor}
        )
        if mining.state not in Mining.UNDER_WAY:
            mining.state, mining.progress, mining.error = Mining.State.QUEUED, 0, ""
            mining.requested_by, mining.requested_at, mining.finished_at = actor, now(), None
            mining.due_at, mining.attempts = now(), 0
            mining.save()
    return mining


def read_mining(*, tenant_id: UUID) -> Mining | None:
    """Return the last search of a tenant, or None if there was none."""
    return Mining.objects.filter(pk=tenant_id).first()


def draft_together(variants: Mapping[UUID, str | None], *, tenant_id: UUID, actor: str) -> RuleDraft:
    """Make one draft of the ruleset with several open recommendations. Publishing it accepts all of them.

    ``variants`` has the alternative to take for each recommendation; None: the recommendation itself.

    Raises:
        RecommendationNotFound, TenantNotFound: there is no such recommendation or live tenant.
        WrongState: one is not open.
        ValidationFailed: one has no such alternative.
        NothingToWrite: one changes no rule.
        RulesetMoved: the ruleset was written after the search.
        ExcludeEachOther: two of them change the same part of a rule.
        TooManyDrafts: the tenant has reached its limit of drafts.
        Conflict: another caller changed one of them first.
    """
    found = Recommendation.objects.filter(tenant_id=tenant_id).in_bulk(list(variants))
    if len(found) < len(variants):
        raise RecommendationNotFound
    recommendations = [found[key] for key in variants]
    for recommendation in recommendations:
        if recommendation.state != State.OPEN:
            raise WrongState(state=recommendation.state, allowed=State.OPEN)
    chosen = [choose_variant(row, variants[row.pk]) for row in recommendations]
    current = read_ruleset(tenant_id)
    rules = _rules_with(recommendations, current)
    more = f" and {len(recommendations) - 1} more" if len(recommendations) > 1 else ""
    with transaction.atomic():
        draft = create_draft(
            tenant_id=tenant_id,
            document={
                "name": f"{recommendations[0].title[: 200 - len(more)]}{more}",
                "rules": rules,
                "baseSeq": current.seq,
            },
            actor=actor,
        )
        for recommendation, fields in zip(recommendations, chosen, strict=True):
            _change(recommendation, state=State.DRAFTED, draft_id=draft.pk, **fields)
    return draft


def _rules_with(recommendations: Sequence[Recommendation], current: RulesetState) -> list[Mapping[str, Any]]:
    """Return the current rules with the recommendations."""
    if not all(row.patch for row in recommendations):
        raise NothingToWrite
    if outdated := find_outdated(recommendations, current):
        seq = next(row.seq for row in recommendations if row.pk in outdated)
        raise RulesetMoved(base=seq, current=current.seq)
    try:
        groups = with_own_ids(current.rules, [read_edits(row.patch) for row in recommendations])
        return combine_edits(current.rules, groups)
    except Exclusive as error:
        places = (error.first, error.second)
        titles = {place: recommendations[place].title for place in places}
        raise ExcludeEachOther(titles, rule_id=error.rule_id) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What a caller decides about a recommendation. ``expected_etag`` is a value of ``If-Match``, or None.

    Each method raises:
        RecommendationNotFound, TenantNotFound: there is no such recommendation or live tenant.
        WrongState: it is possible only in another state of the recommendation.
        Conflict: another caller changed the recommendation first.
    """

    tenant_id: UUID
    recommendation_id: UUID
    actor: str
    expected_etag: str | None = None

    def draft(self, variant: str | None = None) -> RuleDraft:
        """Make a draft of the ruleset with the recommendation. ``variant`` chooses one of its alternatives.

        Raises:
            ValidationFailed: it has no such alternative.
            NothingToWrite, RulesetMoved, TooManyDrafts: see `draft_together`.
        """
        self._read(State.OPEN)
        return draft_together({self.recommendation_id: variant}, tenant_id=self.tenant_id, actor=self.actor)

    def accept(self, variant: str | None = None, *, comment: str = "") -> RulesetState:
        """Write the ruleset with the recommendation, and queue a search for others.

        The summary of the new revision names the recommendation, and ``comment``. ``variant`` chooses one of
        the alternatives.

        Raises:
            NothingToWrite: it changes no rule.
            RulesetMoved: the ruleset was written after the search.
            RulesetRejected, ValidationFailed, PlanLimitExceeded, Conflict: see `write_ruleset`.
        """
        recommendation = self._read(*Recommendation.UNDECIDED)
        chosen = choose_variant(recommendation, variant)
        current = read_ruleset(self.tenant_id)
        rules = _rules_with([recommendation], current)
        with transaction.atomic():
            # Of several callers at once, the first changes the version; the others raise Conflict here.
            self._decide(recommendation, State.ACCEPTED, accepted_seq=current.seq + 1, **chosen)
            named = {"recommendationId": str(recommendation.pk), "title": recommendation.title}
            written = write_ruleset(
                tenant_id=self.tenant_id,
                document={"rules": rules, "seq": current.seq},
                actor=self.actor,
                comment=comment,
                summary={"recommendation": named},
            )
            if recommendation.draft_id is not None:
                RuleDraft.objects.filter(tenant=self.tenant_id, pk=recommendation.draft_id).delete()
        queue_mining(tenant_id=self.tenant_id, actor=SYSTEM)
        return written

    def dismiss(self, reason: str, *, until: date | None) -> Recommendation:
        """Dismiss a recommendation, for ever or until the day ``until``.

        It comes back on that day, or earlier if it would save twice as much.

        Raises:
            ValidationFailed: ``until`` is not in the future.
        """
        if until is not None and until <= now().date():
            raise ValidationFailed.at("/until", "out-of-range", "'until' must be a day in the future.")
        recommendation = self._read(*Recommendation.UNDECIDED)
        with transaction.atomic():
            self._decide(recommendation, State.DISMISSED, reason=reason, until=until)
            self._record(EventKind.RECOMMENDATION_DISMISSED, recommendation, reason=reason)
        return recommendation

    def reopen(self) -> Recommendation:
        """Open a dismissed recommendation again.

        Raises:
            SameIsOpen: a newer recommendation with the same subject is open.
        """
        recommendation = self._read(State.DISMISSED)
        undone = {"decided_by": "", "decided_at": None, "reason": "", "until": None}
        try:
            with transaction.atomic():
                _change(recommendation, state=State.OPEN, **undone)
                self._record(EventKind.RECOMMENDATION_REOPENED, recommendation)
        except IntegrityError:
            raise SameIsOpen from None
        return recommendation

    def _read(self, *allowed: str) -> Recommendation:
        """Return the recommendation. It is in one of the states ``allowed``, and has the expected version."""
        recommendation = read_recommendation(
            tenant_id=self.tenant_id, recommendation_id=self.recommendation_id
        )
        require_etag(recommendation_etag(recommendation), expected=self.expected_etag)
        if recommendation.state not in allowed:
            raise WrongState(state=recommendation.state, allowed=" or ".join(allowed))
        return recommendation

    def _decide(self, recommendation: Recommendation, state: str, **changes: Any) -> None:
        _change(recommendation, state=state, decided_by=self.actor, decided_at=now(), **changes)

    def _record(self, kind: EventKind, recommendation: Recommendation, *, reason: str = "") -> None:
        record_event(
            kind,
            actor=self.actor,
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


@receiver(post_delete, sender=RuleDraft)
def settle_draft(instance: RuleDraft, **_: Any) -> None:
    """Accept the recommendations whose draft was published, and open them if the draft was deleted.

    It runs in the transaction that publishes or deletes the draft. The others are searched again for the
    new rules: until then they would change the old ones, and could not be accepted.
    """
    drafted = Recommendation.objects.filter(
        tenant_id=instance.tenant_id, state=State.DRAFTED, draft_id=instance.pk
    )
    if not drafted:
        return
    revision = (
        DocumentHistory(RevisionKind.RULES, instance.tenant_id)
        .revisions()
        .filter(summary__draft__draftId=str(instance.pk))
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
        queue_mining(tenant_id=instance.tenant_id, actor=SYSTEM)
    for recommendation in drafted:
        drafted.filter(pk=recommendation.pk, version=recommendation.version).update(
            **changes, version=recommendation.version + 1
        )


def settle_suspends(tenant_id: UUID) -> None:
    """Accept the recommendation of a time until the warehouse suspends that the prices have now."""
    undecided = Recommendation.objects.filter(
        tenant_id=tenant_id, kind=Kind.AUTO_SUSPEND, state__in=Recommendation.UNDECIDED
    )
    if not undecided:
        return
    in_force = Pricing.of(read_prices(tenant_id)).on(now().date())
    for recommendation in undecided:
        if in_force.suspend_seconds == recommendation.predicted["autoSuspend"]["then"]:
            undecided.filter(pk=recommendation.pk, version=recommendation.version).update(
                state=State.ACCEPTED,
                decided_by=SYSTEM,
                decided_at=now(),
                version=recommendation.version + 1,
            )
