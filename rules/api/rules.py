from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from msgspec import Meta
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.api.history import DiffHead, DocumentHistoryViewSet
from accounts.models.history import RevisionKind
from accounts.routes import route
from accounts.serializers.history import DiffParameters
from accounts.viewsets import AppViewSet
from rules.blame import RulesBlame, blame_ruleset
from rules.diff import RuleChange, StoredRule, complete_rules, diff_rules
from rules.explain import RequestExplanation, explain
from rules.in_force import choose_rules
from rules.language import read_rules
from rules.lint import RuleLintResult, report_lint
from rules.ruleset import RulesetState, TenantRules, read_caching, render_ruleset, ruleset_etag
from rules.serializers import (
    BlameParameters,
    CheckedRulesBody,
    ExplainRequestBody,
    PublishParameters,
    TenantRulesBody,
    WriteRulesParameters,
)
from rules.write import RulesetRefusal, lint_document, restore_ruleset, write_ruleset
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.http.budgets import LINT
from tenantadmin.lib.http.hal import ETAG, IF_MATCH, IF_NONE_MATCH, SEQ, not_modified
from tenantadmin.lib.http.schema import ERROR_REF, NOT_MODIFIED, STALE
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request

_RULESET = OpenApiExample(
    "A cache rule and the rule that invalidates it",
    value={
        "rules": [
            {
                "id": "orders",
                "conditions": {"tables": {"containsAny": ["sales.orders"]}, "isReadOnly": True},
                "ttlSeconds": 3600,
            },
            {
                "id": "orders-written",
                "conditions": {"tables": {"containsAny": ["sales.orders"]}, "isDataChange": True},
                "invalidateRules": ["orders"],
            },
        ]
    },
    request_only=True,
)


class RulesetViewSet(AppViewSet):
    """The rulesets of tenants."""

    tag = "Rules"

    @route("GET", "config/tenants/<uuid:tenant>/rules", Level.TENANT, Scope.CONFIG_READ, name="rules")
    @operation(
        summary="Read a tenant's rules",
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: TenantRules, 304: NOT_MODIFIED},
    )
    def get_tenant_rules(self, request: Request, tenant: UUID) -> HttpResponse:
        # Every Gateway polls this: the answer is kept rendered, and a 304 does not read the rules.
        if "HTTP_IF_NONE_MATCH" in request.META:
            unchanged = not_modified(request, ruleset_etag(tenant))
            if unchanged is not None:
                return unchanged
        body, etag = render_ruleset(tenant)
        return HttpResponse(body, content_type="application/json", headers={"ETag": etag})

    @route("PUT", "config/tenants/<uuid:tenant>/rules", Level.TENANT, Scope.CONFIG_WRITE)
    @operation(
        summary="Replace a tenant's rules",
        budget=LINT,
        query=WriteRulesParameters,
        headers=[IF_MATCH, ETAG],
        document=TenantRulesBody,
        responses={200: TenantRules, 400: RulesetRefusal, 409: STALE},
        examples=[_RULESET],
    )
    def replace_tenant_rules(self, request: Request, tenant: UUID) -> Response:
        written = write_ruleset(
            tenant_id=tenant,
            document=request.data,
            actor=self.principal.email,
            confirm_deletes=self.query.get("confirmDeletes", frozenset()),
            comment=self.query.get("comment", ""),
            expected_etag=request.headers.get("If-Match"),
            if_changed=self.query["ifChanged"],
        )
        return ruleset_response(written)

    @route("POST", "config/rules/validate", Level.SERVICE, name="validate-rules")
    @operation(
        summary="Check a ruleset without writing it",
        budget=LINT,
        only_reads=True,
        description="The dry run: lint without any tenant. `compareWith`: also what changes in those rules.",
        document=CheckedRulesBody,
        responses={
            200: RuleLintResult,
            400: OpenApiResponse(
                {"anyOf": [{"$ref": "#/components/schemas/RuleLintResult"}, ERROR_REF]},
                description="What lint found; or an Error, if `rules` is no array.",
            ),
        },
        examples=[_RULESET],
    )
    def validate_rules(self, request: Request) -> Response:
        document: Any = request.data
        before = None
        if isinstance(document, dict) and "compareWith" in document:
            document = dict(document)
            before = document.pop("compareWith")
            if not isinstance(before, list):
                raise ValidationFailed.at("/compareWith", "wrong-type", "The rules must be an array.")
        report = report_lint(lint_document(document))
        if before is not None:
            diff = diff_rules(before=complete_rules(before), after=complete_rules(document["rules"]))
            report = msgspec.structs.replace(report, changed=diff.changed)
        return Response(report, status=200 if report.valid else 400)


def ruleset_response(ruleset: RulesetState) -> Response:
    """Answer a ruleset under its entity tag."""
    return Response(ruleset.document(), headers={"ETag": ruleset.etag})


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


class ExplainViewSet(AppViewSet):
    """Explanations of requests that need not be in the log."""

    tag = "Rules"

    @route(
        "POST",
        "config/tenants/<uuid:tenant>/rules/explain",
        Level.TENANT,
        Scope.CONFIG_READ,
        name="rules-explain",
        needs_no_reason=True,
    )
    @operation(
        summary="Explain which rule decides a request",
        budget=LINT,
        body=ExplainRequestBody,
        responses={200: RequestExplanation},
        examples=[
            OpenApiExample(
                "A read of one table",
                value={
                    "request": {"statementType": "SELECT", "isReadOnly": True, "tables": ["sales.orders"]}
                },
                request_only=True,
            )
        ],
    )
    def explain_request(self, request: Request, tenant: UUID) -> Response:
        """By the current rules, a revision, a draft, or the rules in force at a moment. Reads no log."""
        chosen = choose_rules(
            tenant, seq=self.body.get("seq"), draft_id=self.body.get("draftId"), at=self.body.get("at")
        )
        explanation = explain(
            read_rules(chosen.rules), self.body["request"], cache_enabled=read_caching(tenant).enabled
        )
        return Response(RequestExplanation.of(explanation, ruleset=chosen.ruleset))
