"""Changes of whole users: roles, activity, deletion; and of their personal access tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from accounts.events import record_event
from accounts.models import (
    User,
)
from accounts.models.events import EventKind
from accounts.models.users import MembershipRole, PrimaryRole
from tenantadmin.lib.core.errors import Forbidden

if TYPE_CHECKING:
    from accounts.access.principal import Principal
from accounts.readers.grants import record_grant
from accounts.readers.memberships import ONLY_THEIR_OWN_TOKENS, record_membership, recorded
from accounts.readers.rule import Approval, Author, Change, Effect, Need, change_readers


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

    def notices(self) -> Iterator[tuple[UUID, str]]:
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
            record_membership(user.email, row.tenant_id, author.email, before=recorded(row))
        for grant in user.grants.in_force():
            record_grant(EventKind.GRANT_REVOKED, grant, actor=author.email)
        before = {
            "displayName": user.display_name,
            "roles": {"primary": str(user.role), "scopes": sorted(user.scopes)},
        }
        record_event(EventKind.USER_DELETED, actor=author.email, subject=user.email, before=before)
        user.delete()


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

    def notices(self) -> Iterator[tuple[UUID, str]]:
        for tenant_id in self.tenant_ids:
            yield tenant_id, f"Staff have made or rotated a personal access token of {self.owner.email}."

    def write(self, author: Author) -> Any:  # noqa: ARG002
        return self.act()
