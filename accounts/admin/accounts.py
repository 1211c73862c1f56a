"""Pages of accounts: use and limits of the plan, owners, domains, tenants and changes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final
from uuid import UUID

from django import forms
from django.db.models import Count, F, Func, IntegerField, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse

from accounts.admin.base import ActPage, ObjectPage, ReasonForm
from accounts.admin.finding import split_ids
from accounts.admin.words import describe_changes, describe_event, group_requests, rank_event
from accounts.billing.accounts import read_account, write_account
from accounts.billing.domains import ChallengeNotMet, challenge_of, read_domain, verify_domain
from accounts.limits import limits_of
from accounts.models import Account, Domain, Event, Fqdn, Revision, Tenant
from accounts.models.billing import Plan
from accounts.models.events import EventKind
from accounts.models.history import RevisionKind, beside
from accounts.models.users import StaffRole
from accounts.serializers.billing import parse_account
from accounts.tenants.errors import AccountNotFound, InUse
from tenantadmin.lib.core import formats
from tenantadmin.lib.core.formats import count

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpResponse

    from accounts.billing.accounts import AccountState
    from accounts.billing.domains import DomainChallenge
    from accounts.limits import PlanLimits
    from tenantadmin.lib.core.errors import ApiError


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
        return None if self.has_many else max(self.tenant_uses, key=lambda use: use.fqdns.count, default=None)

    @property
    def most_rules(self) -> TenantUse | None:
        """The tenant with the most rules; None if it was not looked for."""
        return None if self.has_many else max(self.tenant_uses, key=lambda use: use.rules.count, default=None)


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
    for row in written:
        around |= Q(at__range=(row.changed_at - _NEAR, row.changed_at + _NEAR), request_id=row.request_id)
    acted = Event.objects.filter(around, kind=EventKind.STAFF_ACTED).order_by("-at", "-pk")[:_CHANGES]
    events = [*acted, *Event.objects.filter(of_account).order_by("-at", "-pk")[:_CHANGES]]
    found = [
        AccountChange(row.changed_at, row.user, row.done, row.text, row.summary.get("comment", ""), row)
        for row in written
    ]
    for event in events:
        told = (describe_event(event)[0], describe_changes(event, {}), event.reason)
        found.append(AccountChange(event.at, event.actor, *told, event))
    changes = []
    for group in group_requests(found, lambda change: (change.record.request_id,)):
        # An act of staff says what was done and why, and the revision what changed.
        act = min(group, key=_rank)
        revision = next((change for change in group if isinstance(change.record, Revision)), act)
        changes.append(replace(act, detail=beside(act.what, revision.detail), record=revision.record))
    return sorted(changes, key=lambda change: change.at, reverse=True)[:_CHANGES]


def _rank(change: AccountChange) -> int:
    return rank_event(change.record) if isinstance(change.record, Event) else 4


def _heaviest(live: QuerySet[Tenant]) -> QuerySet[Any]:
    return _with_use(live).order_by("-fqdn_count", "-rule_count", "name", "pk")[:_TENANTS]


def _with_use(live: QuerySet[Tenant]) -> QuerySet[Any]:
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


def describe_plan(plan: str) -> str:
    """Return a plan with its limits: "free: 1 tenant, with 2 FQDNs and 25 rules each"."""
    limits = limits_of(plan)

    def describe_limit(limit: int | None, noun: str) -> str:
        return f"any number of {noun}s" if limit is None else formats.count(limit, noun)

    each = f"{describe_limit(limits.fqdns, 'FQDN')} and {describe_limit(limits.rules, 'rule')}"
    return f"{plan}: {describe_limit(limits.tenants, 'tenant')}, with {each} each"


@dataclass(frozen=True, slots=True)
class PlanOffer:
    """A plan, and the account's resources that exceed its limits."""

    plan: str
    over: Sequence[str]

    def __str__(self) -> str:
        over = f". Over the limit now: {', '.join(self.over)}" if self.over else ""
        return f"{describe_plan(self.plan)}{over}"


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


class AccountScope(ObjectPage):
    """A page of one account, which may be deleted."""

    of = "account"
    rows = Account.objects.all()
    missing = AccountNotFound
    account: Account

    def done_to(self) -> Mapping[str, Any]:
        return {"subject": str(self.account.pk), "account_id": self.account.pk}


class AccountPage(AccountScope):
    """An account: use of its plan, domains, tenants and changes."""

    title = "Account"
    template_name = "backoffice/accounts/account.html"

    def read(self) -> Mapping[str, Any]:
        return {
            "account": self.account,
            "limits": limits_of(self.account.plan),
            "view": read_account_view(self.account),
        }


class AccountActPage(AccountScope, ActPage):
    """A page with a form that changes an account. Only platform admins may."""

    needs: ClassVar[StaffRole] = StaffRole.ADMIN


class AccountForm(ReasonForm):
    """The account, and the revision that the reader has seen."""

    name = forms.CharField(label="Name", max_length=400)
    plan = forms.ChoiceField(label="Plan", choices=Plan.choices, widget=forms.RadioSelect)
    owners = forms.CharField(
        label="Owners",
        max_length=40_000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Emails of users, one per line.",
    )
    billing_email = forms.CharField(label="Billing email", required=False, max_length=400)
    etag = forms.CharField(widget=forms.HiddenInput)
    field_order = ("plan", "owners", "name", "billing_email", "reason")


