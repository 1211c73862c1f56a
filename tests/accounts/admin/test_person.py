"""The staff's page of a person."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

from django.urls import reverse

from accounts.models import Membership
from tests.accounts.admin.people import make_grant, make_pat, of, people_of
from tests.admin.staff import page_text

if TYPE_CHECKING:
    from django.test import Client

    from tests import factories


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
