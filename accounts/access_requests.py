"""Requests of staff for access to a tenant's logs, where its owners want to approve that first.

In an emergency, when no owner answers, another platform admin approves it; the owners get a mail.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from msgspec import Meta

from accounts.access.resources import is_signed_in_owner, require_tenant_owner
from accounts.events import record_event
from accounts.limited_access import LastingMember, current_membership, lend_access, require_hours
from accounts.mailing import mail_later
from accounts.models import AccessRequest, Tenant, User
from accounts.models.access_requests import AccessOutcome
from accounts.models.events import EventKind
from accounts.readers import Author, mail_owners
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from tenantadmin.lib.core.emails import named, quoted, unlinked
from tenantadmin.lib.core.errors import ApiError, Forbidden, NotFound
from tenantadmin.lib.core.request_context import acting_for, current_reason
from tenantadmin.lib.core.structs import Email, JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now

if TYPE_CHECKING:
    from accounts.access.principal import Principal

LIFETIME: Final = dt.timedelta(hours=12)
#: Requests are listed this long after they would have expired.
_RETENTION: Final = dt.timedelta(days=30)
#: At most this many are listed, open ones first.
_MAX_LISTED: Final = 200
_EVENTS: Final = {
    AccessOutcome.APPROVED: EventKind.ACCESS_APPROVED,
    AccessOutcome.DECLINED: EventKind.ACCESS_DECLINED,
    AccessOutcome.WITHDRAWN: EventKind.ACCESS_WITHDRAWN,
}


class AccessRequestNotFound(NotFound):
    message = "There is no such request for access."


class AccessRequestEnded(ApiError):
    """It was answered or withdrawn, has expired, or its user can have no access for a limited time."""

    status: ClassVar[int] = 409
    code: ClassVar[str] = "conflict"
    message: ClassVar[str] = "The request has ended: it was answered or withdrawn, or it expired."


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
        _record(EventKind.ACCESS_REQUESTED, request, actor=user.email)
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
    return [describe_request(it) for it in requests_for(tenant_id)]


def requests_for(tenant_id: UUID) -> list[AccessRequest]:
    """Return the requests that `list_access_requests` lists, with the users that they name."""
    rows = AccessRequest.objects.filter(tenant=tenant_id).select_related("staff", "decided_by")
    return list(rows.unanswered_first()[:_MAX_LISTED])


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
        _end(request, AccessOutcome.DECLINED, by=owner)
        _mail_staff(request)
    return describe_request(request)


def withdraw_requests_of(user: User, *, actor: str, tenant_id: UUID | None = None) -> int:
    """End the open requests of a user for access to a tenant, or to all tenants. Return how many.

    Call it in a transaction.
    """
    rows = AccessRequest.objects.open().filter(staff=user)
    if tenant_id is not None:
        rows = rows.filter(tenant=tenant_id)
    ended = [request for request in rows.order_by("pk") if request.end(AccessOutcome.WITHDRAWN)]
    for request in ended:
        _record(EventKind.ACCESS_WITHDRAWN, request, actor=actor)
    return len(ended)


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


def delete_old_requests() -> int:
    """Delete the requests that expired more than `_RETENTION` ago. Return how many."""
    return AccessRequest.objects.filter(expires_at__lt=now() - _RETENTION).delete()[0]


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
        _end(request, AccessOutcome.APPROVED, by=approver)
        with acting_for(request.reason):
            lend_access(staff, tenant_id=tenant_id, hours=request.hours, author=author)
        _mail_staff(request)
    return request


def _is_lasting(user: User, *, tenant_id: UUID) -> bool:
    """Return True for a member without an end."""
    held = current_membership(user, tenant_id=tenant_id)
    return held is not None and held.ends_at is None


def _end(request: AccessRequest, outcome: AccessOutcome, *, by: User) -> None:
    """Answer an open request. Of two transactions that do, one wins.

    Raises:
        AccessRequestEnded: it is no longer open.
    """
    if not request.end(outcome, decided_by=by):
        raise AccessRequestEnded
    _record(_EVENTS[outcome], request, actor=by.email)


def _record(kind: EventKind, request: AccessRequest, *, actor: str) -> None:
    record_event(
        kind,
        actor=actor,
        subject=request.staff.email,
        tenant_id=request.tenant_id,
        after={
            "request": str(request.pk),
            "hours": request.hours,
            "expiresAt": format_timestamp(request.expires_at),
        },
        # A second platform admin gives its own reason.
        reason=current_reason() or request.reason,
    )


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
