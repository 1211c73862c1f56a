"""``/config/grants``. Contract: delegated permission grants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.billing.grants import (
    NewGrant,
    PermissionGrantDocument,
    PermissionGrantItem,
    create_grant,
    find_grant,
    grant_document,
    grant_item,
    list_grants,
    revoke_grant,
)
from accounts.routes import route
from accounts.serializers.billing import GrantCreate
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.structs import JsonStruct, Success
from tenantadmin.lib.http.hal import ANY_ID, REASON, ListLinks, hrefs, link
from tenantadmin.lib.http.streaming import stream_links
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import StreamingHttpResponse
    from rest_framework.request import Request


class GrantLinks(ListLinks):
    items: list[PermissionGrantItem]


class GrantList(JsonStruct):
    """Grants that are neither revoked nor expired, newest first."""

    links: GrantLinks = msgspec.field(name="_links")


class GrantViewSet(AppViewSet):
    """Delegated permissions."""

    tag = "Accounts"
    prefix = "config/grants"

    @route("GET", "", Level.SERVICE, Scope.USERS_READ, name="grants")
    @operation(
        summary="List grants in force",
        description="The grants that the caller received, gave, or could revoke.",
        responses={200: GrantList},
    )
    def list_grants(self, request: Request) -> StreamingHttpResponse:
        href = hrefs("grant", grant=ANY_ID)
        links = GrantLinks(self_=link(reverse("grants")), parent=link(reverse("contract")), items=[])
        return stream_links(
            GrantList(links=links),
            (grant_item(grant, href(grant.pk)) for grant in list_grants(self.principal)),
        )

    @route(
        "POST",
        "",
        Level.SERVICE,
        Scope.USERS_WRITE,
        notes="owners of the tenant or account, for any address, and platform admins with a proof, for users "
        "and 30 days; only scopes that they have themselves",
    )
    @operation(
        summary="Delegate permissions on a tenant or an account",
        description="A grant by the role of a platform admin ends after 30 days at the latest. What a "
        "personal access token gives ends with the token.",
        headers=[REASON],
        body=GrantCreate,
        responses={201: PermissionGrantDocument},
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
    def create_grant(self, request: Request) -> Response:
        new = NewGrant(
            grantee=self.body["grantee"],
            resource=self.body["resource"],
            resource_id=self.body["resourceId"],
            permissions=self.body["permissions"],
            expires_at=self.body.get("expiresAt"),
        )
        return Response(grant_document(create_grant(self.principal, new)), status=201)

    @route(
        "GET", "/<uuid:grant>", Level.SERVICE, Scope.USERS_READ, notes="what listGrants lists", name="grant"
    )
    @operation(summary="A grant in force", responses={200: PermissionGrantDocument})
    def get_grant(self, request: Request, grant: UUID) -> Response:
        return Response(grant_document(find_grant(self.principal, grant)))

    @route(
        "DELETE",
        "/<uuid:grant>",
        Level.SERVICE,
        Scope.USERS_WRITE,
        notes="the user who gave the grant, owners of the tenant or account, and platform admins with a "
        "proof",
    )
    @operation(summary="Revoke a grant", headers=[REASON], responses={200: Success})
    def revoke_grant(self, request: Request, grant: UUID) -> Response:
        revoke_grant(self.principal, grant)
        return Response(Success(success=True, message=f"Grant {grant} is revoked."))
