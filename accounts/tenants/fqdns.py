"""Claim, release and look up the host names of tenants. Contract: FQDN lifecycle.

Each name is one row: claimed while ``released_at`` is null, then a tombstone for `TOMBSTONE_LIFETIME`, then
free. One SQL statement claims a name, so the database decides which of two concurrent claims wins.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import Count, Q
from msgspec import Meta

from accounts.access.scopes import Scope
from accounts.limits import limits_of, require_within
from accounts.models import Domain, Fqdn, Tenant
from accounts.tenants.errors import FqdnConflict, FqdnNotFound
from tenantadmin.lib.core.errors import Detail, ValidationFailed
from tenantadmin.lib.core.hosts import lies_in
from tenantadmin.lib.core.structs import JsonStruct
from tenantadmin.lib.core.timestamps import Timestamp, format_timestamp, now

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from accounts.access.principal import Principal


#: How many names a tenant may hold for each FQDN of its plan, released ones that are not yet free included.
HELD_PER_FQDN: Final = 3
#: The first key of the advisory locks on host names.
_LOCKS: Final = 0x46514E

# Locks are taken in a fixed order, so that two tenants that swap names do not deadlock.
_LOCK: Final = """
    SELECT pg_advisory_xact_lock(%s, key)
    FROM (SELECT DISTINCT hashtext(name) AS key FROM unnest(%s::text[]) AS name ORDER BY key) AS keys
"""
_CLAIM: Final = """
    INSERT INTO accounts_fqdn (name, tenant_id, claimed_at)
    SELECT name, %(tenant)s, %(at)s FROM unnest(%(names)s::text[]) AS name ORDER BY name
    ON CONFLICT (name) DO UPDATE
    SET tenant_id = excluded.tenant_id, claimed_at = excluded.claimed_at, released_at = NULL
    WHERE accounts_fqdn.released_at IS NOT NULL
        AND (accounts_fqdn.tenant_id = excluded.tenant_id OR accounts_fqdn.released_at <= %(free)s)
    RETURNING name
"""


@dataclass(frozen=True, slots=True)
class FqdnChange:
    """The names that a write of a configuration claims and releases."""

    claimed: frozenset[str]
    released: frozenset[str]

    @classmethod
    def between(cls, before: Collection[str], after: Collection[str]) -> FqdnChange:
        old, new = frozenset(before), frozenset(after)
        return cls(claimed=new - old, released=old - new)


def require_domains(names: Sequence[str], *, account_id: UUID, wanted: Collection[str]) -> None:
    """Refuse names of ``wanted`` outside the account's verified domains and the platform's domains.

    ``names`` is the list in the request; the errors give the index of each name. Call it in the transaction
    of the write: it locks the domains, so that they cannot be deleted before the transaction ends.

    Raises:
        ValidationFailed: with ``fqdn-outside-domains`` or ``fqdn-not-ascii`` for each refused name.
    """
    if not wanted:
        return
    domains = list(
        Domain.objects.select_for_update(no_key=True)
        .filter(account_id=account_id, verified_at__isnull=False)
        .order_by("pk")
        .values_list("name", flat=True)
    )
    details = [
        Detail(f"/fqdns/{index}", code, message)
        for index, name in enumerate(names)
        if name in wanted
        for code, message in domain_findings(name, domains)
    ]
    if details:
        raise ValidationFailed("An FQDN may not be assigned to this tenant.", details=details)


def domain_findings(name: str, domains: Sequence[str]) -> list[tuple[str, str]]:
    """Return why an account with these verified domains may not use a name: code and message, at most one."""
    if any(lies_in(name, domain) for domain in domains):
        return []
    shared = next(
        (domain for domain in settings.PLATFORM_DOMAINS if lies_in(name, domain) and name != domain), None
    )
    if shared is None:
        message = (
            f"'{name}' is in no verified domain of the account. Verify its domain first, or choose a name "
            f"under {' or '.join(settings.PLATFORM_DOMAINS)}."
        )
        return [("fqdn-outside-domains", message)]
    if "xn--" in name.removesuffix(shared):
        # All accounts share the platform's domain, so a look-alike could imitate another account's name.
        return [
            (
                "fqdn-not-ascii",
                f"'{name}': names under '{shared}' may contain only ASCII letters, digits and hyphens.",
            )
        ]
    return []


def apply_fqdns(change: FqdnChange, *, tenant_id: UUID, names: Sequence[str], at: dt.datetime) -> None:
    """Claim and release names for a tenant. Call it in the transaction of the write.

    Raises:
        FqdnConflict: another tenant holds a name, or released it less than `TOMBSTONE_LIFETIME` ago.
    """
    if not change.claimed and not change.released:
        return
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [_LOCKS, sorted(change.claimed | change.released)])
        if change.released:
            release_fqdns(tenant_id=tenant_id, names=change.released, at=at)
        if not change.claimed:
            return
        cursor.execute(
            _CLAIM,
            {
                "tenant": tenant_id,
                "at": at,
                "names": sorted(change.claimed),
                "free": at - settings.TOMBSTONE_LIFETIME,
            },
        )
        won = {row[0] for row in cursor.fetchall()}
    lost = change.claimed - won
    if lost:
        raise FqdnConflict(
            details=[
                Detail(f"/fqdns/{index}", "fqdn-conflict", f"'{name}' is held for another tenant.")
                for index, name in enumerate(names)
                if name in lost
            ]
        )


def require_few_held(*, tenant_id: UUID, account_id: UUID, plan: str, at: dt.datetime) -> None:
    """Refuse a claim after which too many names are held: claimed, or released and not yet free.

    Otherwise, one account could claim and release all good names of a platform domain. A tenant holds at most
    `HELD_PER_FQDN` times the FQDNs of its plan, an account that for each tenant of its plan. Call it after
    `apply_fqdns` in the same transaction.

    Raises:
        PlanLimitExceeded: more are held.
    """
    limits = limits_of(plan)
    if limits.fqdns is None:
        return
    held = Fqdn.objects.filter(
        Q(released_at=None) | Q(released_at__gt=at - settings.TOMBSTONE_LIFETIME),
        tenant_id__in=Tenant.objects.filter(account=account_id).values("pk"),
    ).aggregate(of_account=Count("pk"), of_tenant=Count("pk", filter=Q(tenant_id=tenant_id)))
    allowed = HELD_PER_FQDN * limits.fqdns
    days, path = settings.TOMBSTONE_LIFETIME.days, "/fqdns"
    what = f"FQDNs per tenant that are claimed or were released in the last {days} days"
    require_within(allowed, count=held["of_tenant"], what=what, plan=plan, path=path)
    if limits.tenants is not None:
        what = what.replace("tenant", "account")
        require_within(allowed * limits.tenants, count=held["of_account"], what=what, plan=plan, path=path)


def release_fqdns(*, tenant_id: UUID, names: Collection[str] | None, at: dt.datetime) -> int:
    """Turn a tenant's claims into tombstones, all of them if ``names`` is None; return how many."""
    claims = Fqdn.objects.filter(tenant_id=tenant_id, released_at__isnull=True)
    if names is not None:
        claims = claims.filter(name__in=names)
    return claims.update(released_at=at)


