"""Assessments: what a cache would save, from a warehouse's own history."""

# ruff: noqa: N815  (fields have the names of the JSON members)

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.urls import reverse
from rest_framework.response import Response

from accounts.access.resources import require_account_owner, require_account_scope, require_tenant_owner
from accounts.access.rights import latest_rights
from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.serializers.fields import NameField
from accounts.tenants.config import TenantConfigDocument
from accounts.viewsets import AppViewSet
from analytics.assessments.adopt import adopt_assessment, find_account
from analytics.assessments.report import (
    AssessmentDocument,
    AssessmentHead,
    list_assessments,
    read_assessment,
)
from tenantadmin.lib.http.hal import ANY_ID, ETAG, LOCATION, ItemList, hrefs, item
from tenantadmin.lib.http.schema import refusal
from tenantadmin.lib.http.serializers import StrictSerializer, StrictUuidField
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


class AdoptBody(StrictSerializer):
    """Where the customer's tenant is created."""

    accountId = StrictUuidField(required=False, help_text="Default: the account of the assessment.")
    tenantName = NameField(required=False, help_text="Default: the name of the assessment.")


class AssessmentList(ItemList):
    """The newest assessments of a caller."""

    assessments: list[AssessmentHead]


_NONE = refusal(404, "The tenant is no assessment, or does not exist.")


class AssessmentViewSet(AppViewSet):
    """Assessments of warehouses' own histories."""

    tag = "Assessments"

    @route("GET", "tenants/assessments", Level.SERVICE, Scope.CONFIG_READ, name="assessments")
    @operation(summary="List the newest assessments in the caller's scope", responses={200: AssessmentList})
    def list_assessments(self, request: Request) -> Response:
        found = list_assessments(latest_rights(self.principal))
        href = hrefs("assessment", tenant=ANY_ID)
        return Response(
            AssessmentList(
                links=self.links(
                    "contract", (item(str(one.tenant_id), href(one.tenant_id)) for one in found)
                ),
                assessments=list(found),
            )
        )

    @route("GET", "tenants/<uuid:tenant>/assessment", Level.TENANT, Scope.CONFIG_READ, name="assessment")
    @operation(summary="Read an assessment and its report", responses={200: AssessmentDocument, 404: _NONE})
    def get_assessment(self, request: Request, tenant: UUID) -> Response:
        return Response(read_assessment(tenant))

    @route(
        "POST",
        "config/tenants/<uuid:tenant>/adopt",
        Level.TENANT,
        Scope.CONFIG_WRITE,
        notes="owners of the assessment who own the account too, and platform admins",
        name="adopt-assessment",
    )
    @operation(
        summary="Turn an assessment into a customer's tenant",
        body=AdoptBody,
        headers=[ETAG, LOCATION],
        responses={
            201: TenantConfigDocument,
            404: _NONE,
            409: refusal(409, "The name is not unique in the account."),
        },
    )
    def adopt_assessment(self, request: Request, tenant: UUID) -> Response:
        """Creates a tenant with the assessment's configuration and published rules.

        What its report found beyond them becomes a draft. The assessment is deleted with its log.
        """
        require_tenant_owner(self.principal, tenant)
        account_id = self.body.get("accountId") or find_account(tenant)
        require_account_scope(self.principal, account_id=account_id, scope=Scope.CONFIG_WRITE)
        require_account_owner(self.principal, account_id)
        created = adopt_assessment(
            self.principal, tenant_id=tenant, account_id=account_id, name=self.body.get("tenantName")
        )
        location = reverse("tenant", kwargs={"tenant": created.tenant_id})
        return Response(created.answer(), status=201, headers={"Location": location, "ETag": created.etag})
