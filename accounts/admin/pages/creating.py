"""Pages that create accounts and tenants. Their owners get an invitation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.urls import reverse

from accounts.admin.accounts import tell_plan
from accounts.admin.creating import create_customer, create_owned_tenant
from accounts.admin.finding import find_accounts
from accounts.admin.forms import CompletedInput
from accounts.admin.pages.base import ActPage, ReasonForm
from accounts.invitations import LIFETIME
from accounts.models.billing import Plan
from accounts.models.users import StaffRole
from tenantadmin.lib.core.errors import ValidationFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.admin.pages.base import Trail
    from accounts.models import Account


class CreatingPage(ActPage):
    """A page that creates something for a customer. Only platform admins may."""

    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    is_dangerous = True
    button = "Create"
    template_name = "backoffice/act.html"
    #: The list that the page belongs to: title and name of its address.
    list_of: ClassVar[tuple[str, str]]

    #: Address of what was created, and whom the event names.
    _created_at = ""
    _created: Mapping[str, Any]

    def trail(self) -> Trail:
        title, name = self.list_of
        return [*super().trail(), (title, reverse(f"admin:{name}"))]

    def done_to(self) -> Mapping[str, Any]:
        return self._created

    def done_at(self) -> str:
        return self._created_at or reverse(f"admin:{self.list_of[1]}")


class NewAccountForm(ReasonForm):
    """A customer: the account, its owner and its first tenant."""

    name = forms.CharField(label="Name of the account", max_length=100)
    plan = forms.ChoiceField(label="Plan", choices=lambda: [(plan, tell_plan(plan)) for plan in Plan.values])
    owner = forms.CharField(label="Email of the owner", max_length=320, widget=CompletedInput("people"))
    tenant_name = forms.CharField(label="Name of the first tenant", max_length=100, initial="Default")
    billing_email = forms.CharField(
        label="Billing email", required=False, max_length=320, help_text="Empty: the email of the owner."
    )
    field_order = ("name", "plan", "owner", "tenant_name", "billing_email", "reason")


class NewAccountPage(CreatingPage):
    """Create an account with its first tenant, and invite the owner."""

    title = "New account"
    name = "account.created"
    form_class = NewAccountForm
    list_of = ("Accounts", "accounts_account_changelist")
    effect = (
        "This will create the account and its first tenant, with an address under the platform's domain. "
        "The owner owns the account at once, and the tenant when they accept the invitation that they get "
        "by mail."
    )

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        created = create_customer(
            name=values["name"],
            plan=values["plan"],
            owner=values["owner"],
            billing_email=values["billing_email"],
            tenant_name=values["tenant_name"],
            inviter=self.user,
        )
        self._created_at = reverse("admin:account", args=[created.account_id])
        self._created = {"subject": str(created.account_id), "account_id": created.account_id}
        return _say_created(values["name"], created.owner), {
            "tenant": str(created.tenant_id),
            "owner": created.owner,
        }


class NewTenantForm(ReasonForm):
    """A tenant, its account and its owner."""

    account = forms.CharField(
        label="Account", max_length=100, widget=CompletedInput("accounts", placeholder="Name or id")
    )
    tenant_name = forms.CharField(label="Name of the tenant", max_length=100)
    owner = forms.CharField(label="Email of the owner", max_length=320, widget=CompletedInput("people"))
    field_order = ("account", "tenant_name", "owner", "reason")


class NewTenantPage(CreatingPage):
    """Create a tenant in an account, and invite its owner."""

    title = "New tenant"
    name = "tenant.created"
    form_class = NewTenantForm
    list_of = ("Tenants", "accounts_tenant_changelist")
    effect = (
        "This will create the tenant, with an address under the platform's domain. The owner gets an "
        "invitation by mail, and owns the tenant when they accept it."
    )

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        account = _find_account(values["account"])
        created = create_owned_tenant(
            account_id=account.pk, name=values["tenant_name"], owner=values["owner"], inviter=self.user
        )
        self._created_at = reverse("admin:tenant", args=[created.tenant_id])
        self._created = {
            "subject": str(created.tenant_id),
            "tenant_id": created.tenant_id,
            "account_id": account.pk,
        }
        return _say_created(values["tenant_name"], created.owner), {"owner": created.owner}


def _say_created(name: str, owner: str) -> str:
    return f"Created {name}, and invited {owner}. The invitation is open for {LIFETIME.days} days."


def _find_account(text: str) -> Account:
    """Return the live account with this id, or the one that words of its name mean.

    Raises:
        ValidationFailed: there is none, or more than one.
    """
    live = [account for account in find_accounts(text) if account.deleted_at is None]
    found = [account for account in live if account.name.lower() == text.lower()] or live
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{account.name} ({account.pk})" for account in found)
    message = f"Several accounts are meant. Give the id: {names}." if found else "There is no such account."
    raise ValidationFailed.at("/account", "unknown-account", message)
