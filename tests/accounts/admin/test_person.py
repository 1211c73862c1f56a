"""The staff's page of a person."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from uuid import uuid4

from django.urls import reverse

from accounts.access.credentials import create_refresh_token
from accounts.models import Event, Membership, User
from tests.accounts.admin.people import make_grant, make_pat, of, people_of
from tests.admin.reading import text_of
from tests.admin.second_factor import add_totp
from tests.admin.staff import page_text, support_client

if TYPE_CHECKING:
    from typing import Any

    from django.test import Client

    from tests import factories


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
