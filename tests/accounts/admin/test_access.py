"""Support's limited access to the log of a tenant."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import pytest
from django.core import mail

from accounts.limited_access import end_expired_access
from accounts.models import AccessRequest, Event, Membership, Tenant, User
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.admin.filling import to
from tests.admin.staff import page_text
from tests.conftest import ApiClient
from tests.sending import sending

if TYPE_CHECKING:
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
        assert [(it.kind, it.actor, it.subject, it.reason) for it in events] == [
            ("membership.added", "support@example.org", "support@example.org", "ticket 7"),
            ("membership.removed", "system", "support@example.org", ""),
        ]

    def test_owners_see_it(self, support: Client, tenant: Tenant, world: factories.World) -> None:
        support.post(to("tenant-access", tenant), {"hours": 1, "reason": "ticket 7"})
        caller = ApiClient(factories.sign_in(world.owner))
        found = caller.get("/config/events?kind=membership.added").json()["events"]
        assert [(it["subject"], it["reason"]) for it in found] == [("support@example.org", "ticket 7")]

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
        assert [(it.actor, (it.after or {})["act"], it.reason) for it in acted] == [
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
