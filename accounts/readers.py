"""Who can read a tenant. Every change of that is a `Change`, and `change_readers` makes it.

Memberships, access for a limited time, owners of accounts, grants, roles, activity and deletion of users, and
personal access tokens of others or with a wildcard. What a user does by its own right (an owner in its
tenant) is written and recorded. What it does by the role of a platform admin is by default refused without a
fresh proof and a reason, and the owners get a mail. Where a tenant's configuration has
``access.staffApproval: required``, staff do less alone:

- They add no members, and neither remove nor demote the last owner.
- A new owner, a grant, and the deletion or deactivation of the last owner need a second platform admin: the
  first who asks for it is told so, and another one who asks for the same within `LIFETIME` confirms it.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from django.conf import settings
from django.db import transaction

from accounts.access.assurance import require_fresh_proof
from accounts.access.scopes import ABILITIES, Scope
from accounts.ended_invitations import withdraw_invitations
from accounts.events import record_event
from accounts.mailing import mail_later
from accounts.models import (
    Account,
    Event,
    Invitation,
    Membership,
    PermissionGrant,
    Proposal,
    Tenant,
    TenantConfig,
    User,
)
from accounts.models.billing import GrantResource
from accounts.models.events import EventKind
from accounts.models.proposals import ProposalOutcome
from accounts.models.users import MembershipRole, PrimaryRole
from tenantadmin.lib.core.emails import named, quoted, unlinked
from tenantadmin.lib.core.errors import Conflict, Forbidden, ValidationFailed
from tenantadmin.lib.core.request_context import current_reason
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from uuid import UUID

    from accounts.access.principal import Principal

#: How long a second platform admin may confirm what the first has asked for.
LIFETIME: Final = dt.timedelta(hours=12)
#: Proposals are kept this long after they would have expired.
_RETENTION: Final = dt.timedelta(days=30)
#: A grant that staff give ends after this time at the latest.
MAX_STAFF_GRANT: Final = dt.timedelta(days=30)
#: So many former owners get the mails of a tenant that has none.
_MOST_FORMER: Final = 5


@dataclass(frozen=True, slots=True)
class Author:
    """Who changes rights. Without ``principal`` and ``is_staff`` it is a command, a job, or a user who agrees
    to what its caller has checked: an invitation, a first tenant.

    Attributes:
        email: the actor of events.
        principal: the caller of the API.
        is_staff: a platform admin on the admin site, which has asked for a proof and a reason.
    """

    email: str
    principal: Principal | None = None
    is_staff: bool = False

    @classmethod
    def of(cls, principal: Principal) -> Self:
        """Return the caller of the API."""
        return cls(principal.email, principal=principal)

    @classmethod
    def on_site(cls, user: object) -> Self:
        """Return the platform admin who acts on the admin site. Only acts that ask for a proof call this."""
        return cls(str(user), is_staff=True)

    def is_staff_for(self, change: Change) -> bool:
        """Return True if the change needs the role of a platform admin, or what only that may allow."""
        if self.principal is None:
            return self.is_staff
        needs_role = self.principal.is_platform_admin or change.asks_for_proof(self.principal)
        return needs_role and not change.is_own(self.principal)

    def require_proof(self) -> None:
        """Refuse a caller of the API without a fresh proof and a reason.

        Raises:
            SecondFactorRequired: as `require_fresh_proof`.
        """
        if self.principal is not None:
            require_fresh_proof(self.principal)


class Effect(StrEnum):
    """What needs a second platform admin where owners approve the access of staff. In words of mails."""

    NEW_OWNER = "new-owner"
    GRANT = "grant"
    OWNER_ENDS = "owner-ends"


@dataclass(frozen=True, slots=True)
class Need:
    """An effect that a second platform admin confirms. ``tenants`` are those whose owners are told."""

    effect: Effect
    resource_id: UUID
    person: str
    tenants: Sequence[UUID]
    detail: str = ""

    @property
    def key(self) -> dict[str, Any]:
        return {
            "effect": self.effect,
            "resource_id": self.resource_id,
            "person": self.person,
            "detail": self.detail,
        }

    @property
    def text(self) -> str:
        """What would happen, as a sentence."""
        if self.effect is Effect.NEW_OWNER:
            return f"{self.person} would be an owner."
        if self.effect is Effect.GRANT:
            return f"{self.person} would get permissions: {self.detail}."
        return f"{self.person}, the last owner, would be deleted, deactivated or made a guest."


@dataclass(frozen=True, slots=True)
class Approval:
    """The tenants whose owners approve the access of staff, and those of them that would lose the last."""

    required: set[UUID]
    bereft: set[UUID]


class SecondAdminNeeded(Forbidden):
    """A platform admin asks for what a second one must confirm. `settle` keeps that it was asked for."""

    code = "second_admin_required"

    def __init__(self, author: Author, needs: Sequence[Need]) -> None:
        super().__init__(
            f"{needs[0].text} The owners approve what staff may do here, so a second platform admin confirms "
            f"it: it is done when another one does the same in the next {LIFETIME // dt.timedelta(hours=1)} "
            "hours. The owners get a mail."
        )
        self._author, self._needs = author, needs

    def settle(self) -> None:
        """Store what was asked for, unless it is open already, and tell the owners."""
        with transaction.atomic():
            # Two requests of a user at the same time are one after the other.
            admin = User.objects.select_for_update(no_key=True).get(email=self._author.email)
            open_ones = Proposal.objects.filter(ended_at=None, expires_at__gt=now(), admin=admin)
            for need in self._needs:
                if not open_ones.filter(**need.key).exists():
                    self._propose(need, admin)

    def _propose(self, need: Need, admin: User) -> None:
        proposal = Proposal.objects.create(
            admin=admin, expires_at=now() + LIFETIME, reason=current_reason(), **need.key
        )
        for tenant_id in need.tenants:
            record_event(
                EventKind.RIGHTS_PROPOSED,
                actor=admin.email,
                subject=need.person,
                tenant_id=tenant_id,
                after={
                    "effect": need.effect,
                    "detail": need.detail,
                    "expiresAt": format_timestamp(proposal.expires_at),
                },
            )
            context = {
                "said": [need.text],
                "staff": admin.email,
                "until": format_timestamp(proposal.expires_at),
            }
            _mail_change(_audience(tenant_id), context, resource_id=tenant_id, author=admin.email)


class Change(ABC):
    """One change of who can read a tenant.

    The caller has locked the users and the accounts that it is about. `change_readers` locks the tenants.
    """

    def tenants(self) -> Iterable[UUID]:
        """Return the tenants that it concerns."""
        return ()

    def is_own(self, principal: Principal) -> bool:  # noqa: ARG002
        """Return True if a caller makes it by its own right, and not by the role of a platform admin."""
        return False

    def asks_for_proof(self, principal: Principal) -> bool:  # noqa: ARG002
        """Return True if it needs a proof of a caller who is no platform admin, unless it is its own."""
        return False

    def apply(self, owners: Mapping[UUID, set[int]]) -> None:  # noqa: B027
        """Change the ids of the users who are owners, by tenant."""

    def judge(self, author: Author, approval: Approval) -> Iterator[Need]:  # noqa: ARG002
        """Yield what a second platform admin must confirm if staff make the change.

        Raises:
            ApiError: staff may not make it.
        """
        yield from ()

    def told(self) -> Iterator[tuple[UUID, str]]:
        """Yield what owners are told if staff make it: the id of a tenant or an account, and a sentence."""
        yield from ()

    @abstractmethod
    def write(self, author: Author) -> Any:
        """Write and record it. Return what the change has made, or False if nothing changed."""


def change_readers(author: Author, *changes: Change) -> list[Any]:
    """Make changes of who can read a tenant, all or none. Return what `Change.write` does.

    Raises:
        SecondFactorRequired: the role of a platform admin is needed, and the proof or the reason is missing.
        SecondAdminNeeded: a second platform admin must confirm it.
        Forbidden: staff may not do this.
    """
    with transaction.atomic():
        by_staff = [change for change in changes if author.is_staff_for(change)]
        concerned = sorted({tenant_id for change in changes for tenant_id in change.tenants()})
        list(Tenant.objects.select_for_update(no_key=True).filter(pk__in=concerned).order_by("pk"))
        mails: list[Callable[[], None]] = []
        if by_staff:
            approval = _approval_among(concerned, changes)
            needs = [need for change in by_staff for need in change.judge(author, approval)]
            # What no proof would allow is refused before one is asked for.
            author.require_proof()
            second = _confirm(author, needs)
            mails = list(_mails(author, by_staff, second))
        _withdraw_invitations(author, concerned, changes)
        written = [change.write(author) for change in changes]
        if any(it is not False for it in written):
            for send in mails:
                send()
    return written


def approval_required(tenants: Collection[UUID]) -> set[UUID]:
    """Return the tenants whose owners approve the access of staff."""
    return set(TenantConfig.objects.requiring_approval().filter(pk__in=tenants).values_list("pk", flat=True))


def active_owners(tenants: Collection[UUID]) -> dict[UUID, set[int]]:
    """Return the ids of the users who may act as owners, by tenant: active ones who are no guests."""
    owners: dict[UUID, set[int]] = {tenant_id: set() for tenant_id in tenants}
    rows = Membership.objects.owning().filter(tenant__in=tenants)
    for tenant_id, user_id in rows.values_list("tenant_id", "user_id"):
        owners[tenant_id].add(user_id)
    return owners


def without_owner(*changes: Change) -> set[UUID]:
    """Return the tenants that the changes would leave without an owner, if they have one."""
    concerned = {tenant_id for change in changes for tenant_id in change.tenants()}
    before, after = _owners_around(concerned, changes)
    return {tenant_id for tenant_id, owners in before.items() if owners and not after[tenant_id]}


def delete_old_proposals() -> int:
    """Delete the proposals that expired more than `_RETENTION` ago. Return how many."""
    return Proposal.objects.filter(expires_at__lt=now() - _RETENTION).delete()[0]


def mail_owners(tenant_id: UUID, *, subject: str, template: str, context: Mapping[str, Any]) -> None:
    """Mail the owners of a tenant, in the present transaction. The tenant's name follows ``subject``."""
    name = Tenant.objects.values_list("name", flat=True).get(pk=tenant_id)
    content = {**context, "tenant": named(name), "service": settings.PUBLIC_BASE_URL}
    owners = Membership.objects.owners_of(tenant_id).filter(user__is_active=True)
    for email in owners.values_list("user__email", flat=True):
        mail_later(
            to=email,
            subject=f"{subject} {named(name)}",
            template=template,
            context=content,
            tenant_id=tenant_id,
        )


