"""Data of Home: what needs attention. Each row links to the page that repairs it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, F, OuterRef

from accounts.models import Account, Domain, Membership, Revision, Tenant
from accounts.models.users import MembershipRole
from analytics.models import Build, TenantHealth
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

_ROWS: Final = 10
#: A smaller drop of the hit rate, or one over fewer requests, is noise.
_LEAST_DROP: Final = 0.02
_LEAST_REQUESTS: Final = 100
#: A log is late if its last day is before yesterday. If it ended long ago, the tenant has left.
_LATE_DAYS: Final = 1
_GONE_DAYS: Final = 60
_FAILED_FOR: Final = dt.timedelta(days=7)
_CHANGED_FOR: Final = dt.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Home:
    """The lists of Home, most urgent rows first, and the names of their tenants and accounts."""

    drops: Sequence[TenantHealth]
    late: Sequence[TenantHealth]
    stale: Sequence[TenantHealth]
    quarantined: Sequence[TenantHealth]
    failed: Sequence[Build]
    changes: Sequence[Revision]
    domains: Sequence[Domain]
    names: Mapping[UUID, str]

    @property
    def is_empty(self) -> bool:
        """True if no panel has rows."""
        return not (self.drops or self.late or self.stale or self.quarantined or self.failed or self.domains)


def read_home() -> Home:
    """Return the lists of Home, in a constant number of queries that use indexes."""
    at = now()
    today = at.date()
    # Logs and builds outlive their tenant.
    is_live = Exists(Tenant.objects.live().filter(pk=OuterRef("tenant_id")))
    health = TenantHealth.objects.filter(is_live)
    fallen = health.filter(drop__gte=_LEAST_DROP, requests_7__gte=_LEAST_REQUESTS)
    # The same condition as in the index.
    drops = list(fallen.order_by(F("drop").desc(nulls_last=True), "tenant_id")[:_ROWS])
    late = list(
        health.filter(
            last_day__lt=today - dt.timedelta(days=_LATE_DAYS),
            last_day__gte=today - dt.timedelta(days=_GONE_DAYS),
        ).order_by("-last_day", "tenant_id")[:_ROWS]
    )
    stale = list(health.filter(stale_days__gt=0).order_by("tenant_id")[:_ROWS])
    quarantined = list(health.filter(quarantined__gt=0).order_by("tenant_id")[:_ROWS])
    failures = Build.objects.unrepaired().filter(is_live, started_at__gte=at - _FAILED_FOR)
    failed = list(failures[:_ROWS])
    changes = list(
        Revision.objects.filter(changed_at__gte=at - _CHANGED_FOR)
        .defer("document")
        .order_by("-changed_at", "-pk")[:_ROWS]
    )
    domains = list(
        Domain.objects.filter(verified_at__isnull=True)
        .select_related("account")
        .order_by("-created_at")[:_ROWS]
    )
    rows: list[Any] = [*drops, *late, *stale, *quarantined, *failed, *changes]
    names = {
        **tenant_names(row.tenant_id for row in rows if row.tenant_id),
        **account_names(change.account_id for change in changes if not change.tenant_id),
    }
    return Home(drops, late, stale, quarantined, failed, changes, domains, names)


@dataclass(frozen=True, slots=True)
class WithoutOwner:
    """Live tenants and accounts without an owner."""

    tenants: Sequence[Tenant]
    accounts: Sequence[Account]


def find_without_owner() -> WithoutOwner:
    """Return tenants and accounts without an owner. Home loads them in a second request: a table scan."""
    owners = Membership.objects.filter(tenant=OuterRef("pk"), role=MembershipRole.OWNER)
    account_owners = Account.owners.through.objects.filter(account=OuterRef("pk"))
    return WithoutOwner(
        tenants=list(Tenant.objects.live().filter(~Exists(owners)).order_by("pk")[:_ROWS]),
        accounts=list(Account.objects.live().filter(~Exists(account_owners)).order_by("pk")[:_ROWS]),
    )


def tenant_names(ids: Iterable[UUID]) -> Mapping[UUID, str]:
    """Return the names of tenants by their ids, in one query."""
    return dict(Tenant.objects.filter(pk__in=set(ids)).values_list("pk", "name"))


def account_names(ids: Iterable[UUID]) -> Mapping[UUID, str]:
    """Return the names of accounts by their ids, in one query."""
    return dict(Account.objects.filter(pk__in=set(ids)).values_list("pk", "name"))
