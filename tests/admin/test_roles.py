"""Who gets into the admin site, and which pages support and admins may open."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from accounts.admin.base import TABS
from accounts.models import Event, Tenant, User
from accounts.readers.rule import Author
from accounts.readers.users import set_support
from tests import factories
from tests.admin.filling import to
from tests.admin.staff import act


def every_page(tenant: Tenant) -> dict[str, str]:
    """Return the addresses of all pages that support may see, by name."""
    names = [name for _, name in TABS.values()]
    more = ("tenant-access", "tenant-rebuild")
    return {
        **{name: reverse(f"admin:{name}") for name in ("index", "system", "terms")},
        **{name: to(name, tenant) for name in (*names, *more)},
        "tenant-quarantine": to("tenant-quarantine", tenant, day="2026-03-01"),
    }


def of_admins(tenant: Tenant) -> dict[str, str]:
    names = ("tenant-member", "tenant-engine")
    return {"terms-edit": reverse("admin:terms-edit"), **{name: to(name, tenant) for name in names}}


class TestRoles:
    @pytest.mark.slow
    def test_every_page_for_every_role(self, staff: Client, support: Client, tenant: Tenant) -> None:
        for name, address in every_page(tenant).items():
            assert staff.get(address).status_code == 200, name
            assert support.get(address).status_code == 200, name
        for name, address in of_admins(tenant).items():
            assert staff.get(address).status_code == 200, name
            refused = support.get(address)
            assert refused.status_code == 403, name
            assert "Your role on this site does not allow this." in refused.content.decode()

    def test_neither_strangers_nor_owners_get_in(self, tenant: Tenant, world: factories.World) -> None:
        pages = {**every_page(tenant), **of_admins(tenant)}
        pages["tenant-quarantined-entry"] = to("tenant-quarantined-entry", tenant, entry=1)
        for user in (None, world.owner, world.member, world.stranger):
            client = Client()
            if user is not None:
                client.force_login(user)
            for address in pages.values():
                for answer in (client.get(address), client.post(address, {"reason": "x"})):
                    assert answer.status_code == 302
                    assert answer["Location"].startswith("/admin/login/")
        assert not Event.objects.filter(kind="staff.acted").exists()

    def test_support_sees_lists_but_does_nothing_to_their_rows(
        self, support: Client, world: factories.World
    ) -> None:
        address = reverse("admin:accounts_user_changelist")
        assert support.get(address).status_code == 200
        act(support, "deactivate", world.member)
        world.member.refresh_from_db()
        assert world.member.is_active
        shown = support.get(reverse("admin:accounts_user_change", args=[world.member.pk])).content.decode()
        assert "Deactivate" not in shown

    def test_the_role_is_given_and_taken_with_an_event(self, staff: Client, world: factories.World) -> None:
        assert "Made support: member@example.org." in act(staff, "make_support", world.member)
        client = Client()
        client.force_login(User.objects.get(pk=world.member.pk))
        assert client.get("/admin/").status_code == 200
        assert "Is support already." in act(staff, "make_support", world.member)
        assert "Support ended: member@example.org." in act(staff, "end_support", world.member)
        assert client.get("/admin/").status_code == 302
        assert not set_support(world.member, is_support=False, author=Author.on_site("x@example.org"))
        events = Event.objects.filter(kind="roles.changed").order_by("pk")
        assert [(event.before, event.after, event.reason) for event in events] == [
            ({"support": False}, {"support": True}, "asked to"),
            ({"support": True}, {"support": False}, "asked to"),
        ]

    def test_a_deactivated_support_user_is_no_staff(self, db: None) -> None:
        assert not factories.make_user("gone@example.org", is_support=True, is_active=False).is_staff
        assert not factories.make_user("s@example.org", is_support=True).is_superuser
