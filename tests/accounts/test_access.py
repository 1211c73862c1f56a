"""What a caller may do, and where: the answer for one row and the filter for all.

Contract: Authentication.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pytest
from django.db import transaction
from django.db.models import Value
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from accounts.access.credentials import create_pat, exchange_pat
from accounts.access.rights import authenticate_token
from accounts.access.scopes import Scope
from accounts.models import Account, Membership, PermissionGrant, PersonalAccessToken, Tenant, User
from tenantadmin.lib.core.errors import InvalidToken
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.conftest import clear_principal_cache

if TYPE_CHECKING:
    from django.db.models import Model

    from accounts.access.principal import Access, Principal

pytestmark = pytest.mark.django_db

# The rule once more, by hand, from the table of the contract.
EVERY: Final = frozenset(map(str, Scope))
LOGS: Final = frozenset({"logs:read", "logs:query"})
PAT_ONLY: Final = frozenset(
    {"cache-admin", "analytics:numbers", "analytics:read", "analytics:users", "tos:publish"}
)
MEMBER: Final = frozenset({"config:read", "logs:read", "logs:query", "analytics:numbers", "analytics:read"})
READS: Final = MEMBER | {"users:read"}
TENANT_ADMIN: Final = MEMBER | {
    *("config:write", "cache-admin", "logs:notify", "analytics:users", "users:read")
}
MEMBERSHIPS: Final = {"member": MEMBER, "admin": TENANT_ADMIN, "owner": TENANT_ADMIN | {"users:write"}}
OWNER: Final = frozenset({"config:read", "config:write"})
GRANTABLE: Final = EVERY - {"logs:read", "logs:query"}
NONE: Final = frozenset[str]()

#: The account of each tenant of the small world, and the tenant of it that is deleted.
ACCOUNT_OF: Final = (0, 0, 0, 1)
DELETED: Final = 2
#: When a grant or PAT ends, from now.
ENDS: Final = {"never": None, "later": dt.timedelta(hours=1), "expired": dt.timedelta(0), "revoked": None}


def whole(scopes: frozenset[str]) -> frozenset[str]:
    """Return scopes with the one that another gives too."""
    return scopes | {"analytics:numbers"} if "analytics:read" in scopes else scopes


@dataclass(frozen=True)
class Grant:
    resource: str
    number: int
    permissions: frozenset[str]
    ends: str = "never"

    @property
    def is_in_force(self) -> bool:
        return self.ends in {"never", "later"}


@dataclass(frozen=True)
class Person:
    """A user's rows; tenants and accounts by their number."""

    role: str = "user"
    memberships: Mapping[int, str] = field(default_factory=dict)
    owned: frozenset[int] = frozenset()
    grants: tuple[Grant, ...] = ()
    active: bool = True

    def limit(self, scopes: frozenset[str]) -> frozenset[str]:
        return scopes & READS if self.role == "guest" else scopes

    def granted(self, *, tenant: int | None = None, account: int) -> list[frozenset[str]]:
        on = {("tenant", tenant), ("account", account)}
        return [
            whole(g.permissions & GRANTABLE)
            for g in self.grants
            if g.is_in_force and (g.resource, g.number) in on
        ]


@dataclass(frozen=True)
class Pat:
    scopes: frozenset[str]
    tenants: frozenset[int] = frozenset()
    accounts: frozenset[int] = frozenset()
    wildcard: str = ""
    ends: str = "never"


@dataclass(frozen=True)
class Case:
    """A user when its token was minted and now, and the PAT behind the token; None signed in."""

    then: Person
    now: Person
    pat: Pat | None = None

    @property
    def is_gone(self) -> bool:
        if self.pat is None:
            return not self.now.active
        demoted = bool(self.pat.wildcard) and self.now.role != "admin"
        return not self.now.active or demoted or self.pat.ends in {"expired", "revoked"}

    def on_tenant(self, tenant: int, *, listed: bool = False) -> frozenset[str]:
        """Return the scopes that the contract gives."""
        account, pat, by_role = ACCOUNT_OF[tenant], self.pat, self._by_role
        if pat is None:
            claimed = EVERY - PAT_ONLY
            by_role = NONE if listed else by_role
        elif tenant in pat.tenants and pat.wildcard != "tenants":
            claimed = whole(pat.scopes)
        else:
            claimed = whole(pat.scopes) - LOGS if pat.wildcard or account in pat.accounts else NONE
        brought = self.now.limit(MEMBERSHIPS.get(self.now.memberships.get(tenant, ""), NONE))
        return claimed & by_role.union(brought, *self.now.granted(tenant=tenant, account=account))

    def on_account(self, account: int) -> frozenset[str]:
        pat, claimed = self.pat, EVERY
        if pat is not None:
            claimed = whole(pat.scopes) - LOGS if pat.wildcard or account in pat.accounts else NONE
        brought = self.now.limit(OWNER) if account in self.now.owned else NONE
        return claimed & self._by_role.union(brought, *self.now.granted(account=account))

    @property
    def _by_role(self) -> frozenset[str]:
        """A promotion needs a new sign-in token."""
        is_admin = self.now.role == "admin" and (self.pat is not None or self.then.role == "admin")
        return EVERY - LOGS if is_admin else NONE


