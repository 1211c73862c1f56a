"""The staff's pages of people: who may do what, and members of a tenant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from accounts.models import Event, Membership
from tenantadmin.lib.core.timestamps import now
from tests.accounts.admin.people import PEOPLE, acts, of, people_of
from tests.admin.reading import text_of
from tests.admin.staff import prove_factor, require_roles

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
