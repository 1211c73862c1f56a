"""Data of Home: what needs attention. Each row links to the page that repairs it."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

import msgspec
from django.contrib import messages
from django.core.cache import cache
from django.db.models import Exists, F, OuterRef, Sum
from django.http import HttpResponseRedirect
from django.urls import reverse

from accounts.admin.base import PART, StaffPage
from accounts.models import Account, Domain, Invitation, Membership, Revision, Tenant
from accounts.models.users import MembershipRole
from analytics.models import Build, DayRollup, TenantHealth
from analytics.words.verdict import VerdictSentence, describe_open, describe_restores
from tenantadmin.backoffice.audit.page import describe_revision
from tenantadmin.backoffice.snoozes import acknowledge, bring_back, read_snoozed, snooze
from tenantadmin.lib.core.timestamps import now

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from accounts.admin.base import Trail
    from accounts.models import User
    from tenantadmin.backoffice.snoozes import SnoozedRow

_ROWS: Final = 10
#: Of so many tenants with findings, those are shown whose findings are still open.
_CANDIDATES: Final = 30
#: A smaller drop of the hit rate, or one over fewer requests, is noise.
_LEAST_DROP: Final = 0.02
_LEAST_REQUESTS: Final = 100
#: If a log ended longer ago, the tenant has left.
_GONE: Final = dt.timedelta(days=60)
_CHANGED_FOR: Final = dt.timedelta(days=1)
_RESTORED_FOR: Final = dt.timedelta(days=7)
_TOTALS_KEY: Final = "home-days"
_TOTALS_SECONDS: Final = 300
_SPARK_DAYS: Final = 28


@dataclass(frozen=True, slots=True)
class Home:
    """The lists of Home, most urgent rows first, and the names of their tenants and accounts."""

    #: The open findings of each tenant, the worst first.
    findings: Mapping[UUID, Sequence[VerdictSentence]]
    drops: Sequence[TenantHealth]
    late: Sequence[TenantHealth]
    stale: Sequence[TenantHealth]
    quarantined: Sequence[TenantHealth]
    failed: Sequence[Build]
    changes: Sequence[Revision]
    #: The changes in words, by the key of the revision.
    told: Mapping[int, str]
    domains: Sequence[Domain]
    names: Mapping[UUID, str]
    #: What restored the rules of a tenant in ``drops``, in the last week.
    restored: Mapping[UUID, str]
    #: The rows that the reader does not want to see now.
    snoozed: Sequence[SnoozedRow]

    @property
    def calm(self) -> Sequence[str]:
        """What needs no attention, in words."""
        lists = {
            "open findings": self.findings,
            "hit rates": self.drops,
            "late logs": self.late,
            "builds": self.failed or self.stale,
            "quarantine": self.quarantined,
            "domains": self.domains,
        }
        return [words for words, rows in lists.items() if not rows]

    @property
    def is_empty(self) -> bool:
        """True if no panel has rows."""
        lists = (self.findings, self.drops, self.late, self.stale)
        return not any((*lists, self.quarantined, self.failed, self.domains))


def read_home(user: User) -> Home:
    """Return the lists of Home, in a constant number of queries that use indexes.

    Rows that ``user`` has put away are left out.
    """
    at = now()
    today = at.date()
    snoozed = read_snoozed(user)
    hidden: defaultdict[str, list[str]] = defaultdict(list)
    for row in snoozed:
        hidden[row.panel].append(row.subject)
    # Logs and builds outlive their tenant.
    is_live = Exists(Tenant.objects.live().customers().filter(pk=OuterRef("tenant_id")))
    health = TenantHealth.objects.filter(is_live)
    flagged = health.filter(has_findings=True).exclude(pk__in=hidden["findings"])
    candidates = flagged.order_by("-last_day", "tenant_id").values_list("pk", flat=True)[:_CANDIDATES]
    findings = dict(list(describe_open(candidates).items())[:_ROWS])
    fallen = health.filter(drop__gte=_LEAST_DROP, requests_7__gte=_LEAST_REQUESTS).exclude(
        pk__in=hidden["drops"]
    )
    # The same condition as in the index.
    drops = list(fallen.order_by(F("drop").desc(nulls_last=True), "tenant_id")[:_ROWS])
    stopped = health.late(today).filter(last_day__gte=today - _GONE).exclude(pk__in=hidden["late"])
    late = list(stopped.order_by("-last_day", "tenant_id")[:_ROWS])
    stale = list(health.stale().exclude(pk__in=hidden["stale"]).order_by("tenant_id")[:_ROWS])
    entries = health.with_quarantine().exclude(pk__in=hidden["quarantine"])
    quarantined = list(entries.order_by("tenant_id")[:_ROWS])
    failures = Build.objects.to_repair().filter(is_live)
    failed = list(failures.exclude(pk__in=hidden["failed"])[:_ROWS])
    changes = list(
        Revision.objects.filter(changed_at__gte=at - _CHANGED_FOR)
        .defer("document")
        .order_by("-changed_at", "-pk")[:_ROWS]
    )
    domains = list(
        Domain.objects.filter(verified_at__isnull=True)
        .exclude(pk__in=hidden["domains"])
        .select_related("account")
        .order_by("-created_at")[:_ROWS]
    )
    rows: list[Any] = [*drops, *late, *stale, *quarantined, *failed, *changes]
    names = {
        **tenant_names([*findings, *(row.tenant_id for row in rows if row.tenant_id)]),
        **account_names(change.account_id for change in changes if not change.tenant_id),
    }
    return Home(
        findings=findings,
        drops=drops,
        late=late,
        stale=stale,
        quarantined=quarantined,
        failed=failed,
        changes=changes,
        told={change.pk: describe_revision(change) for change in changes},
        domains=domains,
        names=names,
        restored=describe_restores(drops, since=at - _RESTORED_FOR),
        snoozed=snoozed,
    )


class DaySums(msgspec.Struct, frozen=True):
    """The sums of a day over all tenants."""

    day: dt.date
    hits: int
    misses: int
    warehouse_ms: int

    @property
    def requests(self) -> int:
        return self.hits + self.misses


@dataclass(frozen=True, slots=True)
class Span:
    """The sums of some days. Days without a log are not counted, so two spans are compared per day."""

    logged: int
    requests: int
    hits: int
    warehouse_ms: int

    @property
    def rate(self) -> float | None:
        return self.hits / self.requests if self.requests else None


@dataclass(frozen=True, slots=True)
class Totals:
    """Figures of the whole service: of the last 7 whole days, and how they differ from the 7 days before."""

    tenants: int
    #: Oldest first.
    days: list[DaySums]
    today: dt.date

    @property
    def week(self) -> Span:
        return self._span(7, 1)

    @property
    def before(self) -> Span:
        return self._span(14, 8)

    def _span(self, first: int, last: int) -> Span:
        ages = range(last, first + 1)
        days = [day for day in self.days if (self.today - day.day).days in ages and day.requests]
        return Span(
            len(days),
            sum(day.requests for day in days),
            sum(day.hits for day in days),
            sum(day.warehouse_ms for day in days),
        )

    @property
    def request_growth(self) -> float | None:
        """How much more requests a day had, as a share."""
        return _growth(self.week.requests, self.before.requests, self.week, self.before)

    @property
    def warehouse_growth(self) -> float | None:
        """As `request_growth`, of the warehouse's time."""
        return _growth(self.week.warehouse_ms, self.before.warehouse_ms, self.week, self.before)

    @property
    def rate_change(self) -> float | None:
        now_rate, rate_before = self.week.rate, self.before.rate
        return None if now_rate is None or rate_before is None else now_rate - rate_before

    @property
    def spark(self) -> str:
        """The hit rate of each day as the points of a line, 100 wide and 30 high."""
        logged = [day.hits / day.requests for day in self.days if day.requests]
        step = 100 / max(1, len(logged) - 1)
        return " ".join(f"{step * place:.1f},{30 - 30 * rate:.1f}" for place, rate in enumerate(logged))


