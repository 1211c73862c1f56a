"""Delegated permissions on tenants and accounts. Contract: Authentication (PermissionGrant)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from accounts.access.credentials import end_within
from accounts.access.resources import owns_account, owns_tenant, require_permitted
from accounts.access.scopes import ACCOUNT_OWNER_SCOPES, GRANTABLE, PLATFORM_ADMIN_SCOPES, Scope
from accounts.events import SYSTEM, record_event
from accounts.limits import count_use
from accounts.models import Account, PermissionGrant, Tenant, User
from accounts.models.billing import GrantResource
from accounts.models.events import EventKind
from accounts.models.users import MembershipRole
from accounts.readers.grants import GiveGrant, end_grant
from accounts.readers.rule import Author, change_readers
from accounts.tenants.errors import GrantNotFound
from tenantadmin.lib.core.errors import Detail, Forbidden, ValidationFailed
from tenantadmin.lib.core.structs import Email, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, now

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.access.principal import Principal


class PermissionGrantDocument(JsonStruct):
    """Delegated permissions."""

    id: UUID
    grantee: Email
    resource: Annotated[str, one_of(GrantResource.values)]
    resource_id: UUID
    permissions: list[str]
    granted_by: Email | None
    created_at: Timestamp
    expires_at: Timestamp | None = None


class PermissionGrantItem(PermissionGrantDocument):
    """A grant in a list, with its address."""

    name: str
    href: str


def grant_document(grant: PermissionGrant) -> PermissionGrantDocument:
    """Return the contract's PermissionGrant."""
    return PermissionGrantDocument.of(
        grant,
        grantee=grant.grantee.email,
        permissions=sorted(grant.permissions),
        granted_by=grant.granted_by.email if grant.granted_by else None,
    )


def grant_item(grant: PermissionGrant, href: str) -> PermissionGrantItem:
    """Return the contract's PermissionGrantItem."""
    return PermissionGrantItem.of(grant_document(grant), name=str(grant.pk), href=href)


def list_grants(principal: Principal) -> Iterator[PermissionGrant]:
    """Yield the active grants that the caller received, gave or may revoke, newest first."""
    return _visible(principal).order_by("-created_at", "pk").iterator(chunk_size=500)


def create_grant(principal: Principal, grant: PermissionGrant, *, grantee: str) -> PermissionGrant:
    """Delegate permissions that the caller has itself. What a personal access token gives ends with it.

    ``grant`` is not stored yet. It is for an address, ``grantee``. Only platform admins are told whether it
    is a user's; for others, a user without a sign-in is made of an unknown one.

    Raises:
        Forbidden: the caller does not own the resource, does not have one of the permissions, or the domain
            of the address may not sign in.
        ValidationFailed: the resource does not exist, or the expiry is in the past; for a platform admin, the
            user does not exist.
        RateLimited: the caller has given too many in a short time.
        SecondFactorRequired, SecondAdminNeeded: as `change_readers`.
    """
    _require_own_scopes(principal, grant)
    details = _check_grant(grant)
    if principal.is_platform_admin:
        if not User.objects.filter(email=grantee, is_active=True).exists():
            unknown = Detail("/grantee", "unknown-user", f"There is no active user '{grantee}'.")
            details.insert(0, unknown)
    else:
        require_permitted(grantee)
        count_use(limit=settings.INVITATION_LIMIT, kind="grant", key=principal.email)
    if details:
        raise ValidationFailed(details=details)
    pat_id, number = principal.claims.personal_access_token, principal.claims.secret_number
    with transaction.atomic():
        latest = None
        if pat_id is not None:
            latest = end_within(grant.expires_at, pat_id=pat_id, secret_number=number)
        grant.grantee, is_new = User.objects.lock_or_create(grantee)
        if is_new:
            # The caller, who is told of its own events, must not be the actor.
            record_event(EventKind.USER_CREATED, actor=SYSTEM, subject=grantee)
        grant.permissions = sorted(set(grant.permissions))
        grant.granted_by_id, grant.made_with_id = principal.rights.user_id, pat_id
        change_readers(Author.of(principal), GiveGrant(grant, latest=latest))
    return grant


def find_grant(principal: Principal, grant_id: UUID) -> PermissionGrant:
    """Return an active grant that the caller received, gave or may revoke.

    Raises:
        GrantNotFound: there is no such active grant that the caller may see.
    """
    grant = _visible(principal).filter(pk=grant_id).first()
    if grant is None:
        raise GrantNotFound
    return grant


