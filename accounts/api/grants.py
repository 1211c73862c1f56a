"""``/config/grants``. Contract: delegated permission grants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.response import Response

from accounts.billing.grants import NewGrant, create_grant, grant_as_json, list_grants, revoke_grant
from accounts.permissions import AppView
from accounts.serializers.billing import GrantCreate, GrantDocument
from tenantadmin.http.reading import read_body, read_query
from tenantadmin.http.serializers import Link, Success
from tenantadmin.http.streaming import stream_links

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import StreamingHttpResponse
    from rest_framework.request import Request


@extend_schema_serializer(component_name="PermissionGrantItem")
class GrantItem(GrantDocument):
    """A grant in a list; its address takes a DELETE."""

    name = serializers.CharField()
    href = serializers.CharField()


class GrantLinks(serializers.Serializer[Any]):
    self = Link()
    parent = Link()
    items = GrantItem(many=True)


class GrantList(serializers.Serializer[Any]):
    """Grants in force, newest first."""

    _links = GrantLinks()


class GrantsView(AppView):
    """The grants that the caller received, gave, or could revoke."""

    operations: ClassVar = {"GET": "listGrants", "POST": "createGrant"}

    @extend_schema(tags=["Accounts"], summary="List grants in force", responses={200: GrantList})
    def get(self, request: Request) -> StreamingHttpResponse:
        read_query(None, request)
        return stream_links(self_href="/config/grants", parent="/", items=list_grants(self.principal))

    @extend_schema(
        tags=["Accounts"],
        summary="Delegate permissions on a tenant or an account",
        request=GrantCreate,
        responses={201: GrantDocument},
        examples=[
            OpenApiExample(
                "Reading one tenant's configuration",
                value={
                    "grantee": "grace@example.org",
                    "resource": "tenant",
                    "resourceId": "3f2b8c1e-5a7d-4e0f-9c6b-1d2e3f4a5b6c",
                    "permissions": ["config:read"],
                    "expiresAt": "2027-01-01T00:00:00.000Z",
                },
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        read_query(None, request)
        body = read_body(GrantCreate, request)
        new = NewGrant(
            grantee=body["grantee"],
            resource=body["resource"],
            resource_id=body["resourceId"],
            permissions=body["permissions"],
            expires_at=body.get("expiresAt"),
        )
        return Response(grant_as_json(create_grant(self.principal, new)), status=201)


class GrantView(AppView):
    """One grant."""

    operations: ClassVar = {"DELETE": "revokeGrant"}

    @extend_schema(tags=["Accounts"], summary="Revoke a grant", responses={200: Success})
    def delete(self, request: Request, grant: UUID) -> Response:
        read_query(None, request)
        revoke_grant(self.principal, grant)
        return Response({"success": True, "message": f"Grant {grant} is revoked."})
