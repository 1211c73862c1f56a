"""Everybody who may ask: one bearer token per kind of caller, on the same small world."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from accounts.access.credentials import create_pat, create_refresh_token, exchange_pat
from accounts.access.scopes import ALL_SCOPES, Scope
from accounts.access.tokens import AccessToken, mint_access_token
from accounts.models import Membership, PermissionGrant, PersonalAccessToken, User
from tenantadmin.lib.core.timestamps import now
from tests import factories

if TYPE_CHECKING:
    from accounts.models import Account, Tenant

#: Whom requests are about where they are not about the caller.
TARGET = "target@example.org"
#: Refused everywhere but at public operations, with 401.
GONE = frozenset({"anonymous", "expired", "revoked", "deactivated", "deleted", "demoted wildcard"})


@dataclass(frozen=True, slots=True)
class Caller:
    """A bearer token, none for anonymous, and whose it is."""

    email: str
    token: str | None


@dataclass(frozen=True, slots=True)
class Stage:
    """What the requests name."""

    account: Account
    tenant: Tenant
    callers: dict[str, Caller]


def set_stage() -> Stage:
    """Make the world and everybody's tokens."""
    people = {
        name: factories.make_user(f"{name.replace(' ', '-')}@example.org", role=role)
        for name, role in (
            ("guest", "guest"),
            ("user", "user"),
            ("member", "user"),
            ("tenant admin", "user"),
            ("owner", "user"),
            ("guest owner", "guest"),
            ("platform admin", "admin"),
            ("grant", "user"),
            ("expired grant", "user"),
            ("revoked grant", "user"),
            ("auditor", "user"),
        )
    }
    account = factories.make_account("Acme", owners=[people["owner"], people["guest owner"]])
    tenant = factories.make_tenant(account, "Warehouse")
    roles = {"member": "member", "tenant admin": "admin", "owner": "owner", "guest owner": "owner"}
    for name, role in roles.items():
        Membership.objects.create(user=people[name], tenant=tenant, role=role)
    target = factories.make_user(TARGET)
    Membership.objects.create(user=target, tenant=tenant, role="member")
    for name, ended in (
        ("grant", {}),
        ("expired grant", {"expires_at": now()}),
        ("revoked grant", {"revoked_at": now()}),
    ):
        PermissionGrant.objects.create(
            grantee=people[name],
            resource="tenant",
            resource_id=tenant.pk,
            permissions=["config:read", "config:write", "logs:read", "users:read"],
            **ended,
        )
    auditing = ["analytics:numbers", "config:read"]
    PermissionGrant.objects.create(
        grantee=people["auditor"], resource="tenant", resource_id=tenant.pk, permissions=auditing
    )
    callers = {name: Caller(user.email, factories.sign_in(user)) for name, user in people.items()}
    token = factories.pat_token(people["auditor"], *auditing, tenants=[str(tenant.pk)])
    callers["PAT of an auditor"] = Caller(people["auditor"].email, token)
    callers |= _staff_callers(tenant) | _token_callers(account, tenant) | _gone_callers()
    return Stage(account, tenant, callers)


def _staff_callers(tenant: Tenant) -> dict[str, Caller]:
    """Sessions of staff in the dashboard, with access to the tenant's log for an hour and without."""
    callers = {}
    for name, role, has_access in (
        ("staff", "admin", False),
        ("staff with access", "admin", True),
        ("support", "user", False),
        ("support with access", "user", True),
    ):
        email = f"dashboard-{name.replace(' ', '-')}@example.org"
        user = factories.make_user(email, role=role, is_support=role == "user")
        if has_access:
            ends_at = now() + dt.timedelta(hours=1)
            Membership.objects.create(user=user, tenant=tenant, role="member", ends_at=ends_at)
        callers[name] = Caller(email, factories.sign_in(user, is_staff=True))
    return callers


def _token_callers(account: Account, tenant: Tenant) -> dict[str, Caller]:
    """PATs of a user with every right, so that only the token's scopes limit the caller."""
    able = factories.make_user("able@example.org", role="admin")
    Membership.objects.create(user=able, tenant=tenant, role="owner")
    account.owners.add(able)
    elsewhere = factories.make_tenant(factories.make_account("Elsewhere"), "Other", owner=able)
    here = [str(tenant.pk)]

    def pat(*scopes: str, **options: Any) -> Caller:
        return Caller(able.email, factories.pat_token(able, *scopes, **options))

    callers = {f"PAT {scope}": pat(scope, tenants=here) for scope in sorted(Scope)}
    callers["PAT of an analyst"] = pat("analytics:read", "config:read", "logs:query", tenants=here)
    callers["account PAT"] = pat(*ALL_SCOPES, accounts=[str(account.pk)])
    callers["PAT of another tenant"] = pat(*ALL_SCOPES, tenants=[str(elsewhere.pk)])
    callers["wildcard PAT"] = pat(*ALL_SCOPES, tenants=["*"])
    callers["wildcard account PAT"] = pat(*ALL_SCOPES, accounts=["*"])
    callers["bound PAT"] = pat(*ALL_SCOPES, tenants=["*"], endpoints=[{"methods": ["GET"], "path": "/no/*"}])
    callers["bridge"] = Caller(
        able.email,
        mint_access_token(
            subject=able.email,
            epoch=able.epoch,
            session=create_refresh_token(user=able)[0].pk,
            role="admin",
            scopes=ALL_SCOPES,
            tenants=here,
            accounts=[str(account.pk)],
            tos_required=True,
        ),
    )
    return callers


def _gone_callers() -> dict[str, Caller]:
    callers = {"anonymous": Caller("unknown@example.org", None)}
    fresh: Any = factories.sign_in(factories.make_user("expired@example.org", role="admin"))
    expired = AccessToken(fresh)
    expired.set_exp(lifetime=-dt.timedelta(seconds=5))
    callers["expired"] = Caller("expired@example.org", str(expired))
    revoker = factories.make_user("revoked@example.org", role="admin")
    pat, text = create_pat(owner=revoker, name="x", scopes=ALL_SCOPES, tenants=["*"])
    callers["revoked"] = Caller(revoker.email, exchange_pat(text).access_token)
    PersonalAccessToken.objects.filter(pk=pat.pk).update(revoked_at=now())
    for name in ("deactivated", "deleted"):
        user = factories.make_user(f"{name}@example.org", role="admin")
        callers[name] = Caller(user.email, factories.sign_in(user))
    User.objects.filter(email="deactivated@example.org").update(is_active=False)
    User.objects.filter(email="deleted@example.org").delete()
    demoted = factories.make_user("demoted@example.org", role="admin")
    callers["demoted wildcard"] = Caller(
        demoted.email, factories.pat_token(demoted, *ALL_SCOPES, tenants=["*"])
    )
    User.objects.filter(pk=demoted.pk).update(role="user")
    return callers
