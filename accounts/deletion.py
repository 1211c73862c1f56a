"""Delete users. Contract: Users, roles, memberships."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Exists, OuterRef

from accounts.access.credentials import end_links, lock_sign_in
from accounts.billing.accounts import remove_owner
from accounts.ended_invitations import withdraw_invitations
from accounts.models import Account, Invitation, Membership, Tenant, User
from accounts.models.users import MembershipRole, PrimaryRole
from accounts.readers import Author, DeleteUser, change_readers
from accounts.roles import has_other_active_admin, lock_admins
from tenantadmin.lib.core.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from django.db.models import QuerySet


def delete_user(email: str, *, author: Author) -> list[str]:
    """Delete a user with memberships, ownerships, grants and credentials. For platform admins.

    The user's magic links are used up, so that they do not sign in a new user with this address. Returns the
    accounts and tenants that are left without an owner, as `sole_ownerships`.

    Raises:
        NotFound: there is no such user.
        Forbidden: it is the last active platform admin.
        SecondFactorRequired, SecondAdminNeeded: as `change_readers`.
    """
    with transaction.atomic():
        lock_admins()
        lock_sign_in(email)
        # Lock accounts before users: a write of an account uses the same order.
        owned = Account.objects.live().filter(owners__email=email).values("pk")
        accounts = list(Account.objects.select_for_update(no_key=True).filter(pk__in=owned).order_by("pk"))
        user = User.objects.select_for_update().filter(email=email).first()
        if user is None:
            raise NotFound("There is no such user.")
        if user.is_platform_admin and not has_other_active_admin(user):
            raise Forbidden("The last active platform admin cannot be deleted.")
        # A write of memberships locks users before tenants too.
        tenants = Tenant.objects.select_for_update(no_key=True, of=("self",))
        list(tenants.filter(memberships__user=user).order_by("pk"))
        ownerless = sole_ownerships(user)
        for account in accounts:
            remove_owner(account, user=user, author=author)
        change_readers(author, DeleteUser(user))
        end_links(email)
        withdraw_invitations(Invitation.objects.filter(email=email), actor=author.email)
    return ownerless


def sole_ownerships(user: User) -> list[str]:
    """Return the live accounts and tenants that only ``user`` owns: ``account 'Acme' (<id>)``."""
    accounts, tenants = owned_alone(user)
    return [
        *(f"account '{account.name}' ({account.pk})" for account in accounts.order_by("name", "pk")),
        *(f"tenant '{tenant.name}' ({tenant.pk})" for tenant in tenants.order_by("name", "pk")),
    ]


def owned_alone(user: User) -> tuple[QuerySet[Account], QuerySet[Tenant]]:
    """Return the live accounts and tenants of which ``user`` is the only owner who may act as one."""
    active = Account.owners.through.objects.filter(user__is_active=True).exclude(user__role=PrimaryRole.GUEST)
    account_owners = active.filter(account=OuterRef("pk")).exclude(user=user)
    owners = Membership.objects.owning().filter(tenant=OuterRef("pk")).exclude(user=user)
    accounts = Account.objects.live().filter(~Exists(account_owners), owners=user)
    owned = user.memberships.filter(role=MembershipRole.OWNER).values("tenant")
    return accounts, Tenant.objects.live().filter(~Exists(owners), pk__in=owned)
