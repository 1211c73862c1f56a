"""Pages of accounts: plan, owners and domains, and a lookup of FQDNs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.urls import reverse

from accounts.admin.accounts import compare_plans, read_account_view
from accounts.admin.finding import find_fqdns
from accounts.admin.forms import split_ids
from accounts.admin.fqdns import find_fqdn, try_claim
from accounts.admin.pages.base import ActPage, ReasonForm, StaffPage
from accounts.billing.accounts import read_account, write_account
from accounts.billing.dns import ChallengeNotMet
from accounts.billing.domains import challenge_of, read_domain, verify_domain
from accounts.billing.errors import InUse
from accounts.models import Account
from accounts.models.billing import Plan
from accounts.models.users import StaffRole
from accounts.serializers.billing import parse_account
from accounts.tenants.errors import AccountNotFound
from accounts.tenants.plans import limits_of
from tenantadmin.lib.core.errors import BadRequest
from tenantadmin.lib.core.formats import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from django.http import HttpResponse

    from accounts.admin.pages.base import Trail
    from accounts.billing.accounts import AccountState
    from accounts.models import Domain
    from tenantadmin.lib.core.errors import ApiError


class AccountScope(StaffPage):
    """A page of one account, which may be deleted."""

    account: Account

    def prepare(self) -> None:
        account = Account.objects.filter(pk=self.kwargs["account"]).first()
        if account is None:
            raise AccountNotFound
        self.account = account

    def heading(self) -> str:
        return f"{self.title}: {self.account.name}" if hasattr(self, "account") else self.title

    def trail(self) -> Trail:
        pages = [*super().trail(), ("Accounts", reverse("admin:accounts_account_changelist"))]
        if hasattr(self, "account"):
            pages.append((self.account.name, self.account_page()))
        return pages

    def account_page(self) -> str:
        """Return the address of the account's page."""
        return reverse("admin:account", args=[self.kwargs["account"]])


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


class AccountActPage(ActPage, AccountScope):
    """A page with a form that changes an account. Only platform admins may."""

    needs: ClassVar[StaffRole] = StaffRole.ADMIN

    def done_to(self) -> Mapping[str, Any]:
        return {"subject": str(self.account.pk), "account_id": self.account.pk}

    def done_at(self) -> str:
        return self.account_page()


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
            "name": state.name,
            "plan": state.plan,
            "owners": "\n".join(state.owners),
            "billing_email": state.billing_email,
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
        told = [*_tell_changes(before, written), f"Saved as revision {written.seq}."]
        return " ".join(told), {"seq": written.seq, "plan": written.plan}


def _tell_changes(before: AccountState, after: AccountState) -> Iterator[str]:
    """Say what differs, one sentence each."""
    for label, old, new in (
        ("Plan", before.plan, after.plan),
        ("Name", before.name, after.name),
        ("Billing email", before.billing_email, after.billing_email),
    ):
        if old != new:
            yield f"{label} changed from {old} to {new}."
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


class FqdnPage(StaffPage):
    """Look up an FQDN: its owner, how long it is reserved, and the answer to a claim."""

    title = "FQDNs"
    template_name = "backoffice/accounts/fqdn.html"

    def read(self) -> Mapping[str, Any]:
        fqdn = self.request.GET.get("q", "").strip().replace("\0", "")
        search = self.request.GET.get("tenant", "").strip().replace("\0", "")
        content: dict[str, Any] = {"fqdn": fqdn, "search": search}
        if not fqdn:
            return content
        try:
            found = find_fqdn(fqdn)
        except BadRequest as error:
            others = find_fqdns(fqdn)
            return {**content, "others": others} if others else {**content, "error": error}
        content["found"] = found
        if found.holder is None:
            content["others"] = [row for row in find_fqdns(fqdn) if row.name != found.name]
        if search:
            content["claim"] = try_claim(found, search)
        return content