class ChangeAccountPage(AccountActPage):
    """Change the plan, the owners, the name or the billing email."""

    title = "Change the account"
    name = "account.changed"
    button = "Save"
    is_dangerous = True
    template_name = "backoffice/accounts/change.html"
    form_class = AccountForm
    effect = (
        "Resources over a limit of the plan will be kept; new ones are refused. Owners may change "
        "the account and its domains, and create tenants in it."
    )

    def form(self, data: Any = None) -> ReasonForm:
        form = super().form(data)
        # What a plan does not allow stands beside it.
        form.fields["plan"].choices = [  # type: ignore[attr-defined]  # a ChoiceField
            (offer.plan, str(offer)) for offer in compare_plans(self.account.pk)
        ]
        return form

    def initial(self) -> dict[str, Any]:
        state = read_account(self.account.pk)
        return {
            "name": state.account.name,
            "plan": state.account.plan,
            "owners": "\n".join(state.owners),
            "billing_email": state.account.billing_email,
            "etag": state.etag,
        }

    def read(self) -> Mapping[str, Any]:
        return {"account": self.account}

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        document = {
            "name": values["name"],
            "plan": values["plan"],
            "owners": sorted(split_ids(",".join(values["owners"].split()))),
            "billingEmail": values["billing_email"],
        }
        before = read_account(self.account.pk)
        written = write_account(
            account_id=self.account.pk,
            document=document,
            parse=parse_account,
            author=self.author,
            expected_etag=values["etag"],
        )
        # The write has refused a version that changed after the form was shown.
        seq = written.account.seq
        told = [*_describe_changes(before, written), f"Saved as revision {seq}."]
        return " ".join(told), {"seq": seq, "plan": written.account.plan}


def _describe_changes(before: AccountState, after: AccountState) -> Iterator[str]:
    for label, old, new in (
        ("Plan", before.account.plan, after.account.plan),
        ("Name", before.account.name, after.account.name),
        ("Billing email", before.account.billing_email, after.account.billing_email),
    ):
        if old != new:
            yield f"{label} changed from {old or 'none'} to {new or 'none'}."
    for verb, emails in (
        ("added", set(after.owners) - set(before.owners)),
        ("removed", set(before.owners) - set(after.owners)),
    ):
        if emails:
            yield f"{count(len(emails), 'owner')} {verb}: {', '.join(sorted(emails))}."


class DomainActPage(AccountActPage):
    """A page with a form that verifies a domain of the account."""

    template_name = "backoffice/accounts/domain.html"
    domain: Domain
    #: What the page says before the record.
    before_record: ClassVar[str] = ""

    def prepare(self) -> None:
        super().prepare()
        self.domain = read_domain(account_id=self.account.pk, name=self.kwargs["domain"])
        if self.domain.verified_at is not None:
            raise InUse("The domain is verified already.")

    def read(self) -> Mapping[str, Any]:
        return {"domain": self.domain, "challenge": challenge_of(self.domain)}

    def verify(self, *, by_hand: bool) -> tuple[str, dict[str, Any]]:
        """Verify the domain with the function of the API."""
        domain = verify_domain(
            account_id=self.account.pk,
            name=self.domain.name,
            by_hand=by_hand,
            may_verify_by_hand=True,
            actor=self.actor,
        )
        return f"{domain.name} is verified.", {"domain": domain.name}


class CheckForm(ReasonForm):
    """A look-up of the DNS needs no reason: it changes nothing, or the DNS proves what it changes."""

    reason = forms.CharField(required=False, widget=forms.HiddenInput)

    def clean_reason(self) -> str:
        return "The DNS holds the record."


class CheckDomainPage(DomainActPage):
    """Check the DNS record now."""

    title = "Check the DNS"
    name = "domain.checked"
    button = "Check the DNS again"
    form_class = CheckForm
    effect = (
        "If the DNS holds the record, the domain will be verified: the account's tenants may claim every "
        "FQDN in it, and no other account can verify it."
    )

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return self.verify(by_hand=False)

    def refused(self, form: ReasonForm, error: ApiError) -> HttpResponse:
        if isinstance(error, ChallengeNotMet):
            # The page shows the record itself.
            said = error.text.partition(". ")[0].removesuffix(".")
            error.text = f"{said}. Nothing changed. A change of the DNS takes some minutes."
        return super().refused(form, error)


class VerifyDomainPage(DomainActPage):
    """Verify without the DNS."""

    title = "Verify by hand"
    name = "domain.verified"
    button = "Verify by hand"
    is_dangerous = True
    effect = (
        "The account's tenants will be able to claim every FQDN in the domain, and no other account can "
        "verify it, though the DNS does not prove who controls it."
    )
    before_record = (
        "Do this only if you know that the account controls the domain: the DNS is not asked. "
        "This is the TXT record that the owner was asked for:"
    )

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return self.verify(by_hand=True)
