"""What a caller may do, from the claims of its token and its rights alone. Contract: Authentication.

tests/accounts/test_access.py compares many more callers, with rows in the database.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from accounts.access.principal import Claims, Principal
from accounts.access.reach import Reach
from accounts.access.scopes import Scope
from tests.accounts.callers import ACCOUNT, ACCOUNT_OF, ELSEWHERE, FOREIGN, HERE, SIBLING, claims, pat, rights

if TYPE_CHECKING:
    from accounts.access.reach import Access


def of(*names: str) -> frozenset[Scope]:
    """Return the scopes of these names."""
    return frozenset(map(Scope, names))


EVERY: Final = frozenset(Scope)
LOGS: Final = of("logs:read", "logs:query")
PAT_ONLY: Final = of("cache-admin", "analytics:read", "analytics:users", "tos:publish")
MEMBER: Final = of("config:read", "logs:read", "logs:query", "analytics:read")
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
