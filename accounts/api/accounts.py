"""``/config/accounts`` with their domains, ``/config/fqdns`` and ``/config/grants``. Contract: accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import msgspec
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, OpenApiResponse
from rest_framework.response import Response

from accounts.access.scopes import Level, Scope
from accounts.billing.accounts import (
    AccountDocument,
    AccountState,
    create_account,
    delete_account,
    list_accounts,
    read_account,
    write_account,
)
from accounts.billing.domains import (
    DomainDocument,
    NotAnsweredYet,
    delete_domain,
    domain_document,
    list_domains,
    read_domain,
    register_domain,
    verify_domain,
)
from accounts.billing.grants import (
    PermissionGrantDocument,
    PermissionGrantItem,
    create_grant,
    find_grant,
    grant_document,
    grant_item,
    list_grants,
    revoke_grant,
)
from accounts.models import PermissionGrant
from accounts.models.billing import Plan
from accounts.readers.rule import Author
from accounts.routes import route
from accounts.serializers.billing import (
    AccountBody,
    AccountCreate,
    DomainCreate,
    DomainVerify,
    FqdnParameters,
    GrantCreate,
    parse_account,
)
from accounts.tasks import check_domain
from accounts.tenants.fqdns import FqdnDocument, fqdn_document, list_fqdns, read_fqdn
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.structs import JsonStruct, Success
from tenantadmin.lib.http.hal import (
    ANY_ID,
    ETAG,
    IF_MATCH,
    IF_NONE_MATCH,
    LOCATION,
    REASON,
    ItemList,
    ListLinks,
    hrefs,
    item,
    link,
    not_modified,
)
from tenantadmin.lib.http.schema import NOT_MODIFIED, STALE, refusal
from tenantadmin.lib.http.streaming import stream_links
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from django.http import StreamingHttpResponse
    from rest_framework.request import Request


_CREATE_EXAMPLE = OpenApiExample(
    "An account with one owner",
    value={"name": "Acme", "plan": "team", "owners": ["ada@example.org"], "billingEmail": "pay@example.org"},
    request_only=True,
)


class AccountViewSet(AppViewSet):
    """Billing accounts."""

    tag = "Accounts"
    prefix = "config/accounts"

    @route("GET", "", Level.SERVICE, Scope.CONFIG_READ, name="accounts")
    @operation(
        summary="List accounts",
        description="The accounts that the caller owns or was granted rights on; all for a platform admin.",
        responses={200: ItemList},
    )
    def list_accounts(self, request: Request) -> StreamingHttpResponse:
        href = hrefs("account", account=ANY_ID)
        return stream_links(
            ItemList(links=self.links("contract")),
            (item(str(account), href(account)) for account in list_accounts(self.principal)),
        )

    @route("POST", "", Level.PLATFORM, Scope.CONFIG_WRITE, needs_fresh_proof=True)
    @operation(
        summary="Create an account",
        headers=[ETAG, LOCATION, REASON],
        body=AccountCreate,
        responses={201: AccountDocument},
        examples=[_CREATE_EXAMPLE],
    )
    def create_account(self, request: Request) -> Response:
        created = create_account(
            name=self.body["name"],
            owners=self.body["owners"],
            plan=self.body.get("plan", Plan.FREE),
            billing_email=self.body.get("billingEmail", ""),
            author=Author.of(self.principal),
        )
        location = reverse("account", kwargs={"account": created.account_id})
        headers = {"Location": location, "ETag": created.etag}
        return Response(created.answer(), status=201, headers=headers)

    @route("GET", "/<uuid:account>", Level.ACCOUNT, Scope.CONFIG_READ, name="account")
    @operation(
        summary="Read an account",
        headers=[IF_NONE_MATCH, ETAG],
        responses={200: AccountDocument, 304: NOT_MODIFIED},
    )
    def get_account(self, request: Request, account: UUID) -> Response:
        state = read_account(account)
        return not_modified(request, state.etag) or _account_response(state)

    @route(
        "PUT",
        "/<uuid:account>",
        Level.ACCOUNT,
        Scope.CONFIG_WRITE,
        notes="owners of the account, who add only members of their tenants, and platform admins with a "
        "proof change owners; platform admins change the plan",
    )
    @operation(
        summary="Replace an account",
        description="An absent `plan` stays; another one is for platform admins, "
        "other `owners` for owners of the account too. An owner adds only members of its tenants: it invites "
        "the address first.",
        headers=[IF_MATCH, ETAG, REASON],
        document=AccountBody,
        responses={200: AccountDocument, 409: STALE},
    )
    def replace_account(self, request: Request, account: UUID) -> Response:
        written = write_account(
            account_id=account,
            document=request.data,
            parse=parse_account,
            author=Author.of(self.principal),
            expected_etag=request.headers.get("If-Match"),
        )
        return _account_response(written)

    @route("DELETE", "/<uuid:account>", Level.PLATFORM, Scope.CONFIG_WRITE, needs_fresh_proof=True)
    @operation(
        summary="Delete an account without live tenants",
        headers=[REASON],
        responses={200: Success, 409: refusal(409, "The account has live tenants.")},
    )
    def delete_account(self, request: Request, account: UUID) -> Response:
        delete_account(account_id=account, author=Author.of(self.principal))
        return Response(Success(success=True, message=f"Account {account} is deleted."))


def _account_response(account: AccountState) -> Response:
    return Response(account.answer(), headers={"ETag": account.etag})


_DOMAIN_CONFLICT = refusal(409, "The account has the domain already, or it is verified for another account.")


class DomainViewSet(AppViewSet):
    """The domains of an account."""

    tag = "Accounts"
    prefix = "config/accounts/<uuid:account>/domains"

    @route("GET", "", Level.ACCOUNT, Scope.CONFIG_READ, name="domains")
    @operation(summary="List an account's domains", responses={200: ItemList})
    def list_domains(self, request: Request, account: UUID) -> Response:
        href = hrefs("domain", account=account, domain="domain")
        items = (item(name, href(name)) for name in list_domains(account))
        return Response(ItemList(links=self.links("account", items)))

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


class FqdnViewSet(AppViewSet):
    """The host names that tenants hold."""

    tag = "Accounts"
    prefix = "config/fqdns"

    @route("GET", "", Level.SERVICE, Scope.CONFIG_READ, name="fqdns")
    @operation(
        summary="List held FQDNs, tombstones included",
        description="The host names that tenants of the caller's accounts hold.",
        query=FqdnParameters,
        responses={200: ItemList},
    )
    def list_fqdns(self, request: Request) -> StreamingHttpResponse:
        names = list_fqdns(self.principal, tenant_id=self.query.get("tenant"))
        href = hrefs("fqdn", fqdn="fqdn")
        return stream_links(
            ItemList(links=self.links("contract")),
            (item(name, href(name)) for name in names),
        )

    @route("GET", "/<fqdn:fqdn>", Level.SERVICE, Scope.CONFIG_READ, name="fqdn")
    @operation(summary="Find who holds an FQDN", responses={200: FqdnDocument})
    def get_fqdn(self, request: Request, fqdn: str) -> Response:
        return Response(fqdn_document(read_fqdn(self.principal, fqdn)))


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
        new = PermissionGrant(
            resource=self.body["resource"],
            resource_id=self.body["resourceId"],
            permissions=self.body["permissions"],
            expires_at=self.body.get("expiresAt"),
        )
        created = create_grant(self.principal, new, grantee=self.body["grantee"])
        return Response(grant_document(created), status=201)

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
