"""Invite people into tenants. Nobody becomes a member of another user's tenant without agreeing.

Known and unknown addresses are treated the same, so that owners cannot find out who is a user: an invitation
is for an address, is always stored and mailed, and the user is looked up only when it is accepted.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.urls import reverse
from msgspec import Meta

from accounts.access.assurance import require_fresh_proof
from accounts.access.resources import owns_itself, require_permitted, require_tenant_owner
from accounts.events import record_event
from accounts.limits import count_use
from accounts.mailing import MailNotSent, send_mail
from accounts.models import Invitation, InvitationRefusal, Membership, Tenant, User
from accounts.models.billing import GrantResource
from accounts.models.events import EventKind
from accounts.models.pending import InvitationOutcome
from accounts.models.users import MembershipRole, PrimaryRole
from accounts.pending import MAX_LISTED, InvitationEnded, end_pending, record_pending
from accounts.readers.memberships import NOT_ITSELF, ONLY_OWNERS_ADD, SetMembership
from accounts.readers.rule import Author, approval_required, change_readers
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.listing import require_live_tenant
from tenantadmin.lib.core.emails import named, quoted, unlinked
from tenantadmin.lib.core.errors import ApiError, Forbidden, NotFound, ValidationFailed
from tenantadmin.lib.core.structs import Email, JsonStruct, one_of
from tenantadmin.lib.core.timestamps import Timestamp, now

if TYPE_CHECKING:
    from accounts.access.principal import Principal

LIFETIME: Final = dt.timedelta(days=14)
MAX_OPEN: Final = 50
#: A user who is younger invites without a message.
_NEW: Final = dt.timedelta(days=1)
_SALT: Final = "accounts.invitations.refuse"
_RANKS: Final = (MembershipRole.MEMBER, MembershipRole.ADMIN, MembershipRole.OWNER)


class InvitationNotFound(NotFound):
    message = "There is no such invitation."


class TooManyInvitations(ApiError):
    status: ClassVar[int] = 409
    code: ClassVar[str] = "conflict"
    message: ClassVar[str] = f"A tenant has at most {MAX_OPEN} open invitations. Withdraw some first."


class InvitationDocument(JsonStruct):
    """An offer of a role in a tenant to an address. It is open for 14 days."""

    id: UUID
    tenant_id: UUID
    tenant_name: str
    email: Email
    role: Annotated[str, one_of(MembershipRole.values)]
    message: Annotated[str, Meta(description="What the inviting user wrote; may be empty.")]
    invited_by: Annotated[Email | None, Meta(description="Null if that user is deleted.")]
    state: Literal["open", "accepted", "declined", "withdrawn", "expired"]
    created_at: Timestamp
    expires_at: Timestamp
    ended_at: Timestamp | None = None


def create_invitation(
    principal: Principal, *, tenant_id: UUID, email: str, role: MembershipRole, message: str
) -> InvitationDocument:
    """Invite the normalized ``email``. An open invitation of the address into the tenant is replaced.

    Raises:
        Forbidden: the caller neither owns the tenant nor is a platform admin, a platform admin may not add
            the address (`NOT_ITSELF`, `ONLY_OWNERS_ADD`), or the domain may not sign in.
        SecondFactorRequired: a platform admin who does not own the tenant has no fresh proof.
        RateLimited: too many invitations of the tenant, by the caller or to the address.
        TenantNotFound: there is no such live tenant.
        ValidationFailed: the address is a member's.
            Or the caller is younger than a day and sends a message.
        TooManyInvitations: `MAX_OPEN` are open.
        MailNotSent: the mail server failed; the invitation is withdrawn.
    """
    _require_inviter(principal, tenant_id=tenant_id, email=email)
    inviter = User.objects.get(pk=principal.rights.user_id)
    if message and inviter.created_at > now() - _NEW:
        raise ValidationFailed.at(
            "/message", "too-new", "You can send a message a day after you first signed in. Leave it out."
        )
    return invite(inviter, tenant_id=tenant_id, email=email, role=role, message=message)


def invite(
    inviter: User, *, tenant_id: UUID, email: str, role: MembershipRole, message: str
) -> InvitationDocument:
    """Invite the normalized ``email`` for a user who may. Raises what `create_invitation` does."""
    require_permitted(email)
    for kind, key in (("invitation-tenant", str(tenant_id)), ("invitation-caller", inviter.email)):
        count_use(limit=settings.INVITATION_LIMIT, kind=kind, key=key)
    count_use(limit=settings.INVITATION_RECIPIENT_LIMIT, kind="invitation-recipient", key=email)
    with transaction.atomic():
        tenant = Tenant.objects.live().select_for_update(no_key=True).filter(pk=tenant_id).first()
        if tenant is None:
            raise TenantNotFound
        if Membership.objects.filter(tenant=tenant, user__email=email, ends_at=None).exists():
            raise ValidationFailed.at("/email", "is-member", f"{email} is a member of this tenant already.")
        for earlier in tenant.invitations.open().filter(email=email):
            end_pending(earlier, InvitationOutcome.WITHDRAWN, actor=inviter.email)
        if tenant.invitations.open().count() >= MAX_OPEN:
            raise TooManyInvitations
        moment = now()
        invitation = Invitation.objects.create(
            tenant=tenant,
            email=email,
            role=role,
            message=message,
            invited_by=inviter,
            created_at=moment,
            expires_at=moment + LIFETIME,
        )
        record_pending(invitation, "created", actor=inviter.email)
    _mail(invitation, inviter=inviter.email)
    return describe_invitation(invitation)


def list_invitations(principal: Principal, *, tenant_id: UUID) -> list[InvitationDocument]:
    """Return a tenant's invitations, open ones first, then newest first; at most `MAX_LISTED`.

    Raises:
        Forbidden: the caller neither owns the tenant nor is a platform admin.
        TenantNotFound: there is no such live tenant.
    """
    require_tenant_owner(principal, tenant_id)
    require_live_tenant(tenant_id)
    return [describe_invitation(invitation) for invitation in invitations_into(tenant_id)]


def invitations_into(tenant_id: UUID) -> list[Invitation]:
    """Return the invitations that `list_invitations` lists, with tenant and inviting user."""
    rows = Invitation.objects.filter(tenant=tenant_id).select_related("tenant", "invited_by")
    return list(rows.unanswered_first()[:MAX_LISTED])


def withdraw_invitation(principal: Principal, *, tenant_id: UUID, invitation_id: UUID) -> None:
    """End an open invitation into a tenant.

    Raises:
        Forbidden: the caller neither owns the tenant nor is a platform admin.
        InvitationNotFound: the tenant has no such invitation.
        InvitationEnded: it is no longer open.
    """
    require_tenant_owner(principal, tenant_id)
    invitation = Invitation.objects.filter(pk=invitation_id, tenant=tenant_id).first()
    if invitation is None:
        raise InvitationNotFound
    with transaction.atomic():
        end_pending(invitation, InvitationOutcome.WITHDRAWN, actor=principal.email)


def list_own_invitations(principal: Principal) -> list[InvitationDocument]:
    """Return the open invitations to the caller's address, newest first; at most `MAX_LISTED`."""
    rows = Invitation.objects.open().filter(email=principal.email).select_related("tenant", "invited_by")
    return [describe_invitation(invitation) for invitation in rows[:MAX_LISTED]]


