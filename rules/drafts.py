"""Drafts of rulesets: write, compare and publish them. Contract: Cache rules, Change history.

A draft is published by the function that writes every ruleset (`rules.write.write_ruleset`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from django.db import transaction
from msgspec import Meta

from accounts.events import record_event
from accounts.limits import Quota, use_quota
from accounts.models.events import EventKind
from accounts.models.history import RevisionKind
from accounts.revisions import DocumentHistory, read_pair
from accounts.tenants.errors import TenantNotFound
from rules.diff import RuleChange, RulesDiff, complete_rules, diff_rules, rebase_rules
from rules.lint import lint_write, report_lint
from rules.markers import active_marker_targets
from rules.models import RuleDraft, Ruleset
from rules.ruleset import RulesetState, read_ruleset, with_log
from rules.write import RulesetRejected, write_ruleset
from tenantadmin.lib.core.errors import BadRequest, Conflict, NotFound, ValidationFailed
from tenantadmin.lib.core.rendering import require_etag, strong_etag
from tenantadmin.lib.core.structs import Count, JsonStruct, free_form, schema_ref
from tenantadmin.lib.core.timestamps import Timestamp, now

if TYPE_CHECKING:
    from rules.lint import LintResult


#: The maximum length of a name that is made.
_MAX_NAME: Final = 100


class DraftNotFound(NotFound):
    message = "There is no such draft."


class TooManyDrafts(BadRequest):
    """The tenant has the maximum number of drafts."""

    def __init__(self) -> None:
        super().__init__(
            f"A tenant has at most {settings.MAX_RULE_DRAFTS} drafts. Delete or publish one first."
        )


class BaseMoved(Conflict):
    """The ruleset was written after the draft was made from it."""

    def __init__(self, *, base: int, current: int) -> None:
        super().__init__(
            f"The rules are at revision {current}, and the draft is based on revision {base}. Compare "
            f"them, put the draft again with 'baseSeq' {current}, and publish that."
        )


class DraftHead(JsonStruct):
    """A draft without its rules."""

    id: UUID = msgspec.field(name="draftId")
    tenant_id: UUID
    name: str
    base_seq: Annotated[Count, Meta(description="The revision that the draft changes.")]
    lint: Annotated[
        dict[str, Any],
        schema_ref("RuleLintResult"),
        Meta(description="Of the last write of the draft."),
    ]
    created_at: Timestamp
    created_by: str
    modified_at: Timestamp
    modified_by: str


class DraftDocument(DraftHead):
    """A ruleset that is not published."""

    rules: list[Annotated[dict[str, Any], free_form()] | None]


@dataclass(frozen=True, slots=True)
class DraftDiff:
    """The changes that publishing a draft makes, and the rules that others have changed too."""

    base_seq: int
    current_seq: int
    changes: RulesDiff
    conflicts: tuple[str, ...]


def draft_etag(draft: RuleDraft) -> str:
    return strong_etag("draft", draft.pk, draft.version)


def list_drafts(tenant_id: UUID) -> list[RuleDraft]:
    """Return a live tenant's drafts, last modified first. Their lint dates from their last write.

    Raises:
        TenantNotFound: there is no such live tenant.
    """
    drafts = list(RuleDraft.objects.of_live_tenant(tenant_id))
    if not drafts and not Ruleset.objects.filter(pk=tenant_id).exists():
        raise TenantNotFound
    return drafts


def find_draft(tenant_id: UUID, draft_id: UUID) -> RuleDraft:
    """Return a draft. Its lint dates from its last write.

    Raises:
        TenantNotFound, DraftNotFound: there is no such live tenant or draft.
    """
    draft = RuleDraft.objects.of_live_tenant(tenant_id).filter(pk=draft_id).first()
    if draft is None:
        read_ruleset(tenant_id)
        raise DraftNotFound
    return draft


def create_draft(*, tenant_id: UUID, document: Mapping[str, Any], actor: str) -> RuleDraft:
    """Create a draft, by default of the current rules.

    ``document`` may have ``name`` (by default what the draft changes), ``rules`` (any array) and
    ``baseSeq``.

    Raises:
        TenantNotFound: there is no such live tenant.
        TooManyDrafts: the tenant has the maximum number of drafts.
        ValidationFailed: there is no revision ``baseSeq``.
        RateLimited: see `use_quota`.
    """
    current = read_ruleset(tenant_id)
    rules = document.get("rules", current.rules)
    draft = RuleDraft(
        tenant_id=tenant_id,
        name=document.get("name") or _name_of(rules, current),
        rules=rules,
        base_seq=_base_seq(document, current, default=current.seq),
        lint=_lint(rules, current),
        created_by=actor,
        modified_by=actor,
    )
    use_quota(Quota.DOCUMENTS, tenant_id, draft.rules, draft.lint)
    with transaction.atomic():
        # Locks the ruleset: drafts of a tenant are created one at a time, and not after its deletion.
        if not Ruleset.objects.select_for_update(no_key=True).filter(pk=tenant_id).exists():
            raise TenantNotFound
        if RuleDraft.objects.filter(tenant=tenant_id).count() >= settings.MAX_RULE_DRAFTS:
            raise TooManyDrafts
        draft.save(force_insert=True)
        _record(EventKind.DRAFT_CREATED, draft, actor)
    return draft


def replace_draft(
    *,
    tenant_id: UUID,
    draft_id: UUID,
    document: Mapping[str, Any],
    actor: str,
    expected_etag: str | None = None,
) -> RuleDraft:
    """Replace a draft's rules, and its name and base if they are given.

    ``expected_etag`` is a value of ``If-Match``, or None.

    Raises:
        TenantNotFound, DraftNotFound: there is no such live tenant or draft.
        Conflict: the draft changed since it was read.
        ValidationFailed: there is no revision ``baseSeq``.
        RateLimited: see `use_quota`.
    """
    draft = find_draft(tenant_id, draft_id)
    require_etag(draft_etag(draft), expected=expected_etag)
    current = read_ruleset(tenant_id)
    changes = {
        "name": document.get("name", draft.name) or _name_of(document["rules"], current),
        "rules": document["rules"],
        "base_seq": _base_seq(document, current, default=draft.base_seq),
        "lint": _lint(document["rules"], current),
        "version": draft.version + 1,
        "modified_by": actor,
        "modified_at": now(),
    }
    use_quota(Quota.DOCUMENTS, tenant_id, changes["rules"], changes["lint"])
    with transaction.atomic():
        if not RuleDraft.objects.filter(pk=draft.pk, version=draft.version).update(**changes):
            raise Conflict
        for name, value in changes.items():
            setattr(draft, name, value)
        _record(EventKind.DRAFT_CHANGED, draft, actor)
    return draft


def delete_draft(*, tenant_id: UUID, draft_id: UUID, actor: str, expected_etag: str | None = None) -> None:
    """Delete a draft.

    Raises:
        TenantNotFound, DraftNotFound: there is no such live tenant or draft.
        Conflict: the draft changed since it was read.
    """
    draft = find_draft(tenant_id, draft_id)
    require_etag(draft_etag(draft), expected=expected_etag)
    with transaction.atomic():
        _delete(draft)
        _record(EventKind.DRAFT_DELETED, draft, actor)


def diff_draft(tenant_id: UUID, draft_id: UUID) -> DraftDiff:
    """Compare a draft with the current ruleset, and with the changes to the ruleset since the draft's base.

    Leaves out rules without an id. Of several rules with the same id, only the last counts.

    Raises:
        TenantNotFound, DraftNotFound: there is no such live tenant or draft.
    """
    draft = find_draft(tenant_id, draft_id)
    current = read_ruleset(tenant_id)
    base_rules, drafted = _rules_at(draft), complete_rules(draft.rules)
    changed_here = _changed_ids(diff_rules(before=base_rules, after=drafted))
    changed_there = _changed_ids(diff_rules(before=base_rules, after=current.rules))
    changes = diff_rules(before=current.rules, after=drafted)
    still_different = _changed_ids(changes)
    return DraftDiff(
        base_seq=draft.base_seq,
        current_seq=current.seq,
        changes=changes,
        conflicts=tuple(sorted(changed_here & changed_there & still_different)),
    )


def rebase_draft(
    *, tenant_id: UUID, draft_id: UUID, actor: str, expected_etag: str | None = None
) -> RuleDraft:
    """Apply the changes that a draft makes to its base to the current rules, and replace the draft.

    Raises:
        TenantNotFound, DraftNotFound: there is no such live tenant or draft.
        RulesetRejected: lint finds errors in the draft.
        Conflict: the draft changed since it was read.
        RateLimited: see `use_quota`.
    """
    draft = find_draft(tenant_id, draft_id)
    current = read_ruleset(tenant_id)
    result = _check(draft.rules, current, confirmed=active_marker_targets(tenant_id))
    if result.normalized is None:
        raise RulesetRejected(result)
    rebased = rebase_rules(_rules_at(draft), result.normalized, current.rules)
    document = {"rules": rebased, "name": draft.name, "baseSeq": current.seq}
    return replace_draft(
        tenant_id=tenant_id,
        draft_id=draft_id,
        document=document,
        actor=actor,
        expected_etag=expected_etag or draft_etag(draft),
    )


def publish_draft(
    *,
    tenant_id: UUID,
    draft_id: UUID,
    actor: str,
    confirm_deletes: Collection[str] = (),
    comment: str = "",
    expected_etag: str | None = None,
) -> RulesetState:
    """Write a draft's rules as the tenant's ruleset, and delete the draft.

    The summary of the new revision names the draft.

    Raises:
        TenantNotFound, DraftNotFound: there is no such live tenant or draft.
        RulesetRejected, ValidationFailed, PlanLimitExceeded: see `write_ruleset`.
        BaseMoved: the ruleset was written after the draft was made from it.
        Conflict: the ruleset or the draft changed since it was read.
    """
    draft = find_draft(tenant_id, draft_id)
    require_etag(draft_etag(draft), expected=expected_etag)
    current = read_ruleset(tenant_id)
    if current.seq != draft.base_seq:
        raise BaseMoved(base=draft.base_seq, current=current.seq)
    with transaction.atomic():
        written = write_ruleset(
            tenant_id=tenant_id,
            document={"rules": draft.rules, "seq": draft.base_seq},
            actor=actor,
            confirm_deletes=confirm_deletes,
            comment=comment,
            summary={"draft": {"draftId": str(draft.pk), "name": draft.name}},
        )
        _delete(draft)
    return written


def _delete(draft: RuleDraft) -> None:
    """Raises `Conflict` if the draft was written or deleted since it was read."""
    deleted, _ = RuleDraft.objects.filter(pk=draft.pk, version=draft.version).delete()
    if not deleted:
        raise Conflict


def _record(kind: EventKind, draft: RuleDraft, actor: str) -> None:
    record_event(
        kind,
        actor=actor,
        subject=str(draft.pk),
        tenant_id=draft.tenant_id,
        after={"name": draft.name, "baseSeq": draft.base_seq},
        # A draft changes nothing until it is published, which is a revision.
        repeats={},
    )


def _rules_at(draft: RuleDraft) -> Sequence[Any]:
    """Return the rules of the base of a draft."""
    history = DocumentHistory(RevisionKind.RULES, draft.tenant_id)
    base, _ = read_pair(history, earlier=draft.base_seq, later=draft.base_seq)
    rules: Sequence[Any] = base.get("rules", [])
    return rules


def _base_seq(document: Mapping[str, Any], current: RulesetState, *, default: int) -> int:
    seq: int = document.get("baseSeq", default)
    if seq > current.seq:
        message = f"The rules have no revision {seq}. The current one is {current.seq}."
        raise ValidationFailed.at("/baseSeq", "unknown-revision", message)
    return seq


def _lint(rules: Sequence[Any], current: RulesetState) -> dict[str, object]:
    """Return the lint of publishing the rules now, as JSON."""
    return dict(msgspec.to_builtins(report_lint(_check(rules, current))))


def _check(rules: Sequence[Any], current: RulesetState, *, confirmed: Collection[str] = ()) -> LintResult:
    return lint_write(
        {"rules": rules},
        stored_rules=current.rules,
        active_marker_targets=active_marker_targets(current.tenant_id),
        confirmed=confirmed,
        caching=current.caching,
        tables=with_log(current.tables, current.tenant_id),
    )


def _name_of(rules: Sequence[Any], current: RulesetState) -> str:
    """Return a name for rules from what they change in the current ones; empty if they change nothing."""
    drafted = complete_rules(rules)
    diff = diff_rules(before=current.rules, after=drafted)
    by_id = {rule["id"]: rule for rule in drafted}
    changes = [
        *(("Add", rule) for rule in diff.added),
        *((_verb(change), by_id[change.rule_id]) for change in diff.changed),
        *(("Remove", rule) for rule in diff.removed),
    ]
    names = [f"{verb} {rule.get('name') or rule['id']}" for verb, rule in changes]
    if diff.reordered:
        names.append("Change the order")
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return names[0][:_MAX_NAME] + more if names else ""


def _verb(change: RuleChange) -> str:
    if [field.path for field in change.fields] == ["/enabled"]:
        return "Turn on" if change.fields[0].after else "Turn off"
    return "Change"


def _changed_ids(diff: RulesDiff) -> set[str]:
    whole = (str(rule["id"]) for rule in (*diff.added, *diff.removed))
    return {*whole, *(change.rule_id for change in diff.changed)}
