"""Data of an account's page: use and limits of its plan, domains, tenants, changes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Count, F, Func, IntegerField, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse

from accounts.admin.telling import group_requests, rank_event, tell_changes, tell_event
from accounts.billing.domains import challenge_of
from accounts.models import Account, Domain, Event, Fqdn, Revision, Tenant
from accounts.models.billing import Plan
from accounts.models.events import EventKind
from accounts.models.history import RevisionKind, beside
from accounts.tenants.plans import limits_of
from tenantadmin.lib.core import formats

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from accounts.billing.dns import DomainChallenge
    from accounts.tenants.plans import PlanLimits

#: Number of tenants that the page lists.
_TENANTS: Final = 50
#: In an account with more tenants, the page does not search for the tenants that use the most.
_MANY: Final = 500
_CHANGES: Final = 10
#: The records of one request are at most this far apart.
_NEAR: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Usage:
    """Number of resources in use, and the limit of the plan (None: no limit)."""

    count: int
    limit: int | None

    @property
    def is_full(self) -> bool:
        """True if the limit is reached."""
        return self.limit is not None and self.count >= self.limit

    @property
    def is_over(self) -> bool:
        """True if the limit is exceeded, after a change of plan."""
        return self.limit is not None and self.count > self.limit


@dataclass(frozen=True, slots=True)
class TenantUse:
    """A live tenant with its FQDNs and rules."""

    tenant: Tenant
    fqdns: Usage
    rules: Usage


@dataclass(frozen=True, slots=True)
class AccountDomain:
    """A domain, with the DNS record that proves control of it."""

    domain: Domain
    challenge: DomainChallenge
    #: Name of another account for which the domain is verified.
    taken_by: str = ""


@dataclass(frozen=True, slots=True)
class AccountChange:
    """What was done to an account: by whom, what, its details, and why."""

    at: dt.datetime
    user: str
    what: str
    detail: str
    reason: str
    #: The revision that it made, or the event.
    record: Revision | Event

    @property
    def href(self) -> str:
        kind = "revision" if isinstance(self.record, Revision) else "event"
        return reverse(f"admin:accounts_{kind}_change", args=[self.record.pk])


@dataclass(frozen=True, slots=True)
class AccountView:
    """Data of an account's page."""

    owners: Sequence[str]
    tenants: Usage
    #: The tenants that use the most; in an account with many tenants, the first by name.
    tenant_uses: Sequence[TenantUse]
    has_many: bool
    domains: Sequence[AccountDomain]
    changes: Sequence[AccountChange]

    @property
    def most_fqdns(self) -> TenantUse | None:
        """The tenant with the most FQDNs; None if it was not looked for."""
        return None if self.has_many else max(self.tenant_uses, key=lambda it: it.fqdns.count, default=None)

    @property
    def most_rules(self) -> TenantUse | None:
        """The tenant with the most rules; None if it was not looked for."""
        return None if self.has_many else max(self.tenant_uses, key=lambda it: it.rules.count, default=None)


def read_account_view(account: Account) -> AccountView:
    """Return the data of an account's page, in a constant number of queries."""
    limits = limits_of(account.plan)
    live = Tenant.objects.live().filter(account=account)
    count = live.count()
    shown = _heaviest(live) if count <= _MANY else _with_use(live).order_by("name", "pk")[:_TENANTS]
    domains = list(account.domains.order_by("name"))
    names = [domain.name for domain in domains]
    taken = dict(
        Domain.objects.filter(name__in=names, verified_at__isnull=False)
        .exclude(account=account)
        .values_list("name", "account__name")
    )
    return AccountView(
        owners=list(account.owners.order_by("email").values_list("email", flat=True)),
        tenants=Usage(count, limits.tenants),
        tenant_uses=[_use_of(tenant, limits) for tenant in shown],
        has_many=count > _MANY,
        domains=[
            AccountDomain(domain, challenge_of(domain), taken.get(domain.name, "")) for domain in domains
        ],
        changes=_read_changes(account.pk),
    )


