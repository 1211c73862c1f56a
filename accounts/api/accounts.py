"""``/config/accounts``. Contract: accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.urls import reverse
from drf_spectacular.utils import OpenApiExample
from rest_framework.response import Response

from accounts.access.policy import Level
from accounts.access.scopes import Scope
from accounts.billing.accounts import (
    AccountDocument,
    AccountState,
    create_account,
    delete_account,
    list_accounts,
    read_account,
    write_account,
)
from accounts.models.billing import Plan
from accounts.readers import Author
from accounts.routes import route
from accounts.serializers.billing import AccountBody, AccountCreate, parse_account
from accounts.viewsets import AppViewSet
from tenantadmin.lib.core.structs import Success
from tenantadmin.lib.http.hal import (
    ANY_ID,
    ETAG,
    IF_MATCH,
    IF_NONE_MATCH,
    LOCATION,
    REASON,
    ItemList,
    hrefs,
    item,
    links,
    not_modified,
)
from tenantadmin.lib.http.schema import NOT_MODIFIED, STALE, refusal
from tenantadmin.lib.http.streaming import stream_links
from tenantadmin.lib.http.viewsets import operation

if TYPE_CHECKING:
    from uuid import UUID

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
            ItemList(links=links(self_href=reverse("accounts"), parent=reverse("contract"))),
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
    """Answer an account under its entity tag."""
    return Response(account.answer(), headers={"ETag": account.etag})
