"""``/config/accounts/{accountId}/domains``. Contract: domains."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from accounts.billing.accounts import account_path
from accounts.billing.domains import (
    delete_domain,
    domain_as_json,
    domain_path,
    list_domains,
    read_domain,
    register_domain,
    verify_domain,
)
from accounts.permissions import AppView
from accounts.serializers.billing import DomainCreate, DomainDocument, DomainVerify
from tenantadmin.http.hal import links
from tenantadmin.http.reading import read_body, read_query
from tenantadmin.http.schema import refusal
from tenantadmin.http.serializers import ItemList, Success

if TYPE_CHECKING:
    from uuid import UUID

    from rest_framework.request import Request

_TAKEN = refusal(409, "The account has the domain already, or it is verified for another account.")


class DomainsView(AppView):
    """The domains of an account."""

    operations: ClassVar = {"GET": "listDomains", "POST": "registerDomain"}

    @extend_schema(tags=["Accounts"], summary="List an account's domains", responses={200: ItemList})
    def get(self, request: Request, account: UUID) -> Response:
        read_query(None, request)
        items = list_domains(account)
        address = account_path(account, "domains")
        return Response({"_links": links(self_href=address, parent=account_path(account), items=items)})

    @extend_schema(
        tags=["Accounts"],
        summary="Register a domain and learn its DNS challenge",
        request=DomainCreate,
        responses={201: DomainDocument, 409: _TAKEN},
        examples=[OpenApiExample("A domain", value={"domain": "example.org"}, request_only=True)],
    )
    def post(self, request: Request, account: UUID) -> Response:
        read_query(None, request)
        domain = register_domain(account_id=account, name=read_body(DomainCreate, request)["domain"])
        return Response(domain_as_json(domain), status=201, headers={"Location": domain_path(domain)})


class DomainView(AppView):
    """One domain."""

    operations: ClassVar = {"GET": "getDomain", "DELETE": "deleteDomain"}

    @extend_schema(tags=["Accounts"], summary="Read a domain", responses={200: DomainDocument})
    def get(self, request: Request, account: UUID, domain: str) -> Response:
        read_query(None, request)
        return Response(domain_as_json(read_domain(account_id=account, name=domain)))

    @extend_schema(
        tags=["Accounts"],
        summary="Delete a domain that carries no FQDNs",
        responses={200: Success, 409: refusal(409, "FQDNs lie in the domain.")},
    )
    def delete(self, request: Request, account: UUID, domain: str) -> Response:
        read_query(None, request)
        delete_domain(account_id=account, name=domain)
        return Response({"success": True, "message": f"Domain {domain} is deleted."})


class DomainVerifyView(AppView):
    """The proof that an account controls a domain."""

    operations: ClassVar = {"POST": "verifyDomain"}

    @extend_schema(
        tags=["Accounts"],
        summary="Verify a domain by its DNS challenge",
        request=DomainVerify,
        responses={200: DomainDocument, 409: _TAKEN},
    )
    def post(self, request: Request, account: UUID, domain: str) -> Response:
        read_query(None, request)
        by_hand = read_body(DomainVerify, request).get("manual", False)
        verified = verify_domain(
            account_id=account,
            name=domain,
            by_hand=by_hand,
            may_verify_by_hand=self.principal.is_platform_admin,
        )
        return Response(domain_as_json(verified))
