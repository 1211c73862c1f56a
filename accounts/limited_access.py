"""Access of staff to a tenant's logs, for a limited time: a membership that ends by itself.

Owners of the tenant get a mail at once, and see it among the members and in the events, with the reason.
Where the tenant's configuration asks for it, an owner approves it first (`accounts.access_requests`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction

from accounts.access.rights import rights_of
from accounts.access.scopes import Scope
from accounts.events import SYSTEM
from accounts.models import Membership, User
from accounts.models.users import MembershipRole
from accounts.readers import Author, SetMembership, approval_required, change_readers, mail_owners
from accounts.tenants.listing import require_live_tenant
from tenantadmin.lib.core.emails import quoted, unlinked
from tenantadmin.lib.core.errors import BadRequest, Conflict
from tenantadmin.lib.core.request_context import current_reason
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    import datetime as dt
    from uuid import UUID

MAX_HOURS: Final = 8


class LastingMember(Conflict):
    """The user is a member without an end."""

    message = "You are a member of this tenant already."


def may_read_logs(user: User, *, tenant_id: UUID) -> bool:
    """Return True if ``user`` may read and query a tenant's logs: as a member, or with limited access."""
    return Scope.LOGS_QUERY in rights_of(user).from_membership(tenant_id)


def current_membership(user: User, *, tenant_id: UUID) -> Membership | None:
    """Return the membership of ``user`` in a tenant, or None if there is none or its time is over."""
    return user.memberships.in_force().filter(tenant_id=tenant_id).first()


def needs_approval(tenant_id: UUID) -> bool:
    """Return True if an owner of the tenant must approve the access of staff first."""
    return bool(approval_required([tenant_id]))


def take_access(user: User, *, tenant_id: UUID, hours: int) -> dt.datetime:
    """Make ``user`` a member of a tenant for some hours, and return when that ends. Call it with a reason.

    Raises:
        TenantNotFound: there is no such live tenant.
        BadRequest: ``hours`` is not between 1 and `MAX_HOURS`.
        LastingMember: the user is a member without an end.
        ApprovalNeeded: an owner must approve it first.
    """
    require_hours(hours)
    with transaction.atomic():
        locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        require_live_tenant(tenant_id)
        return lend_access(locked, tenant_id=tenant_id, hours=hours, author=Author.on_site(user))


def require_hours(hours: int) -> None:
    """Refuse access for too long.

    Raises:
        BadRequest: ``hours`` is not between 1 and `MAX_HOURS`.
    """
    if not 1 <= hours <= MAX_HOURS:
        raise BadRequest(f"Take access for 1 to {MAX_HOURS} hours.")


def lend_access(user: User, *, tenant_id: UUID, hours: int, author: Author) -> dt.datetime:
    """Make the locked row ``user`` a member for some hours, tell the owners, and return when that ends.

    Call it in a transaction, with a reason. ``author`` is the user itself, or who has approved it.

    Raises:
        LastingMember: the user is a member without an end.
        ApprovalNeeded: an owner must approve it first, and ``author`` is the user itself.
    """
    ends_at = now() + timedelta(hours=hours)
    lent = SetMembership(user, tenant_id, MembershipRole.MEMBER, ends_at=ends_at)
    if lent.stored is not None and lent.stored.ends_at is None:
        raise LastingMember
    change_readers(author, lent)
    context = {
        "staff": user.email,
        "until": format_timestamp(ends_at),
        "reason": unlinked(current_reason()),
        "quoted": quoted(current_reason()),
        "approver": "" if author.email == user.email else author.email,
    }
    mail_owners(tenant_id, subject=f"{user.email} has access to", template="access_taken", context=context)
    return ends_at


def end_access(user: User, *, tenant_id: UUID) -> bool:
    """End the limited access of ``user``, who asks for it, before its time; return False if there is none."""
    with transaction.atomic():
        locked = User.objects.select_for_update(no_key=True).filter(pk=user.pk).first()
        if locked is None or not locked.memberships.filter(tenant=tenant_id, ends_at__isnull=False).exists():
            return False
        change_readers(Author(locked.email), SetMembership(locked, tenant_id, None))
    return True


def end_expired_access() -> int:
    """Remove the memberships whose time is over; return how many. They gave no rights since then."""
    expired = Membership.objects.filter(ends_at__lte=now())
    with transaction.atomic():
        users = User.objects.select_for_update(no_key=True, skip_locked=True)
        locked = users.filter(pk__in=expired.values("user")).order_by("pk").in_bulk()
        rows = list(expired.filter(user__in=locked))
        change_readers(
            Author(SYSTEM), *(SetMembership(locked[row.user_id], row.tenant_id, None) for row in rows)
        )
    return len(rows)
