"""Suggest new owners for what a user who leaves owns alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from accounts.admin.rights import last_seen
from accounts.models import Account, Membership
from accounts.models.users import MembershipRole
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable
    from uuid import UUID

    from accounts.models import Tenant, User


@dataclass(frozen=True, slots=True)
class Heir:
    """A suggested owner, and the right for which they are suggested."""

    email: str
    right: str
    seen_at: dt.datetime | None

    @property
    def text(self) -> str:
        seen = f"last seen {formats.ago(self.seen_at, now=now())}" if self.seen_at else "never seen"
        return f"Suggested: {self.email}, {self.right}, {seen}."


@dataclass(frozen=True, slots=True)
class _Candidate:
    #: The tenant or account.
    place: UUID
    user: User
    right: str
    #: The lowest comes first.
    rank: int = 0


def suggest_heirs(
    person: User, *, accounts: Iterable[Account], tenants: Iterable[Tenant]
) -> dict[UUID, Heir]:
    """Suggest a new owner for each account and tenant that only ``person`` owns.

    Of a tenant: an admin, else as of its account. Of an account: another owner, else an owner, else an admin
    of one of its tenants. Of several, who was seen last. Only active users are suggested; there may be none.
    """
    account_of = {**{it.pk: it.account_id for it in tenants}, **{it.pk: it.pk for it in accounts}}
    ids = set(account_of.values())
    owners = Account.owners.through.objects.filter(account__in=ids, user__is_active=True)
    members = Membership.objects.filter(
        tenant__account__in=ids, tenant__deleted_at__isnull=True, user__is_active=True, ends_at__isnull=True
    ).exclude(role=MembershipRole.MEMBER)
    candidates = [
        _Candidate(it.account_id, it.user, f"owner of the account {it.account.name}")
        for it in owners.exclude(user=person).select_related("user", "account")
    ]
    for it in members.exclude(user=person).select_related("user", "tenant"):
        right = f"{it.role} of {it.tenant.name}"
        rank = 1 if it.role == MembershipRole.OWNER else 2
        candidates += [
            _Candidate(it.tenant_id, it.user, right),
            _Candidate(it.tenant.account_id, it.user, right, rank),
        ]
    seen = last_seen({it.user.pk: it.user for it in candidates})

    def order(one: _Candidate) -> tuple[int, float, str]:
        at = seen[one.user.pk]
        return one.rank, -at.timestamp() if at else 0, one.user.email

    best: dict[UUID, Heir] = {}
    for one in sorted(candidates, key=order):
        best.setdefault(one.place, Heir(one.user.email, one.right, seen[one.user.pk]))
    found = {place: best.get(place) or best.get(account) for place, account in account_of.items()}
    return {place: heir for place, heir in found.items() if heir is not None}
