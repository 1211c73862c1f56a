"""Changes of who owns an account, of grants on tenants and accounts, and the end of tenants."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import UUID

from accounts.access.resources import owns_itself
from accounts.access.scopes import ABILITIES, Scope
from accounts.events import record_event
from accounts.models import (
    Account,
    Membership,
    PermissionGrant,
    Tenant,
    User,
)
from accounts.models.billing import GrantResource
from accounts.models.events import EventKind
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.core.timestamps import format_timestamp, now

if TYPE_CHECKING:
    from accounts.access.principal import Principal
from accounts.readers.memberships import record_membership, recorded
from accounts.readers.rule import Approval, Author, Change, Effect, Need, change_readers

#: A grant that staff give ends after this time at the latest.
MAX_STAFF_GRANT: Final = dt.timedelta(days=30)


@dataclass(slots=True)
class SetAccountOwners(Change):
    """Let an account have these owners, and with ``is_deleted`` no grants either. Its revision records it."""

    account: Account
    owners: Iterable[User]
    is_deleted: bool = False

    def is_own(self, principal: Principal) -> bool:
        return owns_itself(principal, GrantResource.ACCOUNT, self.account.pk)

    def notices(self) -> Iterator[tuple[UUID, str]]:
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
        if not owns_itself(principal, self.grant.resource, self.grant.resource_id):
            return False
        rights, given = principal.rights, {Scope(name) for name in self.grant.permissions}
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

    def notices(self) -> Iterator[tuple[UUID, str]]:
        grant = self.grant
        may = ", ".join(ABILITIES[Scope(name)] for name in grant.permissions)
        until = format_timestamp(grant.expires_at) if grant.expires_at else "it is revoked"
        yield grant.resource_id, f"{grant.grantee.email} may do this until {until}: {may}."

    def write(self, author: Author) -> PermissionGrant:
        self.grant.expires_at = self.grant.expires_at or self.latest
        self.grant.save(force_insert=True)
        record_grant(EventKind.GRANT_CREATED, self.grant, actor=author.email)
        return self.grant


@dataclass(slots=True)
class EndGrant(Change):
    """Revoke a grant, unless it was revoked before."""

    grant: PermissionGrant

    def is_own(self, principal: Principal) -> bool:
        is_givers = self.grant.granted_by_id == principal.rights.user_id
        return owns_itself(principal, self.grant.resource, self.grant.resource_id) or (
            is_givers and not principal.is_platform_admin
        )

    def notices(self) -> Iterator[tuple[UUID, str]]:
        yield self.grant.resource_id, f"{self.grant.grantee.email} has lost permissions."

    def write(self, author: Author) -> bool:
        if not PermissionGrant.objects.not_revoked().filter(pk=self.grant.pk).update(revoked_at=now()):
            return False
        record_grant(EventKind.GRANT_REVOKED, self.grant, actor=author.email)
        return True


def end_grant(grant: PermissionGrant, *, author: Author) -> bool:
    """Revoke a grant; return False if it was revoked before."""
    [is_ended] = change_readers(author, EndGrant(grant))
    return bool(is_ended)


def delete_grants(*, resource: GrantResource, ids: Collection[UUID], actor: str) -> None:
    """Delete the grants on tenants or accounts, in the transaction that deletes these."""
    grants = PermissionGrant.objects.filter(resource=resource, resource_id__in=ids)
    for grant in grants.in_force().select_related("grantee"):
        record_grant(EventKind.GRANT_REVOKED, grant, actor=actor)
    grants.delete()


def record_grant(kind: EventKind, grant: PermissionGrant, *, actor: str) -> None:
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


@dataclass(slots=True)
class RemoveTenants(Change):
    """Delete the rows of tenants for good, with memberships and grants."""

    ids: Collection[UUID]

    def write(self, author: Author) -> int:
        delete_grants(resource=GrantResource.TENANT, ids=self.ids, actor=author.email)
        rows = Membership.objects.filter(tenant__in=self.ids).select_related("user")
        for row in rows:
            record_membership(row.user.email, row.tenant_id, author.email, before=recorded(row))
        Tenant.objects.filter(pk__in=self.ids).delete()
        return len(self.ids)
