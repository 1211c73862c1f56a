"""What a caller may do, from the claims of its token and its rights alone. Contract: Authentication.

tests/accounts/test_access.py compares many more callers, with rows in the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

import pytest
from django.db.models import Q

from accounts.access.principal import Access, Claims, Principal, Reach
from accounts.access.resources import (
    owns_account,
    owns_tenant,
    require_account_owner,
    require_account_scope,
    require_tenant_owner,
)
from accounts.access.scopes import Scope
from tenantadmin.lib.core.errors import Forbidden
from tests.accounts.callers import ACCOUNT, ACCOUNT_OF, ELSEWHERE, FOREIGN, HERE, SIBLING, claims, pat, rights

if TYPE_CHECKING:
    from accounts.access.principal import Rights


def of(*names: str) -> frozenset[Scope]:
    """Return the scopes of these names."""
    return frozenset(map(Scope, names))


EVERY: Final = frozenset(Scope)
LOGS: Final = of("logs:read", "logs:query")
PAT_ONLY: Final = of("cache-admin", "analytics:numbers", "analytics:read", "analytics:users", "tos:publish")
MEMBER: Final = of("config:read", "logs:read", "logs:query", "analytics:numbers", "analytics:read")
TENANT_ADMIN: Final = MEMBER | of(
    "config:write", "cache-admin", "logs:notify", "analytics:users", "users:read"
)
OWNER: Final = TENANT_ADMIN | of("users:write")
ACCOUNT_OWNER: Final = of("config:read", "config:write")
NONE: Final = of()


def on_tenants(access: Access) -> tuple[frozenset[Scope], ...]:
    """Return the scopes on the three tenants."""
    return tuple(
        access.scopes_on(tenant_id=tenant, account_id=account) for tenant, account in ACCOUNT_OF.items()
    )


def on_accounts(access: Access) -> tuple[frozenset[Scope], ...]:
    """Return the scopes on the two accounts."""
    return tuple(access.scopes_on(account_id=account) for account in (ACCOUNT, ELSEWHERE))


@pytest.mark.parametrize(
    ("membership", "user", "guest"),
    [
        ("member", MEMBER, MEMBER),
        ("admin", TENANT_ADMIN, MEMBER | of("users:read")),
        ("owner", OWNER, MEMBER | of("users:read")),
    ],
)
def test_a_membership_gives_the_scopes_of_its_role_on_its_tenant(
    membership: str, user: frozenset[Scope], guest: frozenset[Scope]
) -> None:
    for role, scopes in (("user", user), ("guest", guest), ("admin", user)):
        held = rights(role, memberships={HERE: membership})
        assert held.from_membership(HERE) == scopes
        assert held.from_membership(SIBLING) == NONE
        assert held.own_on_tenants.tenants == {HERE: scopes}
        assert held.own_on_tenants.everywhere == (EVERY - LOGS if role == "admin" else NONE)


@pytest.mark.parametrize(
    ("role", "on_account", "everywhere"),
    [
        ("user", ACCOUNT_OWNER, NONE),
        ("guest", of("config:read"), NONE),
        ("admin", ACCOUNT_OWNER, EVERY - LOGS),
    ],
)
def test_an_owner_of_an_account_has_its_scopes_on_the_account_alone(
    role: str, on_account: frozenset[Scope], everywhere: frozenset[Scope]
) -> None:
    held = rights(role, owned_accounts=frozenset({ACCOUNT}))
    assert held.own_on_accounts == Reach(everywhere=everywhere, accounts={ACCOUNT: on_account})
    assert held.own_on_tenants == Reach(everywhere=everywhere)


def test_grants_add_to_role_and_memberships() -> None:
    granted = Reach(tenants={SIBLING: of("users:read")}, accounts={ACCOUNT: of("users:write")})
    held = rights(granted=granted, memberships={HERE: "member"}, owned_accounts=frozenset({ACCOUNT}))
    assert held.on_tenants == Reach(
        tenants={HERE: MEMBER, SIBLING: of("users:read")}, accounts={ACCOUNT: of("users:write")}
    )
    assert held.on_accounts == Reach(
        tenants={SIBLING: of("users:read")}, accounts={ACCOUNT: ACCOUNT_OWNER | of("users:write")}
    )


def test_a_sign_in_has_all_rights_except_pat_scopes() -> None:
    held = rights(
        granted=Reach(tenants={SIBLING: of("analytics:users", "users:read")}),
        memberships={HERE: "owner"},
        owned_accounts=frozenset({ACCOUNT}),
    )
    caller = Principal(claims(), held)
    assert on_tenants(caller.on_tenants) == (OWNER - PAT_ONLY, of("users:read"), NONE)
    assert on_tenants(caller.on_listed_tenants) == (OWNER - PAT_ONLY, of("users:read"), NONE)
    assert on_accounts(caller.on_accounts) == (ACCOUNT_OWNER, NONE)


def test_a_signed_in_platform_admin_lists_only_the_tenants_of_its_memberships() -> None:
    caller = Principal(claims(role="admin"), rights("admin", memberships={HERE: "member"}))
    everywhere = EVERY - LOGS - PAT_ONLY
    assert on_tenants(caller.on_tenants) == (EVERY - PAT_ONLY, everywhere, everywhere)
    assert on_tenants(caller.on_listed_tenants) == (MEMBER - PAT_ONLY, NONE, NONE)
    assert on_accounts(caller.on_accounts) == (EVERY - LOGS, EVERY - LOGS)


@pytest.mark.parametrize(("then", "today"), [("user", "admin"), ("admin", "user")])
def test_a_changed_role_since_the_sign_in_gives_no_rights_everywhere(then: str, today: str) -> None:
    caller = Principal(claims(role=then), rights(today, memberships={HERE: "member"}))
    assert on_tenants(caller.on_tenants) == (MEMBER - PAT_ONLY, NONE, NONE)
    assert on_accounts(caller.on_accounts) == (NONE, NONE)


def test_a_pat_has_its_scopes_where_it_names_the_place() -> None:
    """By the tenant's account, it has all but the logs."""
    able = rights(
        "admin",
        memberships=dict.fromkeys(ACCOUNT_OF, "owner"),
        owned_accounts=frozenset({ACCOUNT, ELSEWHERE}),
    )
    scopes = of("config:read", "logs:read", "cache-admin")
    of_tenant = Principal(pat(*scopes, tenants=frozenset({HERE})), able)
    assert on_tenants(of_tenant.on_tenants) == (scopes, NONE, NONE)
    assert on_accounts(of_tenant.on_accounts) == (NONE, NONE)
    of_account = Principal(pat(*scopes, accounts=frozenset({ACCOUNT})), able)
    assert on_tenants(of_account.on_tenants) == (scopes - LOGS, scopes - LOGS, NONE)
    assert on_accounts(of_account.on_accounts) == (scopes - LOGS, NONE)
    both = Principal(pat(*scopes, tenants=frozenset({FOREIGN}), has_wildcard=True), able)
    assert on_tenants(both.on_tenants) == (scopes - LOGS, scopes - LOGS, scopes)


