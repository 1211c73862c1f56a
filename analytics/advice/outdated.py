"""Find recommendations that are outdated: the rules were written since the search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory, read_pair
from accounts.tenants.errors import TenantNotFound
from rules.ruleset import read_ruleset

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from analytics.models import Recommendation
    from rules.ruleset import RulesetState


def is_outdated(recommendation: Recommendation, current: RulesetState | None = None) -> bool:
    """Return True if the rules differ from the rules of the search, whatever revision they are."""
    return bool(find_outdated([recommendation], current))


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
    others = {seq for seq in seqs if _rules_at(current.tenant_id, seq) != current.rules}
    return {row.pk for row in rows if row.seq in others}


def _rules_at(tenant_id: UUID, seq: int) -> list[Any]:
    document, _ = read_pair(DocumentHistory(RevisionKind.RULES, tenant_id), earlier=seq, later=seq)
    rules: list[Any] = document.get("rules", [])
    return rules
