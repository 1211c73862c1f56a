"""Rows and tokens that tests start from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from allauth.mfa.models import Authenticator

from accounts.access.assurance import Assurance
from accounts.access.credentials import create_pat, create_refresh_token, exchange_pat, mint_for_sign_in
from accounts.access.scopes import Scope
from accounts.models import Account, Membership, Tenant, TenantConfig, User
from accounts.tenants.lifecycle import create_tenant
from analytics.models import Recommendation
from rules.language import complete_rule


def make_user(email: str, *, role: str = "user", **fields: Any) -> User:
    return User.objects.create(email=email, role=role, **fields)


def make_account(name: str = "Acme", *, plan: str = "team", owners: Iterable[User] = ()) -> Account:
    account = Account.objects.create(name=name, plan=plan)
    account.owners.set(owners)
    return account


def make_tenant(account: Account, name: str = "Warehouse", **members: User) -> Tenant:
    """Make a tenant with both documents; ``owner=``, ``admin=``, ``member=`` give users their role in it."""
    made = create_tenant(account_id=account.pk, document={"tenantName": name}, actor="seed@example.org")
    tenant = Tenant.objects.get(pk=made.tenant_id)
    for role, user in members.items():
        Membership.objects.create(user=user, tenant=tenant, role=role)
    return tenant


def sign_in(user: User, *, proven_at: float | None = None, is_staff: bool = False) -> str:
    """Return the access token of a new session, as signing in mints it.

    ``is_staff`` makes it one of staff in the dashboard.

    ``proven_at`` is the time in epoch seconds at which a second factor was proven, if one was.
    """
    ways = {"link": time.time() - 3600}
    factor = None
    if proven_at is not None:
        ways["totp"] = proven_at
        factor = Authenticator.objects.get_or_create(user=user, type="totp", defaults={"data": {}})[0].pk
    assurance = Assurance(amr=ways, second_factor=factor)
    session, _ = create_refresh_token(user=user, assurance=assurance, is_staff=is_staff)
    return mint_for_sign_in(session).access_token


def pat_token(
    owner: User,
    *scopes: str,
    tenants: Sequence[str] = (),
    accounts: Sequence[str] = (),
    endpoints: Sequence[dict[str, Any]] = (),
) -> str:
    """Return an access token minted from a new PAT of ``owner``."""
    secret = pat_secret(owner, *scopes, tenants=tenants, accounts=accounts, endpoints=endpoints)
    return exchange_pat(secret).access_token


def pat_secret(
    owner: User,
    *scopes: str,
    tenants: Sequence[str] = (),
    accounts: Sequence[str] = (),
    endpoints: Sequence[dict[str, Any]] = (),
) -> str:
    """Return the text of a new PAT of ``owner``."""
    _, text = create_pat(
        owner=owner,
        name="test",
        scopes=[Scope(scope) for scope in scopes],
        tenants=tenants,
        accounts=accounts,
        endpoints=endpoints,
    )
    return text


@dataclass(frozen=True, slots=True)
class World:
    """The fixed people of every authorisation test and what they hold."""

    account: Account
    tenant: Tenant
    owner: User
    tenant_admin: User
    member: User
    stranger: User
    stranger_tenant: Tenant
    platform_admin: User


def make_world() -> World:
    owner = make_user("owner@example.org")
    tenant_admin = make_user("tenant-admin@example.org")
    member = make_user("member@example.org")
    stranger = make_user("stranger@example.org")
    account = make_account("Acme", owners=[owner])
    elsewhere = make_account("Elsewhere", owners=[stranger])
    return World(
        account=account,
        tenant=make_tenant(account, "Warehouse", owner=owner, admin=tenant_admin, member=member),
        owner=owner,
        tenant_admin=tenant_admin,
        member=member,
        stranger=stranger,
        stranger_tenant=make_tenant(elsewhere, "Other", owner=stranger),
        platform_admin=make_user("admin@example.org", role="admin"),
    )


def recommendation(tenant: Tenant, *, kind: str = "cache", **fields: Any) -> Recommendation:
    """Make an open recommendation to add a rule to a ruleset without rules."""
    rule = complete_rule({"id": "new", "conditions": {"isReadOnly": True}, "ttlSeconds": 60})
    counts = {
        **dict.fromkeys(
            (
                *("requests", "staleHits", "misses", "holds", "bypassed", "blocked", "passed", "errors"),
                *("invalidationErrors", "revalidations", "spentMs", "hitBytes", "fired", "markers"),
            ),
            0,
        ),
        "hits": {"low": 0, "likely": None, "high": 0},
        "savedMs": {"low": 0, "likely": None, "high": 0},
        "missReasons": {},
        "risk": {"low": 0, "high": 0},
    }
    names = ("hits", "savedMs", "misses", "spentMs", "hitBytes", "risk")
    gain = {name: counts[name] for name in names}
    defaults: dict[str, Any] = {
        "fingerprint": kind,
        "rank": 0,
        "title": "Cache everything",
        "why": ["It is asked again and again."],
        "rules": [rule],
        "patch": [{"op": "insert", "ruleId": "new", "before": None, "rule": rule}],
        "evidence": [{"name": "all", "sql": "SELECT 1 AS one", "rows": [{"one": 1}]}],
        "predicted": {"total": counts, "against": counts, "gain": gain},
        "estimate_ms": 1000,
        "seq": 0,
        "first_day": date(2026, 3, 1),
        "last_day": date(2026, 3, 14),
    }
    return Recommendation.objects.create(tenant_id=tenant.pk, kind=kind, **defaults | fields)


def set_prices(tenant: Tenant, *prices: dict[str, Any]) -> None:
    config = TenantConfig.objects.get(pk=tenant.pk)
    config.document = {
        **config.document,
        "warehouse": {**config.document.get("warehouse", {}), "pricing": list(prices)},
    }
    config.save()