def _growth(now_sum: int, sum_before: int, week: Span, before: Span) -> float | None:
    if not (now_sum and sum_before):
        return None
    return (now_sum / week.logged) / (sum_before / before.logged) - 1


def read_totals() -> Totals:
    """Return the figures of the service. The sums of days scan a table, so they are kept for some minutes."""
    today = now().date()
    kept: bytes | None = cache.get(_TOTALS_KEY)
    if kept is not None:
        days = msgspec.json.decode(kept, type=list[DaySums])
    else:
        days = _sum_up(today)
        cache.set(_TOTALS_KEY, msgspec.json.encode(days), _TOTALS_SECONDS)
    return Totals(Tenant.objects.live().count(), days, today)


def _sum_up(today: dt.date) -> list[DaySums]:
    days = (
        DayRollup.objects.filter(day__range=(today - dt.timedelta(days=_SPARK_DAYS), today))
        .values("day")
        .order_by("day")
        .annotate(sums_hits=Sum("hits"), sums_misses=Sum("misses"), sums_ms=Sum("warehouse_ms"))
    )
    return [
        DaySums(row["day"], row["sums_hits"] or 0, row["sums_misses"] or 0, row["sums_ms"] or 0)
        for row in days
    ]


@dataclass(frozen=True, slots=True)
class WithoutOwner:
    """Live tenants and accounts without an owner, and the open invitations of owners by tenant."""

    tenants: Sequence[Tenant]
    accounts: Sequence[Account]
    invited: Mapping[UUID, Invitation]


