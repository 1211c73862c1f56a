"""The explanation of a logged request. Contract: Analytics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet
from analytics.explain import LoggedExplanationAnswer, explain_logged
from analytics.serializers.explain import ExplainLoggedBody
from logs.audit import Reader
from tenantadmin.lib.core.hosts import client_address
from tenantadmin.lib.http.budgets import QUERY
from tenantadmin.lib.http.viewsets import operation
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class ExplainViewSet(AppViewSet):
    """Explanations of logged requests."""

    tag = "Rules"

    @route("POST", "tenants/<uuid:tenant>/explain", Level.TENANT, Scope.LOGS_READ, name="explain")
    @operation(
        summary="Explain which rule decides a logged request, and why it was a miss",
        budget=QUERY,
        body=ExplainLoggedBody,
        responses={200: LoggedExplanationAnswer},
        examples=[
            OpenApiExample(
                "An entry of the log",
                value={"logId": "5f2d9c31", "day": "2026-03-01"},
                request_only=True,
            )
        ],
    )
    def explain_logged_request(self, request: Request, tenant: UUID) -> Response:
        """Applies the rules in force at its timestamp, or the rules of a revision or a draft.

        Each read of the log is recorded before it happens.
        """
        explanation = explain_logged(
            default_store(),
            tenant=tenant,
            day=self.body.get("day"),
            log_id=self.body["logId"],
            seq=self.body.get("seq"),
            draft_id=self.body.get("draftId"),
            reader=Reader(self.principal.email, client_address(request)),
        )
        return Response(explanation)