def accept_invitation(principal: Principal, invitation_id: UUID) -> InvitationDocument:
    """Make the caller a member. A higher role that it has by now stays.

    Raises:
        Forbidden: the caller is not signed in, or is deactivated.
        InvitationNotFound: there is no such invitation to the caller's address.
        InvitationEnded: it is no longer open, or the inviting user may no longer invite.
    """
    require_session(principal)
    with transaction.atomic():
        # Locks users before tenants, like other writers of memberships. Offboarding locks the user too.
        user = User.objects.select_for_update(no_key=True).filter(pk=principal.rights.user_id).first()
        if user is None or not user.is_active:
            raise Forbidden("This user is deactivated.")
        invitation = _find_own(principal, invitation_id)
        tenant = Tenant.objects.live().select_for_update(no_key=True).filter(pk=invitation.tenant_id).first()
        if tenant is None or not _may_still_invite(invitation):
            raise InvitationEnded
        end_pending(invitation, InvitationOutcome.ACCEPTED, actor=user.email)
        held = user.memberships.filter(tenant=tenant).first()
        lasting = held.role if held is not None and held.ends_at is None else None
        if lasting is None or _RANKS.index(MembershipRole(lasting)) < _RANKS.index(
            MembershipRole(invitation.role)
        ):
            # The user agrees to what the inviting one may do still.
            change_readers(Author(user.email), SetMembership(user, tenant.pk, invitation.role))
            User.objects.filter(pk=user.pk).update(modified_at=now())
    return describe_invitation(invitation)


