"""Say why a replay no longer tells what publishing would do: its draft or the rules in force have changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory
from rules.models import RuleDraft
from rules.ruleset import read_ruleset
from rules.write import lint_document

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from analytics.models import ReplayRun


@dataclass(frozen=True, slots=True)
class Outdated:
    """What has changed since a replay, for a sentence, and whether it can be done again.

    A replay against earlier rules does not tell what publishing would do.
    """

    reasons: Sequence[str]
    can_repeat: bool = True
    is_against_earlier: bool = False

    def __bool__(self) -> bool:
        return bool(self.reasons)

    @property
    def text(self) -> str:
        return f"This replay is {', and '.join(self.reasons)}."


def find_outdated(runs: Sequence[ReplayRun]) -> list[Outdated]:
    """Return what has changed since each of the finished replays of one live tenant, in at most four queries.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    results = [run.result for run in runs if run.result is not None]
    if not results:
        return [Outdated(()) for _ in runs]
    tenant_id = runs[0].tenant_id
    live = read_ruleset(tenant_id)
    named = {run.subject["draftId"] for run in runs if "draftId" in run.subject}
    drafts = _rules_of_drafts(tenant_id, named)
    earlier = _rules_at(tenant_id, {result["against"].get("seq") for result in results} - {None, live.seq})
    found = []
    for run in runs:
        named_id = run.subject.get("draftId")
        subject = drafts.get(named_id) if named_id else None
        is_gone = subject is None and named_id is not None
        reasons = ["of a draft that was published or deleted"] if is_gone else []
        if subject is not None and run.rules != normalize(subject):
            reasons.append("of an earlier text of the draft")
        is_same = True
        if run.result is not None:
            seq = run.result["against"].get("seq")
            then = {**earlier, live.seq: live.rules}.get(seq)
            # Replays of earlier releases have no number.
            is_same = (
                live.modified_at <= (run.started_at or live.modified_at)
                if seq is None
                else then == live.rules
            )
            if not is_same:
                against = "earlier rules" if seq is None else f"revision {seq}"
                reasons.append(f"against {against}, not the rules in force (revision {live.seq})")
        found.append(Outdated(reasons, can_repeat=not is_gone, is_against_earlier=not is_same))
    return found


def normalize(rules: Sequence[Any]) -> list[Mapping[str, Any]] | None:
    """Return rules with all their defaults, as a replay stores them; None if lint finds errors."""
    normalized = lint_document({"rules": rules}).normalized
    return None if normalized is None else list(normalized)


def _rules_of_drafts(tenant_id: UUID, ids: set[str]) -> dict[str, list[Any]]:
    drafts = RuleDraft.objects.filter(tenant=tenant_id, pk__in=ids)
    return {str(draft.pk): draft.rules for draft in drafts}


def _rules_at(tenant_id: UUID, numbers: set[int]) -> dict[int, Any]:
    if not numbers:
        return {}
    revisions = DocumentHistory(RevisionKind.RULES, tenant_id).revisions().filter(seq__in=numbers)
    return {one.seq: (one.document or {}).get("rules") for one in revisions}
