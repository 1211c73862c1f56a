"""The change history of rules. Contract: Change history."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api.history import (
    ChangeHistoryPage,
    ChangeRevision,
    DiffHead,
    DiffParameters,
    FieldDifference,
    PageParameters,
    diff_head,
    require_empty_body,
    revision_response,
    timeline_response,
)
from accounts.api.parameters import ETAG, IF_MATCH, SEQ
from accounts.api.schema import STALE
from accounts.models.history import RevisionKind
from accounts.permissions import AppView
from accounts.revisions import Document, read_pair
from rules.api.rules import ConfirmParameters, ruleset_response
from rules.api.schema import Rule, RulesetRefusal, TenantRules
from rules.diff import diff_rules
from rules.restore import restore_ruleset
from tenantadmin.http.etags import require_match
from tenantadmin.http.serializers import read_query

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class RuleDifference(serializers.Serializer[Any]):
    """A rule that both revisions hold and that differs; paths are relative to the rule."""

    id = serializers.CharField()
    fields = FieldDifference(many=True)  # type: ignore[assignment]  # a member, not the property


@extend_schema_serializer(component_name="RulesDiff")
class RulesDifference(DiffHead):
    """What differs between two rulesets: rules are matched by id, order alone is no change."""

    added = Rule(many=True)
    removed = Rule(many=True)
    changed = RuleDifference(many=True)


def _rules(tenant: UUID) -> Document:
    return Document(RevisionKind.RULES, tenant)


class RulesHistoryView(AppView):
    operations: ClassVar = {"GET": "listRulesHistory"}

    @extend_schema(
        tags=["History"],
        summary="List the changes of a tenant's rules",
        parameters=[PageParameters],
        responses={200: ChangeHistoryPage},
    )
    def get(self, request: Request, tenant: UUID) -> Response:
        return timeline_response(request, _rules(tenant))


class RulesDiffView(AppView):
    operations: ClassVar = {"GET": "diffRules"}

    @extend_schema(
        tags=["History"],
        summary="Compare two revisions of a tenant's rules",
        parameters=[DiffParameters],
        responses={200: RulesDifference},
    )
    def get(self, request: Request, tenant: UUID) -> Response:
        asked = read_query(DiffParameters, request)
        earlier, later = asked["from"], asked["to"]
        before, after = read_pair(_rules(tenant), earlier=earlier, later=later)
        diff = diff_rules(before=before.get("rules", ()), after=after.get("rules", ()))
        return Response({**diff_head(_rules(tenant), earlier=earlier, later=later), **diff.as_json()})


class RulesRevisionView(AppView):
    operations: ClassVar = {"GET": "getRulesRevision"}

    @extend_schema(
        tags=["History"],
        summary="Read one revision of a tenant's rules",
        parameters=[SEQ],
        responses={200: ChangeRevision},
    )
    def get(self, request: Request, tenant: UUID, seq: int) -> Response:
        return revision_response(request, _rules(tenant), seq)


class RulesRestoreView(AppView):
    operations: ClassVar = {"POST": "restoreRules"}

    @extend_schema(
        tags=["History"],
        summary="Restore a revision of a tenant's rules",
        description="A normal write: linted as today, with a new cache-bust token. The warm cache is lost.",
        parameters=[SEQ, ConfirmParameters, IF_MATCH, ETAG],
        request=None,
        responses={200: TenantRules, 400: RulesetRefusal, 409: STALE},
    )
    def post(self, request: Request, tenant: UUID, seq: int) -> Response:
        confirmed = read_query(ConfirmParameters, request).get("confirmDeletes", frozenset())
        require_empty_body(request)
        restored = restore_ruleset(
            tenant_id=tenant,
            seq=seq,
            actor=self.principal.email,
            confirm_deletes=confirmed,
            require=partial(require_match, request),
        )
        return ruleset_response(restored)