def test_a_pat_has_no_more_than_its_owner_has_now() -> None:
    claimed = pat(tenants=frozenset(ACCOUNT_OF), accounts=frozenset({ACCOUNT, ELSEWHERE}))
    held = rights(memberships={HERE: "member"}, owned_accounts=frozenset({ELSEWHERE}))
    caller = Principal(claimed, held)
    assert on_tenants(caller.on_tenants) == (MEMBER, NONE, NONE)
    assert on_accounts(caller.on_accounts) == (NONE, ACCOUNT_OWNER)


def test_a_wildcard_pat_of_a_platform_admin_lists_every_tenant() -> None:
    caller = Principal(pat(role="admin", has_wildcard=True), rights("admin"))
    assert on_tenants(caller.on_tenants) == (EVERY - LOGS,) * 3
    assert on_tenants(caller.on_listed_tenants) == (EVERY - LOGS,) * 3
    assert on_accounts(caller.on_accounts) == (EVERY - LOGS,) * 2


@pytest.mark.parametrize(
    ("claimed", "role", "is_admin", "is_wide"),
    [
        (claims(role="admin"), "admin", True, False),
        (claims(role="user"), "admin", False, False),
        (claims(role="admin"), "user", False, False),
        (claims(role="admin", has_wildcard=True), "admin", True, False),
        (pat(role="admin"), "admin", False, False),
        (pat(role="admin", has_wildcard=True), "admin", True, True),
        (pat(role="admin", has_wildcard=True), "user", False, False),
        (pat(role="user", has_wildcard=True), "admin", False, False),
    ],
)
def test_a_platform_admin_is_one_by_token_and_database(
    claimed: Claims, role: str, is_admin: bool, is_wide: bool
) -> None:
    caller = Principal(claimed, rights(role))
    assert (caller.is_platform_admin, caller.is_platform_wide) == (is_admin, is_wide)


