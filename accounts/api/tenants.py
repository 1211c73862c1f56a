"""``/config/tenants`` and one tenant. Contract: Tenants and configuration."""
# ruff: noqa: N815  (the members' names are those of the JSON)

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.access.resources import require_account_owner, require_account_scope, require_tenant_owner
from accounts.access.scopes import Scope
from accounts.permissions import AppView
from accounts.serializers.tenants import Deletion, TenantConfigDocument, TenantCreate
from accounts.tenants.lifecycle import create_tenant_for, delete_tenant
from accounts.tenants.listing import list_tenants, require_live_tenant, tenant_path
from tenantadmin.core.etags import strong_etag
from tenantadmin.http.etags import not_modified
from tenantadmin.http.hal import link
from tenantadmin.http.parameters import ETAG, IF_NONE_MATCH
from tenantadmin.http.reading import read_body, read_query
from tenantadmin.http.schema import NOT_MODIFIED, refusal
from tenantadmin.http.serializers import ItemList, Link
from tenantadmin.http.streaming import stream_links

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import StreamingHttpResponse
    from rest_framework.request import Request


class TenantLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()
    config = Link()
    rules = Link()


class TenantResource(serializers.Serializer[Any]):
    """A tenant: the way to its two documents."""

    _links = TenantLinks()
    tenantId = serializers.UUIDField()


_CREATED = {
    "tenantId": "3f2b8c1e-5a7d-4e0f-9c6b-1d2e3f4a5b6c",
    "accountId": "9a1c0b52-7f3e-4d6a-8b1f-0c2d4e6f8a90",
    "tenantName": "Sales warehouse",
    "fqdns": ["sales.gateway.localhost"],
    "defaults": {"cacheEnabled": True, "ttlSeconds": 86400},
    "logging": {"retentionDays": 400, "storeParameterValues": True},
    "labels": {},
    "plan": "team",
    "createdAt": "2026-11-21T02:45:07.123Z",
    "modifiedAt": "2026-11-21T02:45:07.123Z",
    "seq": 0,
}


class TenantsView(AppView):
    """The tenants in the caller's scope."""

    operations: ClassVar = {"GET": "listTenants", "POST": "createTenant"}

    @extend_schema(
        tags=["Tenants"],
        summary="List the tenants in the caller's scope",
        responses={200: ItemList},
        examples=[
            OpenApiExample(
                "Two tenants",
                value={
                    "_links": {
                        "self": {"href": "/config/tenants"},
                        "parent": {"href": "/"},
                        "items": [
                            {
                                "name": "3f2b8c1e-5a7d-4e0f-9c6b-1d2e3f4a5b6c",
                                "href": "/config/tenants/3f2b8c1e-5a7d-4e0f-9c6b-1d2e3f4a5b6c",
                            }
                        ],
                    }
                },
                response_only=True,
            )
        ],
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        read_query(None, request)
        return stream_links(self_href="/config/tenants", parent="/", items=list_tenants(self.principal))

    @extend_schema(
        tags=["Tenants"],
        summary="Create a tenant in an account",
        description="The caller becomes the tenant's owner, unless it is a platform admin. Its token does "
        "not name the new tenant yet: refresh it before the next request.",
        parameters=[ETAG],
        request=TenantCreate,
        responses={
            201: TenantConfigDocument,
            404: refusal(404, "There is no such account."),
            409: refusal(
                409, "An FQDN is held for another tenant, or the name is not unique in the account."
            ),
        },
        examples=[
            OpenApiExample(
                "A tenant with one host name",
                value={
                    "accountId": "9a1c0b52-7f3e-4d6a-8b1f-0c2d4e6f8a90",
                    "tenantName": "Sales warehouse",
                    "fqdns": ["sales.gateway.localhost"],
                },
                request_only=True,
            ),
            OpenApiExample("Created", value=_CREATED, response_only=True, status_codes=["201"]),
        ],
    )
    def post(self, request: Request) -> Response:
        read_query(None, request)
        body = read_body(TenantCreate, request)
        account_id = body.pop("accountId")
        require_account_scope(self.principal, account_id=account_id, scope=Scope.CONFIG_WRITE)
        # Who creates a tenant stays its owner, which a grant that ends must not bring.
        require_account_owner(self.principal, account_id)
        created = create_tenant_for(self.principal, account_id=account_id, document=body)
        return Response(
            created.as_json(),
            status=201,
            headers={"Location": tenant_path(created.tenant_id), "ETag": created.etag},
        )


class TenantView(AppView):
    """One tenant."""

    operations: ClassVar = {"GET": "getTenant", "DELETE": "deleteTenant"}

    @extend_schema(
        tags=["Tenants"],
        summary="Find a tenant's documents",
        parameters=[IF_NONE_MATCH, ETAG],
        responses={200: TenantResource, 304: NOT_MODIFIED},
    )
    def get(self, request: Request, tenant: UUID) -> Response:
        read_query(None, request)
        require_live_tenant(tenant)
        etag = strong_etag("tenant", tenant)
        return not_modified(request, etag) or Response(
            {
                "_links": {
                    "self": link(tenant_path(tenant)),
                    "parent": link("/config/tenants"),
                    "config": link(tenant_path(tenant, "config")),
                    "rules": link(tenant_path(tenant, "rules")),
                },
                "tenantId": str(tenant),
            },
            headers={"ETag": etag},
        )

    @extend_schema(
        tags=["Tenants"],
        summary="Delete a tenant's configuration and rules",
        description="Leaves a tombstone in the manifest for 30 days. History, logs and summaries stay.",
        responses={200: Deletion},
    )
    def delete(self, request: Request, tenant: UUID) -> Response:
        read_query(None, request)
        require_tenant_owner(self.principal, tenant)
        deleted = delete_tenant(tenant_id=tenant, actor=self.principal.email)
        return Response({"success": True, "message": f"Tenant {tenant} is deleted.", "deletedFiles": deleted})
