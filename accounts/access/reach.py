"""Which scopes apply to which tenants and accounts. Contract: Authentication.

The check of one tenant or account and the filter of a list use the same fields, so they always agree.
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
    """Scopes by where they apply: everywhere, on tenants, and on accounts with all their tenants."""

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
        """Return the filter for rows whose tenant or account has ``scope``.

        ``tenant`` and ``account`` name the fields with the ids. Rows about accounts have no ``tenant``.
        """
        if scope in self.everywhere:
            return Q()
        on_account = Q(**{f"{account}__in": _ids_with(scope, self.accounts)})
        return (
            on_account
            if tenant is None
            else on_account | Q(**{f"{tenant}__in": _ids_with(scope, self.tenants)})
        )


@dataclass(frozen=True, slots=True)
class Access:
    """The scopes of a caller, which its token claims and the database allows."""

    claimed: Reach
    allowed: Reach

    @property
    def everywhere(self) -> frozenset[Scope]:
        """The scopes on every tenant and account."""
        return self.claimed.everywhere & self.allowed.everywhere

    @property
    def needs_account(self) -> bool:
        """True if scopes on accounts exist, so that `scopes_on` a tenant needs the id of its account."""
        return bool(self.claimed.accounts or self.allowed.accounts)

    def scopes_on(self, *, tenant_id: UUID | None = None, account_id: UUID | None) -> frozenset[Scope]:
        """Return the scopes on a tenant of an account, or without ``tenant_id`` on the account itself.

        ``account_id`` may be None for a tenant if `needs_account` is false.
        """
        claimed = self.claimed.scopes_on(tenant_id=tenant_id, account_id=account_id)
        return claimed & self.allowed.scopes_on(tenant_id=tenant_id, account_id=account_id)

    def as_q(self, scope: Scope, *, tenant: str | None = None, account: str) -> Q:
        """Return the filter for rows whose tenant or account has ``scope``; see `Reach.as_q`."""
        claimed = self.claimed.as_q(scope, tenant=tenant, account=account)
        return claimed & self.allowed.as_q(scope, tenant=tenant, account=account)


def _ids_with(scope: Scope, scopes_by_id: Mapping[UUID, frozenset[Scope]]) -> list[UUID]:
    return [key for key, scopes in scopes_by_id.items() if scope in scopes]


def _merge(
    one: Mapping[UUID, frozenset[Scope]], other: Mapping[UUID, frozenset[Scope]]
) -> Mapping[UUID, frozenset[Scope]]:
    return {**one, **{key: one.get(key, NO_SCOPES) | scopes for key, scopes in other.items()}}
