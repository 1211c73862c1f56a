"""The explanation of an invented request. Contract: Tenants and configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from rules.explain import RequestExplanation, explain
from rules.in_force import choose_rules
from rules.language import read_rules
from rules.ruleset import read_caching
from rules.serializers.explain import ExplainRequestBody
from tenantadmin.lib.http.budgets import LINT
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


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
