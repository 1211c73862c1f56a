"""The staff's pages of people: who may do what, and members of a tenant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from django.urls import reverse

from accounts.access.credentials import create_refresh_token
from accounts.models import Event, Membership, User
from tenantadmin.lib.core.timestamps import now
from tests.accounts.admin.people import PEOPLE, acts, make_grant, make_pat, of, people_of
from tests.admin.staff import add_totp, page_text, prove_factor, require_roles, support_client, text_of

if TYPE_CHECKING:
    from django.test import Client

    from tests import factories


@pytest.mark.slow
def test_access_to_each_page(staff: Client, world: factories.World) -> None:
    looks = {
        "review": PEOPLE,
        "people": people_of(world.tenant),
        "person": of(world.member),
    }
    admins = {
        "review": "/admin/people/revoke/?right=x",
        "tenant": reverse("admin:tenant-revoke", args=[world.tenant.pk]) + "?right=x",
        "member": reverse("admin:tenant-member", args=[world.tenant.pk]),
        "person": of(world.member, "person-revoke") + "?right=x",
        "offboard": of(world.member, "person-offboard"),
    }
    require_roles(looks, admins, world, staff)
    world.member.refresh_from_db()
    assert world.member.is_active
    assert acts() == []


class TestMember:
    def test_a_tenant_without_owner_gets_one(self, staff: Client, world: factories.World) -> None:
        Membership.objects.filter(user=world.owner).delete()
        address = reverse("admin:tenant-member", args=[world.tenant.pk])
        form = {"email": " Member@Example.org", "role": "owner", "reason": "hand-over"}
        answer = staff.post(address, form, follow=True)
        assert "member@example.org is owner of Warehouse." in text_of(answer.content.decode())
        assert Membership.objects.get(user=world.member).role == "owner"
        event = Event.objects.get(kind="membership.changed")
        assert (event.before, event.after, event.reason) == (
            {"role": "member"},
            {"role": "owner"},
            "hand-over",
        )

    def test_staff_do_not_add_themselves(self, staff: Client, world: factories.World, settings: Any) -> None:
        page = reverse("admin:tenant-member", args=[world.tenant.pk])
        values = {"email": world.platform_admin.email, "role": "member", "reason": "curious"}
        prove_factor(staff, world.platform_admin)
        settings.STAFF_SECOND_FACTOR = True
        answer = staff.post(page, values)
        assert answer.status_code == 403
        assert "You may not make yourself a member of this tenant." in text_of(answer.content.decode())
        assert not world.platform_admin.memberships.exists()

    def test_an_unknown_user_is_reported(self, staff: Client, world: factories.World) -> None:
        address = reverse("admin:tenant-member", args=[world.tenant.pk])
        form = {"email": "unknown@example.org", "role": "owner", "reason": "x"}
        refused = staff.post(address, form)
        assert refused.status_code == 404
        assert "There is no user 'unknown@example.org'." in text_of(refused.content.decode())
        world.tenant.deleted_at = now()
        world.tenant.save()
        assert staff.post(address, {**form, "email": "member@example.org"}).status_code == 404
        assert Membership.objects.get(user=world.member).role == "member"


def offered(client: Client, person: User) -> list[str]:
    """Return the names of the actions that a person's page offers."""
    return re.findall(r'name="action" value="(\w+)"', client.get(of(person)).content.decode())


def act_from_page(client: Client, name: str, person: User) -> Any:
    """Press a button of a person's page, and confirm it with a reason."""
    address = reverse("admin:accounts_user_changelist")
    form = {"action": name, "_selected_action": person.pk, "from_record": "page"}
    asked = client.post(address, form).content.decode()
    assert 'name="from_record" value="page"' in asked
    answer = client.post(address, {**form, "confirmed": "yes", "reason": "T-1"}, follow=True)
    assert answer.redirect_chain == [(of(person), 302)]
    return text_of(answer.content.decode())


