"""Staff create accounts and tenants, whose owners get an invitation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from accounts.mailing import MailNotSent
from accounts.models import Account, Event, Fqdn, Invitation, Membership, Tenant, User
from accounts.signin.flow import Device, Identity, complete_sign_in
from tests.accounts.support import signed_in
from tests.admin.staff import require_roles, support_client, text_of

if TYPE_CHECKING:
    from django.core.mail import EmailMultiAlternatives
    from django.test import Client

    from tests import factories

NEW_ACCOUNT = "/admin/accounts/new/"
NEW_TENANT = "/admin/tenants/new/"


def sent(**fields: str) -> dict[str, str]:
    return {
        "name": "  Acme Data ",
        "plan": "team",
        "owner": "New.Owner@Customer.example",
        "reason": "ticket 7",
        "tenant_name": "Warehouse",
        "billing_email": "",
        **fields,
    }


def test_access_to_each_page(staff: Client, world: factories.World) -> None:
    require_roles({}, {"account": NEW_ACCOUNT, "tenant": NEW_TENANT}, world, staff)


@pytest.mark.parametrize(("model", "page"), [("account", NEW_ACCOUNT), ("tenant", NEW_TENANT)])
def test_the_lists_lead_there(staff: Client, world: factories.World, model: str, page: str) -> None:
    add = reverse(f"admin:accounts_{model}_add")
    assert f'href="{add}' in staff.get(reverse(f"admin:accounts_{model}_changelist")).content.decode()
    assert staff.get(add)["Location"] == page
    refused = support_client().get(add, headers={"Accept": "text/html"})
    assert refused.status_code == 403
    assert "You may not see this" in text_of(refused.content.decode())


def test_a_new_customer(
    staff: Client, world: factories.World, mailoutbox: list[EmailMultiAlternatives]
) -> None:
    answer = staff.post(NEW_ACCOUNT, sent(), follow=True)
    account = Account.objects.get(name="Acme Data")
    assert answer.redirect_chain == [(reverse("admin:account", args=[account.pk]), 302)]
    shown = text_of(answer.content.decode())
    assert (
        "Created Acme Data, and invited new.owner@customer.example. The invitation is open for 14 days."
        in shown
    )
    assert (account.plan, account.billing_email) == ("team", "new.owner@customer.example")
    assert [owner.email for owner in account.owners.all()] == ["new.owner@customer.example"]
    tenant = Tenant.objects.get(account=account)
    assert tenant.name == "Warehouse"
    assert Fqdn.objects.filter(tenant_id=tenant.pk).count() == 1
    invitation = Invitation.objects.get(tenant=tenant)
    assert (invitation.email, invitation.role) == ("new.owner@customer.example", "owner")
    assert [mail.to for mail in mailoutbox] == [["new.owner@customer.example"]]
    assert not Membership.objects.filter(tenant=tenant).exists()
    event = Event.objects.get(kind="staff.acted")
    assert (event.reason, event.account_id, event.after) == (
        "ticket 7",
        account.pk,
        {"act": "account.created", "tenant": str(tenant.pk), "owner": "new.owner@customer.example"},
    )
    # The owner's first sign-in makes no second account, and accepting gives the tenant.
    complete_sign_in(Identity(email="new.owner@customer.example", email_verified=True), Device())
    owner = User.objects.get(email="new.owner@customer.example")
    client = signed_in(owner)
    assert client.post(f"/users/me/invitations/{invitation.pk}/accept", {}).status_code == 200
    assert [(it.tenant_id, it.role) for it in owner.memberships.all()] == [(tenant.pk, "owner")]
    assert [it.pk for it in owner.owned_accounts.all()] == [account.pk]


def test_a_new_tenant_of_an_account(staff: Client, world: factories.World, mailoutbox: list[Any]) -> None:
    Account.objects.filter(pk=world.account.pk).update(plan="team")
    form = {"account": "ACME", "tenant_name": "Second", "owner": "x@customer.example", "reason": "y"}
    answer = staff.post(NEW_TENANT, form)
    tenant = Tenant.objects.get(name="Second")
    assert answer["Location"] == reverse("admin:tenant", args=[tenant.pk])
    assert tenant.account_id == world.account.pk
    assert Invitation.objects.get(tenant=tenant).email == "x@customer.example"
    assert len(mailoutbox) == 1
    # Who was invited has no user before the first sign-in.
    assert not User.objects.filter(email="x@customer.example").exists()


@pytest.mark.parametrize(
    ("page", "fields", "errors"),
    [
        (NEW_ACCOUNT, {"owner": "not an address"}, {"owner"}),
        (NEW_ACCOUNT, {"billing_email": "x"}, {"billing_email"}),
        (NEW_ACCOUNT, {"name": "a\0b"}, {"name"}),
        (NEW_TENANT, {"account": "No such"}, {"account"}),
    ],
)
def test_what_is_wrong_stands_at_its_field(
    staff: Client, world: factories.World, page: str, fields: dict[str, str], errors: set[str]
) -> None:
    answer = staff.post(page, sent(account="Acme") | fields)
    assert answer.status_code == 400
    assert answer.context["form"].errors.keys() == errors
    assert Account.objects.count() == 2
    assert not User.objects.filter(email__endswith="customer.example").exists()


def test_nothing_is_created_where_the_invitation_cannot_be_mailed(
    staff: Client, world: factories.World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: Any) -> None:
        raise MailNotSent

    monkeypatch.setattr("accounts.invitations.send_mail", fail)
    assert staff.post(NEW_ACCOUNT, sent()).status_code == MailNotSent.status
    assert not Account.objects.filter(name="Acme Data").exists()
    assert not Invitation.objects.exists()
    assert not User.objects.filter(email="new.owner@customer.example").exists()


def test_the_plan_limits_tenants(staff: Client, world: factories.World) -> None:
    Account.objects.filter(pk=world.account.pk).update(plan="free")
    form = {"account": str(world.account.pk), "tenant_name": "Second", "owner": "x@y.example", "reason": "y"}
    answer = staff.post(NEW_TENANT, form)
    assert answer.status_code == 400
    assert not Tenant.objects.filter(name="Second").exists()
