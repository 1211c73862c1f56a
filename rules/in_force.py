"""The ruleset that decides a request: a revision, or that in force at a moment. Contract: Change history."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory
from rules.drafts import DraftNotFound, find_draft
from rules.explain import ChosenRuleset
from rules.ruleset import read_caching, read_ruleset
from rules.write import lint_document
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.core.timestamps import format_timestamp

if TYPE_CHECKING:
    from accounts.models import Revision


@dataclass(frozen=True, slots=True)
class ChosenRules:
    """Rules and their source."""

    rules: Sequence[dict[str, Any]]
    ruleset: ChosenRuleset


def choose_rules(
    tenant_id: UUID, *, seq: int | None = None, draft_id: UUID | None = None, at: dt.datetime | None = None
) -> ChosenRules:
    """Return the rules of a revision or draft, else the rules in force at ``at``, else the current rules.

    Raises:
        ValidationFailed: there is no such revision or draft, the tenant was deleted with the revision, or the
            draft has lint errors.
        TenantNotFound: there is no such live tenant, and the current rules or a draft are needed.
    """
    if draft_id is not None:
        return _of_draft(tenant_id, draft_id)
    history = DocumentHistory(RevisionKind.RULES, tenant_id).revisions()
    if seq is not None:
        revision = history.filter(seq=seq).first()
        if revision is None or revision.document is None:
            raise ValidationFailed.at("/seq", "unknown-revision", f"The rules have no revision {seq}.")
        return _of_revision(revision)
    if at is not None:
        revision = history.filter(changed_at__lte=at).first()
        if revision is not None:
            return _of_revision(revision)
    current = read_ruleset(tenant_id)
    return _chosen(current.rules, seq=current.seq, changed_at=current.modified_at, in_force=at is None)


def _of_revision(revision: Revision) -> ChosenRules:
    # The revision of a deletion has no document: no rule was in force.
    rules = (revision.document or {}).get("rules", [])
    return _chosen(rules, seq=revision.seq, changed_at=revision.changed_at)


def _of_draft(tenant_id: UUID, draft_id: UUID) -> ChosenRules:
    try:
        draft = find_draft(tenant_id, draft_id)
    except DraftNotFound as error:
        raise ValidationFailed.at("/draftId", "unknown-draft", error.text) from error
    rules = lint_document({"rules": draft.rules}, caching=read_caching(tenant_id)).normalized
    if rules is None:
        message = "The draft has lint errors, so its rules cannot decide. Correct the errors first."
        raise ValidationFailed.at("/draftId", "lint-errors", message)
    return _chosen(rules, seq=draft.base_seq, changed_at=draft.modified_at, draft_id=draft_id)


def _chosen(
    rules: Sequence[dict[str, Any]],
    *,
    seq: int,
    changed_at: dt.datetime,
    in_force: bool = True,
    draft_id: UUID | None = None,
) -> ChosenRules:
    ruleset = ChosenRuleset(
        seq=seq, draft_id=draft_id, changed_at=format_timestamp(changed_at), in_force=in_force
    )
    return ChosenRules(rules, ruleset)
