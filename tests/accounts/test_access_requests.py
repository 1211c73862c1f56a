"""Requests of staff for access to a tenant's logs, which its owners answer. Contract: Access of staff."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.core import mail

from accounts.admin.offboarding import offboard
from accounts.admin.people import set_member
from accounts.limited_access import (
    LastingMember,
    approve_for_owners,
    request_access,
    take_access,
    withdraw_requests_of,
)
from accounts.models import AccessRequest, Event, Membership, Tenant, User
from accounts.models.users import MembershipRole
from accounts.readers.memberships import ApprovalNeeded
from accounts.readers.rule import Author
from accounts.tasks import remove_old_invitations
from accounts.tenants.lifecycle import delete_tenant
from tenantadmin.lib.core.errors import ApiError, Forbidden
from tenantadmin.lib.core.request_context import acting_for
from tenantadmin.lib.core.timestamps import format_timestamp, now
from tests import factories
from tests.accounts.support import at_once, signed_in
from tests.conftest import ApiClient
from tests.sending import sending

if TYPE_CHECKING:
    from pytest_django.fixtures import DjangoAssertNumQueries

pytestmark = pytest.mark.django_db
REQUIRED = {"staffApproval": "required"}
NOTIFY = {"staffApproval": "notify"}


@pytest.fixture
def sue(world: factories.World) -> User:
    """A member of the support."""
    return factories.make_user("sue@example.org", is_support=True)


@pytest.fixture
def owner(world: factories.World) -> ApiClient:
    return signed_in(world.owner)


def config_of(tenant: Tenant) -> str:
    return f"/config/tenants/{tenant.pk}/config"


def requests_of(tenant: Tenant) -> str:
    return f"/config/tenants/{tenant.pk}/access-requests"


def ask(user: User, tenant: Tenant, *, hours: int = 2, reason: str = "ticket 7") -> AccessRequest:
    with acting_for(reason):
        return request_access(user, tenant_id=tenant.pk, hours=hours)


def answer(request: AccessRequest, how: str) -> str:
    return f"{requests_of(request.tenant)}/{request.pk}/{how}"


def ends_at(user: User, tenant: Tenant) -> dt.datetime | None:
    return Membership.objects.get(user=user, tenant=tenant).ends_at


class TestConfiguration:
    def test_an_owner_sets_it_and_it_stays(self, world: factories.World, owner: ApiClient) -> None:
        config = config_of(world.tenant)
        assert owner.get(config).json()["access"] == NOTIFY
        body = {"tenantName": "Warehouse", "access": REQUIRED}
        assert owner.put(config, body).json()["access"] == REQUIRED
        # Programs that do not know the field do not weaken it.
        kept = owner.put(config, {"tenantName": "Warehouse", "labels": {"a": "b"}}).json()
        assert (kept["access"], kept["labels"]) == (REQUIRED, {"a": "b"})
        assert owner.put(config, {"tenantName": "Warehouse", "access": {}}).json()["access"] == NOTIFY

    def test_nobody_but_an_owner_changes_it(self, world: factories.World, owner: ApiClient) -> None:
        config = config_of(world.tenant)
        pat = factories.pat_token(world.owner, "config:write", tenants=[str(world.tenant.pk)])
        others = [signed_in(world.platform_admin), signed_in(world.tenant_admin), ApiClient(pat)]
        for access, other in ((REQUIRED, NOTIFY), (NOTIFY, REQUIRED)):
            for client in others:
                refused = client.put(config, {"tenantName": "Warehouse", "access": access})
                assert (refused.status_code, refused.json()["message"]) == (
                    403,
                    "Only an owner of the tenant, signed in, changes 'access'.",
                )
                same = client.put(config, {"tenantName": "Warehouse", "access": other})
                assert (same.status_code, same.json()["access"]) == (200, other)
            owner.put(config, {"tenantName": "Warehouse", "access": access})

    def test_a_restore_changes_it_for_owners_alone(self, world: factories.World, owner: ApiClient) -> None:
        config = config_of(world.tenant)
        for access in (REQUIRED, NOTIFY):
            owner.put(config, {"tenantName": "Warehouse", "access": access})
        for user in (world.platform_admin, world.tenant_admin):
            assert signed_in(user).post(f"{config}/history/1/restore").status_code == 403
        assert owner.post(f"{config}/history/1/restore").json()["access"] == REQUIRED
        # A revision of before says nothing about it.
        assert owner.post(f"{config}/history/0/restore").json()["access"] == REQUIRED

    @pytest.mark.parametrize("access", [None, [], {"staffApproval": "never"}, {"staff": "required"}])
    def test_a_wrong_value_is_a_400(self, world: factories.World, owner: ApiClient, access: Any) -> None:
        refused = owner.put(config_of(world.tenant), {"tenantName": "Warehouse", "access": access})
        assert refused.status_code == 400
        assert refused.json()["details"][0]["path"].startswith("/access")

    def test_it_is_no_part_of_a_new_tenant(self, world: factories.World, owner: ApiClient) -> None:
        body = {"accountId": str(world.account.pk), "tenantName": "New", "access": REQUIRED}
        assert owner.post("/config/tenants", body).status_code == 400


class TestAsking:
    def test_where_it_is_required_access_is_not_taken(
        self, world: factories.World, owner: ApiClient, sue: User
    ) -> None:
        owner.put(config_of(world.tenant), {"tenantName": "Warehouse", "access": REQUIRED})
        with pytest.raises(ApprovalNeeded):
            take_access(sue, tenant_id=world.tenant.pk, hours=1)
        assert not Membership.objects.filter(user=sue).exists()

    def test_owners_approve_it(
        self,
        world: factories.World,
        owner: ApiClient,
        sue: User,
        settings: Any,
    ) -> None:
        settings.DASHBOARD_URL = "https://dash.example.org/"
        with sending():
            request = ask(sue, world.tenant)
        [asked] = mail.outbox
        assert (asked.to, asked.subject) == (
            ["owner@example.org"],
            "sue@example.org asks for access to “Warehouse”",
        )
        link = f"https://dash.example.org/#/t/{world.tenant.pk}/members"
        for part in (link, "for 2 h", "Reason:\n\n> ticket 7\n", format_timestamp(request.expires_at)):
            assert part in asked.body
        [listed] = owner.get(requests_of(world.tenant)).json()["requests"]
        assert listed == {
            "id": str(request.pk),
            "tenantId": str(world.tenant.pk),
            "staff": "sue@example.org",
            "hours": 2,
            "reason": "ticket 7",
            "state": "open",
            "createdAt": format_timestamp(request.created_at),
            "expiresAt": format_timestamp(request.created_at + dt.timedelta(hours=12)),
        }
        schema = f"/tenants/{world.tenant.pk}/query/schema"
        assert signed_in(sue).get(schema).status_code == 403
        begun = now()
        with sending():
            approved = owner.post(answer(request, "approve"))
        assert (approved.status_code, approved.json()["state"]) == (200, "approved")
        assert approved.json()["decidedBy"] == "owner@example.org"
        assert signed_in(sue).get(schema).status_code == 200
        ends = ends_at(sue, world.tenant)
        assert ends is not None
        assert dt.timedelta(0) <= ends - begun - dt.timedelta(hours=2) < dt.timedelta(minutes=1)
        # Mails of one millisecond have no order.
        to_owner, to_sue = sorted(mail.outbox[1:], key=lambda message: message.to)
        assert (to_owner.to, to_owner.subject) == (
            ["owner@example.org"],
            "sue@example.org has access to “Warehouse”",
        )
        assert (to_sue.to, to_sue.subject) == (
            ["sue@example.org"],
            "Your access to “Warehouse” is approved",
        )
        assert "Approved by owner@example.org." in to_owner.body
        events = Event.objects.filter(tenant_id=world.tenant.pk, subject="sue@example.org").order_by(
            "at", "id"
        )
        assert [(event.kind, event.actor, event.reason) for event in events] == [
            ("access.requested", "sue@example.org", "ticket 7"),
            ("access.approved", "owner@example.org", "ticket 7"),
            ("membership.added", "owner@example.org", "ticket 7"),
        ]

    def test_owners_decline_it(
        self,
        world: factories.World,
        owner: ApiClient,
        sue: User,
    ) -> None:
        with sending():
            request = ask(sue, world.tenant)
        mail.outbox.clear()
        with sending():
            declined = owner.post(answer(request, "decline")).json()
        assert (declined["state"], declined["decidedBy"]) == ("declined", "owner@example.org")
        assert [(message.to, message.subject) for message in mail.outbox] == [
            (["sue@example.org"], "Your access to “Warehouse” is declined")
        ]
        assert "approved" not in mail.outbox[0].body
        assert not Membership.objects.filter(user=sue).exists()
        assert owner.post(answer(request, "approve")).status_code == 409

    def test_access_that_runs_is_made_longer(
        self, world: factories.World, owner: ApiClient, sue: User
    ) -> None:
        soon = now() + dt.timedelta(minutes=5)
        Membership.objects.create(user=sue, tenant=world.tenant, role="member", ends_at=soon)
        assert owner.post(answer(ask(sue, world.tenant), "approve")).status_code == 200
        assert (ends_at(sue, world.tenant) or soon) > soon

    def test_a_request_is_of_one_tenant(self, world: factories.World, sue: User) -> None:
        request = ask(sue, world.tenant)
        elsewhere = f"{requests_of(world.stranger_tenant)}/{request.pk}/approve"
        assert signed_in(world.stranger).post(elsewhere).status_code == 404
        assert signed_in(world.stranger).get(requests_of(world.stranger_tenant)).json()["requests"] == []
        assert signed_in(world.stranger).get(requests_of(world.tenant)).status_code == 403

    def test_what_has_ended_is_a_409(self, world: factories.World, owner: ApiClient, sue: User) -> None:
        expired = ask(sue, world.tenant)
        AccessRequest.objects.filter(pk=expired.pk).update(expires_at=now())
        # The second request of a user replaces the first.
        replaced = ask(sue, world.tenant)
        withdrawn = ask(sue, world.tenant)
        assert withdraw_requests_of(sue, actor=sue.email, tenant_id=world.tenant.pk) == 1
        approved = ask(sue, world.tenant)
        assert owner.post(answer(approved, "approve")).status_code == 200
        for request in (expired, replaced, withdrawn, approved):
            for how in ("approve", "decline"):
                refused = owner.post(answer(request, how))
                assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
        states = [item["state"] for item in owner.get(requests_of(world.tenant)).json()["requests"]]
        assert sorted(states) == ["approved", "expired", "withdrawn", "withdrawn"]

    def test_a_user_who_is_no_longer_staff_gets_nothing(
        self, world: factories.World, owner: ApiClient, sue: User
    ) -> None:
        request = ask(sue, world.tenant)
        User.objects.filter(pk=sue.pk).update(is_support=False)
        assert owner.post(answer(request, "approve")).status_code == 409
        User.objects.filter(pk=sue.pk).update(is_support=True)
        offboard(sue.pk, heirs={}, author=Author.on_site("admin@example.org"))
        request.refresh_from_db()
        assert request.state == "withdrawn"

    def test_a_lasting_member_asks_for_nothing(self, world: factories.World, owner: ApiClient) -> None:
        with pytest.raises(LastingMember):
            ask(world.member, world.tenant)
        admin = world.platform_admin
        request = ask(admin, world.tenant)
        Membership.objects.create(user=admin, tenant=world.tenant, role="member")
        assert owner.post(answer(request, "approve")).status_code == 409
        assert ends_at(admin, world.tenant) is None

    def test_a_deleted_tenant_has_no_requests(
        self, world: factories.World, owner: ApiClient, sue: User
    ) -> None:
        request = ask(sue, world.tenant)
        delete_tenant(tenant_id=world.tenant.pk, actor="owner@example.org")
        assert owner.get(requests_of(world.tenant)).status_code == 404
        assert owner.post(answer(request, "approve")).status_code == 404
        request.refresh_from_db()
        assert request.outcome == ""

    @pytest.mark.parametrize("hours", [0, 9])
    def test_it_is_for_a_limited_time(self, world: factories.World, sue: User, hours: int) -> None:
        with pytest.raises(ApiError, match="for 1 to 8 hours"):
            ask(sue, world.tenant, hours=hours)

    def test_the_list_takes_as_many_queries_for_one_as_for_many(
        self,
        world: factories.World,
        owner: ApiClient,
        sue: User,
        django_assert_num_queries: DjangoAssertNumQueries,
    ) -> None:
        for count in (1, 5):
            for _ in range(count):
                ask(sue, world.tenant)
            with django_assert_num_queries(3):
                owner.get(requests_of(world.tenant))

    def test_old_ones_are_removed(self, world: factories.World, sue: User) -> None:
        old, new = ask(sue, world.tenant), ask(world.platform_admin, world.tenant)
        for request, days in ((old, 31), (new, 29)):
            expired = now() - dt.timedelta(days=days)
            AccessRequest.objects.filter(pk=request.pk).update(expires_at=expired)
        remove_old_invitations()
        assert list(AccessRequest.objects.all()) == [new]


class TestAdding:
    """Staff do not get around the approval by adding a member."""

    @pytest.fixture(autouse=True)
    def required(self, world: factories.World, owner: ApiClient) -> None:
        owner.put(config_of(world.tenant), {"tenantName": "Warehouse", "access": REQUIRED})

    def test_staff_add_no_members(self, world: factories.World, sue: User) -> None:
        admin, tenant = signed_in(world.platform_admin), world.tenant
        Membership.objects.create(
            user=sue, tenant=tenant, role="member", ends_at=now() + dt.timedelta(hours=1)
        )
        entries = [{"tenantId": str(tenant.pk), "role": "member"}]
        for email in (world.stranger.email, sue.email):
            for method, path, body in (
                ("PUT", f"/users/{email}/tenants", [{**entries[0], "role": "admin"}]),
                ("PUT", f"/users/{email}", {"tenants": [{**entries[0], "role": "admin"}]}),
                ("POST", f"/config/tenants/{tenant.pk}/invitations", {"email": email, "role": "member"}),
            ):
                refused = admin.request(method, path, body)
                assert (refused.status_code, "An owner invites" in refused.json()["message"]) == (403, True)
            with pytest.raises(Forbidden, match="An owner invites"):
                set_member(
                    tenant_id=tenant.pk,
                    email=email,
                    role=MembershipRole.MEMBER,
                    author=Author.on_site("a@b.example"),
                )
        path = f"/users/{world.stranger.email}/tenants"
        assert admin.request("PATCH", path, entries).status_code == 403
        assert Membership.objects.get(tenant=tenant, user=sue).ends_at is not None
        assert not tenant.memberships.filter(user=world.stranger).exists()

    def test_an_invitation_of_staff_from_before_has_ended(
        self, world: factories.World, owner: ApiClient
    ) -> None:
        path = f"/config/tenants/{world.tenant.pk}/invitations"
        body = {"email": world.stranger.email, "role": "member"}
        owner.put(config_of(world.tenant), {"tenantName": "Warehouse", "access": NOTIFY})
        made = signed_in(world.platform_admin).post(path, body).json()["id"]
        owner.put(config_of(world.tenant), {"tenantName": "Warehouse", "access": REQUIRED})
        assert signed_in(world.stranger).post(f"/users/me/invitations/{made}/accept").status_code == 409
        made = owner.post(path, body).json()["id"]
        assert signed_in(world.stranger).post(f"/users/me/invitations/{made}/accept").status_code == 200

    def test_staff_change_the_roles_of_members(self, world: factories.World) -> None:
        entries = [{"tenantId": str(world.tenant.pk), "role": "admin"}]
        path = f"/users/{world.member.email}/tenants"
        assert signed_in(world.platform_admin).put(path, entries).status_code == 200


class TestEmergency:
    def test_another_platform_admin_approves_it(
        self,
        world: factories.World,
        sue: User,
    ) -> None:
        with sending():
            request = ask(sue, world.tenant)
        mail.outbox.clear()
        with sending(), acting_for("outage 9"):
            approve_for_owners(world.platform_admin, tenant_id=world.tenant.pk, request_id=request.pk)
        assert ends_at(sue, world.tenant) is not None
        told = mail.outbox[0]
        assert told.to == ["owner@example.org"]
        assert "Reason:\n\n> ticket 7\n\nApproved by admin@example.org." in told.body
        event = Event.objects.get(kind="access.approved")
        assert (event.actor, event.subject, event.reason) == (
            "admin@example.org",
            "sue@example.org",
            "outage 9",
        )

    def test_two_users_are_needed_and_support_does_not_do(self, world: factories.World, sue: User) -> None:
        own = ask(world.platform_admin, world.tenant)
        of_sue = ask(sue, world.tenant)
        for user, request in ((world.platform_admin, own), (sue, own), (sue, of_sue)):
            with pytest.raises(Forbidden):
                approve_for_owners(user, tenant_id=world.tenant.pk, request_id=request.pk)
        assert set(AccessRequest.objects.values_list("outcome", flat=True)) == {""}


@pytest.mark.django_db(transaction=True)
class TestAtOnce:
    ROUNDS = 5

    @pytest.fixture
    def world(self) -> factories.World:
        return factories.make_world()

    def test_of_answers_at_once_one_wins(self, world: factories.World, owner: ApiClient, sue: User) -> None:
        for how in ("approve", "decline"):
            for _ in range(self.ROUNDS):
                Membership.objects.filter(user=sue).delete()
                request = ask(sue, world.tenant)
                calls = [partial(owner.post, answer(request, verb)) for verb in ("approve", how, "approve")]
                statuses = [answer.status_code for answer in at_once(calls)]
                assert sorted(statuses) == [200, 409, 409]
                request.refresh_from_db()
                given = Membership.objects.filter(user=sue).exists()
                assert given == (request.outcome == "approved")

    def test_withdraw_against_approve(self, world: factories.World, owner: ApiClient, sue: User) -> None:
        def withdraw() -> int:
            return withdraw_requests_of(sue, actor=sue.email, tenant_id=world.tenant.pk)

        for _ in range(self.ROUNDS):
            Membership.objects.filter(user=sue).delete()
            request = ask(sue, world.tenant)
            calls: list[Any] = [partial(owner.post, answer(request, "approve")), withdraw]
            approved, withdrawn = at_once(calls)
            assert (approved.status_code, withdrawn) in {(200, 0), (409, 1)}
            assert Membership.objects.filter(user=sue).exists() == (withdrawn == 0)

    def test_a_user_asks_twice_and_has_one_open_request(self, world: factories.World, sue: User) -> None:
        for _ in range(self.ROUNDS):
            at_once([partial(ask, sue, world.tenant)] * 3)
            assert AccessRequest.objects.open().count() == 1
