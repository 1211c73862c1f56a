"""``/config/accounts/{accountId}/domains``. Contract: domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.billing.dns import NotAnsweredYet
from accounts.billing.domains import (
    DomainDocument,
    delete_domain,
    domain_document,
    list_domains,
    read_domain,
    register_domain,
    verify_domain,
)
from accounts.routes import route
from accounts.serializers.billing import DomainCreate, DomainVerify
from accounts.tasks import check_domain
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.structs import Success
from tenantadmin.lib.http.hal import LOCATION, ItemList, hrefs, item, links
from tenantadmin.lib.http.schema import refusal
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

_DOMAIN_CONFLICT = refusal(409, "The account has the domain already, or it is verified for another account.")


class DomainViewSet(AppViewSet):
    """The domains of an account."""

    tag = "Accounts"
    prefix = "config/accounts/<uuid:account>/domains"

    @route("GET", "", Level.ACCOUNT, Scope.CONFIG_READ, name="domains")
    @operation(summary="List an account's domains", responses={200: ItemList})
    def list_domains(self, request: Request, account: UUID) -> Response:
        href = hrefs("domain", account=account, domain="domain")
        found = links(
            self_href=reverse("domains", kwargs={"account": account}),
            parent=reverse("account", kwargs={"account": account}),
            items=[item(name, href(name)) for name in list_domains(account)],
        )
        return Response(ItemList(links=found))

    @route("POST", "", Level.ACCOUNT, Scope.CONFIG_WRITE)
    @operation(
        summary="Register a domain and learn its DNS challenge",
        body=DomainCreate,
        headers=[LOCATION],
        responses={201: DomainDocument, 409: _DOMAIN_CONFLICT},
        examples=[OpenApiExample("A domain", value={"domain": "example.org"}, request_only=True)],
    )
    def register_domain(self, request: Request, account: UUID) -> Response:
        domain = register_domain(account_id=account, name=self.body["domain"], actor=self.principal.email)
        location = reverse("domain", kwargs={"account": account, "domain": domain.name})
        return Response(domain_document(domain), status=201, headers={"Location": location})

    @route("GET", "/<fqdn:domain>", Level.ACCOUNT, Scope.CONFIG_READ, name="domain")
    @operation(summary="Read a domain", responses={200: DomainDocument})
    def get_domain(self, request: Request, account: UUID, domain: str) -> Response:
        return Response(domain_document(read_domain(account_id=account, name=domain)))

    @route("DELETE", "/<fqdn:domain>", Level.ACCOUNT, Scope.CONFIG_WRITE)
    @operation(
        summary="Delete a domain that has no FQDNs",
        responses={200: Success, 409: refusal(409, "The domain still has FQDNs.")},
    )
    def delete_domain(self, request: Request, account: UUID, domain: str) -> Response:
        delete_domain(account_id=account, name=domain, actor=self.principal.email)
        return Response(Success(success=True, message=f"Domain {domain} is deleted."))

    @route("POST", "/<fqdn:domain>/verify", Level.ACCOUNT, Scope.CONFIG_WRITE, name="verify-domain")
    @operation(
        summary="Verify a domain by its DNS challenge",
        queue="DOMAIN_CHECK_LIMIT",
        body=DomainVerify,
        responses={
            200: DomainDocument,
            202: OpenApiResponse(DomainDocument, description="The DNS has not answered yet."),
            409: _DOMAIN_CONFLICT,
        },
    )
    def verify_domain(self, request: Request, account: UUID, domain: str) -> Response:
        """202 if the DNS does not answer within a second. The check goes on: read the domain later."""
        actor = self.principal.email
        try:
            verified = verify_domain(
                account_id=account,
                name=domain,
                by_hand=self.body.get("manual", False),
                may_verify_by_hand=self.principal.is_platform_admin,
                actor=actor,
            )
        except NotAnsweredYet:
            waiting = read_domain(account_id=account, name=domain)
            check_domain.delay(waiting.pk, actor)
            return Response(domain_document(waiting), status=202)
        return Response(domain_document(verified))
