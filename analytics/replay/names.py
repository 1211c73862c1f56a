"""What replays are called, and what came of them, in one line each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final
from uuid import UUID

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory
from analytics.models import Recommendation, ReplayRun
from analytics.replay.figures import describe_bill, describe_change, middle
from rules.models import RuleDraft
from tenantadmin.lib.core import formats

_UNNAMED: Final = "a draft without a name"


def name_replays(runs: Collection[ReplayRun]) -> dict[UUID, str]:
    """Return what each run of a tenant replayed, in at most three queries."""
    if not runs:
        return {}
    tenant_id = next(iter(runs)).tenant_id
    titles: dict[UUID | None, str] = dict(
        Recommendation.objects.filter(tenant_id=tenant_id, replay__in=[run.pk for run in runs]).values_list(
            "replay_id", "title"
        )
    )
    wanted = {run.subject["draftId"] for run in runs if "draftId" in run.subject}
    drafts = {
        str(key): name or _UNNAMED
        for key, name in RuleDraft.objects.filter(tenant=tenant_id, pk__in=wanted).values_list("pk", "name")
    }
    if gone := sorted(wanted - drafts.keys()):
        revisions = DocumentHistory(RevisionKind.RULES, tenant_id).revisions()
        published = revisions.filter(summary__draft__draftId__in=gone).values_list("seq", "summary__draft")
        for seq, draft in published:
            drafts[draft["draftId"]] = f"{draft['name'] or _UNNAMED}, published as revision {seq}"

    def name(run: ReplayRun) -> str:
        if run.pk in titles:
            return titles[run.pk]
        if (seq := run.subject.get("seq")) is not None:
            return f"revision {seq}"
        if (draft := run.subject.get("draftId")) is not None:
            return drafts.get(draft, "a deleted draft")
        return "rules that a program sent"

    return {run.pk: name(run) for run in runs}


def describe_outcome(
    *, saved: Mapping[str, Any], saved_before: Mapping[str, Any], billed: Mapping[str, Any] | None
) -> str:
    """Say in a few words what rules would change: on the bill if there is a price, else in warehouse time.

    Args:
        saved: ``savedMs`` of the replay's result.
        saved_before: the same under the rules in force.
        billed: ``billed.gain`` of the result.
    """
    if billed and billed.get("money"):
        return f"On the bill: {describe_bill(billed, billed['money'])[0]}"
    spent = middle(saved_before) - middle(saved)
    text, _ = describe_change(dict.fromkeys(("low", "likely", "high"), spent), formats.duration)
    return f"Warehouse time: {text}"
