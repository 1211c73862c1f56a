"""Scopes by place: on one row, and as the filter of a list. Contract: Authentication."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import pytest
from django.db.models import Q

from accounts.access.reach import Access, Reach
from accounts.access.scopes import Scope

#: Tenants and accounts.
T1, T2, A1, A2 = (UUID(int=number) for number in range(1, 5))
READ, WRITE, USERS = (
    frozenset({scope}) for scope in (Scope.CONFIG_READ, Scope.CONFIG_WRITE, Scope.USERS_READ)
)
NONE: Final = frozenset[Scope]()
SOME: Final = Reach(everywhere=USERS, tenants={T1: READ, T2: WRITE}, accounts={A1: WRITE, A2: READ})


def test_both_reaches_count_in_their_union() -> None:
    other = Reach(everywhere=READ, tenants={T2: READ}, accounts={A1: USERS, T1: READ})
    assert SOME | other == Reach(
        everywhere=USERS | READ,
        tenants={T1: READ, T2: WRITE | READ},
        accounts={A1: WRITE | USERS, A2: READ, T1: READ},
    )
    assert Reach() | SOME == SOME | Reach() == SOME


@pytest.mark.parametrize(
    ("tenant", "account", "scopes"),
    [
        (T1, A1, USERS | READ | WRITE),
        (T1, A2, USERS | READ),
        (T1, None, USERS | READ),
        (T2, None, USERS | WRITE),
        (None, A1, USERS | WRITE),
        (None, None, USERS),
        (A1, T1, USERS),
    ],
)
def test_the_scopes_of_tenant_and_account_and_everywhere_add_up(
    tenant: UUID | None, account: UUID | None, scopes: frozenset[Scope]
) -> None:
    assert SOME.scopes_on(tenant_id=tenant, account_id=account) == scopes


def test_the_filter_names_the_tenants_and_accounts_with_the_scope() -> None:
    assert SOME.as_q(Scope.CONFIG_READ, tenant="t", account="a") == Q(a__in=[A2]) | Q(t__in=[T1])
    assert SOME.as_q(Scope.CONFIG_READ, account="a") == Q(a__in=[A2])
    assert SOME.as_q(Scope.CACHE_ADMIN, account="a") == Q(a__in=[])
    assert SOME.as_q(Scope.USERS_READ, tenant="t", account="a") == Q()


def test_a_caller_has_the_claimed_and_allowed_scopes() -> None:
    access = Access(
        Reach(everywhere=READ | USERS, tenants={T1: WRITE}, accounts={A1: WRITE}),
        Reach(everywhere=USERS | WRITE, tenants={T2: READ}, accounts={A2: READ}),
    )
    assert access.everywhere == USERS
    assert access.scopes_on(tenant_id=T1, account_id=None) == USERS | WRITE
    assert access.scopes_on(tenant_id=T2, account_id=None) == USERS | READ
    assert access.scopes_on(tenant_id=None, account_id=A1) == USERS | WRITE
    assert access.scopes_on(tenant_id=T1, account_id=A2) == USERS | READ | WRITE
    assert access.scopes_on(account_id=None) == USERS


def test_the_filter_of_a_caller_demands_both() -> None:
    access = Access(
        Reach(tenants={T1: READ}, accounts={A1: READ}), Reach(tenants={T2: READ}, accounts={A2: READ})
    )
    of_tenants = access.as_q(Scope.CONFIG_READ, tenant="t", account="a")
    assert of_tenants == (Q(a__in=[A1]) | Q(t__in=[T1])) & (Q(a__in=[A2]) | Q(t__in=[T2]))
    assert access.as_q(Scope.CONFIG_READ, account="a") == Q(a__in=[A1]) & Q(a__in=[A2])


@pytest.mark.parametrize(
    ("claimed", "allowed", "needs_account"),
    [
        (Reach(accounts={A1: READ}), Reach(), True),
        (Reach(), Reach(accounts={A1: READ}), True),
        (Reach(everywhere=READ, tenants={T1: READ}), Reach(), False),
    ],
)
def test_the_account_matters_if_either_names_one(claimed: Reach, allowed: Reach, needs_account: bool) -> None:
    assert Access(claimed, allowed).needs_account is needs_account
