"""Staff offboard a person."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest
from django.urls import reverse

from accounts.admin import rights
from accounts.admin.rights import rights_of
from accounts.models import Account, Event, Membership, User
from accounts.readers.memberships import SetMembership
from accounts.readers.rule import Author, change_readers
from tenantadmin.lib.core.timestamps import now
from tests import factories
from tests.accounts.admin.people import acts, make_grant, make_pat, of
from tests.admin.staff import page_text, signed_in, text_of
from tests.conftest import ApiClient

if TYPE_CHECKING:
    from django.test import Client


class TestOffboarding:
    def form(self, world: factories.World, **changes: str) -> dict[str, str]:
        return {
            "everything": "tenant-admin@example.org",
            str(world.account.pk): "",
            str(world.tenant.pk): "",
            "reason": "left the company",
            **changes,
        }

    def test_sole_ownerships_go_first_then_everything_ends(
        self, staff: Client, world: factories.World
    ) -> None:
        owner, address = world.owner, of(world.owner, "person-offboard")
        shared = factories.make_account("Shared", owners=[owner, world.member])
        make_pat(owner, tenants=[str(world.tenant.pk)])
        make_grant(owner, world.stranger_tenant, world.stranger)
        bearer = ApiClient(factories.sign_in(owner))
        assert bearer.get(f"/config/tenants/{world.tenant.pk}").status_code == 200
        text = page_text(staff, address)
        told = "Suggested: tenant-admin@example.org, admin of Warehouse, never seen. "
        others = "New owner of the account Acme, if not the one above optional New owner of the tenant"
        assert f"New owner of everything below {told}{others}" in text
        assert "Shared" not in text.partition("What ends")[0]
        ended = "2 account ownerships, 1 membership, 1 grant, 1 token, 1 session"
        assert f"What ends 6: {ended}" in text
        answer = staff.post(address, self.form(world), follow=True)
        told = (
            f"owner@example.org is offboarded. 6 ended: {ended}. "
            "tenant-admin@example.org now owns Acme, Warehouse."
        )
        assert told in text_of(answer.content.decode())
        owner.refresh_from_db()
        assert not owner.is_active
        assert rights_of(owner).rows == []
        assert [owner.email for owner in world.account.owners.all()] == ["tenant-admin@example.org"]
        assert [owner.email for owner in shared.owners.all()] == ["member@example.org"]
        assert Membership.objects.get(user=world.tenant_admin).role == "owner"
        assert bearer.get(f"/config/tenants/{world.tenant.pk}").status_code == 401
        assert acts() == [
            {
                "act": "person.offboarded",
                "handedOver": 2,
                "memberships": 1,
                "accounts": 2,
                "grants": 1,
                "tokens": 1,
            }
        ]
        account = page_text(staff, reverse("admin:account", args=[world.account.pk]))
        assert "admin@example.org offboarded owner@example.org changed “Owners” left the company" in account
        reasons = Event.objects.filter(actor="admin@example.org").values_list("reason", flat=True)
        assert set(reasons) == {"left the company"}
        kinds = set(Event.objects.filter(subject="owner@example.org").values_list("kind", flat=True))
        assert {
            "membership.removed",
            "grant.revoked",
            "pat.revoked",
            "session.ended",
            "user.deactivated",
        } <= kinds

    def test_who_could_own_it_is_suggested_by_role_and_last_use(
        self, staff: Client, world: factories.World
    ) -> None:
        def suggested() -> list[tuple[str, str]]:
            fields = staff.get(of(world.owner, "person-offboard")).context["form"].fields.values()
            return [
                (field.initial, field.help_text)
                for field in fields
                if "below" in field.label or "Warehouse" in field.label
            ]

        def heir(user: User, right: str) -> tuple[str, str]:
            return user.email, f"Suggested: {user.email}, {right}."

        tenant, admin, of_all = world.tenant, world.tenant_admin, ("", "")
        Membership.objects.create(tenant=tenant, user=world.stranger, role="admin")
        other = factories.make_tenant(world.account, "Lake", owner=world.member)
        admin.last_login = now() - dt.timedelta(days=3)
        admin.save()
        nearest = heir(admin, "admin of Warehouse, last seen 3 days ago")
        assert suggested() == [heir(world.member, "owner of Lake, never seen"), nearest]
        Membership.objects.filter(tenant=other).delete()
        assert suggested() == [nearest, of_all]
        User.objects.filter(pk=admin.pk).update(is_active=False)
        assert suggested() == [heir(world.stranger, "admin of Warehouse, never seen"), of_all]
        world.stranger.memberships.update(ends_at=now() + dt.timedelta(hours=1))
        assert suggested() == [
            ("", "No other active user owns or administers it, so there is no suggestion."),
            of_all,
        ]
        world.account.owners.add(world.stranger)
        [one] = suggested()
        assert one == heir(world.stranger, "owner of the account Acme, never seen")

    @pytest.mark.parametrize(
        ("heir", "said"),
        [
            ("unknown@example.org", "There is no other active user 'unknown@example.org'."),
            ("owner@example.org", "There is no other active user 'owner@example.org'."),
            ("gone@example.org", "There is no other active user 'gone@example.org'."),
        ],
    )
    def test_without_an_heir_nothing_happens(
        self, staff: Client, world: factories.World, heir: str, said: str
    ) -> None:
        factories.make_user("gone@example.org", is_active=False)
        form = self.form(world, **{str(world.tenant.pk): heir})
        answer = staff.post(of(world.owner, "person-offboard"), form)
        assert answer.status_code == 400
        assert said in text_of(answer.content.decode())
        world.owner.refresh_from_db()
        assert world.owner.is_active
        assert [owner.email for owner in world.account.owners.all()] == ["owner@example.org"]
        assert acts() == []

    def test_a_new_owner_of_everything_is_required(self, staff: Client, world: factories.World) -> None:
        form = self.form(world, everything="")
        answer = staff.post(of(world.owner, "person-offboard"), form)
        assert answer.status_code == 400
        assert answer.context["form"].errors == {"everything": ["There is no other owner. Name a new one."]}
        assert text_of(answer.content.decode()).count("There is no other owner.") == 1

    def test_each_wrong_heir_is_told_at_its_field(self, staff: Client, world: factories.World) -> None:
        fields = {str(world.tenant.pk): "a@example.org", str(world.account.pk): "b@example.org"}
        answer = staff.post(of(world.owner, "person-offboard"), self.form(world, **fields))
        form = answer.context["form"]
        assert form.errors == {
            str(world.tenant.pk): ["There is no other active user 'a@example.org'."],
            str(world.account.pk): ["There is no other active user 'b@example.org'."],
        }
        assert f"/{world.tenant.pk}:" not in text_of(answer.content.decode())

    def test_one_heir_of_everything_and_another_of_one(self, staff: Client, world: factories.World) -> None:
        address = of(world.owner, "person-offboard")
        form = {"everything": "nobody@example.org", "reason": "left"}
        answer = staff.post(address, form)
        errors = {"everything": ["There is no other active user 'nobody@example.org'."]}
        assert answer.context["form"].errors == errors
        form |= {"everything": "tenant", str(world.tenant.pk): "member@example.org"}
        assert staff.post(address, form).status_code == 302
        assert [owner.email for owner in world.account.owners.all()] == ["tenant-admin@example.org"]
        assert Membership.objects.get(tenant=world.tenant, role="owner").user == world.member

    @pytest.mark.parametrize("gives_billing", [True, False])
    def test_mails_about_billing_go_to_another_owner(
        self, staff: Client, world: factories.World, gives_billing: bool
    ) -> None:
        shared = factories.make_account("Shared", owners=[world.owner, world.member])
        lent = factories.make_account("Lent", owners=[world.stranger])
        Account.objects.filter(pk__in=[world.account.pk, shared.pk, lent.pk]).update(
            billing_email="owner@example.org"
        )
        address = of(world.owner, "person-offboard")
        text = page_text(staff, address)
        assert "Mails about billing go to the new owner of Acme and to another owner of Lent, Shared" in text
        assert "Otherwise they still go to owner@example.org." in text
        form = self.form(world, **({"billing": "on"} if gives_billing else {}))
        assert staff.post(address, form).status_code == 302
        after = ["tenant-admin@example.org", "stranger@example.org", "member@example.org"]
        billed = Account.objects.filter(pk__in=[world.account.pk, shared.pk, lent.pk]).order_by("name")
        emails = list(billed.values_list("billing_email", flat=True))
        assert emails == (after if gives_billing else ["owner@example.org"] * 3)

    def test_staff_lose_their_role(self, staff: Client, world: factories.World) -> None:
        admin = factories.make_user("two@example.org", role="admin", is_support=True)
        wildcard = make_pat(admin, tenants=["*"])
        colleague = signed_in(admin)
        assert colleague.get("/admin/").status_code == 200
        assert staff.post(of(admin, "person-offboard"), {"reason": "left"}).status_code == 302
        admin.refresh_from_db()
        wildcard.refresh_from_db()
        assert (admin.role, admin.is_support, admin.is_active) == ("user", False, False)
        assert wildcard.revoked_at is not None
        assert colleague.get("/admin/").status_code == 302

    def test_oneself_and_the_last_admin_stay(self, staff: Client, world: factories.World) -> None:
        address = of(world.platform_admin, "person-offboard")
        assert address not in staff.get(of(world.platform_admin)).content.decode()
        html = staff.get(address).content.decode()
        assert "This is you. Ask another platform admin." in html
        assert 'name="reason"' not in html
        assert staff.post(address, {"reason": "x"}).status_code == 400
        world.platform_admin.refresh_from_db()
        assert world.platform_admin.is_active
        assert rights.why_not_offboard(world.platform_admin, actor="x@example.org").startswith(
            "This is the last active platform admin."
        )

    def test_an_offboarded_person_is_not_offered_it_again(
        self, staff: Client, world: factories.World
    ) -> None:
        address = of(world.member, "person-offboard")
        User.objects.filter(pk=world.member.pk).update(is_active=False)
        # Who is only deactivated still has rights to end.
        assert address in staff.get(of(world.member)).content.decode()
        assert staff.post(address, {"reason": "left"}).status_code == 302
        assert address not in staff.get(of(world.member)).content.decode()
        html = staff.get(address).content.decode()
        assert "The person is inactive and has no right any more." in html
        assert 'name="reason"' not in html
        assert staff.post(address, {"reason": "left"}).status_code == 400
        assert len(acts()) == 1

    def test_a_tenant_gained_after_the_page_was_shown_has_the_owner_of_everything(
        self, staff: Client, world: factories.World
    ) -> None:
        """A tenant that the person got after the page was shown is not left without owner."""
        form = self.form(world)
        tenant = factories.make_tenant(world.account, "New")
        change_readers(Author("x@example.org"), SetMembership(world.owner, tenant.pk, "owner"))
        answer = staff.post(of(world.owner, "person-offboard"), form)
        assert answer.status_code == 302
        assert tenant.memberships.get(role="owner").user == world.tenant_admin