# --- The rule ---------------------------------------------------------------------------------


def _owners_around(
    concerned: Collection[UUID], changes: Sequence[Change]
) -> tuple[dict[UUID, set[int]], dict[UUID, set[int]]]:
    """Return the owners of tenants before and after the changes, as `active_owners` does."""
    before = active_owners(concerned)
    after = {tenant_id: set(owners) for tenant_id, owners in before.items()}
    for change in changes:
        change.apply(after)
    return before, after


def _withdraw_invitations(author: Author, concerned: Collection[UUID], changes: Sequence[Change]) -> None:
    """Withdraw the invitations of users who will own the tenant no more."""
    before, after = _owners_around(concerned, changes)
    for tenant_id, owners in before.items():
        if ended := owners - after[tenant_id]:
            invitations = Invitation.objects.filter(tenant=tenant_id, invited_by__in=ended)
            withdraw_invitations(invitations, actor=author.email)


def _approval_among(concerned: Collection[UUID], changes: Sequence[Change]) -> Approval:
    required = approval_required(concerned)
    return Approval(required, required & without_owner(*changes) if required else required)


def _confirm(author: Author, needs: Sequence[Need]) -> set[str]:
    """Use up what other platform admins have asked for. Return their emails.

    Raises:
        SecondAdminNeeded: not all of it was asked for.
    """
    admins: set[str] = set()
    missing = []
    for need in needs:
        asked = (
            Proposal.objects.confirmable(by=author.email).filter(**need.key).exclude(admin__email=need.person)
        )
        proposal = asked.select_for_update(of=("self",)).select_related("admin").order_by("pk").first()
        # Of two who confirm it at the same time, one wins.
        if proposal is None or author.email == need.person or not proposal.end(ProposalOutcome.CONFIRMED):
            missing.append(need)
            continue
        admins.add(proposal.admin.email)
        for tenant_id in need.tenants:
            record_event(
                EventKind.RIGHTS_CONFIRMED,
                actor=author.email,
                subject=need.person,
                tenant_id=tenant_id,
                before={"proposedBy": proposal.admin.email, "reason": proposal.reason},
                after={"effect": need.effect, "detail": need.detail},
            )
    if missing:
        raise SecondAdminNeeded(author, missing)
    return admins


