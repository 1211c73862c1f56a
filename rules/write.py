"""The only function that writes rulesets, and its refusals. Contract: Tenants and configuration, 2 to 4."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.db import transaction

from accounts.diff import equal_values
from accounts.limits import Quota, limits_of, require_within, use_quota
from accounts.models.history import RevisionAction, RevisionKind
from accounts.revisions import DocumentHistory, append_revision
from accounts.tenants.errors import TenantNotFound, database_refusals
from accounts.tenants.lifecycle import revision_document
from accounts.tenants.stamps import stamp_tenant
from rules.diff import summarize_rules
from rules.json_text import read_integer
from rules.language import CachingDefaults
from rules.lint import FindingDocument, GrosslyMalformed, LintResult, lint_ruleset, lint_write, report_lint
from rules.markers import active_marker_targets
from rules.models import Ruleset
from rules.ruleset import RulesetState, cache_bust, read_ruleset, read_tables, with_log
from tenantadmin.lib.core.errors import Conflict, Detail, ErrorBody, ValidationFailed
from tenantadmin.lib.core.rendering import require_etag

if TYPE_CHECKING:
    from rules.lint import LintResult
    from rules.ruleset import RulesetState


class RulesetRefusal(ErrorBody):
    """The error body. If lint refused the ruleset, the same object holds the lint result."""

    valid: bool | None = None
    errors: list[FindingDocument] | None = None
    warnings: list[FindingDocument] | None = None


class RulesetRejected(ValidationFailed):
    """Lint found errors. The answer is a `RulesetRefusal` with the lint result."""

    def __init__(self, result: LintResult) -> None:
        count = len(result.errors)
        super().__init__(f"The ruleset has {count} blocking {'error' if count == 1 else 'errors'}.")
        self.report = report_lint(result)

    def body(self) -> RulesetRefusal:
        report = self.report
        return RulesetRefusal.of(
            super().body(), valid=report.valid, errors=report.errors, warnings=report.warnings
        )


def malformed_ruleset(error: GrosslyMalformed) -> ValidationFailed:
    """Return the error for a document that is not a ruleset."""
    return ValidationFailed(str(error), details=[Detail(error.path, "wrong-type", str(error))])


def lint_document(document: Any, *, caching: CachingDefaults | None = None) -> LintResult:
    """Lint a TenantRules body without stored rules. ``POST /config/rules/validate`` knows no tenant either.

    Raises:
        ValidationFailed: the body is not a ruleset.
    """
    try:
        return lint_ruleset(document, caching=caching or CachingDefaults())
    except GrosslyMalformed as error:
        raise malformed_ruleset(error) from error


def write_ruleset(
    *,
    tenant_id: UUID,
    document: Any,
    actor: str,
    restored_from: int | None = None,
    confirm_deletes: Collection[str] = (),
    comment: str = "",
    expected_etag: str | None = None,
    if_changed: bool = False,
    summary: Mapping[str, Any] | None = None,
    changed_at: dt.datetime | None = None,
) -> RulesetState:
    """Replace a live tenant's ruleset. PUT, restore and every other writer call this function.

    Lint runs before the transaction. The conditional update then fails if the ruleset changed in between.

    Args:
        document: the body as sent.
        confirm_deletes: ids of rules that may be removed although they have active markers.
        comment: why the rules change, for the summary of the new revision; at most `MAX_COMMENT` characters.
        expected_etag: a value of ``If-Match``, or None.
        if_changed: write nothing and return the stored ruleset if the rules are equal to it.
        summary: more members for the summary of the new revision.
        changed_at: the time of the revision, for a ruleset that is imported with its history; later than the
            last one. Pollers of the manifest still see the change as new.

    Raises:
        TenantNotFound: there is no such live tenant.
        RulesetRejected: lint or the deletion delta found errors.
        ValidationFailed, PlanLimitExceeded: the body is not a ruleset, names another tenant, or exceeds the
            limit of the plan.
        Conflict: the ruleset, or what the configuration says of tables, changed since it was read, or
            ``seq`` or ``cacheBust`` is stale.
        RateLimited: the tenant stores more bytes than the plan allows in a day. Imports do not count.
    """
    stored = read_ruleset(tenant_id)
    require_etag(stored.etag, expected=expected_etag)
    if changed_at is not None and changed_at <= stored.modified_at:
        raise ValueError("changed_at must be later than the last change of the ruleset")
    rules = _validate(document, stored, confirm_deletes=confirm_deletes)
    if if_changed and equal_values(rules, stored.rules):
        return stored
    require_within(
        limits_of(stored.plan).rules, count=len(rules), what="rules", plan=stored.plan, path="/rules"
    )
    if changed_at is None:
        use_quota(Quota.DOCUMENTS, tenant_id, rules)
    removed = {rule["id"] for rule in stored.rules} - {rule["id"] for rule in rules} - {*confirm_deletes}
    # Before the transaction, because a large comparison gives way to other requests.
    changes = summarize_rules(before=stored.rules, after=rules)
    with transaction.atomic(), database_refusals():
        stamp = stamp_tenant(tenant_id)
        if stamp is None:
            raise TenantNotFound
        modified_at = changed_at or stamp
        seq = stored.seq + 1
        token = cache_bust(seq=seq, modified_at=modified_at)
        written = Ruleset.objects.filter(pk=tenant_id, seq=stored.seq, cache_bust=stored.cache_bust).update(
            rules=rules, seq=seq, cache_bust=token, modified_at=modified_at
        )
        if not written:
            raise Conflict
        if read_tables(tenant_id) != stored.tables:
            # The configuration changed after lint had read it. It now waits for this transaction.
            raise Conflict
        if removed and removed & active_marker_targets(tenant_id):
            # A marker was created after lint had read them. This transaction now holds the lock that
            # creating a marker needs.
            raise Conflict
        append_revision(
            kind=RevisionKind.RULES,
            account_id=stored.account_id,
            tenant_id=tenant_id,
            seq=seq,
            action=RevisionAction.UPDATE if restored_from is None else RevisionAction.RESTORE,
            actor=actor,
            changed_at=modified_at,
            restored_from=restored_from,
            summary={**changes, **(summary or {})},
            comment=comment,
            document={"rules": rules},
        )
    return replace(stored, seq=seq, cache_bust=token, modified_at=modified_at, rules=rules)


def _validate(
    document: Any,
    stored: RulesetState,
    *,
    confirm_deletes: Collection[str],
) -> list[dict[str, Any]]:
    """Return the rules of a valid body, with default values filled in.

    Raises:
        RulesetRejected, ValidationFailed, Conflict: see `write_ruleset`.
    """
    try:
        result = lint_write(
            document,
            stored_rules=stored.rules,
            active_marker_targets=active_marker_targets(stored.tenant_id),
            confirmed=confirm_deletes,
            caching=stored.caching,
            tables=with_log(stored.tables, stored.tenant_id),
        )
    except GrosslyMalformed as error:
        raise malformed_ruleset(error) from error
    _require_version(document, stored)
    if result.normalized is None:
        raise RulesetRejected(result)
    return list(result.normalized)


def _require_version(document: dict[str, Any], stored: RulesetState) -> None:
    """Check ``tenantId``, ``seq`` and ``cacheBust`` if the body has them. Lint refuses wrong types.

    Raises:
        ValidationFailed: ``tenantId`` names another tenant.
        Conflict: ``seq`` or ``cacheBust`` is stale.
    """
    tenant_id, seq, token = (document.get(name) for name in ("tenantId", "seq", "cacheBust"))
    if isinstance(tenant_id, str) and tenant_id != str(stored.tenant_id):
        message = "'tenantId' is not the tenant of this address. Leave it out or send it as read."
        raise ValidationFailed(details=[Detail("/tenantId", "read-only", message)])
    if read_integer(seq) not in {None, stored.seq} or (isinstance(token, str) and token != stored.cache_bust):
        raise Conflict


def restore_ruleset(
    *,
    tenant_id: UUID,
    seq: int,
    actor: str,
    confirm_deletes: Collection[str] = (),
    comment: str = "",
    expected_etag: str | None = None,
) -> RulesetState:
    """Write an earlier ruleset again as a new revision, with a new cache-bust token.

    Raises:
        RevisionNotFound, TenantNotFound: there is no such revision or live tenant.
        RulesetRejected, ValidationFailed, PlanLimitExceeded: lint or the plan no longer allows the ruleset.
        Conflict: the ruleset changed during the restore.
    """
    return write_ruleset(
        tenant_id=tenant_id,
        document=revision_document(DocumentHistory(RevisionKind.RULES, tenant_id), seq),
        actor=actor,
        restored_from=seq,
        confirm_deletes=confirm_deletes,
        comment=comment,
        expected_etag=expected_etag,
    )
