"""Who owns an account or a tenant, and who may read and write an account. Contract: Authentication."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from accounts.access.principal import Principal
from accounts.access.resources import (
    owns_account,
    owns_tenant,
    require_account_owner,
    require_account_scope,
    require_tenant_owner,
)
from accounts.access.scopes import Scope
from tenantadmin.lib.core.errors import Forbidden
from tests.accounts.callers import ACCOUNT, ELSEWHERE, HERE, SIBLING, claims, pat, rights

if TYPE_CHECKING:
    from uuid import UUID

    from accounts.access.principal import Rights


def owner(role: str = "user") -> Rights:
    return rights(role, owned_accounts=frozenset({ACCOUNT}), memberships={HERE: "owner", SIBLING: "admin"})


OWNER: Final = Principal(claims(), owner())
GUEST: Final = Principal(claims(), owner("guest"))
ADMIN: Final = Principal(claims(role="admin"), rights("admin"))


@pytest.mark.parametrize(
    ("caller", "account", "owns"),
    [(OWNER, ACCOUNT, True), (OWNER, ELSEWHERE, False), (GUEST, ACCOUNT, False), (ADMIN, ACCOUNT, True)],
)
def test_owners_of_an_account_are_no_guests(caller: Principal, account: UUID, owns: bool) -> None:
    assert owns_account(caller, account) is owns
    if owns:
        require_account_owner(caller, account)
        return
    with pytest.raises(Forbidden, match=r"^Only an owner of the account or a platform admin may do this"):
        require_account_owner(caller, account)


@pytest.mark.parametrize(
    ("caller", "tenant", "owns"),
    [(OWNER, HERE, True), (OWNER, SIBLING, False), (GUEST, HERE, False), (ADMIN, HERE, True)],
)
def test_owners_of_a_tenant_are_no_guests(caller: Principal, tenant: UUID, owns: bool) -> None:
    assert owns_tenant(caller, tenant) is owns
    if owns:
        require_tenant_owner(caller, tenant)
        return
    with pytest.raises(Forbidden, match=r"^Only an owner of the tenant or a platform admin may do this"):
        require_tenant_owner(caller, tenant)


def test_a_guest_reads_its_account_and_an_owner_writes_it() -> None:
    require_account_scope(OWNER, account_id=ACCOUNT, scope=Scope.CONFIG_WRITE)
    require_account_scope(GUEST, account_id=ACCOUNT, scope=Scope.CONFIG_READ)
    for caller, account in ((GUEST, ACCOUNT), (OWNER, ELSEWHERE)):
        with pytest.raises(Forbidden, match=r"^This needs 'config:write' on the account"):
            require_account_scope(caller, account_id=account, scope=Scope.CONFIG_WRITE)


def test_pat_accounts_limit_writes_not_ownership() -> None:
    caller = Principal(pat(accounts=frozenset({ELSEWHERE})), owner())
    assert owns_account(caller, ACCOUNT)
    with pytest.raises(Forbidden):
        require_account_scope(caller, account_id=ACCOUNT, scope=Scope.CONFIG_WRITE)
