"""``/config/tenants/{tenant}/access-requests``. Contract: Access of staff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from django.urls import reverse
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.access_requests import (
    AccessRequestDocument,
    AccessRequestEnded,
    approve_access,
    decline_access,
    list_access_requests,
)
from accounts.routes import route
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.http.hal import ListLinks, link
from tenantadmin.lib.http.schema import refusal
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request


_ANSWER: Final = "For owners of the tenant, signed in. 409 if it was answered or withdrawn, or has expired."
_ENDED: Final = refusal(409, AccessRequestEnded.message)


class AccessRequestList(JsonStruct):
    links: ListLinks = msgspec.field(name="_links")
    requests: list[AccessRequestDocument]


class AccessRequestViewSet(AppViewSet):
    """What staff ask the owners of a tenant, where its configuration has `staffApproval: required`."""

    tag = "Users"
    prefix = "config/tenants/<uuid:tenant>/access-requests"

    @route(
        "GET",
        "",
        Level.TENANT,
        Scope.USERS_READ,
        notes="owners of the tenant and platform admins",
        name="access-requests",
    )
    @operation(
        summary="Requests of staff for access to the tenant's logs, open ones first, at most 200",
        description="Ended and expired ones are listed for another month.",
        responses={200: AccessRequestList},
    )
    def list_access_requests(self, request: Request, tenant: UUID) -> Response:
        links = ListLinks(
            self_=link(reverse("access-requests", kwargs={"tenant": tenant})),
            parent=link(reverse("tenant", kwargs={"tenant": tenant})),
        )
        found = list_access_requests(self.principal, tenant_id=tenant)
        return Response(AccessRequestList(links=links, requests=found))

    @route(
        "POST",
        "/<uuid:access_request>/approve",
        Level.TENANT,
        Scope.USERS_WRITE,
        notes="owners of the tenant, signed in only",
        name="approve-access",
    )
    @operation(
        summary="Approve a request: staff may read the tenant's logs for the hours that it names",
        description=_ANSWER,
        responses={200: AccessRequestDocument, 409: _ENDED},
    )
    def approve_access(self, request: Request, tenant: UUID, access_request: UUID) -> Response:
        return Response(approve_access(self.principal, tenant_id=tenant, request_id=access_request))

    @route(
        "POST",
        "/<uuid:access_request>/decline",
        Level.TENANT,
        Scope.USERS_WRITE,
        notes="owners of the tenant, signed in only",
        name="decline-access",
    )
    @operation(
        summary="Decline a request of staff for access",
        description=_ANSWER,
        responses={200: AccessRequestDocument, 409: _ENDED},
    )
    def decline_access(self, request: Request, tenant: UUID, access_request: UUID) -> Response:
        return Response(decline_access(self.principal, tenant_id=tenant, request_id=access_request))
