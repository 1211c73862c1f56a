"""Which scopes are held where. Contract: Authentication.

The answer for one tenant or account and the filter for all of them are read from the same fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from django.db.models import Q

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from accounts.access.scopes import Scope

NO_SCOPES: Final[frozenset[Scope]] = frozenset()


@dataclass(frozen=True, slots=True)
class Reach:
    """Scopes by where they are held: everywhere, on tenants, on accounts with all their tenants."""

    everywhere: frozenset[Scope] = NO_SCOPES
    tenants: Mapping[UUID, frozenset[Scope]] = field(default_factory=dict)
    accounts: Mapping[UUID, frozenset[Scope]] = field(default_factory=dict)

    def __or__(self, other: Reach) -> Reach:
        return Reach(
            everywhere=self.everywhere | other.everywhere,
            tenants=_merge(self.tenants, other.tenants),
            accounts=_merge(self.accounts, other.accounts),
        )

    def scopes_on(self, *, tenant_id: UUID | None = None, account_id: UUID | None) -> frozenset[Scope]:
        """Return the scopes on a tenant of an account, or without ``tenant_id`` on the account itself."""
        scopes = self.everywhere
        if tenant_id is not None:
            scopes |= self.tenants.get(tenant_id, NO_SCOPES)
        if account_id is not None:
            scopes |= self.accounts.get(account_id, NO_SCOPES)
        return scopes

    def as_q(self, scope: Scope, *, tenant: str | None = None, account: str) -> Q:
        """Return the filter of the rows on whose tenant or account ``scope`` is held.

        ``tenant`` and ``account`` are the fields that hold the ids; rows about accounts have no ``tenant``.
        """
        if scope in self.everywhere:
            return Q()
        held = Q(**{f"{account}__in": _ids_with(scope, self.accounts)})
        return held if tenant is None else held | Q(**{f"{tenant}__in": _ids_with(scope, self.tenants)})


@dataclass(frozen=True, slots=True)
class Access:
    """What a caller may do, and where: what its token claims and the database allows."""

    claimed: Reach
    allowed: Reach

    @property
    def everywhere(self) -> frozenset[Scope]:
        """The scopes that are held on everything there is."""
        return self.claimed.everywhere & self.allowed.everywhere

    @property
    def asks_for_account(self) -> bool:
        """True if the account of a tenant may decide."""
        return bool(self.claimed.accounts or self.allowed.accounts)

    def scopes_on(self, *, tenant_id: UUID | None = None, account_id: UUID | None) -> frozenset[Scope]:
        """Return the scopes on a tenant of an account, or without ``tenant_id`` on the account itself.

        ``account_id`` may be None for a tenant if the access does not ask for it.
        """
        claimed = self.claimed.scopes_on(tenant_id=tenant_id, account_id=account_id)
        return claimed & self.allowed.scopes_on(tenant_id=tenant_id, account_id=account_id)

    def as_q(self, scope: Scope, *, tenant: str | None = None, account: str) -> Q:
        """Return the filter of the rows on whose tenant or account ``scope`` is held, as `Reach.as_q`."""
        claimed = self.claimed.as_q(scope, tenant=tenant, account=account)
        return claimed & self.allowed.as_q(scope, tenant=tenant, account=account)


def _ids_with(scope: Scope, held: Mapping[UUID, frozenset[Scope]]) -> list[UUID]:
    return [key for key, scopes in held.items() if scope in scopes]


def _merge(
    one: Mapping[UUID, frozenset[Scope]], other: Mapping[UUID, frozenset[Scope]]
) -> Mapping[UUID, frozenset[Scope]]:
    return {**one, **{key: one.get(key, NO_SCOPES) | scopes for key, scopes in other.items()}}