def _mails(
    author: Author, changes: Sequence[Change], second: Collection[str]
) -> Iterator[Callable[[], None]]:
    """Yield what sends the mails about changes, to those who are owners before them."""
    said: dict[UUID, list[str]] = {}
    for change in changes:
        for resource_id, sentence in change.told():
            said.setdefault(resource_id, []).append(sentence)
    tenants = set(Tenant.objects.filter(pk__in=said).values_list("pk", flat=True))
    for resource_id, sentences in said.items():
        context = {"said": sentences, "staff": author.email, "approver": ", ".join(sorted(second))}
        if resource_id in tenants:
            audience = _audience(resource_id)
        else:
            owners = Account.owners.through.objects.filter(account=resource_id).order_by("pk")
            audience = list(owners.values_list("user__email", flat=True))
        yield partial(_mail_change, audience, context, resource_id=resource_id, author=author.email)


def _audience(tenant_id: UUID) -> list[str]:
    """Return the addresses of the owners of a tenant, or of its last former ones."""
    owners = list(Membership.objects.owners_of(tenant_id).values_list("user__email", flat=True))
    if owners:
        return owners
    ended = Event.objects.filter(
        kind__in=(EventKind.MEMBERSHIP_REMOVED, EventKind.MEMBERSHIP_CHANGED),
        tenant_id=tenant_id,
        before__role=MembershipRole.OWNER,
    )
    return list(dict.fromkeys(ended.order_by("-at", "-id").values_list("subject", flat=True)[:_MOST_FORMER]))


