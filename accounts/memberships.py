"""Memberships of users in tenants. Owners write memberships in their own tenants, platform admins all.

Contract: Users, roles, memberships; PUT replaces, PATCH appends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction

from accounts.access.assurance import require_fresh_proof
from accounts.access.scopes import MEMBERSHIP_SCOPES, Scope
from accounts.events import record_event
from accounts.models import Membership, Tenant, TenantConfig, User
from accounts.models.events import EventKind
from accounts.models.users import MembershipRole
from tenantadmin.lib.core.errors import Forbidden, NotFound, ValidationFailed
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

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
        _touch(user)


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
    tenants = {
        tenant.pk: tenant
        for tenant in Tenant.objects.filter(pk__in={*wanted, *_tenants_of(user)})
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
    added: dict[UUID, str] = {}
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
            added[tenant_id] = role
    removed = [
        tenant_id
        for tenant_id in stored
        if replace and tenant_id not in wanted and Scope.USERS_WRITE in scopes[tenant_id]
    ]
    _require_proof(principal, user=user, stored=stored, added=added, removed=removed)
    if not principal.is_platform_admin:
        _keep_last_owners(user, stored=stored, added=added, removed=removed, path=path)
    change_memberships(user, stored=stored, added=added, removed=removed, actor=principal.email)


def _require_proof(
    principal: Principal,
    *,
    user: User,
    stored: Mapping[UUID, str],
    added: Mapping[UUID, str],
    removed: Collection[UUID],
) -> None:
    """Refuse what needs the role of a platform admin without a fresh proof. What owners may needs none.

    Raises:
        SecondFactorRequired, Forbidden: as `require_fresh_proof`, `require_lent`, `require_staff_may_add`.
    """
    rights = principal.rights
    changed = {*(key for key, role in added.items() if stored.get(key) != role), *removed}
    owned = {key for key in changed if Scope.USERS_WRITE in rights.from_membership(key)}
    is_owner = principal.claims.is_sign_in and changed == owned and added.keys() <= stored.keys()
    if changed and not is_owner and (principal.is_platform_admin or not principal.claims.is_sign_in):
        require_lent(user, added=added.keys() - owned, actor=principal.email)
        require_staff_may_add(user, added=added.keys() - owned)
        require_fresh_proof(principal)


def require_lent(user: User, *, added: Collection[UUID], actor: str) -> None:
    """Refuse to let a platform admin make itself a member of a tenant. Owners invite, and staff take access.

    Raises:
        Forbidden: ``user`` is the platform admin ``actor``.
    """
    if added and user.email == actor and user.is_platform_admin:
        raise Forbidden(
            "You may not make yourself a member of this tenant. Ask one of its owners to invite you, or take "
            "access for a limited time on its page of the admin site."
        )


def only_owners_add(tenants: Collection[UUID]) -> bool:
    """Return True if one of the tenants has an owner, and a configuration by which owners approve access.

    A tenant without an owner gets one from staff in any case.
    """
    required = TenantConfig.objects.requiring_approval().values("pk")
    owners = Membership.objects.filter(role=MembershipRole.OWNER, ends_at=None, tenant__in=tenants)
    return owners.filter(tenant__in=required).exists()


def require_staff_may_add(user: User | None, *, added: Collection[UUID]) -> None:
    """Refuse to let staff make ``user`` (None: unknown) a member where an owner approves the access of staff.

    The role of a member changes: that opens no log to another user.

    Raises:
        Forbidden: the configuration of one of the tenants asks for the approval.
    """
    held = user.memberships.filter(ends_at=None).values_list("tenant_id", flat=True) if user and added else ()
    if (new := {*added} - {*held}) and only_owners_add(new):
        raise Forbidden(
            "The owners of this tenant approve the access of staff, so staff cannot add members. An owner "
            "invites new members."
        )


def change_memberships(
    user: User,
    *,
    stored: Mapping[UUID, str],
    added: Mapping[UUID, str],
    removed: Collection[UUID],
    actor: str,
) -> None:
    """Write lasting memberships of the locked row ``user``, and record each change. The caller checks them.

    ``stored`` maps tenants to the user's present roles, ``added`` to the roles that it gets.
    """
    Membership.objects.filter(user=user, tenant__in=removed).delete()
    for tenant_id in removed:
        record_membership(user.email, tenant_id, actor=actor, before=stored[tenant_id])
    for tenant_id, role in added.items():
        Membership.objects.update_or_create(
            user=user, tenant_id=tenant_id, defaults={"role": role, "ends_at": None}
        )
        record_membership(user.email, tenant_id, actor=actor, before=stored.get(tenant_id), after=role)


def record_membership(
    email: str, tenant_id: UUID, *, actor: str, before: str | None = None, after: str | None = None
) -> None:
    """Record the change of a user's role in a tenant. None means that the user is no member."""
    if before == after:
        return
    kind = EventKind.MEMBERSHIP_CHANGED
    if before is None:
        kind = EventKind.MEMBERSHIP_ADDED
    elif after is None:
        kind = EventKind.MEMBERSHIP_REMOVED
    record_event(
        kind,
        actor=actor,
        subject=email,
        tenant_id=tenant_id,
        before=None if before is None else {"role": before},
        after=None if after is None else {"role": after},
    )


def _unique(entries: Sequence[MembershipEntry], path: str) -> dict[UUID, str]:
    wanted: dict[UUID, str] = {}
    for index, entry in enumerate(entries):
        if entry.tenant_id in wanted:
            raise ValidationFailed.at(
                f"{path}/{index}/tenantId", "duplicate-tenant", "This tenant is listed more than once."
            )
        wanted[entry.tenant_id] = entry.role
    return wanted


def _tenants_of(user: User) -> list[UUID]:
    return list(user.memberships.values_list("tenant_id", flat=True))


def _require_own_rights(principal: Principal, *, tenant_id: UUID, role: str) -> None:
    """Refuse to give a role with more scopes than the caller's own membership. Grants do not count."""
    rights = principal.rights
    if not rights.is_platform_admin and not MEMBERSHIP_SCOPES[role] <= rights.from_membership(tenant_id):
        raise Forbidden(
            f"You may not make anyone '{role}' of this tenant: your own membership has fewer rights."
        )


def _keep_last_owners(
    user: User,
    *,
    stored: Mapping[UUID, str],
    added: Mapping[UUID, str],
    removed: Sequence[UUID],
    path: str,
) -> None:
    leaving = {
        tenant_id
        for tenant_id in {*added, *removed}
        if stored.get(tenant_id) == MembershipRole.OWNER and added.get(tenant_id) != MembershipRole.OWNER
    }
    owners = Membership.objects.filter(tenant__in=leaving, role=MembershipRole.OWNER).exclude(user=user)
    alone = leaving - set(owners.values_list("tenant_id", flat=True))
    if alone:
        name = Tenant.objects.filter(pk__in=alone).order_by("name").values_list("name", flat=True)[0]
        raise ValidationFailed.at(
            path,
            "last-owner",
            f"{name} would be without an owner. Make another member its owner first, or ask the staff of the "
            "service.",
        )


def _touch(user: User) -> None:
    User.objects.filter(pk=user.pk).update(modified_at=now())