@dataclass(frozen=True)
class Places:
    accounts: list[UUID]
    tenants: list[UUID]


@pytest.fixture
def places(db: None) -> Places:
    """Two accounts; three tenants in the first, one of them deleted, and one in the second."""
    accounts = [factories.make_account(name) for name in ("Acme", "Elsewhere")]
    tenants = [
        Tenant.objects.create(
            account=accounts[account],
            name=f"T{number}",
            name_key=f"t{number}",
            deleted_at=now() if number == DELETED else None,
        )
        for number, account in enumerate(ACCOUNT_OF)
    ]
    return Places([account.pk for account in accounts], [tenant.pk for tenant in tenants])


def write_person(user: User, person: Person, places: Places) -> None:
    """Give ``user`` the role, memberships, accounts and grants of ``person``."""
    User.objects.filter(pk=user.pk).update(role=person.role, is_active=person.active)
    user.refresh_from_db()
    Membership.objects.filter(user=user).delete()
    Membership.objects.bulk_create(
        Membership(user=user, tenant_id=places.tenants[tenant], role=role)
        for tenant, role in person.memberships.items()
    )
    user.owned_accounts.set(Account.objects.filter(pk__in=[places.accounts[key] for key in person.owned]))
    PermissionGrant.objects.filter(grantee=user).delete()
    ids = {"tenant": places.tenants, "account": places.accounts}
    PermissionGrant.objects.bulk_create(
        PermissionGrant(
            grantee=user,
            resource=grant.resource,
            resource_id=ids[grant.resource][grant.number],
            permissions=sorted(grant.permissions),
            **ended(grant.ends),
        )
        for grant in person.grants
    )


def ended(ends: str) -> dict[str, Any]:
    left = ENDS[ends]
    return {
        "expires_at": None if left is None else now() + left,
        "revoked_at": now() if ends == "revoked" else None,
    }


def mint(user: User, pat: Pat | None, places: Places) -> str:
    if pat is None:
        return factories.sign_in(user)
    named: dict[str, Any] = {
        "tenants": [str(places.tenants[number]) for number in pat.tenants],
        "accounts": [str(places.accounts[number]) for number in pat.accounts],
    }
    if pat.wildcard:
        named[pat.wildcard] = ["*"]
    row, text = create_pat(owner=user, name="x", scopes=map(Scope, pat.scopes), **named)
    token = exchange_pat(text).access_token
    ends = ended(pat.ends)
    ends["expires_at"] = ends["expires_at"] or row.expires_at
    PersonalAccessToken.objects.filter(pk=row.pk).update(**ends)
    return token


def caller(case: Case, places: Places) -> Principal:
    """Mint the token, change the user, and return the principal of the token."""
    user = factories.make_user("caller@example.org")
    write_person(user, case.then, places)
    token = mint(user, case.pat, places)
    write_person(user, case.now, places)
    clear_principal_cache()
    return authenticate_token(token)


def held(
    access: Access,
    model: type[Model],
    ids: list[UUID],
    scopes_on: Callable[[int], frozenset[Scope]],
    **fields: str,
) -> dict[int, frozenset[Scope]]:
    """Return the scopes on each row, by its number, and assert that the filter finds the same rows."""
    one_by_one = {number: scopes_on(number) for number in range(len(ids))}
    rows = model._default_manager.filter(pk__in=ids)
    found = [
        rows.filter(access.as_q(scope, **fields)).values_list("pk", Value(scope.value)) for scope in Scope
    ]
    listed = {number: frozenset[str]() for number in one_by_one}
    for pk, scope in found[0].union(*found[1:]):
        listed[ids.index(pk)] |= {scope}
    assert listed == one_by_one
    for scopes in one_by_one.values():
        assert access.everywhere <= scopes
    return one_by_one


