"""Support's limited access to the log of a tenant."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.core import mail
from django.urls import reverse

from accounts.limited_access import end_expired_access
from accounts.mailing import MailNotSent
from accounts.models import AccessRequest, Account, Event, Fqdn, Invitation, Membership, Tenant, User
from accounts.signin.flow import Device, Identity, complete_sign_in
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.accounts.support import signed_in
from tests.admin.filling import to
from tests.admin.staff import page_text, require_roles, support_client, text_of
from tests.conftest import ApiClient
from tests.sending import sending

if TYPE_CHECKING:
    from django.core.mail import EmailMultiAlternatives
    from django.test import Client


class TestAccess:
    def test_access_is_a_membership_that_ends(self, support: Client, tenant: Tenant) -> None:
        answer = support.post(to("tenant-access", tenant), {"hours": 2, "reason": "ticket 7"}, follow=True)
        assert "You have access to Warehouse for 2 h." in answer.content.decode()
        membership = Membership.objects.get(user__email="support@example.org")
        assert membership.role == "member"
        assert membership.ends_at is not None
        assert dt.timedelta(hours=1.9) < membership.ends_at - now() <= dt.timedelta(hours=2)
        caller = ApiClient(factories.sign_in(membership.user))
        assert caller.get(f"/tenants/{tenant.pk}/query/schema").status_code == 200
        Membership.objects.filter(pk=membership.pk).update(ends_at=now())
        assert caller.get(f"/tenants/{tenant.pk}/query/schema").status_code != 200
        assert end_expired_access() == 1
        assert end_expired_access() == 0
        assert not Membership.objects.filter(pk=membership.pk).exists()
        events = Event.objects.filter(kind__startswith="membership.", tenant_id=tenant.pk).order_by("pk")
        assert [(event.kind, event.actor, event.subject, event.reason) for event in events] == [
            ("membership.added", "support@example.org", "support@example.org", "ticket 7"),
            ("membership.removed", "system", "support@example.org", ""),
        ]

    def test_owners_see_it(self, support: Client, tenant: Tenant, world: factories.World) -> None:
        support.post(to("tenant-access", tenant), {"hours": 1, "reason": "ticket 7"})
        caller = ApiClient(factories.sign_in(world.owner))
        found = caller.get("/config/events?kind=membership.added").json()["events"]
        assert [(item["subject"], item["reason"]) for item in found] == [("support@example.org", "ticket 7")]

    def test_owners_get_a_mail_at_once(
        self,
        support: Client,
        tenant: Tenant,
        world: factories.World,
    ) -> None:
        second = factories.make_user("second@example.org")
        for user, role in ((second, "owner"), (world.stranger, "admin")):
            Membership.objects.create(user=user, tenant=tenant, role=role)
        with sending():
            support.post(to("tenant-access", tenant), {"hours": 1, "reason": "ticket 7"})
        assert sorted(message.to for message in mail.outbox) == [
            ["owner@example.org"],
            ["second@example.org"],
        ]
        message = mail.outbox[0]
        assert message.subject == "support@example.org has access to “Warehouse”"
        ends_at = Membership.objects.get(user__email="support@example.org").ends_at
        assert ends_at is not None
        assert format_timestamp(ends_at) in message.body
        assert "Reason:\n\n> ticket 7\n" in message.body
        assert "Approved by" not in message.body
        # Refused access mails nothing.
        with sending():
            support.post(to("tenant-access", tenant), {"hours": 9, "reason": "ticket 8"})
        assert len(mail.outbox) == 2

    def test_where_owners_approve_it_staff_ask(
        self, support: Client, staff: Client, tenant: Tenant, world: factories.World
    ) -> None:
        body = {"tenantName": "Warehouse", "access": {"staffApproval": "required"}}
        owner = ApiClient(factories.sign_in(world.owner))
        assert owner.put(f"/config/tenants/{tenant.pk}/config", body).status_code == 200
        taken, ask = to("tenant-access", tenant), to("tenant-access-ask", tenant)
        assert support.get(taken)["Location"] == ask
        refused = support.post(taken, {"hours": 1, "reason": "ticket 7"})
        assert refused.status_code == 409
        assert "An owner of this tenant must approve your access first." in refused.content.decode()
        assert "Access begins with the approval." in page_text(support, ask)
        people = to("tenant-people", tenant)
        asked = support.post(ask, {"hours": 2, "reason": "ticket 7"}, follow=True)
        assert "The owners of Warehouse are asked." in asked.content.decode()
        own = page_text(support, people)
        assert "support@example.org 2 ticket 7" in own
        assert "Withdraw" in own
        assert "Approve for the owners" not in own
        request = AccessRequest.objects.get()
        approve = to("tenant-access-approve", tenant, access_request=request.pk)
        assert support.get(approve).status_code == 403
        assert "Approve for the owners" in page_text(staff, people)
        assert "asked at" in page_text(staff, approve)
        assert staff.post(approve, {"reason": " "}).status_code == 400
        done = staff.post(approve, {"reason": "outage 9"}, follow=True)
        assert "support@example.org has access to Warehouse for 2 h." in done.content.decode()
        assert staff.get(approve).status_code == 409
        acted = Event.objects.filter(kind="staff.acted", tenant_id=tenant.pk).order_by("pk")
        assert [(event.actor, (event.after or {})["act"], event.reason) for event in acted] == [
            ("support@example.org", "access.requested", "ticket 7"),
            ("admin@example.org", "access.approved", "outage 9"),
        ]

    def test_a_request_is_withdrawn(self, support: Client, tenant: Tenant) -> None:
        withdraw = to("tenant-access-withdraw", tenant)
        assert support.post(withdraw, {"reason": "x"}).status_code == 409
        support.post(to("tenant-access-ask", tenant), {"hours": 2, "reason": "ticket 7"})
        assert support.post(withdraw, {"reason": "solved"}, follow=True).status_code == 200
        assert AccessRequest.objects.get().state == "withdrawn"

    def test_taking_access_leads_back_to_the_page_that_needs_it(
        self, support: Client, tenant: Tenant
    ) -> None:
        page = to("tenant-quarantine", tenant, day="2026-03-01")
        html = support.get(page, {"after": "1"}).content.decode()
        take = re.findall(rf'href="({to("tenant-access", tenant)}[^"]+)"', html)[0]
        answer = support.post(take, {"hours": 1, "reason": "ticket 7"})
        assert answer["Location"] == f"{page}?after=1"
        for elsewhere in ("https://evil.example/", "//evil.example", "/admin/", ""):
            address = f"{to('tenant-access', tenant)}?back={elsewhere}"
            answer = support.post(address, {"hours": 1, "reason": "x"})
            assert answer["Location"] == to("tenant-people", tenant)

    def test_it_is_given_back(self, support: Client, tenant: Tenant) -> None:
        address = to("tenant-access-end", tenant)
        for refused in (support.get(address), support.post(address, {"reason": "done"})):
            assert refused.status_code == 409
            assert "You have no limited access to this tenant." in refused.content.decode()
        support.post(to("tenant-access", tenant), {"hours": 1, "reason": "x"})
        assert "you will no longer be a member of this tenant" in page_text(support, address)
        assert support.post(address, {"reason": "done"}).status_code == 302
        assert not Membership.objects.filter(user__email="support@example.org").exists()

    @pytest.mark.parametrize("hours", ["0", "9", "", "x"])
    def test_for_a_limited_time_only(self, support: Client, tenant: Tenant, hours: str) -> None:
        assert support.post(to("tenant-access", tenant), {"hours": hours, "reason": "x"}).status_code == 400
        assert not Membership.objects.filter(user__email="support@example.org").exists()

    def test_a_lasting_member_stays_one(self, support: Client, tenant: Tenant) -> None:
        user = User.objects.get(email="support@example.org")
        Membership.objects.create(user=user, tenant=tenant, role="owner")
        refused = support.post(to("tenant-access", tenant), {"hours": 1, "reason": "x"})
        assert refused.status_code == 409
        membership = Membership.objects.get(user=user)
        assert (membership.role, membership.ends_at) == ("owner", None)

    @pytest.mark.parametrize("name", ["tenant-access", "tenant-member", "tenant-engine"])
    def test_a_deleted_tenant_has_no_form(self, staff: Client, tenant: Tenant, name: str) -> None:
        assert staff.get(to(name, tenant)).status_code == 200
        Tenant.objects.filter(pk=tenant.pk).update(deleted_at=now())
        refused = staff.get(to(name, tenant))
        assert refused.status_code == 404
        assert "The tenant is deleted and cannot be changed." in refused.content.decode()


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
    assert [(membership.tenant_id, membership.role) for membership in owner.memberships.all()] == [
        (tenant.pk, "owner")
    ]
    assert [account.pk for account in owner.owned_accounts.all()] == [account.pk]


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
