"""``/config/tenants``, one tenant, its configuration, and the manifest. Contract: Tenants and manifest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import msgspec
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample
from msgspec import Meta
from rest_framework.response import Response

from accounts.access.resources import (
    is_signed_in_owner,
    require_account_owner,
    require_account_scope,
    require_tenant_owner,
)
from accounts.access.rights import latest_rights
from accounts.access.scopes import Level, Scope
from accounts.routes import route
from accounts.serializers.tenants import (
    ManifestParameters,
    TenantConfigBody,
    TenantCreate,
    WarehouseText,
    WriteConfigParameters,
    parse_config,
)
from accounts.tenants.config import ConfigState, TenantConfigDocument, config_etag, read_config, write_config
from accounts.tenants.lifecycle import create_tenant_for, delete_tenant, restore_tenant
from accounts.tenants.listing import (
    ManifestQuery,
    ManifestRow,
    list_tenants,
    read_manifest,
    require_live_tenant,
)
from accounts.tenants.warehouse_urls import WarehouseConnection, parse_warehouse
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.rendering import strong_etag
from tenantadmin.lib.core.structs import Count, JsonStruct, Success
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp
from tenantadmin.lib.http.hal import (
    ANY_ID,
    ETAG,
    IF_MATCH,
    IF_NONE_MATCH,
    LOCATION,
    HalItem,
    HalLinks,
    ItemList,
    Link,
    hrefs,
    item,
    link,
    not_modified,
)
from tenantadmin.lib.http.schema import NOT_MODIFIED, refusal
from tenantadmin.lib.http.streaming import compress, stream_links
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from django.http import StreamingHttpResponse
    from django.http.response import HttpResponseBase
    from rest_framework.request import Request


_LIST_EXAMPLE = {
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
}
_CREATE_EXAMPLE = {
    "accountId": "9a1c0b52-7f3e-4d6a-8b1f-0c2d4e6f8a90",
    "tenantName": "Sales warehouse",
    "fqdns": ["sales.gateway.localhost"],
}
_CREATED_EXAMPLE = {
    "tenantId": "3f2b8c1e-5a7d-4e0f-9c6b-1d2e3f4a5b6c",
    **_CREATE_EXAMPLE,
    "defaults": {"cacheEnabled": True, "ttlSeconds": 86400},
    "logging": {"retentionDays": 400, "storeParameterValues": True},
    "labels": {},
    "access": {"staffApproval": "notify"},
    "plan": "team",
    "createdAt": "2026-11-21T02:45:07.123Z",
    "modifiedAt": "2026-11-21T02:45:07.123Z",
    "seq": 0,
}


class TenantLinks(JsonStruct):
    self_: Link
    parent: Link
    config: Link
    rules: Link


class TenantResource(JsonStruct):
    """A tenant, with links to its two documents."""

    links: TenantLinks = msgspec.field(name="_links")
    tenant_id: UUID


class Deletion(Success):
    """The result of deleting a tenant. ``deletedFiles`` is the number of deleted documents."""

    deleted_files: Count


class ManifestEntry(HalItem):
    """A tenant that changed."""

    modified_at: Timestamp
    tenant_name: str
    deleted: bool


class ManifestLinks(HalLinks):
    items: list[ManifestEntry]


class TenantManifest(JsonStruct):
    """Tenants by their last change, newest first."""

    links: ManifestLinks = msgspec.field(name="_links")
    generated_at: Annotated[Timestamp, Meta(description="Safe as the next `since`: no change is missed.")]


class TenantViewSet(AppViewSet):
    """Tenants."""

    tag = "Tenants"
    prefix = "config/tenants"

    @route("GET", "", Level.SERVICE, Scope.CONFIG_READ, name="tenants")
    @operation(
        summary="List the tenants in the caller's scope",
        responses={200: ItemList},
        examples=[OpenApiExample("Two tenants", value=_LIST_EXAMPLE, response_only=True)],
    )
    def list_tenants(self, request: Request) -> StreamingHttpResponse:
        return stream_links(
            ItemList(links=self.links("contract")),
            tenant_items(list_tenants(latest_rights(self.principal))),
        )

    @route(
        "POST",
        "",
        Level.SERVICE,
        Scope.CONFIG_WRITE,
        notes="owners of the account who are not guests, and platform admins",
    )
    @operation(
        summary="Create a tenant in an account",
        description="The caller becomes the tenant's owner, unless it is a platform admin.",
        headers=[ETAG, LOCATION],
        body=TenantCreate,
        responses={
            201: TenantConfigDocument,
            404: refusal(404, "There is no such account."),
            409: refusal(
                409, "An FQDN is held for another tenant, or the name is not unique in the account."
            ),
        },
        examples=[
            OpenApiExample("A tenant with one host name", value=_CREATE_EXAMPLE, request_only=True),
            OpenApiExample("Created", value=_CREATED_EXAMPLE, response_only=True, status_codes=["201"]),
        ],
    )
    def create_tenant(self, request: Request) -> Response:
        account_id = self.body.pop("accountId")
        require_account_scope(self.principal, account_id=account_id, scope=Scope.CONFIG_WRITE)
        # Who creates a tenant stays its owner, which a grant that ends must not bring.
        require_account_owner(self.principal, account_id)
        created = create_tenant_for(self.principal, account_id=account_id, document=self.body)
        location = reverse("tenant", kwargs={"tenant": created.tenant_id})
        return Response(created.answer(), status=201, headers={"Location": location, "ETag": created.etag})

    @route("GET", "/manifest", Level.SERVICE, Scope.CONFIG_READ, name="manifest")
    @operation(
        summary="List what changed, newest first",
        description="What changed since the caller last asked.",
        query=ManifestParameters,
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: TenantManifest, 304: NOT_MODIFIED},
    )
    def get_tenant_manifest(self, request: Request) -> HttpResponseBase:
        query = ManifestQuery(self.query.get("since"), self.query.get("name"), self.query["includeDeleted"])
        manifest = read_manifest(latest_rights(self.principal), query)
        links = ManifestLinks(self_=link(request.get_full_path()), parent=link(reverse("tenants")), items=[])
        if (unchanged := not_modified(request, manifest.etag)) is not None:
            return unchanged
        response = stream_links(
            TenantManifest(links=links, generated_at=manifest.generated_at),
            manifest_items(manifest.rows),
            headers={"ETag": manifest.etag},
        )
        return compress(request, response, count=manifest.count)

    @route("GET", "/<uuid:tenant>", Level.TENANT, Scope.CONFIG_READ, name="tenant")
    @operation(
        summary="Find a tenant's documents",
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: TenantResource, 304: NOT_MODIFIED},
    )
    def get_tenant(self, request: Request, tenant: UUID) -> Response:
        require_live_tenant(tenant)
        etag = strong_etag("tenant", tenant)
        own = {"tenant": tenant}
        return not_modified(request, etag) or Response(
            TenantResource(
                links=TenantLinks(
                    self_=link(reverse("tenant", kwargs=own)),
                    parent=link(reverse("tenants")),
                    config=link(reverse("config", kwargs=own)),
                    rules=link(reverse("rules", kwargs=own)),
                ),
                tenant_id=tenant,
            ),
            headers={"ETag": etag},
        )

    @route(
        "DELETE",
        "/<uuid:tenant>",
        Level.TENANT,
        Scope.CONFIG_WRITE,
        notes="owners of the tenant and platform admins",
    )
    @operation(
        summary="Delete a tenant's configuration and rules",
        description="Leaves a tombstone in the manifest for 30 days. History, logs and summaries stay.",
        responses={200: Deletion},
    )
    def delete_tenant(self, request: Request, tenant: UUID) -> Response:
        require_tenant_owner(self.principal, tenant)
        deleted = delete_tenant(tenant_id=tenant, actor=self.principal.email)
        return Response(Deletion(success=True, message=f"Tenant {tenant} is deleted.", deleted_files=deleted))

    @route(
        "POST",
        "/<uuid:tenant>/restore",
        Level.TENANT,
        Scope.CONFIG_WRITE,
        notes="owners of the deleted tenant and platform admins",
        name="restore-tenant",
    )
    @operation(
        summary="Restore a deleted tenant",
        description="Within 30 days. Documents, FQDNs, memberships and grants are as before the deletion. "
        "The cache-bust token is new.",
        headers=[ETAG],
        responses={
            200: TenantConfigDocument,
            409: refusal(409, "The tenant is live, or another tenant has its name or an FQDN now."),
        },
    )
    def restore_tenant(self, request: Request, tenant: UUID) -> Response:
        require_tenant_owner(self.principal, tenant)
        restored = restore_tenant(tenant_id=tenant, actor=self.principal.email)
        return Response(restored.answer(), headers={"ETag": restored.etag})


def tenant_items(tenant_ids: Iterable[UUID]) -> Iterator[HalItem]:
    """Yield the items of a list of tenants."""
    href = hrefs("tenant", tenant=ANY_ID)
    return (item(str(tenant_id), href(tenant_id)) for tenant_id in tenant_ids)


def manifest_items(rows: Iterable[ManifestRow]) -> Iterator[ManifestEntry]:
    """Yield the items of a manifest."""
    href = hrefs("tenant", tenant=ANY_ID)
    return (
        ManifestEntry(
            name=str(row.tenant_id),
            href=href(row.tenant_id),
            modified_at=format_timestamp(row.modified_at),
            tenant_name=row.name,
            deleted=row.deleted_at is not None,
        )
        for row in rows
    )


class WarehouseViewSet(AppViewSet):
    """Addresses of warehouses."""

    tag = "Tenants"

    @route("POST", "config/warehouse/parse", Level.SERVICE, name="parse-warehouse")
    @operation(
        summary="Read the connection to a warehouse from a pasted address",
        only_reads=True,
        body=WarehouseText,
        responses={200: WarehouseConnection},
        examples=[
            OpenApiExample(
                "A JDBC string",
                value={
                    "text": "jdbc:databricks://dbc-1.cloud.databricks.com:443;httpPath=/sql/1.0/warehouses/a1"
                },
                request_only=True,
            )
        ],
    )
    def parse_warehouse(self, request: Request) -> Response:
        """Stores nothing. The answer is a `warehouse` of a tenant's configuration, without credentials."""
        return Response(parse_warehouse(self.body["text"]))


