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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from django.conf import settings
from django.db import transaction

from accounts.access.assurance import require_fresh_proof
from accounts.events import record_event
from accounts.mailing import mail_later
from accounts.models import (
    Account,
    Event,
    Invitation,
    Membership,
    Proposal,
    Tenant,
    TenantConfig,
    User,
)
from accounts.models.events import EventKind
from accounts.models.pending import ProposalOutcome
from accounts.models.users import MembershipRole
from accounts.pending import withdraw
from tenantadmin.lib.core.emails import named, quoted, unlinked
from tenantadmin.lib.core.errors import Forbidden
from tenantadmin.lib.core.request_context import current_reason
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from accounts.access.principal import Principal

#: How long a second platform admin may confirm what the first has asked for.
LIFETIME: Final = dt.timedelta(hours=12)
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
    """Tenants whose owners approve the access of staff: all, and those that would lose their last owner."""

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

    def notices(self) -> Iterator[tuple[UUID, str]]:
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
        if any(result is not False for result in written):
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
            withdraw(invitations, actor=author.email)


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
        for resource_id, sentence in change.notices():
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