def revoke_grant(principal: Principal, grant_id: UUID) -> None:
    """Revoke a grant. The user who gave it and the owners of the resource may do this.

    Raises:
        GrantNotFound: there is no such active grant that the caller may see.
        Forbidden: the caller only received it.
        SecondFactorRequired: as `change_readers`.
    """
    grant = find_grant(principal, grant_id)
    given = grant.granted_by_id == principal.rights.user_id
    if not given and not _may_delegate(principal, resource=grant.resource, resource_id=grant.resource_id):
        raise Forbidden("Only the user who gave a grant or an owner of its resource may revoke it.")
    end_grant(grant, author=Author.of(principal))


def _check_grant(grant: PermissionGrant) -> list[Detail]:
    details = []
    if grant.expires_at is not None and grant.expires_at <= now():
        details.append(
            Detail("/expiresAt", "out-of-range", "The expiry is in the past. Give a time in the future.")
        )
    model = Tenant if grant.resource == GrantResource.TENANT else Account
    if not model.objects.live().filter(pk=grant.resource_id).exists():
        details.append(Detail("/resourceId", "unknown-resource", f"There is no such {grant.resource}."))
    return details


def _require_own_scopes(principal: Principal, grant: PermissionGrant) -> None:
    if not _may_delegate(principal, resource=grant.resource, resource_id=grant.resource_id):
        raise Forbidden(f"Only an owner of the {grant.resource} or a platform admin delegates rights on it.")
    own = _own_scopes(principal, resource=grant.resource, resource_id=grant.resource_id) & GRANTABLE
    beyond = sorted(set(grant.permissions) - own)
    if beyond:
        on_tenant = grant.resource == GrantResource.TENANT
        where = "the tenant yourself" if on_tenant else "every tenant of the account"
        raise Forbidden(f"You do not hold '{beyond[0]}' on {where}.")


def _may_delegate(principal: Principal, *, resource: str, resource_id: UUID) -> bool:
    """Return True if the token covers the resource and the caller owns it or is a platform admin."""
    if resource == GrantResource.ACCOUNT:
        claimed = principal.on_accounts.claimed.scopes_on(account_id=resource_id)
        return owns_account(principal, resource_id) and (principal.claims.is_sign_in or bool(claimed))
    account_id = Tenant.objects.filter(pk=resource_id).values_list("account_id", flat=True).first()
    claimed = principal.on_tenants.claimed.scopes_on(tenant_id=resource_id, account_id=account_id)
    return owns_tenant(principal, resource_id) and bool(claimed)


def _own_scopes(principal: Principal, *, resource: str, resource_id: UUID) -> frozenset[Scope]:
    """Return the scopes that the caller may delegate.

    A grant on an account applies to all its tenants, so an owner may delegate only scopes that it has on
    every one of them. Scopes that the caller has from a grant cannot be delegated.
    """
    on_tenants, claims = principal.rights.own_on_tenants, principal.claims
    if resource == GrantResource.TENANT:
        own = on_tenants.scopes_on(tenant_id=resource_id, account_id=None)
    elif principal.is_platform_admin:
        own = PLATFORM_ADMIN_SCOPES
    else:
        tenants = Tenant.objects.live().filter(account=resource_id)
        held = [
            on_tenants.scopes_on(tenant_id=tenant_id, account_id=resource_id)
            for tenant_id in tenants.values_list("pk", flat=True)
        ]
        own = frozenset.intersection(*held) if held else ACCOUNT_OWNER_SCOPES
    return own if claims.is_sign_in else own & claims.scopes


def _visible(principal: Principal) -> QuerySet[PermissionGrant]:
    rights = principal.rights
    grants = PermissionGrant.objects.in_force().select_related("grantee", "granted_by")
    if principal.is_platform_admin:
        return grants
    owned_tenants = [held for held, role in rights.memberships.items() if role == MembershipRole.OWNER]
    return grants.filter(
        Q(grantee=rights.user_id)
        | Q(granted_by=rights.user_id)
        | Q(resource=GrantResource.TENANT, resource_id__in=owned_tenants)
        | Q(resource=GrantResource.ACCOUNT, resource_id__in=rights.owned_accounts)
    )