class ConfigViewSet(AppViewSet):
    """The configurations of tenants."""

    tag = "Tenants"

    @route("GET", "config/tenants/<uuid:tenant>/config", Level.TENANT, Scope.CONFIG_READ, name="config")
    @operation(
        summary="Read a tenant's configuration",
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: TenantConfigDocument, 304: NOT_MODIFIED},
    )
    def get_tenant_config(self, request: Request, tenant: UUID) -> Response:
        if "If-None-Match" in request.headers:
            unchanged = not_modified(request, config_etag(tenant))
            if unchanged is not None:
                return unchanged
        return config_response(read_config(tenant))

    @route(
        "PUT",
        "config/tenants/<uuid:tenant>/config",
        Level.TENANT,
        Scope.CONFIG_WRITE,
        notes="`access`: owners of the tenant, signed in only",
    )
    @operation(
        summary="Replace a tenant's configuration",
        query=WriteConfigParameters,
        headers=[IF_MATCH, ETAG],
        document=TenantConfigBody,
        responses={
            200: TenantConfigDocument,
            409: refusal(
                409,
                "The configuration changed in the meantime, an FQDN is held for another tenant, or the name "
                "is not unique in the account.",
            ),
        },
    )
    def replace_tenant_config(self, request: Request, tenant: UUID) -> Response:
        written = write_config(
            tenant_id=tenant,
            document=request.data,
            parse=parse_config,
            actor=self.principal.email,
            by_owner=is_signed_in_owner(self.principal, tenant),
            expected_etag=request.headers.get("If-Match"),
            if_changed=self.query["ifChanged"],
            comment=self.query.get("comment", ""),
        )
        return config_response(written)


def config_response(config: ConfigState) -> Response:
    """Answer a configuration under its entity tag."""
    return Response(config.answer(), headers={"ETag": config.etag})
