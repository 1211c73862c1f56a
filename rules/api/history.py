"""The change history of rules. Contract: Change history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.api.history import DiffHead, DocumentHistoryViewSet
from accounts.models.history import RevisionKind
from accounts.routes import route
from accounts.serializers.history import DiffParameters
from rules.api.rules import ruleset_response
from rules.blaming import RulesBlame, blame_ruleset
from rules.diff import RuleChange, StoredRule, diff_rules
from rules.errors import RulesetRefusal
from rules.restore import restore_ruleset
from rules.ruleset import TenantRules
from rules.serializers.blame import BlameParameters
from rules.serializers.rulesets import PublishParameters
from tenantadmin.lib.http.budgets import LINT
from tenantadmin.lib.http.parameters import ETAG, IF_MATCH, SEQ
from tenantadmin.lib.http.schema import STALE
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from rest_framework.request import Request


class RulesDifference(DiffHead):
    """The differences between two rulesets. Rules are compared by id."""

    component = "RulesDiff"

    added: tuple[StoredRule, ...]
    removed: tuple[StoredRule, ...]
    changed: tuple[RuleChange, ...]
    reordered: Annotated[bool | None, Meta(description="The rules that both have are in another order.")] = (
        None
    )


class RulesHistoryViewSet(DocumentHistoryViewSet):
    """The history of a tenant's rules."""

    prefix = "config/tenants/<uuid:tenant>/rules"

    kind = RevisionKind.RULES
    owner = "a tenant's rules"

    @route("GET", "/history/diff", Level.TENANT, Scope.CONFIG_READ, name="rules-diff")
    @operation(
        summary="Compare two revisions of {owner}",
        budget=LINT,
        query=DiffParameters,
        responses={200: RulesDifference},
    )
    def diff(self, request: Request, **address: UUID) -> Response:
        return super().diff(request, **address)

    def compare(self, head: DiffHead, before: Mapping[str, Any], after: Mapping[str, Any]) -> RulesDifference:
        diff = diff_rules(before=before.get("rules", ()), after=after.get("rules", ()))
        return RulesDifference.of(
            head, added=diff.added, removed=diff.removed, changed=diff.changed, reordered=diff.reordered
        )

    @route("GET", "/blame", Level.TENANT, Scope.CONFIG_READ, name="rules-blame")
    @operation(
        summary="Find the revision that last changed each value of a tenant's rules",
        budget=LINT,
        query=BlameParameters,
        responses={200: RulesBlame},
    )
    def blame(self, request: Request, tenant: UUID) -> Response:
        """For the current rules or the rules of a revision. At most 1,000 revisions are read, and fewer
        if that takes two seconds of processor time.
        """
        return Response(blame_ruleset(tenant, seq=self.query.get("seq")))

    @route("POST", "/history/<seq:seq>/restore", Level.TENANT, Scope.CONFIG_WRITE, name="rules-restore")
    @operation(
        summary="Restore a revision of a tenant's rules",
        budget=LINT,
        description="A normal write: linted as today, with a new cache-bust token, which empties the cache.",
        path=[SEQ],
        query=PublishParameters,
        headers=[IF_MATCH, ETAG],
        responses={200: TenantRules, 400: RulesetRefusal, 409: STALE},
    )
    def restore(self, request: Request, *, tenant: UUID, seq: int) -> Response:
        restored = restore_ruleset(
            tenant_id=tenant,
            seq=seq,
            actor=self.principal.email,
            confirm_deletes=self.query.get("confirmDeletes", frozenset()),
            comment=self.query.get("comment", ""),
            expected_etag=request.headers.get("If-Match"),
        )
        return ruleset_response(restored)
