"""Access of staff to a tenant's logs, for a limited time: a membership that ends by itself.

Owners of the tenant get a mail at once, and see it among the members and in the events, with the reason.
Where the tenant's configuration asks for it, staff request access, and an owner approves it first. In an
emergency, when no owner answers, another platform admin approves it; the owners get a mail.
"""

from __future__ import annotations

import datetime as dt
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from msgspec import Meta

from accounts.access.resources import is_signed_in_owner, require_tenant_owner
from accounts.access.rights import rights_of
from accounts.access.scopes import Scope
from accounts.events import SYSTEM
from accounts.mailing import mail_later
from accounts.models import AccessRequest, Membership, Tenant, User
from accounts.models.pending import AccessOutcome
from accounts.models.users import MembershipRole
from accounts.pending import MAX_LISTED, AccessRequestEnded, end_pending, record_pending, withdraw
from accounts.readers.memberships import SetMembership
from accounts.readers.rule import Author, approval_required, change_readers, mail_owners
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from tenantadmin.lib.core.emails import named, quoted, unlinked
from tenantadmin.lib.core.errors import BadRequest, Conflict, Forbidden, NotFound
from tenantadmin.lib.core.request_context import acting_for, current_reason
from tenantadmin.lib.core.structs import Email, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now

if TYPE_CHECKING:
    from accounts.access.principal import Principal


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


LIFETIME: Final = dt.timedelta(hours=12)


class AccessRequestNotFound(NotFound):
    message = "There is no such request for access."


class AccessRequestDocument(JsonStruct):
    """A request of staff for access to a tenant's logs. It is open for 12 hours."""

    id: UUID
    tenant_id: UUID
    staff: Email
    hours: Annotated[int, Meta(ge=1, le=8, description="How long access lasts from the approval on.")]
    reason: str
    state: Literal["open", "approved", "declined", "withdrawn", "expired"]
    created_at: Timestamp
    expires_at: Timestamp
    ended_at: Timestamp | None = None
    decided_by: Annotated[Email | None, Meta(description="Who approved or declined it.")] = None


def request_access(user: User, *, tenant_id: UUID, hours: int) -> AccessRequest:
    """Ask the owners of a tenant to approve access for ``user``. Call it with a reason.

    An open request of the user is replaced.

    Raises:
        TenantNotFound: there is no such live tenant.
        BadRequest: ``hours`` is not between 1 and the maximum.
        LastingMember: the user is a member without an end.
    """
    require_hours(hours)
    with transaction.atomic():
        # Two requests of a user at the same time are one after the other.
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        require_live_tenant(tenant_id)
        if _is_lasting(user, tenant_id=tenant_id):
            raise LastingMember
        withdraw_requests_of(user, actor=user.email, tenant_id=tenant_id)
        moment = now()
        request = AccessRequest.objects.create(
            tenant_id=tenant_id,
            staff=user,
            hours=hours,
            reason=current_reason(),
            created_at=moment,
            expires_at=moment + LIFETIME,
        )
        record_pending(request, "requested", actor=user.email)
        context = {
            "request": {"staff": user.email, "hours": hours},
            "reason": unlinked(request.reason),
            "quoted": quoted(request.reason),
            "until": format_timestamp(request.expires_at),
            "link": f"{settings.DASHBOARD_URL}#/t/{tenant_id}/members",
        }
        subject = f"{user.email} asks for access to"
        mail_owners(tenant_id, subject=subject, template="access_requested", context=context)
    return request


def list_access_requests(principal: Principal, *, tenant_id: UUID) -> list[AccessRequestDocument]:
    """Return the requests for access to a tenant, open ones first, then newest first.

    Raises:
        Forbidden: the caller neither owns the tenant nor is a platform admin.
        TenantNotFound: there is no such live tenant.
    """
    require_tenant_owner(principal, tenant_id)
    require_live_tenant(tenant_id)
    return [describe_request(request) for request in requests_for(tenant_id)]


def requests_for(tenant_id: UUID) -> list[AccessRequest]:
    """Return the requests that `list_access_requests` lists, with the users that they name."""
    rows = AccessRequest.objects.filter(tenant=tenant_id).select_related("staff", "decided_by")
    return list(rows.unanswered_first()[:MAX_LISTED])


def approve_access(principal: Principal, *, tenant_id: UUID, request_id: UUID) -> AccessRequestDocument:
    """Give the access that was asked for, from now on.

    Raises:
        Forbidden: the caller is no owner of the tenant, or not signed in.
        AccessRequestNotFound: the tenant has no such request.
        AccessRequestEnded: it is no longer open, or its user is no longer staff or a member without an end.
        TenantNotFound: there is no such live tenant.
    """
    owner = _require_owner(principal, tenant_id)
    author = Author.of(principal)
    return describe_request(_approve(owner, author, tenant_id=tenant_id, request_id=request_id))


