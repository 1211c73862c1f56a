"""Describe an access token to programs that cannot verify it offline (RFC 7662)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from accounts.access.principal import WILDCARD
from accounts.access.rights import authenticate_token
from accounts.access.scopes import Scope
from accounts.models import Tenant
from tenantadmin.lib.core.errors import InvalidToken
from tenantadmin.lib.core.structs import Email, JsonStruct

if TYPE_CHECKING:
    from accounts.access.principal import Claims, Principal


class TokenDescription(JsonStruct, rename=None):
    """What an access token says. ``active`` alone if it is not in force, or not for the caller to know."""

    active: bool
    token_type: Literal["Bearer"] | None = None
    sub: Annotated[Email | None, Meta(description="The user.")] = None
    scope: Annotated[str | None, Meta(description="Space separated.")] = None
    role: str | None = None
    tenants: list[str] | None = None
    accounts: list[str] | None = None
    exp: Annotated[int | None, Meta(description="In seconds since 1970.")] = None
    jti: str | None = None
    pat: Annotated[int | None, Meta(description="The PAT that it was minted from.")] = None
    tos_required: bool | None = None


_INACTIVE = TokenDescription(active=False)


def describe_token(principal: Principal, text: str) -> TokenDescription:
    """Return what the access token ``text`` says, if it is in force and the caller may read its tenants."""
    try:
        claims = authenticate_token(text).claims
    except InvalidToken:
        return _INACTIVE
    if not _may_know(principal, claims):
        return _INACTIVE
    return TokenDescription(
        active=True,
        token_type="Bearer",  # noqa: S106
        sub=claims.subject,
        scope=" ".join(sorted(claims.scopes)),
        role=claims.role,
        tenants=[WILDCARD] if claims.has_wildcard else sorted(map(str, claims.tenants)),
        accounts=sorted(map(str, claims.accounts)),
        exp=claims.expires_at,
        jti=claims.token_id,
        pat=claims.personal_access_token,
        tos_required=claims.tos_required or None,
    )


def _may_know(principal: Principal, claims: Claims) -> bool:
    """Return True for a caller with ``config:read`` on all live tenants of a token, or on its accounts."""
    if Scope.CONFIG_READ in principal.on_tenants.everywhere:
        return True
    if claims.has_wildcard:
        return False
    named = Tenant.objects.live().filter(pk__in=claims.tenants)
    tenants = set(named.values_list("pk", flat=True))
    if tenants:
        readable = named.with_scope(Scope.CONFIG_READ, principal.on_tenants)
        return tenants == set(readable.values_list("pk", flat=True))
    on = principal.on_accounts
    return bool(claims.accounts) and all(
        Scope.CONFIG_READ in on.scopes_on(account_id=account) for account in claims.accounts
    )
