"""``/config/tenants/{tenant}/config``. Contract: Tenants and configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.resources import is_signed_in_owner
from accounts.access.scopes import Scope
from accounts.routes import route
from accounts.serializers.tenants import (
    TenantConfigBody,
    WarehouseText,
    WriteConfigParameters,
    parse_config,
)
from accounts.tenants.config import (
    ConfigState,
    TenantConfigDocument,
    config_etag,
    read_config,
    write_config,
)
from accounts.tenants.warehouse_urls import WarehouseConnection, parse_warehouse
from accounts.viewsets import AppViewSet
from tenantadmin.lib.http.hal import ETAG, IF_MATCH, IF_NONE_MATCH, not_modified
from tenantadmin.lib.http.schema import NOT_MODIFIED, refusal
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


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