def _read_changes(account_id: UUID) -> list[AccountChange]:
    """Return the newest acts on the account itself in the words of the audit: one for each request."""
    revisions = Revision.objects.filter(kind=RevisionKind.ACCOUNT, account_id=account_id)
    written = list(revisions.defer("document").order_by("-changed_at", "-pk")[:_CHANGES])
    # Offboarding is an act on a person, and changes accounts. The moments keep the search in an index.
    of_account = Q(account_id=account_id, tenant_id=None)
    around = Q(pk=None)
    for it in written:
        around |= Q(at__range=(it.changed_at - _NEAR, it.changed_at + _NEAR), request_id=it.request_id)
    acted = Event.objects.filter(around, kind=EventKind.STAFF_ACTED).order_by("-at", "-pk")[:_CHANGES]
    events = [*acted, *Event.objects.filter(of_account).order_by("-at", "-pk")[:_CHANGES]]
    found = [
        AccountChange(it.changed_at, it.user, it.done, it.text, it.summary.get("comment", ""), it)
        for it in written
    ]
    for event in events:
        told = (tell_event(event)[0], tell_changes(event, {}), event.reason)
        found.append(AccountChange(event.at, event.actor, *told, event))
    changes = []
    for group in group_requests(found, lambda it: (it.record.request_id,)):
        # An act of staff says what was done and why, and the revision what changed.
        act = min(group, key=_rank)
        revision = next((it for it in group if isinstance(it.record, Revision)), act)
        changes.append(replace(act, detail=beside(act.what, revision.detail), record=revision.record))
    return sorted(changes, key=lambda it: it.at, reverse=True)[:_CHANGES]


def _rank(change: AccountChange) -> int:
    return rank_event(change.record) if isinstance(change.record, Event) else 4


def _heaviest(live: QuerySet[Tenant]) -> QuerySet[Any]:
    """Return the tenants with the most FQDNs and rules."""
    return _with_use(live).order_by("-fqdn_count", "-rule_count", "name", "pk")[:_TENANTS]


def _with_use(live: QuerySet[Tenant]) -> QuerySet[Any]:
    """Add ``fqdn_count`` and ``rule_count`` to a query of tenants."""
    claimed = Fqdn.objects.filter(tenant_id=OuterRef("pk"), released_at__isnull=True).order_by()
    counted = claimed.values("tenant_id").annotate(number=Count("pk")).values("number")
    rules: Any = Func(F("ruleset__rules"), function="jsonb_array_length", output_field=IntegerField())
    return live.annotate(fqdn_count=Coalesce(Subquery(counted), 0), rule_count=Coalesce(rules, 0))


def read_use(tenant: Tenant) -> TenantUse:
    """Return the FQDNs and rules of a tenant, beside the limits of its plan."""
    found = _with_use(Tenant.objects.select_related("account").filter(pk=tenant.pk)).get()
    return _use_of(found, limits_of(found.account.plan))


def _use_of(tenant: Any, limits: PlanLimits) -> TenantUse:
    return TenantUse(tenant, Usage(tenant.fqdn_count, limits.fqdns), Usage(tenant.rule_count, limits.rules))


def tell_plan(plan: str) -> str:
    """Return a plan with its limits: "free: 1 tenant, with 2 FQDNs and 25 rules each"."""
    limits = limits_of(plan)

    def told(limit: int | None, noun: str) -> str:
        return f"any number of {noun}s" if limit is None else formats.count(limit, noun)

    each = f"{told(limits.fqdns, 'FQDN')} and {told(limits.rules, 'rule')}"
    return f"{plan}: {told(limits.tenants, 'tenant')}, with {each} each"


@dataclass(frozen=True, slots=True)
class PlanOffer:
    """A plan, and the account's resources that exceed its limits."""

    plan: str
    over: Sequence[str]

    def __str__(self) -> str:
        over = f". Over the limit now: {', '.join(self.over)}" if self.over else ""
        return f"{tell_plan(self.plan)}{over}"


def compare_plans(account_id: UUID) -> list[PlanOffer]:
    """Return every plan with the resources over its limits. They would be kept; new ones are refused."""
    live = Tenant.objects.live().filter(account=account_id)
    tenants = live.count()
    heaviest = list(_heaviest(live))
    offers = []
    for plan in Plan.values:
        limits = limits_of(plan)
        over = [f"tenants ({tenants})"] if Usage(tenants, limits.tenants).is_over else []
        for use in (_use_of(tenant, limits) for tenant in heaviest):
            if use.fqdns.is_over:
                over.append(f"FQDNs of {use.tenant.name} ({use.fqdns.count})")
            if use.rules.is_over:
                over.append(f"rules of {use.tenant.name} ({use.rules.count})")
        offers.append(PlanOffer(plan, over))
    return offers