def find_without_owner() -> WithoutOwner:
    """Return tenants and accounts without an owner. Home loads them in a second request: a table scan."""
    owners = Membership.objects.filter(tenant=OuterRef("pk"), role=MembershipRole.OWNER)
    account_owners = Account.owners.through.objects.filter(account=OuterRef("pk"))
    # The account of assessments without an owner has none.
    assessments = Tenant.objects.assessments().filter(account=OuterRef("pk"))
    tenants = list(Tenant.objects.live().customers().filter(~Exists(owners)).order_by("pk")[:_ROWS])
    invitations = Invitation.objects.open().filter(tenant__in=tenants, role=MembershipRole.OWNER)
    return WithoutOwner(
        tenants=tenants,
        accounts=list(
            Account.objects.live()
            .filter(~Exists(account_owners), ~Exists(assessments))
            .order_by("pk")[:_ROWS]
        ),
        invited={invitation.tenant_id: invitation for invitation in invitations.order_by("created_at")},
    )


def tenant_names(ids: Iterable[UUID]) -> Mapping[UUID, str]:
    """Return the names of tenants by their ids, in one query."""
    return dict(Tenant.objects.filter(pk__in=set(ids)).values_list("pk", "name"))


def account_names(ids: Iterable[UUID]) -> Mapping[UUID, str]:
    """Return the names of accounts by their ids, in one query."""
    return dict(Account.objects.filter(pk__in=set(ids)).values_list("pk", "name"))


class HomePage(StaffPage):
    """Everything that needs attention now."""

    title = "Home"
    template_name = "backoffice/home.html"
    parts: ClassVar[Mapping[str, str]] = {
        "totals": "backoffice/totals.html",
        "without-owner": "backoffice/without_owner.html",
    }

    def read(self) -> Mapping[str, Any]:
        if self.request.GET.get(PART) == "totals":
            return {"totals": read_totals()}
        if self.request.GET.get(PART) == "without-owner":
            return {"found": find_without_owner()}
        return {"home": read_home(self.user)}

    def post(self, request: HttpRequest, **_: Any) -> HttpResponse:
        """Put a row away for the reader, or bring one back, or all."""
        if "snooze" in request.POST:
            snooze(self.user, request.POST["snooze"])
            messages.success(request, "You do not see this row for 7 days. Others still do.")
        elif "acknowledge" in request.POST:
            acknowledge(self.user, request.POST["acknowledge"])
            messages.success(request, "You do not see this row until it changes. Others still do.")
        else:
            bring_back(self.user, request.POST.get("back") or None)
        return HttpResponseRedirect(reverse("admin:index"))

    def trail(self) -> Trail:
        return []