def approve_for_owners(user: User, *, tenant_id: UUID, request_id: UUID) -> AccessRequest:
    """Approve a request in an emergency, as a second platform admin. Call it with a reason.

    Raises:
        Forbidden: ``user`` is no platform admin, or has made the request itself.
        AccessRequestNotFound, AccessRequestEnded, TenantNotFound: as `approve_access`.
    """
    if not user.is_platform_admin:
        raise Forbidden("Only a platform admin may approve a request for the owners.")
    return _approve(user, Author.on_site(user), tenant_id=tenant_id, request_id=request_id)


def decline_access(principal: Principal, *, tenant_id: UUID, request_id: UUID) -> AccessRequestDocument:
    """Decline a request for access.

    Raises:
        Forbidden, AccessRequestNotFound, AccessRequestEnded: as `approve_access`.
    """
    owner = _require_owner(principal, tenant_id)
    with transaction.atomic():
        request = find_request(tenant_id=tenant_id, request_id=request_id)
        end_pending(request, AccessOutcome.DECLINED, actor=owner.email, decided_by=owner)
        _mail_staff(request)
    return describe_request(request)


def withdraw_requests_of(user: User, *, actor: str, tenant_id: UUID | None = None) -> int:
    """End the open requests of a user for access to a tenant, or to all tenants. Return how many.

    Call it in a transaction.
    """
    rows = AccessRequest.objects.filter(staff=user)
    return withdraw(rows if tenant_id is None else rows.filter(tenant=tenant_id), actor=actor)


def find_request(*, tenant_id: UUID, request_id: UUID) -> AccessRequest:
    """Return a request for access to a tenant, with its user.

    Raises:
        AccessRequestNotFound: the tenant has no such request.
    """
    rows = AccessRequest.objects.filter(pk=request_id, tenant=tenant_id)
    request = rows.select_related("staff", "tenant", "decided_by").first()
    if request is None:
        raise AccessRequestNotFound
    return request


def describe_request(request: AccessRequest) -> AccessRequestDocument:
    """Return the contract's AccessRequest. Its users should be loaded."""
    decided_by = request.decided_by
    return AccessRequestDocument.of(
        request,
        staff=request.staff.email,
        decided_by=None if decided_by is None else decided_by.email,
    )


def _require_owner(principal: Principal, tenant_id: UUID) -> User:
    """Return the signed-in owner of the tenant. A platform admin who is none may not answer.

    Raises:
        Forbidden: the caller is no owner of the tenant, or uses a personal access token.
    """
    if not is_signed_in_owner(principal, tenant_id):
        raise Forbidden("Only an owner of the tenant, signed in, answers requests for access.")
    return User.objects.get(pk=principal.rights.user_id)


def _approve(approver: User, author: Author, *, tenant_id: UUID, request_id: UUID) -> AccessRequest:
    with transaction.atomic():
        request = find_request(tenant_id=tenant_id, request_id=request_id)
        if request.staff_id == approver.pk:
            raise Forbidden("Another platform admin or an owner approves your request.")
        # Locks the user before the tenant, like other writers of memberships. Offboarding locks the user too.
        staff = User.objects.select_for_update(no_key=True).filter(pk=request.staff_id).first()
        tenant = Tenant.objects.live().select_for_update(no_key=True).filter(pk=tenant_id).first()
        if tenant is None:
            raise TenantNotFound
        if staff is None or not staff.is_staff or _is_lasting(staff, tenant_id=tenant_id):
            raise AccessRequestEnded
        end_pending(request, AccessOutcome.APPROVED, actor=approver.email, decided_by=approver)
        with acting_for(request.reason):
            lend_access(staff, tenant_id=tenant_id, hours=request.hours, author=author)
        _mail_staff(request)
    return request


def _is_lasting(user: User, *, tenant_id: UUID) -> bool:
    held = current_membership(user, tenant_id=tenant_id)
    return held is not None and held.ends_at is None


def _mail_staff(request: AccessRequest) -> None:
    """Tell the user of the staff how its request ended."""
    by, tenant = request.decided_by, named(request.tenant.name)
    context = {
        "outcome": request.outcome,
        "owner": "" if by is None else by.email,
        "tenant": tenant,
        "hours": request.hours,
        "service": settings.PUBLIC_BASE_URL,
    }
    subject = f"Your access to {tenant} is {request.outcome}"
    mail_later(
        to=request.staff.email,
        subject=subject,
        template="access_answered",
        context=context,
        tenant_id=request.tenant_id,
    )