class TestPerson:
    def test_an_email_leads_to_its_person(self, staff: Client, world: factories.World) -> None:
        answer = staff.get("/admin/people/of/", {"email": " MEMBER@example.org"})
        assert answer["Location"] == of(world.member)
        for email in ("unknown@example.org", "", "\0"):
            answer = staff.get("/admin/people/of/", {"email": email})
            assert answer.status_code == 404
            assert "There is nothing here" in answer.content.decode()
        assert staff.get(reverse("admin:person", args=[2**40])).status_code == 404

    def test_events_about_the_person_are_there(self, staff: Client, world: factories.World) -> None:
        assert "No event names this person." in page_text(staff, of(world.stranger))
        make_grant(world.stranger, world.tenant, world.owner)
        make_pat(world.stranger)
        assert "stranger@example.org created a personal access token" in page_text(staff, of(world.stranger))

    def test_a_second_factor_is_shown_and_reset(self, staff: Client, world: factories.World) -> None:
        person = world.member
        assert "Second factor: none. Only platform admins and support need one." in page_text(
            staff, of(person)
        )
        assert "reset_second_factor" not in offered(staff, person)
        add_totp(person)
        assert "Second factor: authenticator app, added just now" in page_text(staff, of(person))
        assert "reset_second_factor" in offered(staff, person)
        assert "Second factor reset: member@example.org." in act_from_page(
            staff, "reset_second_factor", person
        )
        assert Event.objects.get(kind="second-factor.reset").reason == "T-1"

    def test_all_sessions_end_also_of_this_site(self, staff: Client, world: factories.World) -> None:
        assert "Sessions on the dashboard and in the API: none." in page_text(staff, of(world.member))
        assert "end_sessions" not in offered(staff, world.member)
        colleague = support_client()
        person = User.objects.get(is_support=True)
        session, _ = create_refresh_token(user=person)
        assert colleague.get("/admin/").status_code == 200
        said = "in the API: 1, listed below. Sessions of this site are not counted, but end too."
        assert said in page_text(staff, of(person))
        assert "All sessions ended: support@example.org." in act_from_page(staff, "end_sessions", person)
        session.refresh_from_db()
        assert session.revoked_at is not None
        assert colleague.get("/admin/").status_code == 302
        assert "ended all sessions of support@example.org" in page_text(staff, of(person))

    def test_support_reads_but_is_offered_nothing(self, world: factories.World) -> None:
        client = support_client()
        add_totp(world.member)
        assert "Second factor: authenticator app" in page_text(client, of(world.member))
        assert offered(client, world.member) == []

    def test_a_tenant_that_is_gone_is_its_id(self, staff: Client, world: factories.World) -> None:
        gone = uuid4()
        make_pat(world.stranger, tenants=[str(gone)])
        assert str(gone) in page_text(staff, of(world.stranger))

    def test_access_is_offered_or_its_end(self, staff: Client, world: factories.World) -> None:
        take = reverse("admin:tenant-access", args=[world.tenant.pk])
        end = reverse("admin:tenant-access-end", args=[world.tenant.pk])
        html = staff.get(people_of(world.tenant)).content.decode()
        assert take in html
        assert end not in html
        staff.post(take, {"hours": 1, "reason": "x"})
        html = staff.get(people_of(world.tenant)).content.decode()
        assert end in html

    def test_a_lasting_member_is_offered_neither(self, staff: Client, world: factories.World) -> None:
        take = reverse("admin:tenant-access", args=[world.tenant.pk])
        end = reverse("admin:tenant-access-end", args=[world.tenant.pk])
        Membership.objects.create(user=world.platform_admin, tenant=world.tenant, role="member")
        html = staff.get(people_of(world.tenant)).content.decode()
        assert take not in html
        assert end not in html
        assert "You are a member of this tenant already." in page_text(staff, take, status=409)
        assert "You have no limited access to this tenant." in page_text(staff, end, status=409)