def on_tenants(access: Access, places: Places) -> dict[int, frozenset[Scope]]:
    def scopes_on(number: int) -> frozenset[Scope]:
        account_id = places.accounts[ACCOUNT_OF[number]]
        scopes = access.scopes_on(tenant_id=places.tenants[number], account_id=account_id)
        if not access.needs_account:
            assert scopes == access.scopes_on(tenant_id=places.tenants[number], account_id=None)
        return scopes

    return held(access, Tenant, places.tenants, scopes_on, tenant="pk", account="account_id")


def on_accounts(access: Access, places: Places) -> dict[int, frozenset[Scope]]:
    def scopes_on(number: int) -> frozenset[Scope]:
        return access.scopes_on(account_id=places.accounts[number])

    return held(access, Account, places.accounts, scopes_on, account="pk")


scopes = st.frozensets(st.sampled_from(sorted(EVERY)), min_size=1)
tenants = st.sampled_from(range(len(ACCOUNT_OF)))
accounts = st.sampled_from(sorted(set(ACCOUNT_OF)))
ends = st.sampled_from(["never", "never", "later", "expired", "revoked"])
grants = st.one_of(
    st.builds(Grant, st.just("tenant"), tenants, scopes, ends),
    st.builds(Grant, st.just("account"), accounts, scopes, ends),
)
people = st.builds(
    Person,
    role=st.sampled_from(["admin", "user", "guest"]),
    memberships=st.dictionaries(tenants, st.sampled_from(sorted(MEMBERSHIPS))),
    owned=st.frozensets(accounts),
    grants=st.lists(grants, max_size=4).map(tuple),
    active=st.sampled_from([True, True, True, False]),
)
pats = st.builds(
    Pat,
    scopes=scopes | st.just(EVERY),
    tenants=st.frozensets(tenants),
    accounts=st.frozensets(accounts),
    wildcard=st.sampled_from(["", "", "tenants", "accounts"]),
    ends=ends,
)


@st.composite
def cases(draw: Any) -> Case:
    pat = draw(st.none() | pats)
    then = replace(draw(people), active=True)
    if pat is not None and pat.wildcard:
        then = replace(then, role="admin")  # only admins have one
    later = draw(people)
    changed = draw(st.sets(st.sampled_from(["role", "memberships", "owned", "grants", "active"])))
    return Case(then, replace(then, **{name: getattr(later, name) for name in changed}), pat)


#: Two on one tenant, two on one account, of which one has ended.
GRANTS: Final = (
    Grant("tenant", 0, frozenset({"config:read"})),
    Grant("tenant", 0, frozenset({"users:read"})),
    Grant("account", 1, frozenset({"config:write"}), "later"),
    Grant("account", 1, frozenset({"config:read"}), "expired"),
)
FOUNDER: Final = Person(memberships={0: "owner", 2: "owner", 3: "admin"}, owned=frozenset({0}))


@pytest.mark.slow
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases())
@example(Case(FOUNDER, replace(FOUNDER, role="guest")))
@example(Case(FOUNDER, replace(FOUNDER, role="guest"), Pat(EVERY, accounts=frozenset({0}))))
@example(Case(FOUNDER, replace(FOUNDER, role="admin")))
@example(Case(replace(FOUNDER, role="admin"), FOUNDER))
@example(Case(replace(FOUNDER, role="admin"), replace(FOUNDER, role="admin")))
@example(Case(replace(FOUNDER, role="admin"), Person(role="admin"), Pat(EVERY, wildcard="tenants")))
@example(Case(FOUNDER, FOUNDER, Pat(EVERY, tenants=frozenset({0, 1}), ends="expired")))
@example(Case(replace(FOUNDER, role="admin"), FOUNDER, Pat(EVERY, wildcard="accounts")))
@example(Case(Person(), Person(grants=GRANTS)))
@example(Case(Person(grants=GRANTS), Person(grants=GRANTS)))
@example(Case(Person(grants=GRANTS), Person(grants=GRANTS), Pat(EVERY, tenants=frozenset({0, 3}))))
def test_the_list_and_the_answer_for_one_row_agree_with_the_contract(places: Places, case: Case) -> None:
    with transaction.atomic():
        if case.is_gone:
            with pytest.raises(InvalidToken):
                caller(case, places)
        else:
            principal = caller(case, places)
            numbers = range(len(ACCOUNT_OF))
            assert on_tenants(principal.on_tenants, places) == {
                number: case.on_tenant(number) for number in numbers
            }
            assert on_tenants(principal.on_listed_tenants, places) == {
                number: case.on_tenant(number, listed=True) for number in numbers
            }
            assert on_accounts(principal.on_accounts, places) == {
                number: case.on_account(number) for number in range(len(places.accounts))
            }
        transaction.set_rollback(True)
