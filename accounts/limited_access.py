"""Access of staff to a tenant's logs, for a limited time: a membership that ends by itself.

Owners of the tenant get a mail at once, and see it among the members and in the events, with the reason.
Where the tenant's configuration asks for it, an owner approves it first (`accounts.access_requests`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.db import transaction

from accounts.access.rights import rights_of
from accounts.access.scopes import Scope
from accounts.events import SYSTEM, record_event
from accounts.mailing import mail_later
from accounts.models import Membership, Tenant, TenantConfig
from accounts.models.events import EventKind
from accounts.models.users import MembershipRole
from accounts.tenants.listing import require_live_tenant
from tenantadmin.lib.core.errors import BadRequest, Conflict
from tenantadmin.lib.core.mail_text import named, quoted, unlinked
from tenantadmin.lib.core.request_context import current_reason
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping
    from typing import Any
    from uuid import UUID

    from accounts.models import User

MAX_HOURS: Final = 8


class ApprovalNeeded(Conflict):
    """The tenant's configuration has ``access.staffApproval: required``."""

    message = "An owner of this tenant must approve your access first. Ask for it."


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
    return TenantConfig.objects.requiring_approval().filter(pk=tenant_id).exists()


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
        require_live_tenant(tenant_id)
        if needs_approval(tenant_id):
            raise ApprovalNeeded
        return lend_access(user, tenant_id=tenant_id, hours=hours, actor=user.email, reason=current_reason())


def require_hours(hours: int) -> None:
    """Refuse access for too long.

    Raises:
        BadRequest: ``hours`` is not between 1 and `MAX_HOURS`.
    """
    if not 1 <= hours <= MAX_HOURS:
        raise BadRequest(f"Take access for 1 to {MAX_HOURS} hours.")


def lend_access(user: User, *, tenant_id: UUID, hours: int, actor: str, reason: str) -> dt.datetime:
    """Make ``user`` a member for some hours, tell the owners, and return when that ends.

    Call it in a transaction. ``actor`` is the user itself, or who has approved it.

    Raises:
        LastingMember: the user is a member without an end.
    """
    ends_at = now() + timedelta(hours=hours)
    membership, is_new = Membership.objects.select_for_update(no_key=True).get_or_create(
        user=user, tenant_id=tenant_id, defaults={"role": MembershipRole.MEMBER, "ends_at": ends_at}
    )
    if membership.ends_at is None:
        raise LastingMember
    membership.ends_at = ends_at
    membership.save(update_fields=["ends_at"])
    record_event(
        EventKind.MEMBERSHIP_ADDED if is_new else EventKind.MEMBERSHIP_CHANGED,
        actor=actor,
        subject=user.email,
        tenant_id=tenant_id,
        after={"role": membership.role, "endsAt": format_timestamp(ends_at)},
        reason=reason,
    )
    context = {
        "staff": user.email,
        "until": format_timestamp(ends_at),
        "reason": unlinked(reason),
        "quoted": quoted(reason),
        "approver": "" if actor == user.email else actor,
    }
    mail_owners(tenant_id, subject=f"{user.email} has access to", template="access_taken", context=context)
    return ends_at


def mail_owners(tenant_id: UUID, *, subject: str, template: str, context: Mapping[str, Any]) -> None:
    """Mail the owners of a tenant after the present transaction. The tenant's name follows ``subject``."""
    name = Tenant.objects.values_list("name", flat=True).get(pk=tenant_id)
    owners = Membership.objects.filter(
        tenant=tenant_id, role=MembershipRole.OWNER, ends_at__isnull=True, user__is_active=True
    )
    content = {**context, "tenant": named(name), "service": settings.PUBLIC_BASE_URL}
    for email in owners.order_by("pk").values_list("user__email", flat=True):
        mail_later(to=email, subject=f"{subject} {named(name)}", template=template, context=content)


def end_access(user: User, *, tenant_id: UUID, actor: str) -> bool:
    """End the limited access of ``user`` before its time; return False if there is none."""
    with transaction.atomic():
        rows = Membership.objects.filter(user=user, tenant_id=tenant_id, ends_at__isnull=False)
        membership = rows.select_for_update().select_related("user").first()
        if membership is None:
            return False
        _remove(membership, actor=actor)
    return True


def end_expired_access() -> int:
    """Remove the memberships whose time is over; return how many. They gave no rights since then."""
    with transaction.atomic():
        rows = Membership.objects.filter(ends_at__lte=now()).select_related("user")
        expired = list(rows.select_for_update(of=("self",), skip_locked=True))
        for membership in expired:
            _remove(membership, actor=SYSTEM)
    return len(expired)


def _remove(membership: Membership, *, actor: str) -> None:
    membership.delete()
    record_event(
        EventKind.MEMBERSHIP_REMOVED,
        actor=actor,
        subject=membership.user.email,
        tenant_id=membership.tenant_id,
        before={
            "role": membership.role,
            "endsAt": format_timestamp(membership.ends_at) if membership.ends_at else None,
        },
    )