def _mail_change(
    audience: Iterable[str], context: Mapping[str, Any], *, resource_id: UUID, author: str
) -> None:
    """Mail a change, or what is asked for, of who can read a tenant or owns an account."""
    name = Tenant.objects.filter(pk=resource_id).values_list("name", flat=True).first()
    if name is None:
        tenant_id, place = None, f"account {named(Account.objects.get(pk=resource_id).name)}"
    else:
        tenant_id, place = resource_id, f"tenant {named(name)}"
    content = {
        **context,
        "place": place,
        "reason": unlinked(current_reason()),
        "quoted": quoted(current_reason()),
        "service": settings.PUBLIC_BASE_URL,
    }
    subject = f"{'Staff ask to change' if 'until' in context else 'Staff changed'} who can read your {place}"
    for email in audience:
        if email != author:
            mail_later(
                to=email,
                subject=subject,
                template="readers_changed",
                context=content,
                tenant_id=tenant_id,
            )


# --- Memberships ------------------------------------------------------------------------------


class ApprovalNeeded(Conflict):
    """The tenant's configuration has ``access.staffApproval: required``."""

    message = "An owner of this tenant must approve your access first. Ask for it."


@dataclass(slots=True)
class SetMembership(Change):
    """Make the locked row ``user`` a member of a tenant with ``role``, or none (None).

    ``ends_at`` is for the access that staff have for a limited time.
    """

    user: User
    tenant_id: UUID
    role: str | None
    ends_at: dt.datetime | None = None
    _stored: Membership | None = None
    _was_read: bool = False

    @property
    def stored(self) -> Membership | None:
        """The membership before the change."""
        if not self._was_read:
            self._stored = Membership.objects.filter(user=self.user, tenant=self.tenant_id).first()
            self._was_read = True
        return self._stored

    @property
    def _lasting(self) -> str | None:
        """The role before the change, without access for a limited time."""
        return self.stored.role if self.stored is not None and self.stored.ends_at is None else None

    def tenants(self) -> Iterable[UUID]:
        return (self.tenant_id,)

    def is_own(self, principal: Principal) -> bool:
        """Owners change the members of their tenants. Who is new comes by invitation, or by staff."""
        is_owner = Scope.USERS_WRITE in principal.rights.from_membership(self.tenant_id)
        is_lent = self.ends_at is not None
        return principal.claims.is_sign_in and is_owner and (self.stored is not None or is_lent)

    def asks_for_proof(self, principal: Principal) -> bool:
        return not principal.claims.is_sign_in

    def apply(self, owners: Mapping[UUID, set[int]]) -> None:
        if self.role != MembershipRole.OWNER:
            owners[self.tenant_id].discard(self.user.pk)
        elif self.user.is_active and self.user.role != PrimaryRole.GUEST:
            owners[self.tenant_id].add(self.user.pk)

    def judge(self, author: Author, approval: Approval) -> Iterator[Need]:
        if self.ends_at is not None:
            if self.tenant_id in approval.required and author.email == self.user.email:
                raise ApprovalNeeded
            return
        is_itself = self.user.email == author.email and self.user.is_platform_admin
        if is_itself and self.role is not None and self._lasting != MembershipRole.OWNER:
            raise Forbidden(NOT_ITSELF)
        if self.tenant_id in approval.bereft:
            raise Forbidden(
                "The owners of this tenant approve the access of staff, so staff neither remove nor demote "
                "the last owner. Offboard the user: a second platform admin confirms the new owner."
            )
        if self.tenant_id not in approval.required or self.role is None:
            return
        if self.role == MembershipRole.OWNER and self._lasting != MembershipRole.OWNER:
            yield Need(Effect.NEW_OWNER, self.tenant_id, self.user.email, (self.tenant_id,))
        elif self._lasting is None:
            raise Forbidden(ONLY_OWNERS_ADD)

    def told(self) -> Iterator[tuple[UUID, str]]:
        is_lent = self.stored is not None and self.stored.ends_at is not None
        if self.ends_at is None and (self.role is not None or not is_lent):
            now_is = "is no longer a member" if self.role is None else f"is {_with_article(self.role)} now"
            before = "" if self._lasting is None else f", and was {_with_article(self._lasting)}"
            yield self.tenant_id, f"{self.user.email} {now_is}{before}."

    def write(self, author: Author) -> bool:
        before = _recorded(self.stored)
        if self.role is None:
            Membership.objects.filter(user=self.user, tenant=self.tenant_id).delete()
            after = None
        else:
            row, _ = Membership.objects.update_or_create(
                user=self.user,
                tenant_id=self.tenant_id,
                defaults={"role": self.role, "ends_at": self.ends_at},
            )
            after = _recorded(row)
        return record_membership(self.user.email, self.tenant_id, author.email, before=before, after=after)


