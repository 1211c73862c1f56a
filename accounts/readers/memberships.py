"""Changes of memberships, and of access for a limited time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from accounts.access.scopes import Scope
from accounts.events import record_event
from accounts.models import (
    Membership,
    User,
)
from accounts.models.events import EventKind
from accounts.models.users import MembershipRole, PrimaryRole
from tenantadmin.lib.core.errors import Conflict, Forbidden
from tenantadmin.lib.core.timestamps import format_timestamp

if TYPE_CHECKING:
    from accounts.access.principal import Principal
from accounts.readers.rule import Approval, Author, Change, Effect, Need


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

    def notices(self) -> Iterator[tuple[UUID, str]]:
        is_lent = self.stored is not None and self.stored.ends_at is not None
        if self.ends_at is None and (self.role is not None or not is_lent):
            now_is = "is no longer a member" if self.role is None else f"is {_with_article(self.role)} now"
            before = "" if self._lasting is None else f", and was {_with_article(self._lasting)}"
            yield self.tenant_id, f"{self.user.email} {now_is}{before}."

    def write(self, author: Author) -> bool:
        before = recorded(self.stored)
        if self.role is None:
            Membership.objects.filter(user=self.user, tenant=self.tenant_id).delete()
            after = None
        else:
            row, _ = Membership.objects.update_or_create(
                user=self.user,
                tenant_id=self.tenant_id,
                defaults={"role": self.role, "ends_at": self.ends_at},
            )
            after = recorded(row)
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


def recorded(row: Membership | None) -> dict[str, Any] | None:
    """Return what events say of a membership."""
    if row is None:
        return None
    ends = {} if row.ends_at is None else {"endsAt": format_timestamp(row.ends_at)}
    return {"role": str(row.role), **ends}


def _with_article(role: str) -> str:
    return f"{'a' if role == MembershipRole.MEMBER else 'an'} {role}"
