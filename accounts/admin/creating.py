"""Create accounts and tenants for customers, with the functions of the API. Owners get an invitation.

Each function is one transaction: where the invitation cannot be mailed, nothing is created.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django import forms
from django.db import transaction
from django.urls import reverse

from accounts.access.resources import require_permitted
from accounts.admin.accounts import describe_plan
from accounts.admin.base import ActPage, ReasonForm, TenantActPage
from accounts.admin.finding import CompletedInput, search_accounts
from accounts.billing.accounts import create_account
from accounts.events import record_event
from accounts.invitations import LIFETIME, invite
from accounts.models import User
from accounts.models.billing import Plan
from accounts.models.events import EventKind
from accounts.models.tenants import SqlEngine, TenantConfig
from accounts.models.users import MembershipRole, StaffRole
from accounts.readers.rule import Author
from accounts.tenants.errors import TenantNotFound
from accounts.tenants.lifecycle import create_tenant_with_address, restore_tenant
from accounts.tenants.names import normalize_name
from tenantadmin.lib.core.emails import check_email
from tenantadmin.lib.core.errors import ValidationFailed
from tenantadmin.lib.core.structs import JsonStruct

if TYPE_CHECKING:
    from accounts.admin.base import Trail
    from accounts.models import Account


class Created(JsonStruct):
    """What was created, and the normalized email of the invited owner."""

    account_id: UUID
    tenant_id: UUID
    owner: str


def create_customer(
    *, name: str, plan: str, owner: str, billing_email: str, tenant_name: str, inviter: User
) -> Created:
    """Create an account of ``owner`` with its first tenant, and invite the owner into that.

    An address that never signed in gets a user, which owns the account.

    Raises:
        ValidationFailed: an address is not one.
        Forbidden: addresses of the owner's domain may not sign in.
        PlanLimitExceeded, TenantNameConflict, MailNotSent: as the functions of the API.
    """
    email, author = _address(owner, "owner"), Author.on_site(inviter)
    billing = _address(billing_email, "billingEmail") if billing_email else email
    require_permitted(email)
    with transaction.atomic():
        _, is_new = User.objects.lock_or_create(email)
        if is_new:
            record_event(EventKind.USER_CREATED, actor=inviter.email, subject=email)
        account = create_account(
            name=_name(name, "name"), owners=[email], plan=plan, billing_email=billing, author=author
        )
        return create_owned_tenant(
            account_id=account.account_id, name=tenant_name, owner=email, inviter=inviter
        )


def create_owned_tenant(*, account_id: UUID, name: str, owner: str, inviter: User) -> Created:
    """Create a tenant in an account, and invite its owner.

    Raises:
        ValidationFailed: ``owner`` is not an address.
        Forbidden: addresses of the owner's domain may not sign in.
        PlanLimitExceeded, TenantNameConflict, AccountNotFound, MailNotSent: as the functions of the API.
    """
    email = _address(owner, "owner")
    with transaction.atomic():
        created = create_tenant_with_address(
            account_id=account_id, name=_name(name, "tenantName"), actor=inviter.email
        )
        invite(inviter, tenant_id=created.tenant_id, email=email, role=MembershipRole.OWNER, message="")
    return Created(account_id=account_id, tenant_id=created.tenant_id, owner=email)


def _name(text: str, field: str) -> str:
    try:
        return normalize_name(text)
    except ValueError as error:
        raise ValidationFailed.at(f"/{field}", "invalid-name", str(error)) from error


def _address(text: str, field: str) -> str:
    try:
        return check_email(text)
    except ValueError as error:
        raise ValidationFailed.at(f"/{field}", "invalid-email", str(error)) from error


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
    plan = forms.ChoiceField(
        label="Plan", choices=lambda: [(plan, describe_plan(plan)) for plan in Plan.values]
    )
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
        return _created_message(values["name"], created.owner), {
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
        return _created_message(values["tenant_name"], created.owner), {"owner": created.owner}


def _created_message(name: str, owner: str) -> str:
    return f"Created {name}, and invited {owner}. The invitation is open for {LIFETIME.days} days."


def _find_account(text: str) -> Account:
    """Return the live account with this id, or the one that words of its name mean.

    Raises:
        ValidationFailed: there is none, or more than one.
    """
    live = [account for account in search_accounts(text).first() if account.deleted_at is None]
    found = [account for account in live if account.name.lower() == text.lower()] or live
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{account.name} ({account.pk})" for account in found)
    message = f"Several accounts are meant. Give the id: {names}." if found else "There is no such account."
    raise ValidationFailed.at("/account", "unknown-account", message)


class RestoreTenantPage(TenantActPage):
    """Make a deleted tenant live again."""

    title = "Restore the tenant"
    name = "tenant.restored"
    button = "Restore"
    needs: ClassVar[StaffRole] = StaffRole.ADMIN
    effect = (
        "The tenant will be live again with the configuration, rules, FQDNs and members that it had. "
        "Gateways will start with an empty cache. It is refused if another tenant has its name or an FQDN "
        "now."
    )

    def act(self, _values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        restored = restore_tenant(tenant_id=self.tenant.pk, actor=self.actor)
        return f"{self.tenant.name} is live again.", {"seq": restored.seq}


class EngineForm(ReasonForm):
    """The engine of a tenant's queries."""

    engine = forms.ChoiceField(label="Queries run on", choices=SqlEngine.choices)
    field_order = ("engine", "reason")


class EnginePage(TenantActPage):
    """Choose the engine of a tenant's queries, from the next query on."""

    title = "Engine of queries"
    name = "engine.chosen"
    button = "Choose"
    effect = (
        "Spark will run only statements that it answers as DuckDB does, and only if SQL_SPARK_URL is set. "
        "DuckDB runs all others; a query that reads too much for DuckDB is refused."
    )
    needs = StaffRole.ADMIN
    needs_live = True
    form_class = EngineForm

    def initial(self) -> dict[str, Any]:
        engine = TenantConfig.objects.filter(pk=self.tenant.pk).values_list("sql_engine", flat=True).first()
        return {**super().initial(), "engine": engine}

    def act(self, values: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        config = TenantConfig.objects.select_for_update().filter(pk=self.tenant.pk).first()
        if config is None:
            raise TenantNotFound
        before = config.sql_engine
        config.sql_engine = values["engine"]
        config.save(update_fields=["sql_engine"])
        return f"The engine of queries is {config.sql_engine} now.", {
            "engine": config.sql_engine,
            "engineBefore": before,
        }