def decline_invitation(principal: Principal, invitation_id: UUID) -> InvitationDocument:
    """End an open invitation to the caller's address.

    Raises:
        Forbidden, InvitationNotFound, InvitationEnded: as `accept_invitation`.
    """
    require_session(principal)
    invitation = _find_own(principal, invitation_id)
    with transaction.atomic():
        end_pending(invitation, InvitationOutcome.DECLINED, actor=principal.email)
    return describe_invitation(invitation)


def refused_address(token: str) -> str | None:
    """Return the address whose link "no more invitations" has this token, or None if it is of no such."""
    try:
        email: str = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        return None
    return email


def refuse_invitations(email: str) -> None:
    """Mail no more invitations to an address. Its owner still finds them after signing in."""
    with transaction.atomic():
        if InvitationRefusal.objects.get_or_create(email=email)[1]:
            record_event(EventKind.INVITATION_DECLINED, actor=email, subject=email, after={"all": True})


def describe_invitation(invitation: Invitation) -> InvitationDocument:
    """Return the contract's Invitation. Its tenant and inviting user should be loaded."""
    inviter = invitation.invited_by
    return InvitationDocument.of(
        invitation,
        tenant_name=invitation.tenant.name,
        invited_by=None if inviter is None else inviter.email,
    )


def require_session(principal: Principal) -> None:
    """Refuse a personal access token: only a user agrees to a membership.

    Raises:
        Forbidden: the token was minted from a PAT.
    """
    if not principal.claims.is_sign_in:
        raise Forbidden("Sign in for this. A personal access token cannot answer an invitation.")


def _require_inviter(principal: Principal, *, tenant_id: UUID, email: str) -> None:
    require_tenant_owner(principal, tenant_id)
    if owns_itself(principal, GrantResource.TENANT, tenant_id):
        return
    if email == principal.email and principal.rights.is_platform_admin:
        raise Forbidden(NOT_ITSELF)
    if approval_required([tenant_id]):
        raise Forbidden(ONLY_OWNERS_ADD)
    require_fresh_proof(principal)


def _may_still_invite(invitation: Invitation) -> bool:
    """Return True if the inviting user is still an owner of the tenant, or a platform admin who may add."""
    inviter = invitation.invited_by
    if inviter is None or not inviter.is_active:
        return False
    owned = inviter.memberships.in_force().filter(tenant=invitation.tenant_id, role=MembershipRole.OWNER)
    if inviter.is_platform_admin and not approval_required([invitation.tenant_id]):
        return True
    return inviter.role != PrimaryRole.GUEST and owned.exists()


def _find_own(principal: Principal, invitation_id: UUID) -> Invitation:
    rows = Invitation.objects.filter(pk=invitation_id, email=principal.email)
    invitation = rows.select_related("tenant", "invited_by").first()
    if invitation is None:
        raise InvitationNotFound
    return invitation


def _mail(invitation: Invitation, *, inviter: str) -> None:
    """Mail the invitation. The invited user finds it after signing in, too."""
    if not settings.MAGIC_LINKS_ENABLED or InvitationRefusal.objects.filter(email=invitation.email).exists():
        return
    token = urlencode({"t": signing.dumps(invitation.email, salt=_SALT)})
    refuse = f"{settings.PUBLIC_BASE_URL}{reverse('digest-unsubscribe')}?{token}"
    wanted = urlencode({"email": invitation.email, "to": "/invitations"})
    context = {
        "invitation": invitation,
        "tenant": named(invitation.tenant.name),
        "message": unlinked(invitation.message),
        "quoted": quoted(invitation.message),
        "inviter": inviter,
        "refuse": refuse,
        "link": f"{settings.DASHBOARD_URL}#/signin?{wanted}",
        "days": LIFETIME.days,
        "service": settings.PUBLIC_BASE_URL,
    }
    headers = {"List-Unsubscribe": f"<{refuse}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
    subject = f"{inviter} invites you to a tenant of {settings.PRODUCT_NAME}"
    try:
        send_mail(
            to=invitation.email, subject=subject, template="invitation", context=context, headers=headers
        )
    except MailNotSent:
        with transaction.atomic():
            end_pending(invitation, InvitationOutcome.WITHDRAWN, actor=inviter)
        raise
