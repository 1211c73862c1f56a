"""Access of staff to a tenant's logs, for a limited time: a membership that ends by itself.

Owners of the tenant get a mail at once, and see it among the members and in the events, with the reason.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from celery import shared_task
from django.conf import settings
from django.db import transaction

from accounts.access.rights import rights_of
from accounts.access.scopes import Scope
from accounts.events import SYSTEM, record_event
from accounts.mailing import MailNotSent, send_mail
from accounts.models import Membership, Tenant
from accounts.models.events import EventKind
from accounts.models.users import MembershipRole
from accounts.tenants.listing import require_live_tenant
from tenantadmin.lib.core.errors import BadRequest, Conflict
from tenantadmin.lib.core.request_context import current_reason
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping
    from uuid import UUID

    from accounts.models import User

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


def take_access(user: User, *, tenant_id: UUID, hours: int) -> dt.datetime:
    """Make ``user`` a member of a tenant for some hours, and return when that ends. Call it with a reason.

    Raises:
        TenantNotFound: there is no such live tenant.
        BadRequest: ``hours`` is not between 1 and `MAX_HOURS`.
        LastingMember: the user is a member without an end.
    """
    if not 1 <= hours <= MAX_HOURS:
        raise BadRequest(f"Take access for 1 to {MAX_HOURS} hours.")
    ends_at = now() + timedelta(hours=hours)
    with transaction.atomic():
        require_live_tenant(tenant_id)
        membership, is_new = Membership.objects.select_for_update(no_key=True).get_or_create(
            user=user, tenant_id=tenant_id, defaults={"role": MembershipRole.MEMBER, "ends_at": ends_at}
        )
        if membership.ends_at is None:
            raise LastingMember
        membership.ends_at = ends_at
        membership.save(update_fields=["ends_at"])
        record_event(
            EventKind.MEMBERSHIP_ADDED if is_new else EventKind.MEMBERSHIP_CHANGED,
            actor=user.email,
            subject=user.email,
            tenant_id=tenant_id,
            after={"role": membership.role, "endsAt": format_timestamp(ends_at)},
        )
        owners = Membership.objects.filter(
            tenant=tenant_id, role=MembershipRole.OWNER, ends_at__isnull=True, user__is_active=True
        )
        told = {"staff": user.email, "until": format_timestamp(ends_at), "reason": current_reason()}
        for email in owners.order_by("pk").values_list("user__email", flat=True):
            send = partial(mail_owner.delay, email, str(tenant_id), told)
            transaction.on_commit(send, robust=True)
    return ends_at


@shared_task(autoretry_for=(MailNotSent,), retry_backoff=30, retry_backoff_max=3600, max_retries=24)
def mail_owner(owner: str, tenant_id: str, told: Mapping[str, str]) -> None:
    """Tell an owner of a tenant that staff have taken access. ``told`` is ``{staff, until, reason}``."""
    if not settings.MAGIC_LINKS_ENABLED:  # without a mail server
        return
    name = Tenant.objects.filter(pk=tenant_id).values_list("name", flat=True).first()
    context = {**told, "tenant": name or tenant_id, "service": settings.PUBLIC_BASE_URL}
    # A name may hold line breaks, which no header may.
    subject = " ".join(f"{told['staff']} has access to {context['tenant']}".split())
    send_mail(to=owner, subject=subject, template="access_taken", context=context)


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