FqdnState: TypeAlias = Literal["claimed", "tombstoned"]


class FqdnDocument(JsonStruct):
    """The tenant that a host name belongs to."""

    fqdn: str
    tenant_id: UUID
    state: FqdnState
    until: Annotated[Timestamp | None, Meta(description="When a tombstone frees the name.")] = None


def fqdn_document(fqdn: Fqdn) -> FqdnDocument:
    """Return the contract's Fqdn."""
    freed_at = None if fqdn.released_at is None else fqdn.released_at + settings.TOMBSTONE_LIFETIME
    return FqdnDocument(
        fqdn=fqdn.name,
        tenant_id=fqdn.tenant_id,
        state="claimed" if freed_at is None else "tombstoned",
        until=None if freed_at is None else format_timestamp(freed_at),
    )


def list_fqdns(principal: Principal, *, tenant_id: UUID | None) -> Iterator[str]:
    """Yield the host names of the tenants of the caller's accounts, sorted, in bounded memory."""
    held = _held_fqdns(principal)
    if tenant_id is not None:
        held = held.filter(tenant_id=tenant_id)
    return held.order_by("name").values_list("name", flat=True).iterator(chunk_size=2000)


def read_fqdn(principal: Principal, name: str) -> Fqdn:
    """Return the row of a host name that a tenant holds.

    Raises:
        FqdnNotFound: no tenant holds it, or the caller may not read the tenant's account.
    """
    fqdn = _held_fqdns(principal).filter(name=name).first()
    if fqdn is None:
        raise FqdnNotFound
    return fqdn


def remove_old_fqdns() -> int:
    """Remove the tombstones of host names that are free again; return how many."""
    removed, _ = Fqdn.objects.filter(released_at__lte=now() - settings.TOMBSTONE_LIFETIME).delete()
    return removed


def _held_fqdns(principal: Principal) -> QuerySet[Fqdn]:
    is_held = Q(released_at__isnull=True) | Q(released_at__gt=now() - settings.TOMBSTONE_LIFETIME)
    held = Fqdn.objects.filter(is_held)
    if Scope.CONFIG_READ in principal.on_accounts.everywhere:
        return held
    of_accounts = principal.on_accounts.as_q(Scope.CONFIG_READ, account="account_id")
    return held.filter(tenant_id__in=Tenant.objects.filter(of_accounts).values("pk"))
