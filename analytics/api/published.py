"""The published queries, and the verification of documents with them. Contract: Analytics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.viewsets import AppViewSet, require_tenant_scope
from analytics.alerts.queries import ALERT_QUERIES
from analytics.published.queries import QUERIES, PublishedQuery
from analytics.published.verification import DocumentKey, Verification
from analytics.published.verify import verify_document
from analytics.serializers.published import VerificationBody
from logs.audit import Reader
from tenantadmin.lib.core.hosts import client_address
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.schema import refusal
from tenantadmin.lib.http.viewsets import operation
from tenantadmin.lib.objectstore import default_store

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class PublishedQueries(JsonStruct):
    queries: list[PublishedQuery]


class PublishedQueryViewSet(AppViewSet):
    """The SQL that the numbers of summaries equal."""

    tag = "Analytics"

    @route("GET", "analytics/queries", Level.SERVICE, name="published-queries")
    @operation(
        summary="The SQL over proxy_logs that each number of a summary or an alert equals",
        responses={200: PublishedQueries},
    )
    def list_published_queries(self, request: Request) -> Response:
        """Each query gives fields of a document, the elements of one of its arrays, or an alert's number."""
        return Response(PublishedQueries(queries=[*QUERIES.values(), *ALERT_QUERIES.values()]))


class VerificationViewSet(AppViewSet):
    """Verifications of a tenant's documents."""

    tag = "Analytics"

    @route(
        "POST",
        "tenants/<uuid:tenant>/verifications",
        Level.TENANT,
        Scope.ANALYTICS_READ,
        also=Scope.LOGS_QUERY,
        notes="documents about users need `analytics:users` too",
        name="verifications",
        needs_no_reason=True,
    )
    @operation(
        summary="Compare a document with the published queries",
        body=VerificationBody,
        responses={
            200: Verification,
            409: refusal(409, "The document was built again during both attempts: retry in a minute."),
        },
        examples=[
            OpenApiExample("A day", value={"document": "day", "period": "2026-03-01"}, request_only=True)
        ],
    )
    def verify_document(self, request: Request, tenant: UUID) -> Response:
        """Runs the queries in the locked engine, on the builds that the document was made of.

        The queries run with the hour of each entry's prefix and the order of the entries, which `proxy_logs`
        does not show; without entries that need them, the statements in `queries` give the same numbers.
        """
        key = DocumentKey(tenant, self.body["document"], self.body["period"], self.body.get("userId"))
        if key.is_about_users:
            require_tenant_scope(self.principal, tenant_id=tenant, scope=Scope.ANALYTICS_USERS)
        reader = Reader(self.principal.email, client_address(request))
        return Response(verify_document(default_store(), key=key, reader=reader))
