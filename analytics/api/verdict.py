"""How a tenant is, in one sentence, and the last week of all tenants of a caller. Contract: Analytics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.urls import reverse
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.serializers.history import PageParameters
from accounts.viewsets import AppViewSet
from analytics.advice.recommend import describe_open_recommendations
from analytics.digest.verdict.judging import read_verdict
from analytics.digest.verdict.sentences import Verdict
from analytics.weeks import TenantWeek, list_weeks
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.hal import ANY_ID, PageLinks, hrefs, item, page_links
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


class TenantWeeks(JsonStruct):
    """The last week of tenants, by id, each with a link to the tenant."""

    links: PageLinks = msgspec.field(name="_links")
    weeks: list[TenantWeek]


class VerdictViewSet(AppViewSet):
    """How tenants are."""

    tag = "Analytics"

    @route("GET", "tenants/<uuid:tenant>/verdict", Level.TENANT, Scope.ANALYTICS_READ, name="verdict")
    @operation(summary="How the tenant is, in one sentence", responses={200: Verdict})
    def get_verdict(self, request: Request, tenant: UUID) -> Response:
        """From the findings of its digests of the last seven days, and its history. Reads no log."""
        advice = describe_open_recommendations(tenant)
        return Response(msgspec.structs.replace(read_verdict(tenant), advice=advice))

    @route(
        "GET",
        "tenants/weeks",
        Level.SERVICE,
        Scope.ANALYTICS_READ,
        notes="lists the tenants on which the PAT has the scope",
        name="tenant-weeks",
    )
    @operation(
        summary="The last week of the caller's tenants",
        description="Requests, hit rate and warehouse time in the seven days up to the last day of each log. "
        "Reads no log.",
        query=PageParameters,
        responses={200: TenantWeeks},
    )
    def list_tenant_weeks(self, request: Request) -> Response:
        weeks, cursor = list_weeks(self.principal, limit=self.query["limit"], cursor=self.query.get("cursor"))
        href = hrefs("tenant", tenant=ANY_ID)
        items = [item(str(week.tenant_id), href(week.tenant_id)) for week in weeks]
        links = page_links(request, parent=reverse("contract"), items=items, cursor=cursor)
        return Response(TenantWeeks(links=links, weeks=weeks))
