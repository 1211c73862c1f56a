"""Memberships of users in tenants. Owners write memberships in their own tenants, platform admins all.

Contract: Users, roles, memberships; PUT replaces, PATCH appends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction

from accounts.access.scopes import MEMBERSHIP_SCOPES, Scope
from accounts.models import Membership, Tenant, User
from accounts.readers.memberships import SetMembership
from accounts.readers.rule import Author, change_readers, without_owner
from tenantadmin.lib.core.errors import Forbidden, NotFound, ValidationFailed
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.access.principal import Principal


#: Why an owner may not write a user who is no member yet, or unknown: owners are not told which.
INVITATION_NEEDED: Final = (
    "You may change only members of your tenants. To add someone, invite the address: "
    "POST /config/tenants/{tenant}/invitations."
)


class MembershipEntry(JsonStruct):
    """One entry of a membership list. The contract describes it by the request, `MembershipBody`."""

    tenant_id: UUID
    role: str


def update_memberships(
    principal: Principal, *, email: str, entries: Sequence[MembershipEntry], append: bool
) -> None:
    """Replace the memberships of a user in the tenants that the caller owns, or append to all.

    Appending keeps existing memberships as they are. Only platform admins add memberships.

    Raises:
        NotFound: there is no such user. Only platform admins are told.
        Forbidden: the user is in no tenant whose memberships the caller may write, or is unknown.
        ValidationFailed: as `set_memberships`, which also raises Forbidden.
    """
    with transaction.atomic():
        require_ownership(principal)
        user = User.objects.select_for_update(no_key=True).filter(email=email).first()
        require_known(principal, user)
        if user is None:
            raise NotFound("There is no such user.")
        _write(principal, user=user, entries=entries, path="", replace=not append)
        User.objects.filter(pk=user.pk).update(modified_at=now())


def require_known(principal: Principal, user: User | None) -> None:
    """Refuse an owner to write a user who is in none of its tenants, and an unknown one, alike.

    Raises:
        Forbidden: the caller is no platform admin, and the user is in no tenant whose memberships the
            caller may write.
    """
    if principal.is_platform_admin:
        return
    if user is None or not live_memberships(principal, Scope.USERS_WRITE).filter(user=user).exists():
        raise Forbidden(INVITATION_NEEDED)


def live_memberships(principal: Principal, scope: Scope) -> QuerySet[Membership]:
    """Return the memberships in force in live tenants on which ``principal`` has ``scope``."""
    has_scope = principal.on_tenants.as_q(scope, tenant="tenant", account="tenant__account")
    return Membership.objects.in_force().filter(has_scope, tenant__deleted_at__isnull=True)


def set_memberships(
    principal: Principal, *, user: User, entries: Sequence[MembershipEntry], path: str
) -> None:
    """Replace the memberships of the locked row ``user`` in the tenants that the caller owns.

    Memberships in other tenants stay. The caller may send back such an entry unchanged if the caller may see
    it. ``path`` is the JSON Pointer of the list in the request.

    Raises:
        Forbidden: an entry is of a tenant that the caller does not own, gives more than the caller has, or
            makes the user a new member, which only platform admins do.
        ValidationFailed: a tenant is unknown or listed more than once, or would lose its last owner.
    """
    _write(principal, user=user, entries=entries, path=path, replace=True)


def can_see_membership(principal: Principal, *, email: str, scopes: frozenset[Scope]) -> bool:
    """Return True if a caller with ``scopes`` on a tenant may see that the user is a member of it."""
    is_own = principal.claims.is_sign_in and email == principal.email
    return is_own or bool(scopes & {Scope.CONFIG_READ, Scope.USERS_READ})


def require_ownership(principal: Principal) -> None:
    """Refuse a caller who may not write the memberships of any tenant.

    Raises:
        Forbidden: there is no tenant on which the caller has ``users:write``.
    """
    access = principal.on_tenants
    if Scope.USERS_WRITE in access.everywhere:
        return
    if not Tenant.objects.with_scope(Scope.USERS_WRITE, access).exists():
        raise Forbidden("Only an owner of a tenant or a platform admin may change memberships.")


def _write(
    principal: Principal, *, user: User, entries: Sequence[MembershipEntry], path: str, replace: bool
) -> None:
    wanted = _unique(entries, path)
    # Lock in a fixed order, so that two writers of the same tenants do not deadlock.
    held = user.memberships.values_list("tenant_id", flat=True)
    tenants = {
        tenant.pk: tenant
        for tenant in Tenant.objects.filter(pk__in={*wanted, *held})
        .order_by("pk")
        .select_for_update(no_key=True)
    }
    live = {tenant_id for tenant_id, tenant in tenants.items() if tenant.deleted_at is None}
    scopes = {
        tenant_id: principal.on_tenants.scopes_on(
            tenant_id=tenant_id,
            account_id=tenants[tenant_id].account_id if tenant_id in tenants else None,
        )
        for tenant_id in {*wanted, *tenants}
    }
    stored = {
        tenant_id: role
        for tenant_id, role in user.memberships.values_list("tenant_id", "role")
        if tenant_id in live
    }
    changes: list[SetMembership] = []
    for index, (tenant_id, role) in enumerate(wanted.items()):
        is_stored = stored.get(tenant_id) == role
        if is_stored and can_see_membership(principal, email=user.email, scopes=scopes[tenant_id]):
            continue
        if Scope.USERS_WRITE not in scopes[tenant_id]:
            raise Forbidden("You do not own a tenant with this id.")
        if tenant_id not in live:
            raise ValidationFailed.at(
                f"{path}/{index}/tenantId", "unknown-tenant", "There is no such tenant."
            )
        if tenant_id not in stored and not principal.is_platform_admin:
            raise Forbidden(INVITATION_NEEDED)
        if replace or tenant_id not in stored:
            _require_own_rights(principal, tenant_id=tenant_id, role=role)
            changes.append(SetMembership(user, tenant_id, role))
    changes += [
        SetMembership(user, tenant_id, None)
        for tenant_id in stored
        if replace and tenant_id not in wanted and Scope.USERS_WRITE in scopes[tenant_id]
    ]
    if not principal.is_platform_admin:
        _keep_last_owners(changes, path=path)
    change_readers(Author.of(principal), *changes)


def _unique(entries: Sequence[MembershipEntry], path: str) -> dict[UUID, str]:
    wanted: dict[UUID, str] = {}
    for index, entry in enumerate(entries):
        if entry.tenant_id in wanted:
            raise ValidationFailed.at(
                f"{path}/{index}/tenantId", "duplicate-tenant", "This tenant is listed more than once."
            )
        wanted[entry.tenant_id] = entry.role
    return wanted


def _require_own_rights(principal: Principal, *, tenant_id: UUID, role: str) -> None:
    """Refuse to give a role with more scopes than the caller's own membership. Grants do not count."""
    rights = principal.rights
    if not rights.is_platform_admin and not MEMBERSHIP_SCOPES[role] <= rights.from_membership(tenant_id):
        raise Forbidden(
            f"You may not make anyone '{role}' of this tenant: your own membership has fewer rights."
        )


def _keep_last_owners(changes: Sequence[SetMembership], *, path: str) -> None:
    if alone := without_owner(*changes):
        name = Tenant.objects.filter(pk__in=alone).order_by("name").values_list("name", flat=True)[0]
        raise ValidationFailed.at(
            path,
            "last-owner",
            f"{name} would be without an owner. Make another member its owner first, or ask the staff of the "
            "service.",
        )
