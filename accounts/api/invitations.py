"""Invitations into tenants, and requests of staff for access. Contract: Invitations, Access of staff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

import msgspec
from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.invitations import (
    InvitationDocument,
    accept_invitation,
    create_invitation,
    decline_invitation,
    list_invitations,
    list_own_invitations,
    withdraw_invitation,
)
from accounts.limited_access import (
    AccessRequestDocument,
    approve_access,
    decline_access,
    list_access_requests,
)
from accounts.models.users import MembershipRole
from accounts.pending import AccessRequestEnded, InvitationEnded
from accounts.routes import route
from accounts.serializers.users import InvitationBody
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.structs import JsonStruct, Success
from tenantadmin.lib.http.hal import REASON, ListLinks
from tenantadmin.lib.http.schema import refusal
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from rest_framework.request import Request


_ENDED: Final = refusal(409, InvitationEnded.message)


class InvitationList(JsonStruct):
    links: ListLinks = msgspec.field(name="_links")
    invitations: list[InvitationDocument]


class InvitationViewSet(AppViewSet):
    """The invitations into a tenant."""

    tag = "Users"
    prefix = "config/tenants/<uuid:tenant>/invitations"

    @route(
        "GET",
        "",
        Level.TENANT,
        Scope.USERS_READ,
        notes="owners of the tenant and platform admins",
        name="invitations",
    )
    @operation(
        summary="The invitations into a tenant, open ones first, at most 200",
        description="Ended and expired ones are listed for another month.",
        responses={200: InvitationList},
    )
    def list_invitations(self, request: Request, tenant: UUID) -> Response:
        links = ListLinks.of(self.links("tenant"))
        found = list_invitations(self.principal, tenant_id=tenant)
        return Response(InvitationList(links=links, invitations=found))

    @route(
        "POST",
        "",
        Level.TENANT,
        Scope.USERS_WRITE,
        notes="owners of the tenant; platform admins with a proof, but not themselves",
    )
    @operation(
        summary="Invite someone into a tenant by email",
        description="The address gets a mail and has 14 days to accept. Whether it is a user's makes no "
        "difference. An open invitation of the address is replaced. A tenant has at most 50 open invitations "
        "(409), and sends at most 20 in an hour; an address gets at most 10 in a day. Who first signed in "
        "less than a day ago sends no `message`.",
        headers=[REASON],
        body=InvitationBody,
        responses={
            201: InvitationDocument,
            409: refusal(409, "The tenant has 50 open invitations."),
            **{status: refusal(status) for status in (429, 502)},
        },
        examples=[
            OpenApiExample(
                "A colleague",
                value={"email": "grace@example.org", "role": "member", "message": "Our log is here."},
                request_only=True,
            )
        ],
    )
    def create_invitation(self, request: Request, tenant: UUID) -> Response:
        created = create_invitation(
            self.principal,
            tenant_id=tenant,
            email=self.body["email"],
            role=MembershipRole(self.body["role"]),
            message=self.body["message"],
        )
        return Response(created, status=201)

    @route(
        "DELETE",
        "/<uuid:invitation>",
        Level.TENANT,
        Scope.USERS_WRITE,
        notes="owners of the tenant and platform admins",
        name="invitation",
    )
    @operation(
        summary="Withdraw an open invitation",
        responses={200: Success, 409: _ENDED},
    )
    def withdraw_invitation(self, request: Request, tenant: UUID, invitation: UUID) -> Response:
        withdraw_invitation(self.principal, tenant_id=tenant, invitation_id=invitation)
        return Response(Success(success=True, message="The invitation is withdrawn."))


class OwnInvitationViewSet(AppViewSet):
    """The invitations to a user."""

    tag = "Users"
    prefix = "users/<email:email>/invitations"

    @route("GET", "", Level.SELF, Scope.USERS_READ, name="user-invitations")
    @operation(
        summary="The open invitations to the caller's address, newest first, at most 200",
        responses={200: InvitationList},
    )
    def list_own_invitations(self, request: Request, email: str) -> Response:
        links = ListLinks.of(self.links("user"))
        return Response(InvitationList(links=links, invitations=list_own_invitations(self.principal)))

    @route("POST", "/<uuid:invitation>/accept", Level.SELF, notes="signed in only", name="accept-invitation")
    @operation(
        summary="Accept an invitation: become a member of the tenant",
        description="Needs a sign-in. 409 if it was used, declined or withdrawn, has expired, or if the "
        "inviting user may no longer invite.",
        responses={200: InvitationDocument, 409: _ENDED},
    )
    def accept_invitation(self, request: Request, email: str, invitation: UUID) -> Response:
        return Response(accept_invitation(self.principal, invitation))

    @route(
        "POST", "/<uuid:invitation>/decline", Level.SELF, notes="signed in only", name="decline-invitation"
    )
    @operation(
        summary="Decline an invitation",
        description="Needs a sign-in. 409 if it is no longer open.",
        responses={200: InvitationDocument, 409: _ENDED},
    )
    def decline_invitation(self, request: Request, email: str, invitation: UUID) -> Response:
        return Response(decline_invitation(self.principal, invitation))


_ANSWER: Final = "For owners of the tenant, signed in. 409 if it was answered or withdrawn, or has expired."
_REQUEST_ENDED: Final = refusal(409, AccessRequestEnded.message)


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
        links = ListLinks.of(self.links("tenant"))
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
        responses={200: AccessRequestDocument, 409: _REQUEST_ENDED},
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
        responses={200: AccessRequestDocument, 409: _REQUEST_ENDED},
    )
    def decline_access(self, request: Request, tenant: UUID, access_request: UUID) -> Response:
        return Response(decline_access(self.principal, tenant_id=tenant, request_id=access_request))