def test_a_token_is_authenticated_by_the_present_address_of_its_user() -> None:
    caller = Principal(claims(subject="then@example.org"), rights(email="now@example.org"))
    assert (caller.is_authenticated, caller.email) == (True, "now@example.org")


#: Tenants and accounts.
T1, T2, A1, A2 = (UUID(int=number) for number in range(1, 5))
READ, WRITE, USERS = (
    frozenset({scope}) for scope in (Scope.CONFIG_READ, Scope.CONFIG_WRITE, Scope.USERS_READ)
)
NOWHERE: Final = frozenset[Scope]()
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


def owner(role: str = "user") -> Rights:
    return rights(role, owned_accounts=frozenset({ACCOUNT}), memberships={HERE: "owner", SIBLING: "admin"})


OWNERS: Final = Principal(claims(), owner())
GUEST: Final = Principal(claims(), owner("guest"))
ADMIN: Final = Principal(claims(role="admin"), rights("admin"))


@pytest.mark.parametrize(
    ("caller", "account", "owns"),
    [(OWNERS, ACCOUNT, True), (OWNERS, ELSEWHERE, False), (GUEST, ACCOUNT, False), (ADMIN, ACCOUNT, True)],
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
    [(OWNERS, HERE, True), (OWNERS, SIBLING, False), (GUEST, HERE, False), (ADMIN, HERE, True)],
)
def test_owners_of_a_tenant_are_no_guests(caller: Principal, tenant: UUID, owns: bool) -> None:
    assert owns_tenant(caller, tenant) is owns
    if owns:
        require_tenant_owner(caller, tenant)
        return
    with pytest.raises(Forbidden, match=r"^Only an owner of the tenant or a platform admin may do this"):
        require_tenant_owner(caller, tenant)


def test_a_guest_reads_its_account_and_an_owner_writes_it() -> None:
    require_account_scope(OWNERS, account_id=ACCOUNT, scope=Scope.CONFIG_WRITE)
    require_account_scope(GUEST, account_id=ACCOUNT, scope=Scope.CONFIG_READ)
    for caller, account in ((GUEST, ACCOUNT), (OWNERS, ELSEWHERE)):
        with pytest.raises(Forbidden, match=r"^This needs 'config:write' on the account"):
            require_account_scope(caller, account_id=account, scope=Scope.CONFIG_WRITE)


def test_pat_accounts_limit_writes_not_ownership() -> None:
    caller = Principal(pat(accounts=frozenset({ELSEWHERE})), owner())
    assert owns_account(caller, ACCOUNT)
    with pytest.raises(Forbidden):
        require_account_scope(caller, account_id=ACCOUNT, scope=Scope.CONFIG_WRITE)
