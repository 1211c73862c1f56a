"""A tenant's ruleset and the dry run. Contract: Tenants and configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from django.http import HttpResponse
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from rules.diff import complete_rules, diff_rules
from rules.errors import RulesetRefusal
from rules.lint import RuleLintResult, report_lint
from rules.ruleset import RulesetState, TenantRules, render_ruleset, ruleset_etag
from rules.serializers.rulesets import CheckedRulesBody, TenantRulesBody, WriteRulesParameters
from rules.write import lint_document, write_ruleset
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.http.budgets import LINT
from tenantadmin.lib.http.etags import not_modified
from tenantadmin.lib.http.parameters import ETAG, IF_MATCH, IF_NONE_MATCH
from tenantadmin.lib.http.schema import ERROR_REF, NOT_MODIFIED, STALE
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

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
