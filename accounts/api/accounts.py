"""``/config/accounts``. Contract: accounts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.response import Response

from accounts.access.resources import owns_account
from accounts.billing.accounts import (
    AccountState,
    account_path,
    create_account,
    delete_account,
    list_accounts,
    read_account,
    write_account,
)
from accounts.models.billing import Plan
from accounts.permissions import AppView
from accounts.serializers.billing import AccountBody, AccountCreate, AccountDocument
from tenantadmin.http.etags import not_modified, require_match
from tenantadmin.http.parameters import ETAG, IF_MATCH, IF_NONE_MATCH
from tenantadmin.http.reading import read_body, read_query
from tenantadmin.http.schema import NOT_MODIFIED, STALE, refusal
from tenantadmin.http.serializers import ItemList, Success
from tenantadmin.http.streaming import stream_links

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import StreamingHttpResponse
    from rest_framework.request import Request

_NEW = OpenApiExample(
    "An account with one owner",
    value={"name": "Acme", "plan": "team", "owners": ["ada@example.org"], "billingEmail": "pay@example.org"},
    request_only=True,
)


def account_response(account: AccountState, *, status: int = 200) -> Response:
    """Answer an account under its entity tag."""
    headers = {"ETag": account.etag}
    if status == 201:
        headers["Location"] = account_path(account.account_id)
    return Response(account.as_json(), status=status, headers=headers)


class AccountsView(AppView):
    """The accounts that the caller owns or was granted rights on; all for a platform admin."""

    operations: ClassVar = {"GET": "listAccounts", "POST": "createAccount"}

    @extend_schema(tags=["Accounts"], summary="List accounts", responses={200: ItemList})
    def get(self, request: Request) -> StreamingHttpResponse:
        read_query(None, request)
        return stream_links(self_href="/config/accounts", parent="/", items=list_accounts(self.principal))

    @extend_schema(
        tags=["Accounts"],
        summary="Create an account",
        parameters=[ETAG],
        request=AccountCreate,
        responses={201: AccountDocument},
        examples=[_NEW],
    )
    def post(self, request: Request) -> Response:
        read_query(None, request)
        body = read_body(AccountCreate, request)
        created = create_account(
            name=body["name"],
            owners=body["owners"],
            plan=body.get("plan", Plan.FREE),
            billing_email=body.get("billingEmail", ""),
            actor=self.principal.email,
        )
        return account_response(created, status=201)


class AccountView(AppView):
    """One account."""

    operations: ClassVar = {"GET": "getAccount", "PUT": "replaceAccount", "DELETE": "deleteAccount"}

    @extend_schema(
        tags=["Accounts"],
        summary="Read an account",
        parameters=[IF_NONE_MATCH, ETAG],
        responses={200: AccountDocument, 304: NOT_MODIFIED},
    )
    def get(self, request: Request, account: UUID) -> Response:
        read_query(None, request)
        state = read_account(account)
        return not_modified(request, state.etag) or account_response(state)

    @extend_schema(
        tags=["Accounts"],
        summary="Replace an account",
        description="An absent `plan` stays; another one is for platform admins, "
        "other `owners` for those who own the account too.",
        parameters=[IF_MATCH, ETAG],
        request=AccountBody,
        responses={200: AccountDocument, 409: STALE},
    )
    def put(self, request: Request, account: UUID) -> Response:
        read_query(None, request)
        written = write_account(
            account_id=account,
            document=request.data,
            actor=self.principal.email,
            may_change_plan=self.principal.is_platform_admin,
            may_change_owners=owns_account(self.principal, account),
            require=partial(require_match, request),
        )
        return account_response(written)

    @extend_schema(
        tags=["Accounts"],
        summary="Delete an account without live tenants",
        responses={200: Success, 409: refusal(409, "The account has live tenants.")},
    )
    def delete(self, request: Request, account: UUID) -> Response:
        read_query(None, request)
        delete_account(account_id=account, actor=self.principal.email)
        return Response({"success": True, "message": f"Account {account} is deleted."})