#: Why a platform admin does not make itself a member.
NOT_ITSELF: Final = (
    "You may not make yourself a member of this tenant. Ask one of its owners to invite you, or take access "
    "for a limited time on its page of the admin site."
)
#: Why staff add no members of a tenant whose owners approve their access.
ONLY_OWNERS_ADD: Final = (
    "The owners of this tenant approve the access of staff, so staff cannot add members. An owner invites "
    "new members."
)


#: Why staff make no tokens of members of such a tenant.
ONLY_THEIR_OWN_TOKENS: Final = (
    "The owners of this tenant approve the access of staff, so only members themselves make and rotate "
    "their tokens for it."
)


def record_membership(
    email: str,
    tenant_id: UUID,
    actor: str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> bool:
    """Record the change of a user's role in a tenant, and return True if there is one. None: no member."""
    if before == after:
        return False
    kind = EventKind.MEMBERSHIP_CHANGED
    if before is None:
        kind = EventKind.MEMBERSHIP_ADDED
    elif after is None:
        kind = EventKind.MEMBERSHIP_REMOVED
    record_event(kind, actor=actor, subject=email, tenant_id=tenant_id, before=before, after=after)
    return True


def _recorded(row: Membership | None) -> dict[str, Any] | None:
    """Return what events say of a membership."""
    if row is None:
        return None
    ends = {} if row.ends_at is None else {"endsAt": format_timestamp(row.ends_at)}
    return {"role": str(row.role), **ends}


def _with_article(role: str) -> str:
    return f"{'a' if role == MembershipRole.MEMBER else 'an'} {role}"


@dataclass(slots=True)
class RemoveTenants(Change):
    """Delete the rows of tenants for good, with memberships and grants."""

    ids: Collection[UUID]

    def write(self, author: Author) -> int:
        delete_grants(resource=GrantResource.TENANT, ids=self.ids, actor=author.email)
        rows = Membership.objects.filter(tenant__in=self.ids).select_related("user")
        for row in rows:
            record_membership(row.user.email, row.tenant_id, author.email, before=_recorded(row))
        Tenant.objects.filter(pk__in=self.ids).delete()
        return len(self.ids)


# --- Owners of accounts -----------------------------------------------------------------------


@dataclass(slots=True)
class SetAccountOwners(Change):
    """Let an account have these owners, and with ``is_deleted`` no grants either. Its revision records it."""

    account: Account
    owners: Iterable[User]
    is_deleted: bool = False

    def is_own(self, principal: Principal) -> bool:
        is_owner = self.account.pk in principal.rights.owned_accounts
        is_guest = principal.rights.role == PrimaryRole.GUEST
        return is_owner and not is_guest and not principal.is_platform_wide

    def told(self) -> Iterator[tuple[UUID, str]]:
        before = set(self.account.owners.values_list("email", flat=True))
        after = {user.email for user in self.owners}
        for emails, now_is in (
            (after - before, "owns the account now"),
            (before - after, "no longer owns it"),
        ):
            for email in sorted(emails):
                yield self.account.pk, f"{email} {now_is}."

    def write(self, author: Author) -> None:
        self.account.owners.set(self.owners)
        if self.is_deleted:
            delete_grants(resource=GrantResource.ACCOUNT, ids=[self.account.pk], actor=author.email)


# --- Grants -----------------------------------------------------------------------------------


@dataclass(slots=True)
class GiveGrant(Change):
    """Store a new grant. Without an end it ends at ``latest``, if given.

    One that staff give ends after `MAX_STAFF_GRANT` at the latest.
    """

    grant: PermissionGrant
    latest: dt.datetime | None = None

    def tenants(self) -> Iterable[UUID]:
        if self.grant.resource == GrantResource.TENANT:
            return (self.grant.resource_id,)
        live = Tenant.objects.live().filter(account=self.grant.resource_id)
        return list(live.values_list("pk", flat=True))

    def is_own(self, principal: Principal) -> bool:
        """A platform admin who owns the resource gives by that what it has as an owner of each tenant."""
        if not _owns(principal, self.grant):
            return False
        rights, given = principal.rights, {Scope(it) for it in self.grant.permissions}
        return not rights.is_platform_admin or all(
            given | {Scope.USERS_WRITE} <= rights.from_membership(tenant_id) for tenant_id in self.tenants()
        )

    def judge(self, author: Author, approval: Approval) -> Iterator[Need]:  # noqa: ARG002
        grant, latest = self.grant, now() + MAX_STAFF_GRANT
        if grant.expires_at is not None and grant.expires_at > latest:
            message = f"A grant by a platform admin lasts {MAX_STAFF_GRANT.days} days at most."
            raise ValidationFailed.at("/expiresAt", "too-late", message)
        grant.expires_at = grant.expires_at or min(latest, self.latest or latest)
        if told := sorted(approval.required.intersection(self.tenants())):
            detail = ", ".join(grant.permissions)
            yield Need(Effect.GRANT, grant.resource_id, grant.grantee.email, told, detail)

    def told(self) -> Iterator[tuple[UUID, str]]:
        grant = self.grant
        may = ", ".join(ABILITIES[Scope(it)] for it in grant.permissions)
        until = format_timestamp(grant.expires_at) if grant.expires_at else "it is revoked"
        yield grant.resource_id, f"{grant.grantee.email} may do this until {until}: {may}."

    def write(self, author: Author) -> PermissionGrant:
        self.grant.expires_at = self.grant.expires_at or self.latest
        self.grant.save(force_insert=True)
        _record_grant(EventKind.GRANT_CREATED, self.grant, actor=author.email)
        return self.grant


@dataclass(slots=True)
class EndGrant(Change):
    """Revoke a grant, unless it was revoked before."""

    grant: PermissionGrant

    def is_own(self, principal: Principal) -> bool:
        is_givers = self.grant.granted_by_id == principal.rights.user_id
        return _owns(principal, self.grant) or (is_givers and not principal.is_platform_admin)

    def told(self) -> Iterator[tuple[UUID, str]]:
        yield self.grant.resource_id, f"{self.grant.grantee.email} has lost permissions."

    def write(self, author: Author) -> bool:
        if not PermissionGrant.objects.not_revoked().filter(pk=self.grant.pk).update(revoked_at=now()):
            return False
        _record_grant(EventKind.GRANT_REVOKED, self.grant, actor=author.email)
        return True


def end_grant(grant: PermissionGrant, *, author: Author) -> bool:
    """Revoke a grant; return False if it was revoked before."""
    [is_ended] = change_readers(author, EndGrant(grant))
    return bool(is_ended)


def delete_grants(*, resource: GrantResource, ids: Collection[UUID], actor: str) -> None:
    """Delete the grants on tenants or accounts, in the transaction that deletes these."""
    grants = PermissionGrant.objects.filter(resource=resource, resource_id__in=ids)
    for grant in grants.in_force().select_related("grantee"):
        _record_grant(EventKind.GRANT_REVOKED, grant, actor=actor)
    grants.delete()


def _owns(principal: Principal, grant: PermissionGrant) -> bool:
    """Return True if the caller owns what a grant is on, and does not use a platform admin's wildcard."""
    rights = principal.rights
    if grant.resource == GrantResource.TENANT:
        is_owner = Scope.USERS_WRITE in rights.from_membership(grant.resource_id)
    else:
        is_owner = grant.resource_id in rights.owned_accounts and rights.role != PrimaryRole.GUEST
    return is_owner and not principal.is_platform_wide


def _record_grant(kind: EventKind, grant: PermissionGrant, *, actor: str) -> None:
    is_created, is_on_tenant = kind is EventKind.GRANT_CREATED, grant.resource == GrantResource.TENANT
    content = {
        "grant": str(grant.pk),
        "permissions": sorted(grant.permissions),
        "expiresAt": format_timestamp(grant.expires_at) if grant.expires_at else None,
    }
    record_event(
        kind,
        actor=actor,
        subject=grant.grantee.email,
        tenant_id=grant.resource_id if is_on_tenant else None,
        account_id=None if is_on_tenant else grant.resource_id,
        before=None if is_created else content,
        after=content if is_created else None,
    )


# --- Users ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _OfUser(Change):
    """A change of a whole user, whose row is locked."""

    user: User

    def _ends_ownership(self) -> bool:
        """Return True if the user cannot act as an owner after it."""
        return True

    def tenants(self) -> Iterable[UUID]:
        if not self._ends_ownership():
            return ()
        owned = self.user.memberships.filter(role=MembershipRole.OWNER, ends_at=None)
        return list(owned.filter(tenant__deleted_at=None).values_list("tenant_id", flat=True))

    def apply(self, owners: Mapping[UUID, set[int]]) -> None:
        for of_tenant in owners.values() if self._ends_ownership() else ():
            of_tenant.discard(self.user.pk)

    def judge(self, author: Author, approval: Approval) -> Iterator[Need]:  # noqa: ARG002
        for tenant_id in sorted(approval.bereft.intersection(self.tenants())):
            yield Need(Effect.OWNER_ENDS, tenant_id, self.user.email, (tenant_id,))

    def told(self) -> Iterator[tuple[UUID, str]]:
        for tenant_id in self.tenants():
            yield tenant_id, f"{self.user.email}, an owner, is deleted, deactivated or a guest now."


@dataclass(slots=True)
class SetRole(_OfUser):
    """Set the primary role, the scopes and the activity of a user."""

    role: str
    scopes: list[str]
    is_active: bool

    def _ends_ownership(self) -> bool:
        stays = self.is_active and self.role != PrimaryRole.GUEST
        return self.user.is_active and self.user.role != PrimaryRole.GUEST and not stays

    def write(self, author: Author) -> None:
        user, email = self.user, self.user.email
        before = {"primary": str(user.role), "scopes": sorted(user.scopes)}
        after = {"primary": str(self.role), "scopes": sorted(self.scopes)}
        if after != before:
            record_event(
                EventKind.ROLES_CHANGED, actor=author.email, subject=email, before=before, after=after
            )
        if self.is_active != user.is_active:
            kind = EventKind.USER_ACTIVATED if self.is_active else EventKind.USER_DEACTIVATED
            record_event(kind, actor=author.email, subject=email)
        user.role, user.scopes, user.is_active = self.role, self.scopes, self.is_active
        user.save(update_fields=["role", "scopes", "is_active"])


@dataclass(slots=True)
class SetSupport(Change):
    """Give or take the role *support* of the admin site, unless the user has it, or has it not, already."""

    user: User
    is_support: bool

    def write(self, author: Author) -> bool:
        rows = User.objects.filter(pk=self.user.pk, is_support=not self.is_support)
        if not rows.update(is_support=self.is_support):
            return False
        before, after = {"support": not self.is_support}, {"support": self.is_support}
        record_event(
            EventKind.ROLES_CHANGED,
            actor=author.email,
            subject=self.user.email,
            before=before,
            after=after,
        )
        return True


def set_support(user: User, *, is_support: bool, author: Author) -> bool:
    """Give or take the role *support*; return False if nothing changed."""
    [is_changed] = change_readers(author, SetSupport(user, is_support))
    return bool(is_changed)


@dataclass(slots=True)
class DeleteUser(_OfUser):
    """Delete a user with memberships, grants and credentials."""

    def write(self, author: Author) -> None:
        user = self.user
        for row in user.memberships.all():
            record_membership(user.email, row.tenant_id, author.email, before=_recorded(row))
        for grant in user.grants.in_force():
            _record_grant(EventKind.GRANT_REVOKED, grant, actor=author.email)
        before = {
            "displayName": user.display_name,
            "roles": {"primary": str(user.role), "scopes": sorted(user.scopes)},
        }
        record_event(EventKind.USER_DELETED, actor=author.email, subject=user.email, before=before)
        user.delete()


# --- Personal access tokens -------------------------------------------------------------------


@dataclass(slots=True)
class ActOnToken(Change):
    """Make, rotate or revoke a personal access token, with ``act``. A user's own is no change for others.

    ``tenant_ids`` are those that the caller gets a secret for.
    """

    owner: User
    has_wildcard: bool
    act: Callable[[], Any]
    tenant_ids: Collection[UUID] = ()

    def tenants(self) -> Iterable[UUID]:
        return self.tenant_ids

    def is_own(self, principal: Principal) -> bool:
        return self.owner.pk == principal.rights.user_id and not self.has_wildcard

    def asks_for_proof(self, principal: Principal) -> bool:  # noqa: ARG002
        return True

    def judge(self, author: Author, approval: Approval) -> Iterator[Need]:  # noqa: ARG002
        if approval.required.intersection(self.tenant_ids):
            raise Forbidden(ONLY_THEIR_OWN_TOKENS)
        yield from ()

    def told(self) -> Iterator[tuple[UUID, str]]:
        for tenant_id in self.tenant_ids:
            yield tenant_id, f"Staff have made or rotated a personal access token of {self.owner.email}."

    def write(self, author: Author) -> Any:  # noqa: ARG002
        return self.act()
